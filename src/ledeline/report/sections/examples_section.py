"""Headlines of all systems side by side, in the style of the paper's figure of examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ledeline.evaluation.evaluation_folder import EvaluatedSet
from ledeline.evaluation.odd_words import KINDS, odd_places
from ledeline.inference.display import NO_HEADLINE
from ledeline.report.chosen_examples import SEED, Choice, choose_examples
from ledeline.report.marking import marked
from ledeline.report.numbers import whole
from ledeline.report.study import ReportedSystem, Study

_TITLES: Final = {
    "repeating": "(1) Repeating phrases",
    "lacking": "(2) Lack of important phrases",
    "irrelevant": "(3) Irrelevant phrases",
    None: "Drawn at random",
}


@dataclass(frozen=True)
class HeadlinePart:
    """A part of a headline, marked where it is odd."""

    text: str
    is_odd: bool


@dataclass(frozen=True)
class SystemHeadline:
    """The headline that a system wrote."""

    system: str
    parts: tuple[HeadlinePart, ...]  # none if there is no headline
    tag: str  # how many odd words it has; may be empty


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
    return ExamplesSection(
        f"{chosen} the last ones are drawn with the seed {SEED}. "
        "Marked are the words that count as odd; among those drawn, repeating and irrelevant ones.",
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
        headlines=tuple(
            SystemHeadline(system.label, _parts(one, pair, kind), _tag(one, pair, kind))
            for system, one in compared
        ),
    )


def _parts(evaluated: EvaluatedSet, pair: int, kind: str | None) -> tuple[HeadlinePart, ...]:
    """The headline, cut where it is odd: in one kind, or in any."""
    texts = evaluated.texts
    if not texts.headlines[pair]:
        return ()
    words, reference, source = (
        lines[pair].split() for lines in (texts.outputs, texts.references, texts.sources)
    )
    kinds = KINDS if kind is None else (kind,)
    places = {place for one in kinds for place in odd_places(one, words, reference, source)}
    cuts = marked(texts.headlines[pair], words, places)
    return tuple(HeadlinePart(text, is_odd) for text, is_odd in cuts)


def _tag(evaluated: EvaluatedSet, pair: int, kind: str | None) -> str:
    """How many odd words of the kind there are, if any."""
    number = None if kind is None else getattr(evaluated.audit.odds[pair], kind)
    return f"{whole(number)} {kind}" if number else ""
