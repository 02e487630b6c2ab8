"""From the outside world's text to a dataset: read, tokenise, filter, split, learn, encode, write.

The corpus is read once, as a stream, into numbers of words on disk; what a corpus of any size needs
in memory is its different words.
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
from ledeline.corpus import BadHeader, BadRow, NoPair, Pair, Row
from ledeline.corpus.delimited import AMBIGUOUS
from ledeline.corpus.filters import NUM_EXAMPLES, Example, Filter, Report
from ledeline.corpus.sources import Source, find_sources, read_source
from ledeline.corpus.splits import (
    SPLITS,
    TEST,
    TRAIN,
    VALID,
    Days,
    Part,
    little_training,
    repeated,
    split_by_date,
    split_pools,
)
from ledeline.corpus.store import CHUNK, Numbers, PairStore, Runs, StoredPairs, WordNumbers, chunks
from ledeline.corpus.tables import NO_COLUMN
from ledeline.data.dataset import Chunk, DatasetWriter
from ledeline.text.profiles import PROFILES, Profile, clean
from ledeline.text.subwords import SPECIALS, UNK, Subwords
from ledeline.text.tokenizer import DATASET_FILE, Tokenizer

REPORT, REJECTS, CONFIG = "report.json", "rejects.jsonl", "config.toml"
UNKNOWN = SPECIALS[UNK]
SIDES = ("ledes", "headlines")


class Prepared(NamedTuple):
    """What came of `prepare`."""

    folder: Path
    report: Report
    num_rejects: int
    warnings: tuple[str, ...] = ()


def prepare(config: PrepareConfig, progress: Progress = no_progress) -> Prepared:
    """Make the dataset that a configuration describes; it appears whole or not at all."""
    reused = _reused_tokenizer(config)
    profile = reused.profile if reused else PROFILES[config.text.profile]
    report = Report()
    replace = DATASET_FILE if config.dataset.overwrite else None
    with atomic_folder(config.dataset.output, replace=replace) as folder:
        reading = _Reading(config, profile, folder, report)
        pools = reading.run(progress)
        parts = split_pools(config.split, pools, reading.days, report)
        warning = little_training(config.split, report.read, reading.days)
        words = _Words(reading.numbers, profile, config.text.unknown_below)
        _drop_repeated(parts, words, report)
        words.count(parts[TRAIN])
        tokenizer = reused or Tokenizer(profile, _learn(config, words, progress))
        encoder = _Encoder(tokenizer.subwords, words, config.filter, report, progress)
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
    return Prepared(config.dataset.output, report, reading.num_rejects, warnings)


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


# --- reading --------------------------------------------------------------------------------------


class _Reading:
    """Reads all files into pools of pairs: training, validation and test as far as known yet."""

    def __init__(
        self, config: PrepareConfig, profile: Profile, folder: Path, report: Report
    ) -> None:
        self._config, self._profile, self._report = config, profile, report
        self._filter = Filter(config.filter)
        self._rejects = folder / REJECTS
        self.numbers = WordNumbers()
        self.days = Days()
        self.num_rejects = 0
        self._first_reject: BadRow | None = None
        self._stores = {name: PairStore(folder, name, self.numbers) for name in SPLITS}

    def run(self, progress: Progress) -> dict[str, StoredPairs]:
        corpus = self._config.corpus
        sources = [
            (pool, source)
            for pool, names in zip(SPLITS, (corpus.train, corpus.valid, corpus.test), strict=True)
            for source in find_sources(corpus, names)
        ]
        counts = [source.num_rows() for _, source in sources]
        total = None if None in counts else sum(filter(None, counts))
        rows = chain.from_iterable(self._rows(pool, source) for pool, source in sources)
        for pool, row in track_progress(rows, "read", total, progress):
            if isinstance(row, Pair):
                self._take(pool, row)
            elif isinstance(row, BadRow):
                self._reject(row)
            else:
                self._pass_over(pool, row)
        num_rows = sum(self._report.read.values()) + self.num_rejects
        progress("read", num_rows, num_rows)  # lines were counted before
        if self._first_reject and not self._report.read:
            raise CorpusError(f"no pair can be read; the first bad row is {self._first_reject}")
        return {name: store.close() for name, store in self._stores.items()}

    def _rows(self, pool: str, source: Source) -> Iterator[tuple[str, Row]]:
        dated = self._config.split.by == "date"
        for row in read_source(self._config.corpus, source, dated=dated):
            yield pool, row

    def _take(self, pool: str, pair: Pair) -> None:
        if self._config.split.by == "date":
            self.days.count(pair.date)
            pool = split_by_date(self._config.split, pair.date)
        self._report.count_read(pool)
        lede = self._profile.words(pair.lede)
        full_headline = self._profile.words(pair.headline)
        headline = self._profile.target_words(full_headline)
        rule = "empty side" if not lede or not headline else None
        if rule is None and pool != TEST and self._filter.rules:
            plain = self._profile.plain
            rule = self._filter.verdict(plain(lede), plain(full_headline))
        if rule is None:
            self._stores[pool].append(lede, headline)
        else:
            place = f"{pair.file}: line {pair.line}"
            example = Example(clean(pair.lede), clean(pair.headline), place)
            self._report.drop(pool, rule, [example])

    def _pass_over(self, pool: str, row: NoPair) -> None:
        self._report.count_read(pool)
        self._report.drop(pool, row.rule, [Example(row.text, "", f"{row.file}: line {row.line}")])

    def _reject(self, row: BadRow) -> None:
        if self._config.corpus.bad_rows == "stop":
            raise CorpusError(f"{row}; {self._way_on(row)}")
        self.num_rejects += 1
        self._first_reject = self._first_reject or row
        with self._rejects.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(row._asdict(), ensure_ascii=False) + "\n")

    def _way_on(self, row: BadRow) -> str:
        """What to do about a row that ends the work; to skip a header would lose its table."""
        way_on = "save the file as UTF-8" if "not UTF-8" in row.reason else "correct it"
        if row.reason.startswith(NO_COLUMN):
            dated = ", and --corpus.date" if self._config.split.by == "date" else ""
            way_on = f"name yours with --corpus.lede and --corpus.headline{dated}"
        if row.reason.startswith(AMBIGUOUS):
            way_on = "set it with --corpus.delimiter"
        if isinstance(row, BadHeader):
            return way_on
        return f"{way_on}, or skip such rows with --corpus.bad_rows=skip"


# --- splitting ------------------------------------------------------------------------------------


def _drop_repeated(parts: dict[str, Part], words: "_Words", report: Report) -> None:
    """Drop training pairs that are held out too, and validation pairs that are in the test."""
    for split, others in ((VALID, [TEST]), (TRAIN, [VALID, TEST])):
        if split not in parts:
            continue
        part = parts[split]
        rows = repeated(part, [parts[other] for other in others if other in parts])
        if len(rows):
            parts[split] = Part(part.pairs, np.setdiff1d(part.rows, rows, assume_unique=True))
            examples = words.examples(part.pairs, rows)
            report.drop(split, "also in a held-out split", examples, len(rows))


# --- words -> sub-words ---------------------------------------------------------------------------


class _Words:
    """The different words of the corpus by their numbers, and which of them each side knows."""

    def __init__(self, numbers: WordNumbers, profile: Profile, unknown_below: int) -> None:
        self._profile, self._unknown_below = profile, unknown_below
        self.unknown = {*profile.unknown_words, *([UNKNOWN] if unknown_below else [])}
        self._unknown_number = numbers[UNKNOWN] if unknown_below else 0
        self.words = list(numbers)
        self.counts = np.zeros(len(self.words), np.int64)  # in training, on both sides
        self.known: dict[str, Numbers] = {}  # side -> for each word the word it is read as

    def count(self, train: Part) -> None:
        """Count the words of training, and decide which of them each side knows."""
        for side in SIDES:
            counts = self._count_side(getattr(train.pairs, side), train.rows)
            all_words = np.arange(len(self.words))
            known = np.where(counts < self._unknown_below, self._unknown_number, all_words)
            self.known[side] = known
            self.counts += np.bincount(known, counts, len(self.words)).astype(np.int64)

    def _count_side(self, runs: Runs, rows: Numbers) -> Numbers:
        counts = np.zeros(len(self.words), np.int64)
        for chunk in chunks(rows):
            counts += np.bincount(runs.take(chunk)[0], minlength=len(counts))
        return counts

    def text(self, runs: Runs, row: int) -> str:
        """A side of a pair as text again."""
        return self._profile.join(self.words[number] for number in runs.take(np.array([row]))[0])

    def examples(self, pairs: StoredPairs, rows: Numbers) -> list[Example]:
        """The first few of these pairs, for the report."""
        return [
            Example(self.text(pairs.ledes, row), self.text(pairs.headlines, row))
            for row in rows[:NUM_EXAMPLES].tolist()
        ]


def _learn(config: PrepareConfig, words: _Words, progress: Progress) -> Subwords:
    """Learn joint sub-words from both sides of the training pairs."""
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


class _Encoder:
    """Turns pairs of word numbers into sub-word ids, and drops what the ids do not allow."""

    def __init__(
        self,
        subwords: Subwords,
        words: _Words,
        config: FilterConfig,
        report: Report,
        progress: Progress,
    ) -> None:
        self._words, self._config, self._report, self._progress = words, config, report, progress
        each_word = track_progress(words.words, "cut words", len(words.words), progress)
        pieces = Runs(*subwords.encode_lines(each_word))
        self._pieces, self._num_pieces = pieces, np.diff(pieces.starts)
        self.kept: dict[str, list[Numbers]] = {}  # the rows that went into each split

    def encode(self, split: str, part: Part) -> Iterator[Chunk]:
        """The encoded pairs of a split, in chunks."""
        self.kept[split] = []
        done = 0
        for rows in chunks(part.rows):
            if split != TEST:
                rows = self._fitting(split, part.pairs, rows)
            self.kept[split].append(rows)
            yield Chunk(
                *self._ids("ledes", part.pairs.ledes, rows),
                *self._ids("headlines", part.pairs.headlines, rows),
            )
            done = min(done + CHUNK, len(part.rows))
            self._progress(f"encode {split}", done, len(part.rows))
        num_kept = sum(map(len, self.kept[split]))
        self._report.count_kept(split, num_kept)
        if split == TRAIN and not num_kept:
            dropped = self._report.summary(split)
            raise CorpusError(f"no pair is left to train on; what was dropped: {dropped}")

    def _fitting(self, split: str, pairs: StoredPairs, rows: Numbers) -> Numbers:
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

    def _lengths(self, side: str, runs: Runs, rows: Numbers) -> Numbers:
        numbers, lengths = runs.take(rows)
        return _sums(self._num_pieces[self._words.known[side][numbers]], lengths)

    def _ids(self, side: str, runs: Runs, rows: Numbers) -> tuple[npt.NDArray[Any], Numbers]:
        numbers, lengths = runs.take(rows)
        ids, num_pieces = self._pieces.take(self._words.known[side][numbers])
        return ids, _sums(num_pieces, lengths)


def _sums(values: Numbers, lengths: Numbers) -> Numbers:
    """The sums over runs of values."""
    ends = np.cumsum(lengths)
    totals = np.concatenate(([0], np.cumsum(values)))
    sums: Numbers = totals[ends] - totals[ends - lengths]
    return sums


# --- text for evaluation --------------------------------------------------------------------------


def _write_text(
    folder: Path, split: str, pairs: StoredPairs, kept: list[Numbers], words: _Words
) -> None:
    """Write held-out pairs as text too, in the split's order: a drawn test is nowhere else."""
    if split == TRAIN:
        return
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
        for row in chain.from_iterable(rows.tolist() for rows in kept):
            lede, headline = words.text(pairs.ledes, row), words.text(pairs.headlines, row)
            pair = {"lede": lede, "headline": headline}
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")
