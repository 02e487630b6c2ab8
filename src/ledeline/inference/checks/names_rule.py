"""A name or a place of the headline that the lede does not have."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.amounts import NUMBER_WORDS
from ledeline.inference.checks.common_words import FIRST_NAMES, is_both, is_common
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.known_people import TITLES, known_people, short_forms
from ledeline.inference.checks.pair_words import Lede, PairWords, Word, form_of, opens_sentence
from ledeline.inference.checks.place_names import is_place, places_around, places_meant
from ledeline.text.function_words import FUNCTION_WORDS

_PARTICLES: Final = frozenset("de da del der di du van von bin ibn al el la le dos st".split())
_PARTS: Final = lazy_pattern(r"[A-Z][a-z]+")
_NO_NAMES: Final = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december jan feb mar apr jun jul aug sept sep oct nov
    dec today tomorrow yesterday am pm ok tv news watch update live exclusive factbox poll study
    report review opinion video photos analysis explainer timeline transcript brief
    govt dept rs opener
    """.split()
)
# Names that are made of common words; case alone does not show them at the start of a headline.
_WORDS_AS_NAMES: Final = frozenset(
    tuple(name.split())
    for name in """
    wall street, white house, downing street, red cross, world cup, super bowl, supreme court,
    premier league, champions league, world series, olympic games, high court, united nations,
    european union, security council, world bank, dow jones, big ben, capitol hill, silicon valley,
    black friday, boxing day, new year, prince harry, prince william, prince andrew, king charles,
    star wars, black lives matter, fox news, general motors, general electric, arsenal, spurs,
    labour, congress, apple, amazon, shell, olympics
    """.replace("\n", " ").split(",")
)
_FIRST_WORDS: Final = frozenset(name[0] for name in _WORDS_AS_NAMES)
_LONGEST_NAME: Final = max(map(len, _WORDS_AS_NAMES))


def name_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Names that the lede does not have."""
    runs = list(_unknown_runs(pair))
    yield from (_doubt(pair, run) for run in runs)
    yield from (_doubt(pair, run) for run in _unknown_word_names(pair) if run not in runs)


def _unknown_word_names(pair: PairWords) -> Iterator[list[Word]]:
    """Names made of common words, none of which the lede has."""
    for word in pair.words:
        if word.low not in _FIRST_WORDS:
            continue
        for size in range(1, _LONGEST_NAME + 1):
            run = pair.words[word.at : word.at + size]
            if tuple(one.low for one in run) in _WORDS_AS_NAMES and _is_written_as_name(run, pair):
                yield run


def _is_written_as_name(run: list[Word], pair: PairWords) -> bool:
    """Whether it has capitals, or nothing has, and the lede has none of it."""
    if any(one.low in pair.lede.lows or one.stem in pair.lede.stems for one in run):
        return False
    if "".join(one.low[0] for one in run) in pair.lede.lows:
        return False  # European Union, where the lede has EU
    return pair.lower_case or all(one.capital for one in run)


def _unknown_runs(pair: PairWords) -> Iterator[list[Word]]:
    """Runs of name words that the lede does not have."""
    run: list[Word] = []
    for word in pair.words:
        if run and not _joins(run[-1], word, pair):
            if not _is_spelt_out(pair, run):
                yield run
            run = []
        if _is_unknown_name(word, pair):
            run.append(word)
    if run and not _is_spelt_out(pair, run):
        yield run


def reads_as_name(text: str) -> bool:
    """Whether a word of letters is a name wherever it has a capital, also where a sentence begins.

    So it is where the rule doubts it in the headline "He saw ... again" of a lede without words.
    """
    word = form_of(text)
    if not word.capital or _is_no_name(word.low):
        return False
    return is_place(word.low) or not (is_common(word.low, word.stem) or is_both(word.stem))


def _joins(last: Word, word: Word, pair: PairWords) -> bool:
    """Whether a word goes on with the run of names that the last one ended."""
    if word.at == last.at + 1:
        return word.gap in (" ", "-", ". ", ".") and not last.possessive
    between = pair.words[last.at + 1 : word.at]
    return all(other.low in _PARTICLES for other in between)


def _is_spelt_out(pair: PairWords, run: list[Word]) -> bool:
    """Los Angeles, where the lede has LA."""
    initials = "".join(word.low[0] for word in run)
    return len(run) > 1 and initials in pair.lede.capitals and any(is_place(w.low) for w in run)


def _doubt(pair: PairWords, run: list[Word]) -> Doubt:
    start, end = run[0].start, run[-1].end - 2 * run[-1].possessive
    name = pair.headline[start:end]
    if any(is_place(word.low) for word in run):
        return pair.doubt_at(start, end, "place", f"the lede does not have {name}")
    return pair.doubt_at(start, end, "name", f"the lede does not name {name}")


def _is_unknown_name(word: Word, pair: PairWords) -> bool:
    low = word.low
    if low in pair.lede.lows or _has_another_form(word, pair.lede):
        return False
    if not word.capital and not pair.lower_case:
        return False
    if _is_no_name(low):
        return False
    return _reads_as_a_name(word, pair) and not _is_supported(word, pair)


def _is_no_name(low: str) -> bool:
    """Whether a word is none by itself, whatever stands around it."""
    if len(low) < 2 or not low[0].isalpha():
        return True
    if low in FUNCTION_WORDS or low in _NO_NAMES or low in TITLES or low in NUMBER_WORDS:
        return True
    return "'" in low and low.partition("'")[0] in FUNCTION_WORDS  # he'll, they'd


def _has_another_form(word: Word, lede: Lede) -> bool:
    """Whether the lede has the stem of a word; of a name in a word that begins alike."""
    if word.stem not in lede.stems:
        return False
    if is_common(word.low, word.stem) or is_both(word.stem):
        return True
    same = [other for other in lede.words if other.stem == word.stem]
    return any(
        other.capital or other.low.startswith(word.low) or word.low.startswith(other.low)
        for other in same
    )


def _reads_as_a_name(word: Word, pair: PairWords) -> bool:
    """Whether a word with a capital is a name, as far as case and the words around it show."""
    low, stem = word.low, word.stem
    if is_place(low):
        return True
    common, shows_nothing = is_common(low, stem), pair.title_case or opens_sentence(word)
    if not common and (not is_both(stem) or not shows_nothing):
        return True
    after = pair.words[word.at + 1] if word.at + 1 < len(pair.words) else None
    if low in FIRST_NAMES and after is not None and _may_be_surname(after, pair):
        return True
    if not common and low in known_people() and after is not None:
        return word.possessive or after.low.endswith(("s", "ed")) or after.low in FUNCTION_WORDS
    return word.at > 0 and _follows_first_name(word, pair, common and shows_nothing)


def _may_be_surname(word: Word, pair: PairWords) -> bool:
    return (
        word.gap == " "
        and word.capital
        and word.low not in pair.lede.lows
        and (not is_common(word.low, word.stem) or not pair.title_case)
    )


def _follows_first_name(word: Word, pair: PairWords, common: bool) -> bool:
    before = pair.words[word.at - 1]
    if word.gap != " " or not before.capital or before.possessive or before.low in pair.lede.lows:
        return False
    if before.low in FIRST_NAMES:
        return not common and (before.low not in FUNCTION_WORDS or _opens_no_question(before, pair))
    return not (
        common or is_common(before.low, before.stem) or is_both(before.stem) or is_place(before.low)
    )


def _opens_no_question(word: Word, pair: PairWords) -> bool:
    """Will Hunt Found Guilty; but neither Will House Vote Today? nor Police Will Hunt Thief."""
    return opens_sentence(word) and "?" not in pair.headline


def _is_supported(word: Word, pair: PairWords) -> bool:
    """Whether the lede has a name in another form."""
    low, lede = word.low, pair.lede
    return (
        not places_meant(low).isdisjoint(_lede_places(lede))
        or not short_forms().get(low, frozenset()).isdisjoint(lede.lows)
        or (_is_acronym(word, lede) and not pair.headline.isupper())
        or _is_made_of_parts(word, lede)
        or _is_known_person(low, lede)
        or _is_spelt_otherwise(low, lede)
        or _is_half_a_word(word, pair)
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
    if len(letters) == 3 and any(other.startswith(letters) for other in lede.capitals):
        return True  # IND vs ENG
    if is_place(letters):  # the US is not in "rose up suddenly"
        return letters in lede.capital_initials
    return any(letters in initials for initials in lede.initials)


def _is_made_of_parts(word: Word, lede: Lede) -> bool:
    """WaMu of Washington Mutual."""
    parts = _PARTS.findall(word.text)
    return len(parts) > 1 and all(
        any(other.startswith(part.casefold()) for other in lede.capitals) for part in parts
    )


def _is_known_person(low: str, lede: Lede) -> bool:
    """Whether the lede has the surname of a well-known person whose first name this is."""
    known = known_people()
    for surname in lede.capitals & known.keys():
        if low in known[surname]:
            at = next(word.at for word in lede.words if word.low == surname and word.capital)
            if not _has_first_name(lede, at):
                return True
    return False


def _has_first_name(lede: Lede, at: int) -> bool:
    """Whether another name stands before it (Calvin Harris) or behind it (Harris County)."""
    name = lede.words[at]
    if at + 1 < len(lede.words) and not name.possessive:
        after = lede.words[at + 1]
        if after.gap == " " and after.capital:
            return True
    if not at or name.gap != " ":
        return False
    before = lede.words[at - 1]
    if not before.capital or before.low in TITLES:
        return False
    return not (opens_sentence(before) and is_common(before.low, before.stem))


def _is_spelt_otherwise(low: str, lede: Lede) -> bool:
    """Zelenskyy and Zelensky, SpaceX and Space X, Avs and Avalanche."""
    if low in lede.joined:
        return True
    if len(low) < 4:
        return False
    if low[-1] == "s" and len(low) < 6 and any(o.startswith(low[:-1]) for o in lede.capitals):
        return True
    if len(low) < 5:
        return False
    return any(_is_form_of(low, other, lede) for other in lede.capitals) or any(
        len(other) > 4 and len(low) - len(other) <= 2 and other in low for other in lede.lows
    )


def _is_form_of(low: str, other: str, lede: Lede) -> bool:
    """Zelenskyy of Zelensky, Pharma of Pharmaceutical, Scotiabank of a bank and Scotia."""
    if other[:5] == low[:5] and abs(len(other) - len(low)) <= 3:
        return True
    if len(low) > 5 and other.startswith(low):
        return True
    return len(other) > 4 and low.startswith(other) and low[len(other) :] in lede.lows


def _is_half_a_word(word: Word, pair: PairWords) -> bool:
    """Tik Tok, where the lede has TikTok."""
    halves = pair.words[max(word.at - 1, 0) : word.at + 2]
    return any(one.low + two.low in pair.lede.lows for one, two in pairwise(halves))
