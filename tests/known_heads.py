"""A Transformer with one right head, by construction, and pairs that it aligns."""

from pathlib import Path
from typing import Any

import torch

from ledeline.corpus.table_writer import write_table
from ledeline.evaluation.links import format_pharaoh
from ledeline.model.build import build
from ledeline.model.format.model_folder import write_description
from ledeline.model.format.weights import write_weights
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.synth.newsroom import generate
from ledeline.text.tokenizer import Tokenizer

SIZES = {"embedding_size": 16, "hidden_size": 4, "encoder_layers": 1, "decoder_layers": 2}
RIGHT = 1, 2  # layer and head, from 1
NUM_WORDS = 4  # of a headline


def place_transformer(vocabulary: int, *names: str) -> Any:
    """A Transformer with add-ons that sees places only; its right head looks at its own place.

    All weights are 0 but two: queries and keys of the right layer. They are the first four waves of
    a place, both for the right head and, of the other sign, for the other one, which looks away
    from its place. It is the sharper of the two, so the mean of heads is wrong.
    """
    own = TransformerConfig(**SIZES, heads=2)  # type: ignore[arg-type]
    config = SystemConfig(system=own, addons={name: ADDON_CONFIGS[name]() for name in names})
    model = build(config, vocabulary).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if name.endswith("norm.weight") else 0.0)
        waves = torch.eye(16)[[0, 1, 2, 3, 8, 9, 10, 11]]
        looks = model.decoder.layers[RIGHT[0] - 1].source_attention  # type: ignore[union-attr,operator]
        looks.of_state.weight.copy_(torch.cat([-30 * waves, 3 * waves]))
        looks.of_source.weight[:16] = torch.cat([waves, waves])
    return model


def write_place_transformer(folder: Path, tokenizer: Tokenizer, *names: str) -> Path:
    """Its model folder."""
    folder.mkdir()
    model = place_transformer(tokenizer.vocabulary_size, *names)
    write_description(folder, model.config, tokenizer)
    write_weights(folder / "model.safetensors", model.state_dict(), "float32", {})
    return folder


def beginnings(number: int) -> list[dict[str, str]]:
    """Ledes without marks; the headline of each is how it begins."""
    links = format_pharaoh((place, place) for place in range(NUM_WORDS))
    rows = []
    for story in generate(number, 5):
        words = [word for word in story.lede.split() if word.isalpha() and word.isascii()]
        headline = " ".join(words[:NUM_WORDS])
        rows.append({"lede": " ".join(words), "headline": headline, "alignment": links})
    return rows


def write_beginnings(path: Path, number: int, *, gold: bool = True) -> Path:
    """A table of them, with or without gold links."""
    columns = ["lede", "headline", *(["alignment"] if gold else [])]
    write_table(
        path, [{name: row[name] for name in columns} for row in beginnings(number)], columns
    )
    return path
