"""Filters for training pairs: the rules of Rush et al. (NAMAS) and a few of ours.

Each rule has a name, and keeps or drops a pair by its words. A `FilterReport` counts what each rule
dropped, with three examples.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from ledeline.config import FilterConfig

# Marks of desk notes, corrections and columns; a headline that has one is dropped by NAMAS.
NAMAS_BLOCKLIST: Final = (
    "update#", "update", "recasts", "undated", "grafs", "corrects", "retransmitting", "updates",
    "dateline", "writethru", "recaps", "inserts", "incorporates", "adv##", "ld-writethru", "djlfx",
    "edits", "byline", "repetition", "background", "thruout", "quotes", "attention", "ny###",
    "overline", "embargoed", "ap", "gmt", "adds", "embargo", "urgent", "?", " i ", " : ", " - ",
    " by ", "-lrb-", "-rrb-",
)  # fmt: skip

Words = Sequence[str]
Rule = tuple[str, Callable[[Words, Words], bool]]  # a name, and whether it keeps a pair

NUM_EXAMPLES: Final = 3


class Filter:
    """The rules that a configuration asks for, in order."""

    def __init__(self, config: FilterConfig) -> None:
        self.rules = _rules(config)

    def dropped_by(self, lede: Words, headline: Words) -> str | None:
        """The name of the first rule that drops the pair, or None if it is kept.

        The headline still has its punctuation.
        """
        for name, keeps in self.rules:
            if not keeps(lede, headline):
                return name
        return None


def _rules(config: FilterConfig) -> list[Rule]:
    rules: list[Rule] = []
    if config.require_period:
        rules.append(("lede without period", lambda lede, _: "." in lede))
    markers = (*config.blocklist, *(NAMAS_BLOCKLIST if config.namas_blocklist else ()))
    if markers:
        rules.append(("blocked headline", _not_blocked(markers, config.blocklist_match)))
    lengths = (
        ("lede too short", config.min_lede_words, lambda lede, _: len(lede)),
        ("headline too short", config.min_headline_words, lambda _, headline: len(headline)),
        ("lede too long", -config.max_lede_words, lambda lede, _: -len(lede)),
        ("headline too long", -config.max_headline_words, lambda _, headline: -len(headline)),
    )
    rules += [(name, _at_least(limit, size)) for name, limit, size in lengths if limit]
    if config.min_shared_words:
        rules.append(("too few shared words", _shares_words(config)))
    return rules


def _at_least(limit: int, size: Callable[[Words, Words], int]) -> Callable[[Words, Words], bool]:
    return lambda lede, headline: size(lede, headline) >= limit


def _not_blocked(markers: Words, match: str) -> Callable[[Words, Words], bool]:
    if match == "word":
        blocked = {marker.strip().lower() for marker in markers}
        return lambda _, headline: blocked.isdisjoint(word.lower() for word in headline)

    def keeps(_: Words, headline: Words) -> bool:
        text = " ".join(headline).lower()
        return not any(marker in text for marker in lowered)

    lowered = [marker.lower() for marker in markers]
    return keeps


def _shares_words(config: FilterConfig) -> Callable[[Words, Words], bool]:
    def long_words(words: Words) -> set[str]:
        return {word.lower() for word in words if len(word) >= config.shared_word_length}

    return lambda lede, headline: (
        len(long_words(lede) & long_words(headline)) >= config.min_shared_words
    )


class DroppedPair(NamedTuple):
    """A dropped pair; `place` is its file and line, if they are still known."""

    lede: str
    headline: str
    place: str = ""


class FilterReport:
    """How many pairs of each split were read and kept, and what each rule dropped."""

    def __init__(self) -> None:
        self.read: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.dropped: dict[str, dict[str, int]] = {}
        self.examples: dict[str, dict[str, list[DroppedPair]]] = {}

    def count_read(self, split: str, number: int = 1) -> None:
        """Count documents or pairs that were read."""
        self.read[split] = self.read.get(split, 0) + number

    def move(self, split: str, other: str, number: int) -> None:
        """Count pairs that were read for one split and sampled for another."""
        self.count_read(split, -number)
        self.count_read(other, number)

    def count_kept(self, split: str, number: int) -> None:
        """Set how many pairs of the split were kept."""
        self.kept[split] = number

    def drop(self, split: str, rule: str, examples: Iterable[DroppedPair], number: int = 1) -> None:
        """Count pairs that a rule dropped; the first few examples are kept."""
        rules = self.dropped.setdefault(split, {})
        rules[rule] = rules.get(rule, 0) + number
        kept = self.examples.setdefault(split, {}).setdefault(rule, [])
        kept.extend(islice(examples, NUM_EXAMPLES - len(kept)))

    def summary(self, split: str) -> str:
        """What was dropped from a split, in a few words."""
        dropped = self.dropped.get(split, {})
        return ", ".join(f"{rule} {number}" for rule, number in dropped.items()) or "nothing"

    def as_json(self) -> dict[str, Any]:
        """Everything, for report.json."""
        return {
            split: {
                "read": self.read[split],
                "kept": self.kept.get(split, 0),
                "dropped": {
                    rule: {
                        "pairs": number,
                        "examples": [one._asdict() for one in self.examples[split][rule]],
                    }
                    for rule, number in self.dropped.get(split, {}).items()
                },
            }
            for split in self.read
        }
