"""Read the files of a corpus, tokenise and filter their pairs, and store them for each split."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from ledeline.config import PrepareConfig
from ledeline.core.errors import CorpusError
from ledeline.core.progress import Progress, track_progress
from ledeline.corpus import InvalidHeader, InvalidRow, Pair, Row, SkippedDocument
from ledeline.corpus.delimited import AMBIGUOUS_DELIMITER
from ledeline.corpus.filters import DroppedPair, Filter, FilterReport
from ledeline.corpus.pair_store import PairStore, StoredPairs, WordIndex
from ledeline.corpus.sources import Source, find_sources, read_source
from ledeline.corpus.splits import SPLITS, TEST, DateRange, split_by_date
from ledeline.corpus.tables import MISSING_COLUMN
from ledeline.text.profiles import Profile, clean

REJECTS: Final = "rejects.jsonl"


class CorpusReader:
    """Reads and filters all files; pairs go to a pool for each split."""

    def __init__(
        self, config: PrepareConfig, profile: Profile, folder: Path, report: FilterReport
    ) -> None:
        self._config, self._profile, self._report = config, profile, report
        self._filter = Filter(config.filter)
        self._rejects = folder / REJECTS
        self.numbers = WordIndex()
        self.dates = DateRange()
        self.num_rejects = 0
        self._first_reject: InvalidRow | None = None
        self._stores = {name: PairStore(folder, name, self.numbers) for name in SPLITS}

    def read(self, progress: Progress) -> dict[str, StoredPairs]:
        """Read all files, and return the pairs of each pool."""
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
                self._add(pool, row)
            elif isinstance(row, InvalidRow):
                self._reject(row)
            else:
                self._skip(pool, row)
        num_rows = sum(self._report.read.values()) + self.num_rejects
        progress("read", num_rows, num_rows)  # before, only lines were counted
        if self._first_reject and not self._report.read:
            raise CorpusError(f"no pair can be read; the first invalid row is {self._first_reject}")
        return {name: store.close() for name, store in self._stores.items()}

    def _rows(self, pool: str, source: Source) -> Iterator[tuple[str, Row]]:
        dated = self._config.split.by == "date"
        for row in read_source(self._config.corpus, source, dated=dated):
            yield pool, row

    def _add(self, pool: str, pair: Pair) -> None:
        if self._config.split.by == "date":
            self.dates.add(pair.date)
            pool = split_by_date(self._config.split, pair.date)
        self._report.count_read(pool)
        lede = self._profile.words(pair.lede)
        full_headline = self._profile.words(pair.headline)
        headline = self._profile.target_words(full_headline)
        rule = "empty side" if not lede or not headline else None
        if rule is None and pool != TEST and self._filter.rules:
            plain = self._profile.plain
            rule = self._filter.dropped_by(plain(lede), plain(full_headline))
        if rule is None:
            self._stores[pool].append(lede, headline)
        else:
            place = f"{pair.file}: line {pair.line}"
            example = DroppedPair(clean(pair.lede), clean(pair.headline), place)
            self._report.drop(pool, rule, [example])

    def _skip(self, pool: str, row: SkippedDocument) -> None:
        self._report.count_read(pool)
        self._report.drop(
            pool, row.rule, [DroppedPair(row.text, "", f"{row.file}: line {row.line}")]
        )

    def _reject(self, row: InvalidRow) -> None:
        if self._config.corpus.bad_rows == "stop":
            raise CorpusError(f"{row}; {self._advice(row)}")
        self.num_rejects += 1
        self._first_reject = self._first_reject or row
        with self._rejects.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(row._asdict(), ensure_ascii=False) + "\n")

    def _advice(self, row: InvalidRow) -> str:
        """What to do about an invalid row; a header cannot be skipped without its whole table."""
        advice = "save the file as UTF-8" if "not UTF-8" in row.reason else "correct it"
        if row.reason.startswith(MISSING_COLUMN):
            dated = ", and --corpus.date" if self._config.split.by == "date" else ""
            advice = f"name yours with --corpus.lede and --corpus.headline{dated}"
        if row.reason.startswith(AMBIGUOUS_DELIMITER):
            advice = "set it with --corpus.delimiter"
        if isinstance(row, InvalidHeader):
            return advice
        return f"{advice}, or skip such rows with --corpus.bad_rows=skip"
