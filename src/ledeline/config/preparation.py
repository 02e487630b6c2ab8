"""The keys of `ledeline prepare`."""

import datetime
from pathlib import Path
from typing import Annotated, Literal

from ledeline.config.section import NOT_EMPTY, BadValue, at_least, section


@section
class TextConfig:
    """How text becomes words."""

    profile: Annotated[
        Literal["paper", "natural"],
        "paper: Treebank tokens, lower case, # for digits; natural: cased text with its digits and "
        "punctuation.",
    ] = "paper"
    unknown_below: Annotated[
        int,
        "Words seen fewer times than this on their side of the training split become <unk> "
        "(5: as Rush et al. did; 0: off, as the paper).",
        at_least(0),
    ] = 0


@section
class CorpusConfig:
    """Where the pairs come from."""

    format: Annotated[
        Literal["table", "parallel", "gigaword"],
        "table: .parquet .csv .tsv .jsonl; parallel: text files, a lede file then its headline "
        "file; gigaword: Annotated Gigaword XML. Text and tables may be .gz or .zst.",
    ] = "table"
    root: Annotated[Path, "Folder that the file names below start from."] = Path()
    train: Annotated[
        tuple[str, ...],
        "Training files; * and ? match. A gigaword name ending in .txt or .split is a list of "
        "outlet/outlet_eng_YYYYMM files, one a line.",
        NOT_EMPTY,
    ]
    valid: Annotated[tuple[str, ...], "Validation files."] = ()
    test: Annotated[tuple[str, ...], "Test files; their pairs are not filtered."] = ()
    lede: Annotated[str, "Column of the lede, in tables."] = "lede"
    headline: Annotated[str, "Column of the headline, in tables."] = "headline"
    date: Annotated[str, "Column of the date, in tables; read for split.by = date."] = "date"
    delimiter: Annotated[
        Literal["auto", "comma", "semicolon", "tab", "bar"],
        "Field delimiter of .csv files; auto: the comma if the columns above are found with it, "
        "else the delimiter that finds them.",
    ] = "auto"
    bad_rows: Annotated[
        Literal["stop", "skip"],
        "stop: end at the first row that cannot be read; skip: write such rows to rejects.jsonl "
        "with the reason.",
    ] = "stop"


@section
class FilterConfig:
    """Which pairs are kept for training and validation; 0 means no limit.

    Words are counted before a headline loses its punctuation. Pairs with an empty side, and pairs
    whose headline with its end mark is longer than the lede in sub-words, are always dropped.
    """

    require_period: Annotated[bool, "Keep only ledes that have the word '.'."] = False
    namas_blocklist: Annotated[bool, "Drop headlines with a marker of the NAMAS blocklist."] = False
    blocklist: Annotated[tuple[str, ...], "Further markers of headlines to drop."] = ()
    blocklist_match: Annotated[
        Literal["substring", "word"],
        "substring: anywhere in the lower-cased headline, as NAMAS does (ap drops japan); "
        "word: whole words.",
    ] = "substring"
    min_lede_words: Annotated[int, "Fewest words in a lede.", at_least(0)] = 0
    max_lede_words: Annotated[int, "Most words in a lede.", at_least(0)] = 0
    min_headline_words: Annotated[int, "Fewest words in a headline.", at_least(0)] = 0
    max_headline_words: Annotated[int, "Most words in a headline.", at_least(0)] = 0
    min_shared_words: Annotated[
        int, "Fewest different lower-cased words that both sides share.", at_least(0)
    ] = 0
    shared_word_length: Annotated[
        int, "Shortest word, in characters, that counts as shared.", at_least(1)
    ] = 4
    max_lede_subwords: Annotated[int, "Most sub-words in a lede.", at_least(0)] = 0
    max_headline_subwords: Annotated[int, "Most sub-words in a headline.", at_least(0)] = 0


@section
class SplitConfig:
    """How pairs are split into training, validation and test."""

    by: Annotated[
        Literal["files", "date", "random"],
        "files: as corpus.train, valid and test say; date: by valid_from and test_from; random: "
        "num_valid and num_test pairs drawn from the pool.",
    ] = "files"
    valid_from: Annotated[
        datetime.date | None,
        "by date: first day of validation; pairs without a date are for training.",
    ] = None
    test_from: Annotated[datetime.date | None, "by date: first day of test."] = None
    num_valid: Annotated[int, "random: validation pairs to draw.", at_least(0)] = 0
    num_test: Annotated[int, "random: test pairs to draw.", at_least(0)] = 0
    pool: Annotated[
        Literal["train", "valid"],
        "random: draw from the training files (the other pairs are for training) or, as in the "
        "paper, from the validation files (the other pairs are left out).",
    ] = "train"
    seed: Annotated[int, "random: the random seed.", at_least(0)] = 1

    def __post_init__(self) -> None:
        if self.by == "date" and not (self.valid_from or self.test_from):
            raise BadValue("by", self.by, "needs split.valid_from, split.test_from or both")
        if self.valid_from and self.test_from and self.valid_from >= self.test_from:
            raise BadValue("test_from", self.test_from, "must be later than split.valid_from")
        if self.by == "random" and not self.num_valid + self.num_test:
            raise BadValue("by", self.by, "needs split.num_valid, split.num_test or both")


@section
class SubwordConfig:
    """The joint sub-words of both sides."""

    merges: Annotated[int, "Merge operations to learn from the training split.", at_least(0)] = 5000
    min_character_count: Annotated[
        int, "A character seen fewer times than this in training becomes <unk>.", at_least(1)
    ] = 1
    reuse: Annotated[
        Path | None,
        "Use the sub-words of this dataset or model instead of learning new ones. A folder, "
        "shipped (the model that comes with ledeline), or the name of an installed model.",
    ] = None


@section
class DatasetConfig:
    """The dataset to write."""

    output: Annotated[Path, "Folder of the dataset; it is written completely or not at all."]
    overwrite: Annotated[
        bool, "Replace an existing dataset; any other folder is never replaced."
    ] = False


@section
class PrepareConfig:
    """Everything `ledeline prepare` needs."""

    text: Annotated[TextConfig, ""] = TextConfig()
    corpus: Annotated[CorpusConfig, ""]
    filter: Annotated[FilterConfig, ""] = FilterConfig()
    split: Annotated[SplitConfig, ""] = SplitConfig()
    subword: Annotated[SubwordConfig, ""] = SubwordConfig()
    dataset: Annotated[DatasetConfig, ""]

    def __post_init__(self) -> None:
        if self.split.by == "random":
            self._check_draw()
        if self.split.by == "date" and self.corpus.format == "parallel":
            raise BadValue("split.by", "date", "parallel text has no dates")
        if self.split.by == "date" and (self.corpus.valid or self.corpus.test):
            raise BadValue("split.by", "date", "all files belong in corpus.train then")

    def _check_draw(self) -> None:
        if self.split.num_test and self.corpus.test:
            raise BadValue("split.num_test", self.split.num_test, "corpus.test has files already")
        if self.split.pool == "valid" and not self.corpus.valid:
            raise BadValue("split.pool", "valid", "corpus.valid names no files to draw from")
        if self.split.pool == "train" and self.split.num_valid and self.corpus.valid:
            raise BadValue(
                "split.num_valid", self.split.num_valid, "corpus.valid has files already"
            )
