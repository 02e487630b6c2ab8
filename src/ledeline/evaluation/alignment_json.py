"""alignment.json, written and read: word pairs, quality against gold links, heat maps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from ledeline.evaluation.json_fields import JsonFields
from ledeline.evaluation.links import AlignmentScore
from ledeline.inference.headline import Matrix

WordGroup: TypeAlias = Literal["same", "inflection", "other"]

WORD_GROUPS: Final[tuple[WordGroup, ...]] = get_args(WordGroup)
_DIGITS: Final = 4  # of the values of a heat map
_LARGEST: Final = 1.0001  # sums of rounded probabilities may pass 1


# --- word pairs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordPairGroup:
    """Aligned word pairs of one kind."""

    count: int
    examples: tuple[tuple[str, str, int], ...]  # headline word, source word, how often

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"count": self.count, "examples": [list(example) for example in self.examples]}


@dataclass(frozen=True)
class WordPairTable:
    """Aligned word pairs by one method: how many, and the most frequent ones."""

    num_pairs: int  # ledes with their headlines
    num_tokens: int  # of these headlines
    num_pieces: int  # tokens left out: one side is a piece of a word, or unknown
    groups: dict[WordGroup, WordPairGroup]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "pairs": self.num_pairs,
            "tokens": self.num_tokens,
            "pieces": self.num_pieces,
            "groups": {name: group.as_dict() for name, group in self.groups.items()},
        }


# --- heat maps ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeatMap:
    """Attention and SPM of one pair. Rows are steps, columns the sub-words of the source.

    A row is named by the token that its step writes, with the source token it is aligned to in
    brackets: by attention the place with the largest value, by the SPM the likeliest type of the
    whole vocabulary, whether the source has it or not. Legend: I source length, J headline length.
    """

    source: tuple[str, ...]  # I
    attention_rows: tuple[str, ...]  # J + 1: the headline and <eos>
    attention: Matrix  # (J + 1, I)
    spm_rows: tuple[str, ...] | None  # as many, then <pad> up to I; None for a system without SPM
    spm: Matrix | None  # (I or J + 1, I): q_j of the type at each place

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with rounded values."""
        return {
            "source": list(self.source),
            "attention_rows": list(self.attention_rows),
            "attention": _rounded(self.attention),
            "spm_rows": None if self.spm_rows is None else list(self.spm_rows),
            "spm": None if self.spm is None else _rounded(self.spm),
        }


@dataclass(frozen=True)
class PairHeatMap:
    """The heat map of one pair of a test set."""

    pair: int  # from 0
    heat_map: HeatMap


def _rounded(rows: Matrix) -> list[list[float]]:
    return [[round(value, _DIGITS) for value in row] for row in rows]


# --- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AlignmentSummary:
    """How a system aligns a test set: all of alignment.json."""

    words: dict[str, WordPairTable]  # by method
    quality: dict[str, AlignmentScore] | None  # by method; None without gold links
    heat_maps: tuple[PairHeatMap, ...]
    left_out: str | None = None  # why nothing was aligned, and what to do; None if all was

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        scores = self.quality
        return {
            "words": {method: table.as_dict() for method, table in self.words.items()},
            "quality": scores and {method: score.as_dict() for method, score in scores.items()},
            "heatmaps": [{"pair": one.pair} | one.heat_map.as_dict() for one in self.heat_maps],
            **({} if self.left_out is None else {"left_out": self.left_out}),
        }


def read_alignment(path: Path, num_pairs: int) -> AlignmentSummary | None:
    """Read the file; None where there is none."""
    if not path.exists():
        return None
    fields = JsonFields.read(path)
    words = JsonFields(path, {}) if fields.is_null("words") else fields.inner("words")
    return AlignmentSummary(
        words={method: _read_words(words.inner(method)) for method in words.values},
        quality=None if fields.is_null("quality") else _read_quality(fields.inner("quality")),
        heat_maps=_read_heat_maps(fields, num_pairs),
        left_out=None if fields.is_null("left_out") else fields.text("left_out"),
    )


def _read_words(fields: JsonFields) -> WordPairTable:
    groups = fields.inner("groups")
    return WordPairTable(
        fields.count("pairs"),
        fields.count("tokens"),
        fields.count("pieces"),
        {name: _read_group(groups.inner(name)) for name in WORD_GROUPS},
    )


def _read_group(fields: JsonFields) -> WordPairGroup:
    examples = []
    for example in fields.list("examples"):
        match example:
            case [str(headline_word), str(source_word), int(count)]:
                examples.append((headline_word, source_word, count))
            case _:
                raise fields.error("examples", "a list of [headline word, source word, count]")
    return WordPairGroup(fields.count("count"), tuple(examples))


def _read_quality(fields: JsonFields) -> dict[str, AlignmentScore]:
    return {method: _read_score(fields.inner(method)) for method in fields.values}


def _read_score(fields: JsonFields) -> AlignmentScore:
    def count(key: str) -> int | None:
        return None if fields.is_null(key) else fields.count(key)

    def share(key: str) -> float | None:
        return None if fields.is_null(key) else fields.share(key)

    return AlignmentScore(
        precision=fields.share("precision"),
        recall=fields.share("recall"),
        error_rate=fields.share("error_rate"),
        num_predicted=count("num_predicted"),
        num_gold=count("num_gold"),
        num_dropped=count("num_dropped"),
        dropped_precision=share("dropped_precision"),
        dropped_recall=share("dropped_recall"),
        pad_precision=share("pad_precision"),
        pad_recall=share("pad_recall"),
    )


def _read_heat_maps(fields: JsonFields, num_pairs: int) -> tuple[PairHeatMap, ...]:
    if fields.is_null("heatmaps"):
        return ()
    entries = enumerate(fields.list("heatmaps"))
    numbered = JsonFields(fields.path, {f"heatmaps.{place}": one for place, one in entries})
    return tuple(_read_heat_map(numbered.inner(key), num_pairs) for key in numbered.values)


def _read_heat_map(fields: JsonFields, num_pairs: int) -> PairHeatMap:
    pair = fields.count("pair")
    if pair >= num_pairs:
        raise fields.error("pair", f"a number below {num_pairs}")
    source = _read_texts(fields, "source")
    spm_rows = spm = None
    if not fields.is_null("spm"):
        spm_rows, spm = _read_rows(fields, "spm", len(source))
    attention_rows, attention = _read_rows(fields, "attention", len(source))
    return PairHeatMap(pair, HeatMap(source, attention_rows, attention, spm_rows, spm))


def _read_rows(fields: JsonFields, kind: str, num_columns: int) -> tuple[tuple[str, ...], Matrix]:
    """The names of the rows, and their values."""
    names, values = _read_texts(fields, f"{kind}_rows"), fields.list(kind)
    rows = [_row(value, num_columns) for value in values]
    if len(rows) != len(names) or None in rows:
        raise fields.error(kind, f"{len(names)} rows of {num_columns} numbers from 0 to 1")
    return names, tuple(row for row in rows if row is not None)


def _read_texts(fields: JsonFields, key: str) -> tuple[str, ...]:
    values = fields.list(key)
    texts = tuple(value for value in values if isinstance(value, str))
    if len(texts) != len(values):
        raise fields.error(key, "a list of texts")
    return texts


def _row(value: object, length: int) -> tuple[float, ...] | None:
    """A row of so many probabilities; None if the value is anything else."""
    if not isinstance(value, list) or len(value) != length or not all(map(_is_share, value)):
        return None
    return tuple(map(float, value))


def _is_share(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= _LARGEST
