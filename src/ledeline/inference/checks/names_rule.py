"""A name or a place of the headline that the lede does not have."""

from collections.abc import Iterator
from typing import Final

from ledeline.inference.checks.common_words import FIRST_NAMES, is_both, is_common
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.known_people import TITLES, known_people, short_forms
from ledeline.inference.checks.pair_words import Lede, Pair, Word, opens_sentence
from ledeline.inference.checks.place_names import is_place, places_around, places_meant
from ledeline.text.function_words import FUNCTION_WORDS

_PARTICLES: Final = frozenset("de da del der di du van von bin ibn al el la le dos st".split())
_NO_NAMES: Final = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december jan feb mar apr jun jul aug sept sep oct nov
    dec today tomorrow yesterday am pm ok tv news watch update live exclusive factbox poll study
    report review opinion video photos analysis explainer timeline transcript brief
    """.split()
)


def name_doubts(pair: Pair) -> Iterator[Doubt]:
    """Runs of name words that the lede does not have."""
    run: list[Word] = []
    for word in pair.words:
        if run and not _joins(run[-1], word, pair):
            yield _doubt(pair, run)
            run = []
        if _is_unknown_name(word, pair):
            run.append(word)
    if run:
        yield _doubt(pair, run)


def _joins(last: Word, word: Word, pair: Pair) -> bool:
    """Whether a word goes on with the run of names that the last one ended."""
    if word.index == last.index + 1:
        return word.gap in (" ", "-", ". ", ".") and not last.possessive
    between = pair.words[last.index + 1 : word.index]
    return all(other.low in _PARTICLES for other in between)


def _doubt(pair: Pair, run: list[Word]) -> Doubt:
    start, end = run[0].start, run[-1].end - 2 * run[-1].possessive
    name = pair.headline[start:end]
    if any(is_place(word.low) for word in run):
        return pair.doubt_at(start, end, "place", f"the lede does not have {name}")
    return pair.doubt_at(start, end, "name", f"the lede does not name {name}")


def _is_unknown_name(word: Word, pair: Pair) -> bool:
    low = word.low
    if not word.capital or len(low) < 2 or low in pair.lede.lows or word.stem in pair.lede.stems:
        return False
    if low in FUNCTION_WORDS or low in _NO_NAMES or low in TITLES or not low[0].isalpha():
        return False
    if "'" in low and low.partition("'")[0] in FUNCTION_WORDS:
        return False  # he'll, they'd
    return _reads_as_a_name(word, pair) and not is_supported(word, pair.lede)


def _reads_as_a_name(word: Word, pair: Pair) -> bool:
    """Whether a word with a capital is a name, as far as case and the words around it show."""
    low, stem = word.low, word.stem
    if is_place(low):
        return True
    common = is_common(low, stem)
    if not common and (not is_both(stem) or not (pair.title_case or opens_sentence(word))):
        return True
    if common and (pair.title_case or opens_sentence(word)):
        return False
    if low in FIRST_NAMES:
        following = pair.words[word.index + 1 : word.index + 2]
        return any(
            after.gap == " " and after.capital and not is_common(after.low, after.stem)
            for after in following
        )
    before = pair.words[word.index - 1] if word.index else None
    return (
        before is not None
        and word.gap == " "
        and before.capital
        and not before.possessive
        and not is_common(before.low, before.stem)
        and before.low not in pair.lede.lows
        and (before.low in FIRST_NAMES or not is_both(before.stem))
        and not is_place(before.low)
    )


def is_supported(word: Word, lede: Lede) -> bool:
    """Whether the lede has a name in another form."""
    low = word.low
    return (
        not places_meant(low).isdisjoint(_lede_places(lede))
        or not short_forms().get(low, frozenset()).isdisjoint(lede.lows)
        or _is_acronym(word, lede)
        or _is_known_person(low, lede)
        or _is_spelt_otherwise(low, lede)
    )


def _lede_places(lede: Lede) -> set[str]:
    places = lede.kept.get("places")
    if not isinstance(places, set):
        places = lede.kept["places"] = places_around(lede.lows)
    return places


def _is_acronym(word: Word, lede: Lede) -> bool:
    letters = word.low.removesuffix("s") if word.text[-1] == "s" else word.low
    if not 2 <= len(letters) <= 6 or not word.text[:-1].replace(".", "").isupper():
        return False
    return any(letters in initials for initials in lede.initials)


def _is_known_person(low: str, lede: Lede) -> bool:
    """Whether the lede has the surname of a well-known person whose first name this is."""
    for name, others in known_people().items():
        if low in others and name in lede.lows:
            at = next(word for word in lede.words if word.low == name)
            before = lede.words[at.index - 1] if at.index else None
            if before is None or at.gap != " " or not before.capital or before.low in TITLES:
                return True
            if opens_sentence(before) and is_common(before.low, before.stem):
                return True
    return False


def _is_spelt_otherwise(low: str, lede: Lede) -> bool:
    """Zelenskyy and Zelensky, TikTok and Tik Tok, SpaceX's."""
    if len(low) >= 5 and low in lede.letters:
        return True
    if low[-1] == "s" and len(low) in (4, 5):  # Avs, Cavs
        return any(other.startswith(low[:-1]) for other in lede.lows)
    if len(low) < 5:
        return False
    return any(
        (other[:5] == low[:5] and abs(len(other) - len(low)) <= 3)
        or (len(other) >= 5 and other in low)
        for other in lede.lows
    )
