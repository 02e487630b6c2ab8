"""Numbers in running text, read by value: 2,500, "two dozen", $1.5bn, 40 percent, 62-year-old."""

import re
from itertools import pairwise
from typing import Final, NamedTuple

from ledeline.core.patterns import lazy_pattern

_UNITS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS: Final = dict(
    zip(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(),
        range(20, 100, 10),
        strict=True,
    )
)
SMALL_NUMBERS: Final = {**{word: value for value, word in enumerate(_UNITS)}, **_TENS}
_ORDINALS: Final = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
        "twentieth".split(),
        start=1,
    )
}
_SCALES: Final = {
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "grand": 1e3,
    "lakh": 1e5,
    "lakhs": 1e5,
    "million": 1e6,
    "m": 1e6,
    "mn": 1e6,
    "mln": 1e6,
    "mil": 1e6,
    "crore": 1e7,
    "crores": 1e7,
    "cr": 1e7,
    "billion": 1e9,
    "b": 1e9,
    "bn": 1e9,
    "bln": 1e9,
    "trillion": 1e12,
    "tn": 1e12,
    "trn": 1e12,
    "t": 1e12,
    "dozen": 12.0,
}
_CURRENCY: Final = {
    "$": "$",
    "us$": "$",
    "a$": "$",
    "c$": "$",
    "£": "£",
    "€": "€",
    "₹": "₹",
    "rs": "₹",
    "rs.": "₹",
    "inr": "₹",
    "usd": "$",
    "¥": "¥",
}
_MONEY_WORDS: Final = {
    "dollar": "$",
    "dollars": "$",
    "pound": "£",
    "pounds": "£",
    "quid": "£",
    "euro": "€",
    "euros": "€",
    "rupee": "₹",
    "rupees": "₹",
    "yen": "¥",
}
_PERCENT: Final = frozenset(("%", "percent", "per cent", "pc", "pct"))
_SMALL_WORDS: Final = "|".join(sorted(SMALL_NUMBERS, key=len, reverse=True))
_FRACTION: Final = "thirds?|quarters?|fifths?|halves|half|fourths?|tenths?"
_SCALE_WORDS: Final = "hundred|thousand|million|billion|trillion|crores?|lakhs?|dozen"

_NUMBER: Final = lazy_pattern(
    rf"""
    (?<![\w.])
    (?P<currency>(?:us|a|c)?\$|£|€|₹|¥|\b(?:rs\.?|inr|usd)\s?(?=\d))?
    (?:
        (?P<numerator>an?\s(?=(?:{_FRACTION})\sof\s(?!July))|(?:one|two|three|four|[1-4])[\s-])(?P<fraction>{_FRACTION})\b
      | (?P<slashed>[123]/[234])(?![/\d])
      | (?P<digits>\d{{1,3}}(?:,\d{{2,3}})+(?:\.\d+)?|\d+(?:\.\d+)?)
        (?:
            (?P<ordinal>st|nd|rd|th)\b
          | [\s-]?(?P<scale>{_SCALE_WORDS}|[mbt]n|mln|bln|trn|mil|k|m|b|t|cr)\b(?!'[a-z])
        )?
      | (?P<tens>twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)-
        (?P<ones>one|two|three|four|five|six|seven|eight|nine)\b
        (?:[\s-](?P<scale3>{_SCALE_WORDS})\b)?
      | (?P<article>a|an|one)\s(?P<scale1>{_SCALE_WORDS})\b
      | (?P<word>{_SMALL_WORDS})\b(?:[\s-](?P<scale2>{_SCALE_WORDS})\b)?
        (?:\s(?:and\s)?(?P<rest>a\shalf)\b)?
      | (?P<ordword>{"|".join(_ORDINALS)})\b
      | (?P<half>half|halves|halved|quarter|couple|both|twins?|pair|duo|trio|twice|double[ds]?
          |triple[ds]?|dozen|quartet|single)\b
      | (?P<vague>(?:dozens|hundreds|thousands|millions|billions|tens)
          (?:\sof\s(?:thousands|millions|billions))?)\b
    )
    (?:[\s-]?(?P<percent>%|percent(?:age)?\b|per\scent\b|pc\b|pct\b))?
    """,
    re.X | re.I,
)
_OTHER_WORDS: Final = """
half halves halved quarter quarters couple both twin twins pair duo trio twice double doubles
doubled triple triples tripled quartet single dozens hundreds thousands millions billions tens
thirds fifths fourths tenths
""".split()
# Any number written in words has one of these.
NUMBER_WORDS: Final = frozenset((*SMALL_NUMBERS, *_ORDINALS, *_SCALES, *_OTHER_WORDS))
_AFTER: Final = lazy_pattern(r"[\s-]?([a-z]+)", re.I)
_BETWEEN: Final = lazy_pattern(r"\s?(?:to|and|or|-|–|,)\s?")
_SETS: Final = {
    "couple": 2,
    "both": 2,
    "twin": 2,
    "twins": 2,
    "pair": 2,
    "duo": 2,
    "twice": 2,
    "trio": 3,
    "quartet": 4,
    "dozen": 12,
    "single": 1,
}
_MOST: Final = 1e300  # hundreds of digits are one number, and a finite one
_PARTS: Final = {"third": 3, "quarter": 4, "fifth": 5, "half": 2, "halve": 2, "fourth": 4}


class Amount(NamedTuple):
    """A number of a text."""

    start: int
    end: int
    text: str
    value: float
    unit: (
        str  # "" plain, "%", a currency's sign, "th" of ordinals, "vague" of hundreds, "x" of times
    )
    figures: int  # significant digits


def amounts_of(text: str) -> list[Amount]:
    """The numbers of a text in their order."""
    found = []
    for match in _NUMBER.finditer(text):
        amount = _amount(match, text)
        if amount is not None:
            found.append(amount)
    return found


def with_ranges(amounts: list[Amount], text: str) -> list[Amount]:
    """The same, and what the first of two borrows of the second: "three and four billion"."""
    more = []
    for one, two in pairwise(amounts):
        if _BETWEEN.fullmatch(text, one.end, two.start) and one.value < 1000:
            scale = next((s for s in (1e12, 1e9, 1e7, 1e6, 1e5, 1e3) if two.value >= s), 1.0)
            unit = two.unit if two.unit not in ("th", "vague", "x") else one.unit
            more.append(one._replace(value=one.value * scale, unit=unit))
            more.append(one._replace(unit=unit))
            if one.unit and not two.unit:
                more.append(two._replace(unit=one.unit))
    return [*amounts, *more]


def _amount(match: re.Match[str], text: str) -> Amount | None:
    part = match.groupdict()
    start, end = match.span()
    unit, figures = "", 9
    scale = part["scale"] or part["scale1"] or part["scale2"] or part["scale3"]
    factor = _SCALES[scale.lower()] if scale else 1.0
    if part["slashed"]:
        value, unit = 100 * int(part["slashed"][0]) / int(part["slashed"][2]), "%"
    elif part["digits"]:
        plain = part["digits"].replace(",", "")
        value = float(plain)
        figures = len(plain.replace(".", "").strip("0")) or 1
        if part["ordinal"]:
            unit = "th"
        elif end < len(text) and (text[end].isalpha() or text[end] == "_"):
            return None  # 3D, 5G: a name
    elif part["tens"]:
        value = SMALL_NUMBERS[part["tens"].lower()] + SMALL_NUMBERS[part["ones"].lower()]
    elif part["article"]:
        value = 1.0
    elif part["numerator"]:
        shares = _PARTS.get(part["fraction"].lower().removesuffix("s").replace("halve", "half"), 10)
        word = part["numerator"].lower().strip(" -\t")
        count = int(word) if word.isdigit() else SMALL_NUMBERS.get(word, 1)
        value, unit = 100 * count / shares, "%"
    elif part["word"]:
        value = float(SMALL_NUMBERS[part["word"].lower()]) + (0.5 if part["rest"] else 0.0)
    elif part["ordword"]:
        value, unit = float(_ORDINALS[part["ordword"].lower()]), "th"
    elif part["vague"]:
        return Amount(start, end, match[0], 0.0, "vague", 0)
    else:
        word = part["half"].lower()
        if word in _SETS:
            value = float(_SETS[word])
        elif word.startswith(("half", "halve")):
            value, unit = 50.0, "%"
        elif word == "quarter":
            value, unit = 25.0, "quarter"
        else:
            value, unit = (2.0 if word.startswith("double") else 3.0), "x"
    value = min(value * factor, _MOST)
    currency = part["currency"]
    if part["percent"]:
        unit = "%"
    elif currency:
        unit = _CURRENCY[currency.strip().lower()]
    elif not unit:
        behind = _AFTER.match(text, end)
        if behind:
            unit = _MONEY_WORDS.get(behind[1].lower(), "")
    return Amount(start, end, match[0], value, unit, figures)


def is_year(amount: Amount) -> bool:
    """Whether it reads as a year: four digits of the last or this century."""
    return 1900 <= amount.value < 2100 and len(amount.text) == 4 and not amount.unit
