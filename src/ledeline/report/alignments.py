"""What alignment.json says of a system on a test set: word pairs, quality, heat maps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledeline.report.fields import Fields

GROUPS: Final = ("same", "inflection", "other")


@dataclass(frozen=True)
class Quality:
    """Links of one method against gold."""

    precision: float
    recall: float
    error_rate: float
    dropped_recall: float | None  # of words that gold drops, those without a link
    pad_recall: float | None  # of those, what the SPM left to <pad>


@dataclass(frozen=True)
class Group:
    """Aligned word pairs of one type."""

    count: int
    examples: tuple[tuple[str, str, int], ...]  # headline word, source word, how often


@dataclass(frozen=True)
class Words:
    """Aligned word pairs by one method."""

    num_pairs: int
    num_tokens: int
    num_pieces: int
    groups: dict[str, Group]


@dataclass(frozen=True)
class HeatMap:
    """How much each row, a step of the headline, has of each column, a word of the source."""

    source: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class HeatMaps:
    """One pair as attention and, where there is an SPM, as the SPM saw it."""

    pair: int
    attention: HeatMap
    spm: HeatMap | None

    @property
    def views(self) -> tuple[HeatMap, ...]:
        """Those there are."""
        return (self.attention,) if self.spm is None else (self.attention, self.spm)


@dataclass(frozen=True)
class Alignment:
    """All of alignment.json, by method."""

    words: dict[str, Words]
    quality: dict[str, Quality]
    heat_maps: tuple[HeatMaps, ...]


def read_alignment(path: Path, num_pairs: int) -> Alignment | None:
    """Read the file; None where there is none."""
    if not path.exists():
        return None
    fields = Fields.read(path)
    words = _inner(fields, "words")
    quality = _inner(fields, "quality")
    return Alignment(
        words={method: _words(words.inner(method)) for method in words.values},
        quality={method: _quality(quality.inner(method)) for method in quality.values},
        heat_maps=_all_heat_maps(fields, num_pairs),
    )


def _inner(fields: Fields, key: str) -> Fields:
    return Fields(fields.path, {}) if fields.is_null(key) else fields.inner(key)


_MAYBE: Final = ("dropped_recall", "pad_recall")


def _quality(fields: Fields) -> Quality:
    return Quality(
        fields.share("precision"),
        fields.share("recall"),
        fields.share("error_rate"),
        *(None if fields.is_null(key) else fields.share(key) for key in _MAYBE),
    )


def _words(fields: Fields) -> Words:
    groups = fields.inner("groups")
    return Words(
        fields.count("pairs"),
        fields.count("tokens"),
        fields.count("pieces"),
        {name: _group(groups.inner(name)) for name in GROUPS},
    )


def _group(fields: Fields) -> Group:
    examples = fields.list("examples")
    for example in examples:
        if not _is_example(example):
            raise fields.error("examples", "a list of [headline word, source word, count]")
    return Group(fields.count("count"), tuple((one[0], one[1], one[2]) for one in examples))


def _is_example(value: Any) -> bool:
    kinds = (str, str, int)
    return isinstance(value, list) and len(value) == 3 and all(map(isinstance, value, kinds))


# --- heat maps ------------------------------------------------------------------------------------


def _all_heat_maps(fields: Fields, num_pairs: int) -> tuple[HeatMaps, ...]:
    if fields.is_null("heatmaps"):
        return ()
    entries = dict(enumerate(fields.list("heatmaps")))
    numbered = Fields(fields.path, {f"heatmaps.{place}": one for place, one in entries.items()})
    return tuple(_heat_maps(numbered.inner(key), num_pairs) for key in numbered.values)


def _heat_maps(fields: Fields, num_pairs: int) -> HeatMaps:
    pair = fields.count("pair")
    if pair >= num_pairs:
        raise fields.error("pair", f"a number below {num_pairs}")
    source = _texts(fields, "source")
    spm = None if fields.is_null("spm") else _heat_map(fields, "spm", source)
    return HeatMaps(pair, _heat_map(fields, "attention", source), spm)


def _heat_map(fields: Fields, kind: str, source: tuple[str, ...]) -> HeatMap:
    rows = _texts(fields, f"{kind}_rows")
    values = fields.list(kind)
    if len(values) != len(rows) or not all(_is_row(one, len(source)) for one in values):
        raise fields.error(kind, f"{len(rows)} rows of {len(source)} numbers from 0 to 1")
    return HeatMap(source, rows, tuple(tuple(map(float, one)) for one in values))


def _texts(fields: Fields, key: str) -> tuple[str, ...]:
    values = fields.list(key)
    if not all(isinstance(value, str) for value in values):
        raise fields.error(key, "a list of texts")
    return tuple(values)


def _is_row(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(map(_is_share, value))


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1.0001  # sums of rounded probabilities may pass 1
