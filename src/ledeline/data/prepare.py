"""Prepare a dataset: read pairs, tokenise, filter, split, learn sub-words, encode, write.

The corpus is read once, as a stream, and stored on disk as word numbers. Only its distinct words
are in memory.
"""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline import __version__
from ledeline.config import FilterConfig, PrepareConfig
from ledeline.config.toml import to_toml
from ledeline.core.atomic import atomic_folder
from ledeline.core.errors import ConfigError, CorpusError
from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.corpus.filters import NUM_EXAMPLES, DroppedPair, FilterReport
from ledeline.corpus.pair_store import (
    CHUNK,
    IntArray,
    RaggedArray,
    StoredPairs,
    WordIndex,
    chunks,
)
from ledeline.corpus.splits import (
    TEST,
    TRAIN,
    VALID,
    SplitPart,
    held_out_duplicates,
    small_training_warning,
    split_pools,
)
from ledeline.data.corpus_reader import CorpusReader
from ledeline.data.dataset import DatasetWriter, EncodedChunk
from ledeline.text.profiles import PROFILES, Profile
from ledeline.text.subwords import SPECIALS, UNK, Subwords
from ledeline.text.tokenizer import DATASET_FILE, Tokenizer

REPORT, CONFIG = "report.json", "config.toml"
UNKNOWN = SPECIALS[UNK]
SIDES = ("ledes", "headlines")


class PrepareResult(NamedTuple):
    """What `prepare` wrote, and its warnings."""

    folder: Path
    report: FilterReport
    num_rejects: int
    warnings: tuple[str, ...] = ()


def prepare(config: PrepareConfig, progress: Progress = no_progress) -> PrepareResult:
    """Make the dataset that a configuration describes; the write is atomic."""
    reused = _reused_tokenizer(config)
    profile = reused.profile if reused else PROFILES[config.text.profile]
    report = FilterReport()
    replace = DATASET_FILE if config.dataset.overwrite else None
    with atomic_folder(config.dataset.output, replace=replace) as folder:
        reader = CorpusReader(config, profile, folder, report)
        pools = reader.read(progress)
        parts = split_pools(config.split, pools, reader.dates, report)
        warning = small_training_warning(config.split, report.read, reader.dates)
        words = _CorpusVocabulary(reader.numbers, profile, config.text.unknown_below)
        _drop_duplicates(parts, words, report)
        words.count(parts[TRAIN])
        tokenizer = reused or Tokenizer(profile, _learn_subwords(config, words, progress))
        encoder = _PairEncoder(tokenizer.subwords, words, config.filter, report, progress)
        writer = DatasetWriter(folder, tokenizer)
        for split, part in parts.items():
            writer.write_split(split, encoder.encode(split, part))
            _write_text(folder, split, part.pairs, encoder.kept[split], words)
        for path in folder.glob("*.words"):
            path.unlink()
        _write(folder / REPORT, json.dumps(report.as_json(), indent=1, ensure_ascii=False))
        _write(folder / CONFIG, f"# ledeline {__version__}, all keys\n{to_toml(config)}")
        writer.finish()
    warnings = (warning,) if warning else ()
    return PrepareResult(config.dataset.output, report, reader.num_rejects, warnings)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _reused_tokenizer(config: PrepareConfig) -> Tokenizer | None:
    """The tokenizer of the model or the dataset that `subword.reuse` names."""
    if config.subword.reuse is None:
        return None
    tokenizer = Tokenizer.load(config.subword.reuse)
    if tokenizer.profile.name != config.text.profile:
        raise ConfigError(
            f"subword.reuse: {config.subword.reuse} has the text profile {tokenizer.profile.name}; "
            f"set text.profile to the same; it is {config.text.profile}"
        )
    if config.text.unknown_below and UNKNOWN not in tokenizer.subwords.unknown_words:
        raise ConfigError(
            f"text.unknown_below = {config.text.unknown_below}: the sub-words of "
            f"{config.subword.reuse} have no {UNKNOWN}; leave it out"
        )
    return tokenizer


# --- splitting ------------------------------------------------------------------------------------


def _drop_duplicates(
    parts: dict[str, SplitPart], words: "_CorpusVocabulary", report: FilterReport
) -> None:
    """Drop training pairs that are also held out, and validation pairs that are in the test."""
    for split, others in ((VALID, [TEST]), (TRAIN, [VALID, TEST])):
        if split not in parts:
            continue
        part = parts[split]
        rows = held_out_duplicates(part, [parts[other] for other in others if other in parts])
        if len(rows):
            parts[split] = SplitPart(part.pairs, np.setdiff1d(part.rows, rows, assume_unique=True))
            examples = words.examples(part.pairs, rows)
            report.drop(split, "also in a held-out split", examples, len(rows))


# --- words -> sub-words ---------------------------------------------------------------------------


class _CorpusVocabulary:
    """The distinct words of the corpus, their counts, and which are unknown on each side."""

    def __init__(self, numbers: WordIndex, profile: Profile, unknown_below: int) -> None:
        self._profile, self._unknown_below = profile, unknown_below
        self.unknown = {*profile.unknown_words, *([UNKNOWN] if unknown_below else [])}
        self._unknown_number = numbers[UNKNOWN] if unknown_below else 0
        self.words = list(numbers)
        self.counts = np.zeros(len(self.words), np.int64)  # in ledes and headlines of training
        self.known: dict[str, IntArray] = {}  # side -> each word, or <unk> where it is unknown

    def count(self, train: SplitPart) -> None:
        """Count the words of training, and find those that are unknown on each side."""
        for side in SIDES:
            counts = self._count_side(getattr(train.pairs, side), train.rows)
            all_words = np.arange(len(self.words))
            known = np.where(counts < self._unknown_below, self._unknown_number, all_words)
            self.known[side] = known
            self.counts += np.bincount(known, counts, len(self.words)).astype(np.int64)

    def _count_side(self, side_words: RaggedArray, rows: IntArray) -> IntArray:
        counts = np.zeros(len(self.words), np.int64)
        for chunk in chunks(rows):
            counts += np.bincount(side_words.take(chunk)[0], minlength=len(counts))
        return counts

    def text(self, side_words: RaggedArray, row: int) -> str:
        """The text of a lede or a headline."""
        return self._profile.join(
            self.words[number] for number in side_words.take(np.array([row]))[0]
        )

    def examples(self, pairs: StoredPairs, rows: IntArray) -> list[DroppedPair]:
        """The first few of these pairs, for the report."""
        return [
            DroppedPair(self.text(pairs.ledes, row), self.text(pairs.headlines, row))
            for row in rows[:NUM_EXAMPLES].tolist()
        ]


def _learn_subwords(
    config: PrepareConfig, words: _CorpusVocabulary, progress: Progress
) -> Subwords:
    """Learn joint sub-words from ledes and headlines of training."""
    return Subwords.learn(
        {
            word: count
            for word, count in zip(words.words, words.counts.tolist(), strict=True)
            if count and word not in words.unknown
        },
        config.subword.merges,
        min_character_count=config.subword.min_character_count,
        unknown_words=sorted(words.unknown),
        progress=progress,
    )


class _PairEncoder:
    """Encodes pairs as sub-word ids, and drops those that are too long in sub-words."""

    def __init__(
        self,
        subwords: Subwords,
        words: _CorpusVocabulary,
        config: FilterConfig,
        report: FilterReport,
        progress: Progress,
    ) -> None:
        self._words, self._config, self._report, self._progress = words, config, report, progress
        each_word = track_progress(words.words, "encode words", len(words.words), progress)
        pieces = RaggedArray(*subwords.encode_lines(each_word))
        self._pieces, self._num_pieces = pieces, np.diff(pieces.starts)
        self.kept: dict[str, list[IntArray]] = {}  # the rows that went into each split

    def encode(self, split: str, part: SplitPart) -> Iterator[EncodedChunk]:
        """The encoded pairs of a split, in chunks."""
        self.kept[split] = []
        done = 0
        for rows in chunks(part.rows):
            if split != TEST:
                rows = self._drop_long(split, part.pairs, rows)
            self.kept[split].append(rows)
            yield EncodedChunk(
                *self._ids("ledes", part.pairs.ledes, rows),
                *self._ids("headlines", part.pairs.headlines, rows),
            )
            done = min(done + CHUNK, len(part.rows))
            self._progress(f"encode {split}", done, len(part.rows))
        num_kept = sum(map(len, self.kept[split]))
        self._report.count_kept(split, num_kept)
        if split == TRAIN and not num_kept:
            dropped = self._report.summary(split)
            raise CorpusError(f"no training pair is left; dropped were: {dropped}")

    def _drop_long(self, split: str, pairs: StoredPairs, rows: IntArray) -> IntArray:
        lede_lengths = self._lengths("ledes", pairs.ledes, rows)
        headline_lengths = self._lengths("headlines", pairs.headlines, rows)
        most_lede = self._config.max_lede_subwords or np.inf
        most_headline = self._config.max_headline_subwords or np.inf
        drops = {
            "headline longer than lede in sub-words": headline_lengths + 1 > lede_lengths,
            "lede too long in sub-words": lede_lengths > most_lede,
            "headline too long in sub-words": headline_lengths > most_headline,
        }
        kept = np.ones(len(rows), bool)
        for rule, dropped in drops.items():
            new = dropped & kept
            if new.any():
                examples = self._words.examples(pairs, rows[new])
                self._report.drop(split, rule, examples, int(new.sum()))
            kept &= ~dropped
        return rows[kept]

    def _lengths(self, side: str, side_words: RaggedArray, rows: IntArray) -> IntArray:
        numbers, lengths = side_words.take(rows)
        return _sums(self._num_pieces[self._words.known[side][numbers]], lengths)

    def _ids(
        self, side: str, side_words: RaggedArray, rows: IntArray
    ) -> tuple[npt.NDArray[Any], IntArray]:
        numbers, lengths = side_words.take(rows)
        ids, num_pieces = self._pieces.take(self._words.known[side][numbers])
        return ids, _sums(num_pieces, lengths)


def _sums(values: IntArray, lengths: IntArray) -> IntArray:
    """The sum of each of the consecutive groups of values that have these lengths."""
    ends = np.cumsum(lengths)
    totals = np.concatenate(([0], np.cumsum(values)))
    sums: IntArray = totals[ends] - totals[ends - lengths]
    return sums


# --- text for evaluation --------------------------------------------------------------------------


def _write_text(
    folder: Path, split: str, pairs: StoredPairs, kept: list[IntArray], words: _CorpusVocabulary
) -> None:
    """Write held-out pairs as text, in order: a sampled split exists nowhere else as text."""
    if split == TRAIN:
        return
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
        for row in chain.from_iterable(rows.tolist() for rows in kept):
            lede, headline = words.text(pairs.ledes, row), words.text(pairs.headlines, row)
            pair = {"lede": lede, "headline": headline}
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")
