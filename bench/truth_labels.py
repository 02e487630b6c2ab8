"""Labels of headlines: the files in bench/truth, and the ledes that they are about.

One JSON object a line:

    {"lede": "0123456789abcdef", "writer": "beam20", "headline": "...", "part": "test",
     "labels": ["false", "ok"], "kinds": ["role", null], "words": ["stranded by two men", null]}

`lede` is the first 16 hex digits of the SHA-256 of the lede in UTF-8. Publishers' headlines are
left out, for their text is not ours; they are found in a table of pairs, as ledes are. `labels`,
`kinds` and `words` have an entry for each reading, one or two; the latter two may be left out.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow, Pair
from ledeline.corpus.tables import read_table

LABELS: Final = ("ok", "clumsy", "added", "false")
GOOD: Final = ("ok", "clumsy")  # all they say is in the lede
PARTS: Final = ("tune", "test", "train", "final")
PUBLISHER: Final = "publisher"
MOST_READINGS: Final = 2
_HASH: Final = re.compile(r"[0-9a-f]{16}")
_NEEDED: Final = ("lede", "writer", "part", "labels")
_KNOWN: Final = (*_NEEDED, "headline", "kinds", "words")


class Judged(NamedTuple):
    """A headline and what readers called it."""

    lede: str  # the hash
    writer: str
    headline: str | None  # None for publishers
    part: str
    labels: tuple[str, ...]  # one for each reading
    kinds: tuple[str | None, ...]
    words: tuple[str | None, ...]

    def share(self, *labels: str) -> float:
        """The share of the readings that gave one of these labels."""
        return sum(one in labels for one in self.labels) / len(self.labels)

    def is_all(self, label: str) -> bool:
        """Whether every reading gave this label."""
        return all(one == label for one in self.labels)


class FoundLabel(NamedTuple):
    """A judged headline with its texts."""

    judged: Judged
    lede: str
    headline: str


class Found(NamedTuple):
    """The judged headlines whose ledes a table has."""

    items: list[FoundLabel]
    missing: int  # different ledes that no table has
    ambiguous: int  # publishers' headlines of a lede that has several; the first was taken


def lede_hash(lede: str) -> str:
    """How label files name a lede."""
    return hashlib.sha256(lede.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load(paths: Iterable[Path], parts: Sequence[str] = ()) -> list[Judged]:
    """The judged headlines of some files, all checked; with parts, only those of them."""
    judged: list[Judged] = []
    seen: dict[tuple[str, str, str | None], str] = {}
    part_of: dict[str, tuple[str, str]] = {}
    for path in paths:
        for number, line in enumerate(_lines(path), start=1):
            if not line.strip():
                continue
            place = f"{path}: line {number}"
            one = _parsed(place, line)
            first = seen.setdefault((one.lede, one.writer, one.headline), place)
            if first != place:
                raise CorpusError(f"{place}: this headline was already judged in {first}")
            part, where = part_of.setdefault(one.lede, (one.part, place))
            if part != one.part:
                raise CorpusError(
                    f"{place}: the lede {one.lede} is in part {one.part} here and in part {part} "
                    f"in {where}; a lede belongs to one part"
                )
            judged.append(one)
    kept = [one for one in judged if not parts or one.part in parts]
    if not kept:
        wanted = f" in part {' or '.join(parts)}" if parts else ""
        raise CorpusError(f"{', '.join(map(str, paths))}: no judged headline{wanted}")
    return kept


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").split("\n")
    except UnicodeDecodeError:
        raise CorpusError(f"{path}: not UTF-8") from None
    except OSError as error:
        raise CorpusError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _parsed(place: str, line: str) -> Judged:
    """A line of a file; an error says what is wrong with it."""
    try:
        given = json.loads(line)
    except ValueError:
        raise CorpusError(f"{place}: not JSON") from None
    if fault := _fault(given):
        raise CorpusError(f"{place}: {fault}")
    num = len(given["labels"])
    return Judged(
        given["lede"],
        given["writer"],
        given.get("headline"),
        given["part"],
        tuple(given["labels"]),
        tuple(one or None for one in given.get("kinds", [None] * num)),
        tuple(one or None for one in given.get("words", [None] * num)),
    )


def _fault(given: Any) -> str | None:
    """What is wrong with an object, if anything."""
    if not isinstance(given, dict):
        return "not a JSON object"
    if absent := [key for key in _NEEDED if key not in given]:
        return f"there is no {absent[0]!r}"
    if unknown := [key for key in given if key not in _KNOWN]:
        return f"{unknown[0]!r} is not known; known are {', '.join(_KNOWN)}"
    lede, writer, part = given["lede"], given["writer"], given["part"]
    if not isinstance(lede, str) or not _HASH.fullmatch(lede):
        return f"'lede' must be 16 hex digits, not {lede!r}"
    if not isinstance(writer, str) or not writer:
        return f"'writer' must be a name, not {writer!r}"
    if part not in PARTS:
        return f"'part' must be {_either(PARTS)}, not {part!r}"
    return _headline_fault(given) or _reading_fault(given)


def _headline_fault(given: dict[str, Any]) -> str | None:
    headline = given.get("headline")
    if given["writer"] == PUBLISHER:
        return "a publisher's 'headline' must be left out" if headline is not None else None
    if not isinstance(headline, str) or not headline.strip():
        return f"'headline' must be a text, not {headline!r}"
    return None


def _reading_fault(given: dict[str, Any]) -> str | None:
    labels = given["labels"]
    if not isinstance(labels, list) or not 1 <= len(labels) <= MOST_READINGS:
        return f"'labels' must be a list of one or two, not {labels!r}"
    if unknown := [one for one in labels if one not in LABELS]:
        return f"a label must be {_either(LABELS)}, not {unknown[0]!r}"
    for key in ("kinds", "words"):
        values = given.get(key, [None] * len(labels))
        if not isinstance(values, list) or len(values) != len(labels):
            return f"{key!r} must be a list with one entry for each label, not {values!r}"
        if unknown := [one for one in values if not isinstance(one, str | None)]:
            return f"an entry of {key!r} must be a text or null, not {unknown[0]!r}"
    return None


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


# --- ledes ----------------------------------------------------------------------------------------


def find(judged: Sequence[Judged], tables: Iterable[Path]) -> Found:
    """Find ledes, and publishers' headlines, by their hashes in tables of pairs."""
    wanted = {one.lede for one in judged}
    ledes: dict[str, str] = {}
    headlines: dict[str, list[str]] = defaultdict(list)
    for pair in _pairs(tables):
        digest = lede_hash(pair.lede)
        if digest in wanted:
            ledes[digest] = pair.lede
            if pair.headline.strip() and pair.headline not in headlines[digest]:
                headlines[digest].append(pair.headline)
    items, ambiguous, missing = [], 0, set()
    for one in judged:
        texts = [one.headline] if one.headline is not None else headlines[one.lede]
        if one.lede in ledes and texts:
            items.append(FoundLabel(one, ledes[one.lede], texts[0]))
            ambiguous += len(texts) > 1
        else:
            missing.add(one.lede)
    return Found(items, len(missing), ambiguous)


def _pairs(tables: Iterable[Path]) -> Iterable[Pair]:
    for path in tables:
        for row in read_table(path, lede="lede", headline="headline", date=None):
            if isinstance(row, InvalidRow):
                raise CorpusError(str(row))
            if isinstance(row, Pair):
                yield row


# --- other files ----------------------------------------------------------------------------------


class Converted(NamedTuple):
    """What becomes of a file whose lines have the ledes themselves."""

    labels: list[dict[str, Any]]
    pairs: list[dict[str, str]]


def convert(path: Path, part: str, readings: Sequence[str], model: str) -> Converted:
    """Lines with lede, headline, writer (model or publisher) and label_X, kind_X, words_X.

    X is the name of a reading. A reading that a line does not have is left out there.
    """
    labels: list[dict[str, Any]] = []
    pairs: dict[str, str] = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            lede, headline, writer = (str(given[key]) for key in ("lede", "headline", "writer"))
        except (ValueError, TypeError, KeyError):
            needed = "lede, headline and writer"
            raise CorpusError(f"{path}: line {number}: not an object with {needed}") from None
        own = [name for name in readings if f"label_{name}" in given]
        is_publisher = writer == PUBLISHER
        row: dict[str, Any] = {
            "lede": lede_hash(lede),
            "writer": PUBLISHER if is_publisher else model,
        }
        row |= {} if is_publisher else {"headline": headline}
        row |= {"part": part, "labels": [given[f"label_{name}"] for name in own]}
        for key, singular in (("kinds", "kind"), ("words", "words")):
            row[key] = [given.get(f"{singular}_{name}") or None for name in own]
        if fault := _fault(row):
            raise CorpusError(f"{path}: line {number}: {fault}")
        labels.append(row)
        if is_publisher or lede not in pairs:
            pairs[lede] = headline if is_publisher else ""
    both = ({"lede": lede, "headline": headline} for lede, headline in pairs.items())
    return Converted(labels, list(both))
