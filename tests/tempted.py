"""The bundled model with a liking for some words, whatever it was trained on."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from safetensors.torch import load_file, save_file

from ledeline.core.shipped import SHIPPED
from ledeline.text.tokenizer import Tokenizer

BIAS = "output.bias"  # what a word has before anything is read


def tempted_model(folder: Path, words: Iterable[str], by: float) -> Path:
    """A new folder with the bundled model, to which these words are likelier: those it has whole."""
    shutil.copytree(SHIPPED, folder)
    path = folder / "model.safetensors"
    tensors, wanted = load_file(path), frozenset(words)
    ids = [n for n, text in enumerate(Tokenizer.load(SHIPPED).types) if text in wanted]
    assert ids, f"no word of these is one sub-word: {sorted(wanted)[:5]}"
    tensors[BIAS][ids] += by
    save_file(tensors, path)
    return folder
