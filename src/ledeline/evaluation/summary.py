"""evaluation.json, written and read: the settings of an evaluation, and the figures of each set.

docs/evaluation.md describes the keys.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.evaluation.audit import AuditSummary
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.json_fields import JsonFields, is_count
from ledeline.evaluation.odd_words import KINDS, OddWords

FORMAT: Final = 1
MEASURES: Final = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L"}  # and their short names
_WEIGHTED: Final = "rougeW"  # only where it was scored


# --- settings -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Samples:
    """How many pairs were drawn for alignment, and the seed they were drawn by."""

    word_pairs: int
    heat_maps: int
    seed: int


@dataclass(frozen=True)
class CheckSettings:
    """How headlines were checked, ranked and constrained."""

    check: bool
    rank: str
    constrain: bool
    min_support: float | None
    verifier: str | None  # its checksum; None if no headline was checked


@dataclass(frozen=True)
class EvaluationSettings:
    """What must not change when an evaluation is resumed."""

    system: str
    models: tuple[str, ...]  # folders, as they were given
    weights: tuple[str, ...]  # their checksums
    profile: str  # of the model
    compared_in: str  # the profile that outputs and references are compared in
    precision: str
    device: str
    search: SearchConfig
    replace_unknown: bool
    scoring: rouge.Settings
    samples: Samples
    checking: CheckSettings | None = None  # None if nothing was checked or constrained

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": FORMAT,
            "system": self.system,
            "models": list(self.models),
            "weights": list(self.weights),
            "profile": self.profile,
            "compared_in": self.compared_in,
            "precision": self.precision,
            "device": self.device,
            "search": asdict(self.search),
            "replace_unknown": self.replace_unknown,
            **({} if self.checking is None else {"checking": asdict(self.checking)}),
            "scoring": asdict(self.scoring),
            "samples": asdict(self.samples),
        }


# --- test sets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeasureScore:
    """A measure over all pairs, from 0 to 1."""

    precision: float
    recall: float
    f1: float
    low: float  # the 95 % interval of f1
    high: float


@dataclass(frozen=True)
class SetSummary:
    """The figures of a system on one test set."""

    files: tuple[str, ...]  # as they were given
    checksum: str  # of the pairs
    num_pairs: int
    signature: str  # of the scores
    scores: dict[str, MeasureScore]  # by measure
    odd: AuditSummary
    num_truncated: int  # headlines that did not end
    num_empty: int
    seconds: float | None  # to write the headlines; None if that was interrupted
    command: str
    checks: CheckCounts | None = None  # None if nothing was checked

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "files": list(self.files),
            "checksum": self.checksum,
            "pairs": self.num_pairs,
            "signature": self.signature,
            **{name: asdict(score) for name, score in self.scores.items()},
            "odd": self.odd.as_dict(),
            **({} if self.checks is None else {"checks": self.checks.as_dict()}),
            "truncated": self.num_truncated,
            "empty": self.num_empty,
            "seconds": self.seconds,
            "command": self.command,
        }

    @classmethod
    def read(cls, fields: JsonFields) -> Self:
        """Read the part of evaluation.json that has the name of a test set."""
        num_pairs = fields.count("pairs")
        if not num_pairs:
            raise fields.error("pairs", "a pair or more")
        return cls(
            files=fields.shown("files"),
            checksum=str(fields.values.get("checksum", "")),
            num_pairs=num_pairs,
            scores={name: _read_score(fields.inner(name)) for name in _measures(fields)},
            signature=fields.text("signature"),
            odd=_read_odd(fields.inner("odd"), num_pairs),
            num_truncated=fields.count("truncated"),
            num_empty=fields.count("empty"),
            seconds=None if fields.is_null("seconds") else fields.number("seconds"),
            command="" if fields.is_null("command") else fields.text("command"),
            checks=None if fields.is_null("checks") else CheckCounts.read(fields.inner("checks")),
        )


def _measures(fields: JsonFields) -> tuple[str, ...]:
    return (*MEASURES, _WEIGHTED) if _WEIGHTED in fields.values else tuple(MEASURES)


def _read_score(fields: JsonFields) -> MeasureScore:
    return MeasureScore(
        *(fields.share(key) for key in ("precision", "recall", "f1", "low", "high"))
    )


def _read_odd(fields: JsonFields, num_pairs: int) -> AuditSummary:
    irrelevant = None if fields.is_null("irrelevant") else fields.count("irrelevant")
    total = OddWords(fields.count("repeating"), fields.count("lacking"), irrelevant)
    empty = JsonFields(fields.path, {})
    histograms = empty if fields.is_null("histograms") else fields.inner("histograms")
    return AuditSummary(num_pairs, total, {kind: _read_counts(histograms, kind) for kind in KINDS})


def _read_counts(fields: JsonFields, key: str) -> tuple[int, ...] | None:
    if fields.is_null(key):
        return None
    values = fields.list(key)
    counts = tuple(value for value in values if is_count(value))
    if len(counts) != len(values):
        raise fields.error(key, "a list of counts")
    return counts


# --- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvaluationSummary:
    """All of evaluation.json."""

    settings: EvaluationSettings
    command: str  # that wrote the folder last
    version: str
    commit: str | None
    date: str | None  # when it ended; None before
    sets: dict[str, SetSummary]  # those that are done

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.settings.as_dict(),
            "command": self.command,
            "version": self.version,
            "commit": self.commit,
            "date": self.date,
            "sets": {name: one.as_dict() for name, one in self.sets.items()},
        }
