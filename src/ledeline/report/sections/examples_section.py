"""Headlines of all systems side by side, in the style of the paper's figure of examples."""

from collections.abc import Iterator, Sequence
from typing import Final

from ledeline.evaluation.audit import KINDS
from ledeline.evaluation.odd_words import odd_places
from ledeline.inference.display import NO_HEADLINE
from ledeline.report.chosen_examples import SEED, Choice, choose
from ledeline.report.evaluations import Outcome
from ledeline.report.marking import marked
from ledeline.report.markup import Html, element, joined, name_of, note, terms, whole
from ledeline.report.study import Study, System

TITLE: Final = "Examples"
_TITLES: Final = {
    "repeating": "(1) Repeating phrases",
    "lacking": "(2) Lack of important phrases",
    "irrelevant": "(3) Irrelevant phrases",
    None: "Drawn at random",
}


def examples_section(study: Study) -> Html:
    """For each test set a few pairs for each reason."""
    several = len(study.test_sets) > 1
    parts: list[Html] = [_explained(study)]
    for name in study.test_sets:
        if several:
            parts.append(element("h3", name))
        level = "h4" if several else "h3"
        parts += [_group(study, name, choice, level) for choice in choose(study, name)]
    return joined(parts)


def _explained(study: Study) -> Html:
    if len(study.systems) > 1:
        chosen = f"Pairs where {study.baseline.label} has most odd words and another system fewer;"
    else:
        chosen = "Pairs with most odd words;"
    return note(
        f"{chosen} the last ones are drawn with the seed {SEED}.",
        "Marked are the words that count as odd; among those drawn, repeating and irrelevant ones.",
    )


def _group(study: Study, test_set: str, choice: Choice, level: str) -> Html:
    compared = study.comparable(test_set)
    pairs = (_example(compared, pair, choice.kind) for pair in choice.pairs)
    return joined([element(level, _TITLES[choice.kind]), element("div", *pairs, class_="examples")])


def _example(compared: Sequence[tuple[System, Outcome]], pair: int, kind: str | None) -> Html:
    texts = compared[0][1].texts
    entries: list[tuple[str, str]] = [
        ("Lede", _passage(texts.ledes[pair])),
        ("Gold", _passage(texts.golds[pair])),
    ]
    for system, outcome in compared:
        entries.append((name_of(system.label), _headline(outcome, pair, kind)))
    number = element("p", f"Pair {whole(pair + 1)}", class_="number")
    return element("article", number, terms(entries, "texts"))


def _passage(text: str) -> Html:
    return element("span", text, dir="auto")


def _headline(outcome: Outcome, pair: int, kind: str | None) -> Html:
    """The headline with its odd words marked, and behind it how many there are."""
    texts = outcome.texts
    words, reference, source = (
        lines[pair].split() for lines in (texts.outputs, texts.references, texts.sources)
    )
    kinds = KINDS if kind is None else (kind,)
    places = {place for one in kinds for place in odd_places(one, words, reference, source)}
    shown = texts.headlines[pair]
    if not shown:
        return joined([element("i", NO_HEADLINE), *_tags(outcome, pair, kind)])
    cuts = (element("mark", cut) if odd else cut for cut, odd in marked(shown, words, places))
    return joined([element("span", *cuts, dir="auto"), *_tags(outcome, pair, kind)])


def _tags(outcome: Outcome, pair: int, kind: str | None) -> Iterator[str]:
    """How many odd words of the kind there are."""
    number = None if kind is None else getattr(outcome.audit.odds[pair], kind)
    if number:
        yield " "
        yield element("small", f"{whole(number)} {kind}", class_="tag")
