"""Detectors of false headlines: each gives pairs of lede and headline a support in [0, 1]."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ledeline.core.errors import LedelineError, ScoreError
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.core.steps import run_steps
from ledeline.inference.engine_bundle import read_engine_bundle
from ledeline.inference.options import DEFAULT_OPTIONS
from ledeline.inference.source_text import read_source_text
from truth_labels import lede_hash

TextPair: TypeAlias = tuple[str, str]  # lede, headline
NAMES: Final = ("support", "score", "overlap")
FROM_FILE: Final = "file:"
_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")
_BATCH: Final = 32
MAX_SOURCE: Final = DEFAULT_OPTIONS.max_source  # sub-words that are read


class Doubted(NamedTuple):
    """Words of a headline that a detector doubts."""

    words: str
    kind: str


class Verdict(NamedTuple):
    """What a detector says of one headline."""

    support: float
    doubts: tuple[Doubted, ...] | None = None  # None from a detector that only gives support


Detector: TypeAlias = Callable[[Sequence[TextPair]], list[Verdict]]


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return [one.replace("’", "'") for one in _WORD.findall(text.casefold())]


def named(name: str, model: Path | str = SHIPPED_NAME) -> Detector:
    """The detector of a name; `model` is for `score`."""
    if name.startswith(FROM_FILE):
        return from_file(Path(name.removeprefix(FROM_FILE)))
    if name == "support":
        return by_checker
    if name == "score":
        return lambda pairs: by_score(pairs, model)
    if name == "overlap":
        return by_overlap
    known = ", ".join((*NAMES, f"{FROM_FILE}PATH"))
    raise ScoreError(f"{name!r} is not a detector; they are {known}")


def label(name: str, names: Sequence[str]) -> str:
    """What tables call a detector: a file by its stem, if no other is called so."""
    stems = [Path(one.removeprefix(FROM_FILE)).stem for one in names]
    stem = stems[list(names).index(name)]
    return stem if name.startswith(FROM_FILE) and stems.count(stem) == 1 else name


def by_checker(pairs: Sequence[TextPair]) -> list[Verdict]:
    """The support and the doubts of `ledeline.check`."""
    try:
        from ledeline.inference.checks.checker import Checker
    except ModuleNotFoundError:
        raise ScoreError("support: this ledeline cannot check headlines") from None
    found = Checker.load().check_batch(list(pairs))
    return [
        Verdict(float(one.support), tuple(Doubted(doubt.words, doubt.kind) for doubt in one.doubts))
        for one in found
    ]


def by_overlap(pairs: Sequence[TextPair]) -> list[Verdict]:
    """The share of the headline's words that are in the lede."""
    found = []
    for lede, headline in pairs:
        there, words = set(words_of(lede)), words_of(headline)
        found.append(Verdict(sum(word in there for word in words) / max(1, len(words))))
    return found


def by_score(pairs: Sequence[TextPair], model: Path | str = SHIPPED_NAME) -> list[Verdict]:
    """The geometric mean of the probabilities of the headline's sub-words and its end."""
    bundle = read_engine_bundle(model)
    if bundle is None:
        raise ScoreError(f"score: the engine does not know the system of {model}")
    engine, tokenizer = bundle.model.engine("int8"), bundle.tokenizer
    ledes = [read_source_text(lede, 1, tokenizer, MAX_SOURCE).ids for lede, _ in pairs]
    rows = [row for row, ids in enumerate(ledes) if ids]
    rows.sort(key=lambda row: len(ledes[row]))
    found = [Verdict(0.0)] * len(pairs)  # a lede that cannot be read supports nothing
    for begin in range(0, len(rows), _BATCH):
        some = rows[begin : begin + _BATCH]
        headlines = [
            (number, tokenizer.encode(tokenizer.headline_words(pairs[row][1]))[:MAX_SOURCE])
            for number, row in enumerate(some)
        ]
        followed = run_steps(engine.follow([ledes[row] for row in some], headlines))
        for number, row in enumerate(some):
            logs = followed.headline(number).logs.tolist()
            found[row] = Verdict(min(1.0, math.exp(math.fsum(logs) / len(logs))))
    return found


# --- from a file ----------------------------------------------------------------------------------


def from_file(path: Path) -> Detector:
    """Supports that something else computed: lines of {lede: hash, headline, support}.

    A line may also have `doubts`, objects with `words` and `kind`.
    """
    known: dict[TextPair, Verdict] = {}
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ScoreError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            key, verdict = _parsed(f"{path}: line {number}", line)
            known[key] = verdict

    def detect(pairs: Sequence[TextPair]) -> list[Verdict]:
        keys = [(lede_hash(lede), headline) for lede, headline in pairs]
        absent = [key for key in keys if key not in known]
        if absent:
            what = f"{len(absent):,} of {len(keys):,} headlines have no support there"
            raise ScoreError(f"{path}: {what}; the first is of the lede {absent[0][0]}")
        return [known[key] for key in keys]

    return detect


def _parsed(place: str, line: str) -> tuple[TextPair, Verdict]:
    try:
        given: dict[str, Any] = json.loads(line)
        support, doubts = float(given["support"]), given.get("doubts")
        if doubts is not None:
            doubts = tuple(Doubted(str(one["words"]), str(one["kind"])) for one in doubts)
        found = (str(given["lede"]), str(given["headline"])), Verdict(support, doubts)
    except (ValueError, TypeError, KeyError):
        needed = "lede, headline and support"
        raise ScoreError(f"{place}: not a JSON object with {needed}") from None
    if not 0 <= support <= 1:
        raise ScoreError(f"{place}: a support is from 0 to 1, not {support}")
    return found


def run(name: str, detector: Detector, pairs: Sequence[TextPair]) -> list[Verdict]:
    """Ask a detector, and see that its answer is one."""
    found = detector(pairs)
    if len(found) != len(pairs):
        raise LedelineError(f"{name} gave {len(found):,} supports for {len(pairs):,} headlines")
    for one in found:
        if not 0 <= one.support <= 1:  # nor NaN
            raise LedelineError(f"{name} gave a support of {one.support}; it must be from 0 to 1")
    return found
