"""The stems that ROUGE-1.5.5 compares with ``-m``: WordNet 2.0's exceptions, else Porter's rules.

The exception lists (mice mouse, went go) are WordNet's. They lie in the folder ``wordnet``, with
their licence.

The rules are those of Porter, "An algorithm for suffix stripping" (1980), with the changes of the
Perl script: *bli* and *logi* in step 2, and in step 4 *ment* and *ent* tried after the other
suffixes, on what those left.
"""

from functools import cache
from pathlib import Path

from ledeline.core.cache import BoundedCache

SHORTEST = 4  # letters and digits of a word that is stemmed at all

_FOLDER = Path(__file__).parent / "wordnet"
_LISTS = ("adj.exc", "adv.exc", "noun.exc", "verb.exc")  # a later one overwrites an earlier one
_LIMIT = 2**18  # stems in memory


@cache
def irregular_forms() -> dict[str, str]:
    """WordNet's irregular forms: word -> lemma, the first where a line has several."""
    lemmas: dict[str, str] = {}
    for name in _LISTS:
        for line in (_FOLDER / name).read_bytes().decode("ascii").splitlines():
            word, _, found = line.partition(" ")
            lemmas[word] = found.partition(" ")[0] if " " in found else found
    return lemmas


def stem(word: str) -> str:
    """Stem a token of a-z and 0-9; a lemma of WordNet is not stemmed again."""
    if len(word) < SHORTEST:
        return word
    return irregular_forms().get(word) or porter(word)


STEMS = BoundedCache(stem, _LIMIT)


# -- Porter's rules -------------------------------------------------------------------------------

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4 = dict.fromkeys(
    "al ance ence er ic able ible ant ement ou ism ate iti ous ive ize".split(), ""
)
_LONGEST = 7  # letters of a suffix


def porter(word: str) -> str:
    """Strip the suffixes of a word of at least three letters and digits."""
    word = _without_plural(word)
    word = _without_past(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2, 1)
    word = _replaced(word, _STEP_3, 1)
    word = _replaced(word, _STEP_4, 2)
    word = _replaced(word, {"ment": ""}, 2)
    word = _without_ent_or_ion(word)
    return _tidied(word)


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    rest = word[:-2] if word.endswith("ed") else word.removesuffix("ing")
    if rest == word or "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-2:] == 2 * rest[-1] and rest[-1] not in "aeiouylsz":
        return rest[:-1]
    return rest + "e" if _is_short(rest) else rest


def _without_ent_or_ion(word: str) -> str:
    """The end of step 4."""
    if word.endswith(("sion", "tion")):
        return word[:-3] if _measure(word[:-3]) > 1 else word
    return _replaced(word, {"ent": ""}, 2)


def _tidied(word: str) -> str:
    """Step 5: no final e, no double l."""
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _is_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _replaced(word: str, suffixes: dict[str, str], least: int) -> str:
    """Replace the longest suffix that fits, if what precedes it measures enough."""
    if not word.endswith(tuple(suffixes)):  # as mostly; this is quicker than the loop
        return word
    for size in range(min(_LONGEST, len(word)), 1, -1):
        if (suffix := word[-size:]) in suffixes:
            rest = word[:-size]
            return rest + suffixes[suffix] if _measure(rest) >= least else word
    return word


def _measure(word: str) -> int:
    """How often a consonant follows a vowel: Porter's m."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether it is consonants, a vowel, and a consonant other than w, x and y: fil, hop."""
    shape = _shape(word)
    return shape[:1] == "c" and shape.lstrip("c") == "vc" and word[-1] not in "wxy"


def _shape(word: str) -> str:
    """The word as v and c, vowels and consonants; y is a vowel after a consonant only."""
    shape, last = "", "v"
    for letter in word:
        last = "v" if letter in "aeiou" or (letter == "y" and last == "c") else "c"
        shape += last
    return shape
