"""Folders of evaluations as `ledeline evaluate` would write them, made without any model."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ledeline.evaluation import audit as audits
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.significance import bootstrap_intervals
from ledeline.inference.checks.check import Check
from ledeline.synth.newsroom import generate
from ledeline.text.profiles import NATURAL

MEASURES = ("rouge1", "rouge2", "rougeL")
STRAY = ("Quillmore", "pageant", "Monday's", "lottery", "correction", "precede")


@dataclass(frozen=True)
class Pair:
    lede: str
    gold: str
    headline: str


@dataclass
class TestSet:
    """What goes into the folder of one test set."""

    __test__ = False  # for pytest

    pairs: list[Pair]
    with_spm: bool = True
    with_alignment: bool = True
    with_gold: bool = True
    with_sources: bool = True
    num_heat_maps: int = 2
    checks: list[Check] | None = None  # of each headline
    changes: dict[str, Any] = field(default_factory=dict)  # to its part of evaluation.json


def newsroom(num_pairs: int, seed: int, oddness: float) -> list[Pair]:
    """Stories with headlines that a system of some oddness, 0 to 1, might write."""
    pairs = []
    for number, story in enumerate(generate(num_pairs, seed)):
        rng = random.Random(f"{seed}/{number}")  # the same for each system
        pairs.append(Pair(story.lede, story.headline, _spoilt(story.headline, oddness, rng)))
    return pairs


def _spoilt(headline: str, oddness: float, rng: random.Random) -> str:
    words = headline.split()
    fate = rng.random()
    place = rng.randrange(len(words))
    length = rng.choice((1, 1, 1, 2, 2, 3, 5, 11))
    stray = rng.sample(STRAY, 3)
    if fate < 0.3 * oddness:
        words[place:place] = [words[place]] * length
    elif fate < 0.75 * oddness:
        words = words[: max(1, len(words) - length)]
    elif fate < oddness:
        words[place : place + 1] = stray[: min(3, length)]
    elif fate > 1 - 0.25 * (1 - oddness) and len(words) > 2:
        words[place] = "a"
    return " ".join(words)


def write_evaluation(
    folder: Path, system: str, sets: dict[str, TestSet], **changes: object
) -> Path:
    """Write a folder; `changes` go into evaluation.json."""
    folder.mkdir(parents=True, exist_ok=True)
    summary: dict[str, Any] = {
        "format": 1,
        "system": system,
        "models": [f"runs/{folder.name}/best"],
        "weights": ["0f" * 32],
        "profile": "natural",
        "compared_in": "natural",
        "precision": "float32",
        "device": "cpu",
        "search": {"beam": 20, "min_length": 1, "max_length": None},
        "command": f"ledeline evaluate --model runs/{folder.name}/best --test news=news.jsonl",
        "version": "0.1.0",
        "commit": "1" * 40,
        "date": "2026-01-02T03:04:05+00:00",
        "sets": {name: _write_set(folder / name, one) for name, one in sets.items()},
    }
    (folder / "evaluation.json").write_text(json.dumps(summary | changes, indent=2))
    return folder


def _write_set(place: Path, test_set: TestSet) -> dict[str, Any]:
    place.mkdir(exist_ok=True)
    pairs = test_set.pairs
    sources, references, outputs = (
        [NATURAL.compared_words(NATURAL.words(getattr(pair, name))) for pair in pairs]
        for name in ("lede", "gold", "headline")
    )
    _write_lines(place / "source.txt", map(" ".join, sources))
    _write_lines(place / "reference.txt", map(" ".join, references))
    _write_lines(place / "output.txt", map(" ".join, outputs))
    _write_lines(place / "gold.txt", (one.gold for one in pairs))
    answers = [{"source": one.lede, "headline": one.headline, "warnings": []} for one in pairs]
    for answer, check in zip(answers, test_set.checks or [], strict=False):
        answer |= check.as_dict()
    _write_lines(place / "headlines.jsonl", map(json.dumps, answers))
    scores = np.array([_scores(*both) for both in zip(outputs, references, strict=True)]).round(5)
    odd = audits.audit(outputs, references, sources if test_set.with_sources else None)
    _write_pairs(place / "pairs.tsv", scores, odd)
    if test_set.with_alignment:
        aligned = _alignment(test_set, sources, references)
        (place / "alignment.json").write_text(json.dumps(aligned))
    summary = {
        "files": [f"{place.name}.jsonl"],
        "pairs": len(pairs),
        "signature": "metric:ROUGE-1.5.5|references:1|stem:no",
        **_means(scores),
        "odd": audits.as_dict(odd),
        "truncated": 3,
        "empty": sum(not one.headline for one in pairs),
        "seconds": 12.5,
    }
    if test_set.checks is not None:
        summary["checks"] = CheckCounts.of(test_set.checks).as_dict()
    return summary | test_set.changes


def _write_lines(path: Path, lines: Any) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def _write_pairs(path: Path, scores: Any, odd: audits.Audit) -> None:
    shares = ["\t".join(MEASURES), *("\t".join(f"{one:.5f}" for one in row) for row in scores)]
    both = zip(shares, audits.per_pair_lines(odd), strict=True)
    _write_lines(path, (f"{ours}\t{theirs}" for ours, theirs in both))


# --- scores ---------------------------------------------------------------------------------------


def _means(scores: Any) -> dict[str, dict[str, float]]:
    found = bootstrap_intervals(scores)
    return {
        name: {
            "precision": mean,
            "recall": mean,
            "f1": mean,
            "low": bounds.low,
            "high": bounds.high,
        }
        for name, mean, bounds in zip(MEASURES, scores.mean(0).tolist(), found, strict=True)
    }


def _scores(output: Sequence[str], reference: Sequence[str]) -> list[float]:
    ours, theirs = ([word.lower() for word in words] for words in (output, reference))
    shared = [(_grams(ours, n) & _grams(theirs, n)).total() for n in (1, 2)]
    sizes = [len(ours) + len(theirs), max(0, len(ours) - 1) + max(0, len(theirs) - 1)]
    pairs = [*zip(shared, sizes, strict=True), (_common(ours, theirs), sizes[0])]
    return [2 * hits / size if size else 0.0 for hits, size in pairs]


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    lengths = [0] * (len(theirs) + 1)
    for word in ours:
        before = lengths
        lengths = [0]
        for j, other in enumerate(theirs):
            step = before[j] + 1 if word == other else max(before[j + 1], lengths[j])
            lengths.append(step)
    return lengths[-1]


# --- alignment ------------------------------------------------------------------------------------


def _alignment(
    test_set: TestSet, sources: list[list[str]], references: list[list[str]]
) -> dict[str, Any]:
    spm = ["spm-vocabulary", "spm-sentence"] if test_set.with_spm else []
    methods = [*spm, "attention", "attention-shifted"]
    quality = {
        method: _quality(0.9 - 0.2 * number, method) for number, method in enumerate(methods)
    }
    quality |= {name: _quality(0.11, name) for name in ("identity", "diagonal")}
    tables = ["spm-vocabulary", "attention"] if test_set.with_spm else ["attention"]
    return {
        "words": {method: _words() for method in tables},
        "quality": quality if test_set.with_gold else None,
        "heatmaps": [
            {"pair": pair, **_heat_map(sources[pair], references[pair], test_set.with_spm)}
            for pair in range(min(test_set.num_heat_maps, len(sources)))
        ],
    }


def _quality(level: float, method: str) -> dict[str, float | None]:
    return {
        "precision": level,
        "recall": level - 0.0123,
        "error_rate": 1 - level,
        "dropped_recall": level / 2,
        "pad_recall": level / 3 if method.startswith("spm") else None,
    }


def _words() -> dict[str, Any]:
    groups = {
        "same": [["police", "police", 61], ["talks", "talks", 40], ["oil", "oil", 31]],
        "inflection": [["calls", "called", 25], ["warns", "warned", 19], ["win", "won", 7]],
        "other": [["quake", "earthquake", 12], ["dead", "killed", 9], ["eu", "european", 4]],
    }
    found = {
        name: {"count": 10 * sum(one[2] for one in examples), "examples": examples}  # type: ignore[misc]
        for name, examples in groups.items()
    }
    return {"pairs": 500, "tokens": 4321, "pieces": 321, "groups": found}


def _heat_map(source: Sequence[str], headline: Sequence[str], with_spm: bool) -> dict[str, Any]:
    rng = np.random.default_rng(len(source))
    written = [*headline, "<eos>"]
    attention = rng.dirichlet(np.full(len(source), 0.15), len(written)).round(4)
    rows = [f"{word} ({source[k]})" for word, k in zip(written, attention.argmax(1), strict=True)]
    heat: dict[str, Any] = {
        "source": list(source),
        "attention_rows": rows,
        "attention": attention.tolist(),
        "spm_rows": None,
        "spm": None,
    }
    if with_spm:
        steps = [*written, *["<pad>"] * (len(source) - len(written))]
        places = np.resize(rng.permutation(len(source)), len(steps)).tolist()
        spm = np.full((len(steps), len(source)), 0.001)
        for j in range(len(steps)):
            spm[j, places[j]] = 0.9 if rng.random() < 0.7 else 0.4
        heat["spm"] = spm.tolist()
        heat["spm_rows"] = [f"{step} ({source[places[j]]})" for j, step in enumerate(steps)]
    return heat
