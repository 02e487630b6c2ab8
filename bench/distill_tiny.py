"""What judge.py, distill.py and prefer.py --quick work on: a small Transformer, and labels."""

from pathlib import Path
from typing import NamedTuple

import tiny
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.initialization import XavierInit
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.transformer import TransformerConfig
from prefer import save
from truth_tiny import made
from verifier_train import in_parts

SYSTEM = TransformerConfig(
    embedding_size=16, hidden_size=32, encoder_layers=1, decoder_layers=1, heads=2, dropout=0.1
)


class TinyDistilling(NamedTuple):
    """Files that belong together."""

    data: Path
    model: Path
    labels: Path
    pairs: Path
    output: Path


def distilling() -> TinyDistilling:
    """A dataset of stories, an untrained model of its sub-words, and labels by dice."""
    data, truth = tiny.dataset(), made()
    tokenizer = Dataset(data).tokenizer
    model = build(SystemConfig.of(SYSTEM), tokenizer.vocabulary_size, 1, XavierInit())
    folder = tiny.folder() / "teacher"
    save(model, tokenizer, folder)
    return TinyDistilling(data, folder, in_parts(truth), truth.pairs, tiny.folder() / "distill")
