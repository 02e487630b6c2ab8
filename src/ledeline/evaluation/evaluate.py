"""A system on test sets: headlines, their scores, what is odd in them and how they are aligned.

Everything is kept in one folder, whose files are described in docs/evaluation.md. A test set that
is done is noted there at once, so that work that was stopped goes on where it was.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from ledeline import __version__, rouge
from ledeline.config.section import at_least, section
from ledeline.core.atomic import atomic_write, exclusive_lock, make_folder
from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress
from ledeline.core.provenance import commit
from ledeline.core.shipped import model_folder
from ledeline.core.signals import Interrupted, Stop
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.corpus.inputs import TextInput
from ledeline.evaluation import audit as audits
from ledeline.evaluation import scoring
from ledeline.evaluation.alignment_summary import alignment_summary, read_links
from ledeline.evaluation.audit import Audit
from ledeline.evaluation.folder import (
    ALIGNMENT,
    FORMAT,
    GOLD,
    HEADLINES,
    OUTPUT,
    PAIRS,
    REFERENCE,
    SOURCE,
    SUMMARY,
)
from ledeline.inference.generate import generate
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.outputs.notes import Notes
from ledeline.inference.outputs.opening import open_output
from ledeline.model.format.folder import WEIGHTS
from ledeline.report.evaluations import read_outcome, read_summary
from ledeline.report.fields import Fields
from ledeline.rouge import Rouge
from ledeline.text.profiles import PAPER, PROFILES, Profile, clean


@section
class Judging:
    """How a system is judged."""

    options: Annotated[Options, ""] = Options()
    scoring: Annotated[rouge.Settings, ""] = rouge.Settings()
    profile: Annotated[
        Literal["paper", "natural"] | None,
        "Text profile that outputs and references are compared in; the model's own if not given.",
    ] = None
    num_word_pairs: Annotated[int, "Pairs that the table of words is made of.", at_least(0)] = 500
    num_heat_maps: Annotated[int, "Pairs that heat maps are kept of.", at_least(0)] = 3
    seed: Annotated[int, "Which pairs these are.", at_least(0)] = 1


class System(NamedTuple):
    """What is judged."""

    headliner: Headliner
    folders: tuple[str, ...]  # of the models, as they were given
    name: str


class Outcome(NamedTuple):
    """How far it came."""

    summary: dict[str, Any]
    signal: int | None  # that stopped it


def evaluate(
    system: System,
    sets: Sequence[EvaluationSet],
    folder: Path,
    judging: Judging,
    *,
    command: str,
    resume: bool = False,
    progress: Progress = no_progress,
) -> Outcome:
    """Judge a system on test sets; with `resume`, what is in the folder is gone on with."""
    _refuse_twins(sets)
    for test_set in sets:
        read_links(test_set)  # what is wrong with them is said before the work
    plan = _plan(system, judging)
    with _opened(folder, resume=resume):
        done = _begun(folder, plan, sets)
        try:
            with Stop().interrupting():
                for test_set in sets:
                    if test_set.name not in done:
                        _save(folder, plan, done, command, ended=False)
                        seconds = _write_headlines(system, test_set, folder, judging, progress)
                        judged = _judged(system, test_set, folder, judging, progress)
                        done[test_set.name] = judged | {"seconds": seconds, "command": command}
        except Interrupted as interrupted:
            return Outcome(_save(folder, plan, done, command, ended=False), interrupted.number)
        return Outcome(_save(folder, plan, done, command, ended=True), None)


# --- the folder ---------------------------------------------------------------------------------


@contextmanager
def _opened(folder: Path, *, resume: bool) -> Iterator[None]:
    """Be the only one that writes the folder, which is new unless it is gone on with."""
    if folder.exists() and not folder.is_dir():
        raise ScoreError(f"{folder} is a file; name a folder to write to")
    make_folder(folder)
    with exclusive_lock(folder / SUMMARY, ScoreError):
        if any(not path.name.startswith(".") for path in folder.iterdir()):
            if not resume:
                raise ScoreError(f"{folder} is there already; go on with --resume, or name another")
            read_summary(folder)  # else it is not what is written here
        yield


def _plan(system: System, judging: Judging) -> dict[str, Any]:
    """What must not change while an evaluation goes on."""
    headliner = system.headliner
    return {
        "format": FORMAT,
        "system": system.name,
        "models": list(system.folders),
        "weights": [
            _file_sum(model_folder(one) / f"{WEIGHTS}.safetensors") for one in system.folders
        ],
        "profile": headliner.models[0].tokenizer.profile.name,
        "compared_in": _profile(system, judging).name,
        "precision": headliner.precision,
        "device": headliner.models[0].model.device.type,
        "search": asdict(headliner.settled(judging.options.search)),
        "replace_unknown": judging.options.replace_unknown,
        "scoring": asdict(judging.scoring),
        "samples": {
            "word_pairs": judging.num_word_pairs,
            "heat_maps": judging.num_heat_maps,
            "seed": judging.seed,
        },
    }


def checksum(test_set: EvaluationSet) -> str:
    """A sum that tells test sets of other texts apart."""
    texts = [test_set.ledes, test_set.headlines, test_set.alignments]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _file_sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _begun(folder: Path, plan: Mapping[str, Any], sets: Sequence[EvaluationSet]) -> dict[str, Any]:
    """The test sets that are done; the rest of the folder must be of the same plan.

    One of the sets that are asked for is done again if its files are not whole.
    """
    if not (folder / SUMMARY).exists():
        return {}
    there = read_summary(folder)
    for key, value in plan.items():
        before = there.values.get(key)
        if key != "models" and before != value:  # their weights say more than names
            raise ScoreError(
                f"{folder / SUMMARY}: {key} is {json.dumps(before)} there and {json.dumps(value)} "
                f"now; {_way_on(key, before)}name another folder"
            )
    asked, done = {one.name: one for one in sets}, there.inner("sets")
    return {
        name: done.values[name]
        for name in done.values
        if name not in asked or _is_whole(folder, asked[name], done)
    }


def _way_on(key: str, before: object) -> str:
    """How to go on with a folder of a version of ledeline that decided otherwise by itself."""
    if key == "replace_unknown" and before is False:
        return "go on with --unknown keep, or "
    return ""


def _is_whole(folder: Path, test_set: EvaluationSet, done: Fields) -> bool:
    """Whether all that was written of a test set is there; it must be of the same pairs."""
    fields = done.inner(test_set.name)
    if fields.values.get("checksum", "") != checksum(test_set):
        raise ScoreError(
            f"{folder / SUMMARY}: the test set {test_set.name} has other pairs there than now; "
            "call it by another name, or name another folder"
        )
    try:
        read_outcome(folder, test_set.name, fields)
    except ScoreError:
        return False
    return (folder / test_set.name / ALIGNMENT).is_file()


def _refuse_twins(sets: Sequence[EvaluationSet]) -> None:
    names = [one.name for one in sets]
    for name in names:
        if names.count(name) > 1:
            raise ScoreError(f"two test sets are called {name}; name them: NAME=FILE")
        if name == SUMMARY:
            raise ScoreError(f"no test set can be called {name}, which is a file of its own")


def _save(
    folder: Path, plan: Mapping[str, Any], done: Mapping[str, Any], command: str, *, ended: bool
) -> dict[str, Any]:
    summary = {
        **plan,
        "command": command,
        "version": __version__,
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds") if ended else None,
        "sets": done,
    }
    text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    with atomic_write(folder / SUMMARY) as path:  # half a character, of a file's name, is an escape
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return summary


# --- headlines ----------------------------------------------------------------------------------


def _write_headlines(
    system: System, test_set: EvaluationSet, folder: Path, judging: Judging, progress: Progress
) -> float | None:
    """Write those that are missing; return the seconds it took, if all were."""
    path = folder / test_set.name / HEADLINES
    anew, began = not path.exists(), time.monotonic()
    given = TextInput(test_set.ledes)
    with (
        Notes(lambda _: None, given.unit, everything=False, warnings=False) as notes,
        open_output(path, given, as_json=True, resume=True) as output,
    ):
        outcome = generate(
            system.headliner,
            given,
            output,
            judging.options,
            notes,
            lambda _, done, total: progress(f"{test_set.name}: headlines", done, total),
        )
    if outcome.signal is not None:
        raise Interrupted(outcome.signal)
    return time.monotonic() - began if anew else None


def _read_headlines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


# --- judgement ----------------------------------------------------------------------------------


def _judged(
    system: System, test_set: EvaluationSet, folder: Path, judging: Judging, progress: Progress
) -> dict[str, Any]:
    """Compare what was written with what was wanted; write all files but the summary."""
    place = folder / test_set.name
    headlines = _read_headlines(place / HEADLINES)
    words = _words(system, test_set, [one["headline"] for one in headlines], judging)
    lines = {name: [" ".join(one) for one in texts] for name, texts in words.items()}
    for name, texts in lines.items():
        _write_lines(place / name, texts)
    _write_lines(place / GOLD, map(clean, test_set.headlines))
    scores = rouge.score_all(lines[OUTPUT], lines[REFERENCE], judging.scoring, progress)
    odds = audits.audit(words[OUTPUT], words[REFERENCE], words[SOURCE])
    _write_lines(place / PAIRS, _pair_lines(scores, odds))
    aligned = alignment_summary(
        system.headliner.models[0],
        test_set,
        num_word_pairs=judging.num_word_pairs,
        num_heat_maps=judging.num_heat_maps,
        seed=judging.seed,
        progress=progress,
    )
    _write_lines(place / ALIGNMENT, [json.dumps(aligned, ensure_ascii=False)])
    return {
        "files": list(test_set.files),
        "checksum": checksum(test_set),
        "pairs": len(headlines),
        "signature": rouge.signature(judging.scoring, 1),
        **_with_intervals(scores),
        "odd": audits.as_dict(odds),
        "truncated": sum(one["truncated"] for one in headlines),
        "empty": sum(not one["headline"] for one in headlines),
    }


def _with_intervals(scores: Sequence[Rouge]) -> dict[str, dict[str, float]]:
    found = scoring.mean_intervals(scores)
    return {
        name: mean | found[name]["f1"]._asdict() for name, mean in scoring.means(scores).items()
    }


def _words(
    system: System, test_set: EvaluationSet, outputs: Sequence[str], judging: Judging
) -> dict[str, list[list[str]]]:
    """The words that are compared, by the name of the file they are written to."""
    profile = _profile(system, judging)
    as_written = profile is system.headliner.models[0].tokenizer.profile is PAPER  # tokens already
    return {
        SOURCE: [list(profile.plain(profile.words(lede))) for lede in test_set.ledes],
        REFERENCE: [audits.split(text, profile) for text in test_set.headlines],
        OUTPUT: [
            profile.compared_words(text.split()) if as_written else audits.split(text, profile)
            for text in outputs
        ],
    }


def _profile(system: System, judging: Judging) -> Profile:
    """What texts are compared in: as it is without a model, the same for systems with one name."""
    return PROFILES[judging.profile or system.headliner.models[0].tokenizer.profile.name]


def _pair_lines(scores: Sequence[Rouge], odds: Audit) -> Iterator[str]:
    both = zip(scoring.per_pair_lines(scores), audits.per_pair_lines(odds), strict=True)
    return (f"{ours}\t{theirs}" for ours, theirs in both)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_write(path) as part:
        part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
