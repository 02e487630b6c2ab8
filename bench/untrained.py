"""A model that was never trained, for measurements of speed: by default of the paper's sizes.

    python bench/untrained.py --pairs valid.parquet --output build/untrained

It is EncDec+sGate+SPM of configs/paper-sgate-spm.toml with random weights, and with sub-words
learned from a table. Where the length of headlines is forced, as in bench/generate.py, it takes as
long as one that was trained. Its weights are from a normal distribution, as those of trained models
nearly are: with equal chances for all values, processors without VNNI would have to multiply many
more of them apart (docs/runtime.md).
"""

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file

import quick
import tiny
from ledeline.corpus.tables import read_table
from ledeline.model.build import build
from ledeline.model.format.description import WEIGHTS
from ledeline.model.format.model_folder import write_description
from ledeline.model.initialization import NormalInit
from ledeline.model.system_config import SystemConfig
from ledeline.text.profiles import PAPER
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.train_config import load_train_config

RECIPE = tiny.configs() / "paper-sgate-spm.toml"


def write_untrained(
    folder: Path, system: SystemConfig, words: Mapping[str, int], merges: int, seed: int = 1
) -> Path:
    """Write a model folder whose sub-words are learned from counted words."""
    subwords = Subwords.learn(words, merges, unknown_words=PAPER.unknown_words)
    folder.mkdir(parents=True)
    write_description(folder, system, Tokenizer(PAPER, subwords))
    model = build(system, len(subwords), seed=seed, init=NormalInit(std=0.05))
    save_file(model.state_dict(), folder / f"{WEIGHTS}.safetensors")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, required=True, help="a table of ledes and headlines")
    parser.add_argument("--output", type=Path, required=True, help="the folder to make")
    parser.add_argument("--merges", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    quick.offer(parser, pairs=tiny.table, output=lambda: tiny.folder() / "untrained", merges=100)
    options = parser.parse_args()
    if options.output.exists():
        parser.error(f"{options.output} is there already")
    counts: Counter[str] = Counter()
    for pair in read_table(options.pairs, lede="lede", headline="headline", date=None):
        for text in (pair.lede, pair.headline):
            counts.update(PAPER.words(text))
    system = load_train_config(RECIPE).model
    folder = write_untrained(options.output, system, counts, options.merges, options.seed)
    print(f"{Tokenizer.load(folder).vocabulary_size} types in {folder}")


if __name__ == "__main__":
    main()
