"""Which source word became which headline word: quality, word pairs, heat maps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from markupsafe import Markup

from ledeline.evaluation.alignment_json import (
    WORD_GROUPS,
    AlignmentSummary,
    HeatMap,
    WordGroup,
    WordPairTable,
)
from ledeline.evaluation.links import AlignmentScore
from ledeline.report.heat_map_svg import LEAST, HeatMapView, heat_map_svg, room_for_rows
from ledeline.report.numbers import percent, plural, whole
from ledeline.report.study import ReportedSystem, Study

_METHODS: Final = {
    "spm-vocabulary": "SPM, likeliest of the vocabulary",
    "spm-sentence": "SPM, likeliest of the sentence",
    "attention": "Attention",
    "attention-shifted": "Attention, one step later",
    "identity": "Same place, no model",
    "diagonal": "Proportional place, no model",
}
_GROUP_NAMES: Final[dict[WordGroup, str]] = {
    "same": "Same word",
    "inflection": "Inflection",
    "other": "Other",
}
_MOST_EXAMPLES: Final = 15  # word pairs of a group
_MOST_MAPS: Final = 8  # of a test set, counted in pairs times systems
_NARROW: Final = 36  # source words up to which two maps are side by side


@dataclass(frozen=True)
class QualityRow:
    """The scores of a method; None where there is none."""

    method: str
    figures: tuple[str | None, ...]


@dataclass(frozen=True)
class QualityGroup:
    """The scores of a system."""

    title: str
    rows: tuple[QualityRow, ...]


@dataclass(frozen=True)
class WordPairExample:
    """A word pair, and how often it was aligned."""

    pair: str
    times: str


@dataclass(frozen=True)
class WordRow:
    """The word pairs of one type."""

    name: str
    count: str
    share: str  # may be empty
    examples: tuple[WordPairExample, ...]


@dataclass(frozen=True)
class WordsGroup:
    """The word pairs of a system by one method."""

    title: str
    rows: tuple[WordRow, ...]


@dataclass(frozen=True)
class Drawing:
    """One heat map."""

    title: str
    is_narrow: bool
    svg: Markup


@dataclass(frozen=True)
class PairDrawings:
    """The heat maps of a pair, of each system."""

    caption: str
    gold: str
    systems: tuple[tuple[Drawing, ...], ...]


@dataclass(frozen=True)
class SetAlignment:
    """What is known of alignment on a test set."""

    name: str
    quality: tuple[QualityGroup, ...]
    words: tuple[WordsGroup, ...]
    pairs: tuple[PairDrawings, ...]
    left_out: tuple[str, ...]  # of which systems nothing is known, and why


@dataclass(frozen=True)
class AlignmentSection:
    """The test sets of which anything is known, if only why it is not."""

    anchor: ClassVar[str] = "alignment"
    title: ClassVar[str] = "Alignment"
    template: ClassVar[str] = "alignment.html.j2"
    quality_note: ClassVar[str] = (
        "AER: alignment error rate, less is better. Dropped found: recall of the source words that "
        "gold drops, as those without a link; by <pad>, as those that the SPM predicts behind the "
        "end of the headline."
    )
    maps_note: ClassVar[str] = (
        "Across: the lede. Down: the headline as it is written, and in brackets the source word "
        "that each step is aligned with. The stronger the colour, the closer to 1; what is below "
        f"{LEAST} is left blank."
    )

    sets: tuple[SetAlignment, ...]


class _Aligned(NamedTuple):
    """A system with its alignment of the test set in question."""

    system: ReportedSystem
    summary: AlignmentSummary


def alignment_section(study: Study) -> AlignmentSection | None:
    """Make the section; None where nothing is known."""
    sets = (_set_alignment(study, name) for name in study.test_sets)
    found = tuple(one for one in sets if one.quality or one.words or one.pairs or one.left_out)
    return AlignmentSection(found) if found else None


def _set_alignment(study: Study, test_set: str) -> SetAlignment:
    aligned = [
        _Aligned(system, one.alignment)
        for system, one in study.evaluated(test_set)
        if one.alignment is not None
    ]
    return SetAlignment(
        test_set,
        tuple(_quality_groups(aligned)),
        tuple(_words_groups(aligned)),
        tuple(_pair_drawings(study, aligned, test_set)),
        tuple(
            f"{one.system.label} was not aligned: {one.summary.left_out}."
            for one in aligned
            if one.summary.left_out is not None
        ),
    )


def _method_name(method: str) -> str:
    return _METHODS.get(method, method)


def _in_order(methods: Iterable[str]) -> list[str]:
    """Those that are known first, in our order."""
    methods = list(methods)
    known = [name for name in _METHODS if name in methods]
    return known + [name for name in methods if name not in _METHODS]


# --- quality --------------------------------------------------------------------------------------

_Figures = tuple[float | None, ...]


def _quality_groups(aligned: Sequence[_Aligned]) -> Iterator[QualityGroup]:
    """The methods of each system, then those that are the same for all of them."""
    with_gold = [
        (one.system.label, {method: _figures(score) for method, score in quality.items()})
        for one in aligned
        if (quality := one.summary.quality)
    ]
    shared = _shared([figures for _, figures in with_gold])
    for label, figures in with_gold:
        own = {method: one for method, one in figures.items() if method not in shared}
        if own:
            yield QualityGroup(label, _quality_rows(own))
    if shared:
        yield QualityGroup("All systems alike", _quality_rows(shared))


def _figures(score: AlignmentScore) -> _Figures:
    return (
        score.precision,
        score.recall,
        score.error_rate,
        score.dropped_recall,
        score.pad_recall,
    )


def _shared(systems: Sequence[Mapping[str, _Figures]]) -> dict[str, _Figures]:
    """The methods with the same figures in all of several systems."""
    if len(systems) < 2:
        return {}
    first, *others = systems
    return {
        method: figures
        for method, figures in first.items()
        if all(other.get(method) == figures for other in others)
    }


def _quality_rows(methods: Mapping[str, _Figures]) -> tuple[QualityRow, ...]:
    return tuple(
        QualityRow(
            _method_name(method),
            tuple(None if figure is None else percent(figure) for figure in methods[method]),
        )
        for method in _in_order(methods)
    )


# --- word pairs -----------------------------------------------------------------------------------


def _words_groups(aligned: Sequence[_Aligned]) -> Iterator[WordsGroup]:
    for one in aligned:
        for method in _in_order(one.summary.words):
            words = one.summary.words[method]
            title = f"{one.system.label}. {_method_name(method)}: {_counted(words)}"
            yield WordsGroup(title, tuple(_word_rows(words)))


def _counted(words: WordPairTable) -> str:
    left_out = f"{whole(words.num_pieces)} left out for being pieces of words"
    return f"{plural(words.num_pairs, 'pair')}, {plural(words.num_tokens, 'token')}, {left_out}"


def _word_rows(words: WordPairTable) -> Iterator[WordRow]:
    total = sum(group.count for group in words.groups.values())
    for name in WORD_GROUPS:
        group = words.groups[name]
        yield WordRow(
            _GROUP_NAMES[name],
            whole(group.count),
            f"{100 * group.count / total:.1f}\u00a0%" if total else "",
            tuple(
                WordPairExample(f"({headline_word}, {source_word})", f"×{count}")
                for headline_word, source_word, count in group.examples[:_MOST_EXAMPLES]
            ),
        )


# --- heat maps ------------------------------------------------------------------------------------


def _pair_drawings(
    study: Study, aligned: Sequence[_Aligned], test_set: str
) -> Iterator[PairDrawings]:
    """The heat maps of the first pairs, fewer pairs the more systems there are."""
    drawn = [one for one in aligned if one.summary.heat_maps]
    pairs = dict.fromkeys(heat.pair for one in drawn for heat in one.summary.heat_maps)
    num_pairs = max(1, _MOST_MAPS // max(1, len(drawn)))
    _, evaluated = study.evaluated(test_set)[0]
    for pair in list(pairs)[:num_pairs]:
        yield PairDrawings(
            f"Pair {whole(pair + 1)} of {test_set}: ",
            evaluated.texts.golds[pair],
            _drawings(drawn, pair),
        )


def _drawings(drawn: Sequence[_Aligned], pair: int) -> tuple[tuple[Drawing, ...], ...]:
    views = [
        (one.system.label, _views(heat.heat_map))
        for one in drawn
        for heat in one.summary.heat_maps
        if heat.pair == pair
    ]
    left = room_for_rows(view for _, of_system in views for view in of_system.values())
    return tuple(
        tuple(_drawing(f"{kind} of {label}", view, left) for kind, view in of_system.items())
        for label, of_system in views
    )


def _views(heat: HeatMap) -> dict[str, HeatMapView]:
    """Attention and, where there is an SPM, what it predicts."""
    views = {"Attention": HeatMapView(heat.source, heat.attention_rows, heat.attention)}
    if heat.spm is not None and heat.spm_rows is not None:
        views["Source-side prediction"] = HeatMapView(heat.source, heat.spm_rows, heat.spm)
    return views


def _drawing(title: str, view: HeatMapView, left: int) -> Drawing:
    strongest = (
        f"{row} to {view.source[max(range(len(values)), key=values.__getitem__)]}"
        for row, values in zip(view.rows, view.values, strict=True)
        if values
    )
    summary = f"{title}, strongest links: {'; '.join(strongest)}"
    return Drawing(title, len(view.source) <= _NARROW, heat_map_svg(view, summary, left))
