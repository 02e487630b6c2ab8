"""Headlines of all systems side by side, in the style of the paper's figure of examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ledeline.evaluation.evaluation_folder import EvaluatedSet
from ledeline.evaluation.odd_words import KINDS, odd_places
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.display import NO_HEADLINE
from ledeline.report.chosen_examples import DOUBTED, SEED, Choice, choose_examples
from ledeline.report.marking import MarkedPart, marked, with_doubts
from ledeline.report.numbers import whole
from ledeline.report.study import ReportedSystem, Study

_TITLES: Final = {
    "repeating": "(1) Repeating phrases",
    "lacking": "(2) Lack of important phrases",
    "irrelevant": "(3) Irrelevant phrases",
    DOUBTED: "Doubted, with the least support",
    None: "Drawn at random",
}
_DOUBTS: Final = "Underlined are the words that the lede does not support, or does not seem to."


@dataclass(frozen=True)
class HeadlinePart:
    """A part of a headline, marked where it is odd or doubted."""

    text: str
    is_odd: bool
    doubt: str = ""  # why it is doubted; empty if it is not
    ended: str = ""  # the same of those doubts that end here, to be read out once


@dataclass(frozen=True)
class SystemHeadline:
    """The headline that a system wrote."""

    system: str
    parts: tuple[HeadlinePart, ...]  # none if there is no headline
    tag: str  # how many odd words it has; may be empty
    support: str  # and whether it was left out; empty if it was not checked
    unplaced: tuple[str, ...]  # doubts whose words are not among the parts


@dataclass(frozen=True)
class Example:
    """A pair with the headlines of all systems."""

    number: str
    lede: str
    gold: str
    headlines: tuple[SystemHeadline, ...]


@dataclass(frozen=True)
class ExampleGroup:
    """Examples that were chosen for one reason."""

    title: str
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class ExampleSet:
    """The examples of a test set."""

    name: str
    groups: tuple[ExampleGroup, ...]


@dataclass(frozen=True)
class ExamplesSection:
    """For each test set a few pairs for each reason."""

    anchor: ClassVar[str] = "examples"
    title: ClassVar[str] = "Examples"
    template: ClassVar[str] = "examples.html.j2"
    no_headline: ClassVar[str] = NO_HEADLINE

    note: str
    sets: tuple[ExampleSet, ...]


def examples_section(study: Study) -> ExamplesSection:
    """Make the section."""
    if len(study.systems) > 1:
        chosen = f"Pairs where {study.baseline.label} has most odd words and another system fewer;"
    else:
        chosen = "Pairs with most odd words;"
    others, doubts = ("doubted and drawn", f" {_DOUBTS}") if study.has_checks else ("drawn", "")
    return ExamplesSection(
        f"{chosen} the last ones are drawn with the seed {SEED}. Marked are the words that count "
        f"as odd; among those {others}, repeating and irrelevant ones.{doubts}",
        tuple(_example_set(study, name) for name in study.test_sets),
    )


def _example_set(study: Study, test_set: str) -> ExampleSet:
    compared = study.comparable(test_set)
    groups = (_group(compared, choice) for choice in choose_examples(study, test_set))
    return ExampleSet(test_set, tuple(groups))


def _group(compared: Sequence[tuple[ReportedSystem, EvaluatedSet]], choice: Choice) -> ExampleGroup:
    examples = (_example(compared, pair, choice.kind) for pair in choice.pairs)
    return ExampleGroup(_TITLES[choice.kind], tuple(examples))


def _example(
    compared: Sequence[tuple[ReportedSystem, EvaluatedSet]], pair: int, kind: str | None
) -> Example:
    texts = compared[0][1].texts
    return Example(
        number=whole(pair + 1),
        lede=texts.ledes[pair],
        gold=texts.golds[pair],
        headlines=tuple(_headline(system, one, pair, kind) for system, one in compared),
    )


def _headline(
    system: ReportedSystem, evaluated: EvaluatedSet, pair: int, kind: str | None
) -> SystemHeadline:
    check, headline = evaluated.checks[pair], evaluated.texts.headlines[pair]
    doubts = () if check is None else check.doubts
    cuts = _cuts(evaluated, pair, kind) if headline else []
    as_written = "".join(text for text, _ in cuts) == headline
    parts = with_doubts(cuts, doubts if as_written else ())
    placed = {doubt for part in parts for doubt in part.doubts}
    return SystemHeadline(
        system.label,
        tuple(map(_part, parts)),
        _tag(evaluated, pair, kind),
        _support(None if check is None else check.support, headline),
        tuple(str(doubt) for doubt in doubts if doubt not in placed),
    )


def _cuts(evaluated: EvaluatedSet, pair: int, kind: str | None) -> list[tuple[str, bool]]:
    """The headline, cut where it is odd: in one kind, or in any."""
    texts = evaluated.texts
    words, reference, source = (
        lines[pair].split() for lines in (texts.outputs, texts.references, texts.sources)
    )
    kinds = (kind,) if kind in KINDS else KINDS
    places = {place for one in kinds for place in odd_places(one, words, reference, source)}
    return marked(texts.headlines[pair], words, places)


def _part(part: MarkedPart) -> HeadlinePart:
    return HeadlinePart(part.text, part.is_odd, _reasons(part.doubts), _reasons(part.ended))


def _reasons(doubts: Sequence[Doubt]) -> str:
    return "; ".join(dict.fromkeys(f"{one.kind}: {one.why}" for one in doubts))


def _support(support: float | None, headline: str) -> str:
    if support is None:
        return ""
    return f"{'' if headline else 'left out, '}support {support:.2f}"


def _tag(evaluated: EvaluatedSet, pair: int, kind: str | None) -> str:
    """How many odd words of the kind there are, if any."""
    number = getattr(evaluated.audit.odds[pair], kind) if kind in KINDS else None
    return f"{whole(number)} {kind}" if number else ""
