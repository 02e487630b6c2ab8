"""Evaluate a system on test sets: write headlines, score, audit and align them.

Everything is written to one folder (see `ledeline.evaluation.evaluation_folder`). A test set that
is done is noted there at once, so that an evaluation that was stopped can be resumed.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from ledeline import __version__, rouge
from ledeline.config.section import at_least, section
from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress
from ledeline.core.provenance import commit
from ledeline.core.shipped import model_folder
from ledeline.core.signals import Interrupted, Stop
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.corpus.inputs import TextInput
from ledeline.evaluation import scoring
from ledeline.evaluation.aligner import Aligner
from ledeline.evaluation.audit import AuditSummary, audit, compared_words
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.evaluation_folder import SUMMARY, EvaluationFolder, SetFolder
from ledeline.evaluation.json_fields import JsonFields
from ledeline.evaluation.links import gold_links
from ledeline.evaluation.summary import (
    CheckSettings,
    EvaluationSettings,
    EvaluationSummary,
    MeasureScore,
    Samples,
    SetSummary,
)
from ledeline.evaluation.written_headline import WrittenHeadline
from ledeline.inference.checks.checker import VERIFIER
from ledeline.inference.checks.verifier_folder import verifier_checksum
from ledeline.inference.generate import generate
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.outputs.open_output import open_output
from ledeline.inference.outputs.reporter import LimitedReporter
from ledeline.model.format.description import WEIGHTS
from ledeline.rouge import Rouge
from ledeline.text.profiles import PAPER, PROFILES, Profile, clean

# Options of the search that earlier versions did not have, as they searched.
LATER_SEARCH: Final = {"recombine": 0, "keep_finished": False}


@section
class EvaluationConfig:
    """How a system is evaluated."""

    options: Annotated[Options, ""] = Options()
    scoring: Annotated[rouge.Settings, ""] = rouge.Settings()
    profile: Annotated[
        Literal["paper", "natural"] | None,
        "Text profile that outputs and references are compared in; the model's own if not given.",
    ] = None
    num_word_pairs: Annotated[int, "Pairs to find aligned word pairs in.", at_least(0)] = 500
    num_heat_maps: Annotated[int, "Pairs to keep heat maps of.", at_least(0)] = 3
    seed: Annotated[int, "Seed that these pairs are drawn by.", at_least(0)] = 1


class EvaluatedSystem(NamedTuple):
    """A system to evaluate."""

    headliner: Headliner
    folders: tuple[str, ...]  # of its models, as they were given
    name: str

    @property
    def profile(self) -> Profile:
        """The text profile of its models."""
        return self.headliner.models[0].tokenizer.profile


class EvaluationResult(NamedTuple):
    """The figures of the test sets that are done."""

    summary: EvaluationSummary
    signal: int | None  # that stopped it


def evaluate(
    system: EvaluatedSystem,
    sets: Sequence[EvaluationSet],
    path: Path,
    config: EvaluationConfig,
    *,
    command: str,
    resume: bool = False,
    progress: Progress = no_progress,
) -> EvaluationResult:
    """Evaluate a system on test sets and write the folder `path`.

    With `resume`, a folder that is there is completed: test sets that are done stay, but for an
    alignment that was left out.
    """
    _check_names(sets)
    for test_set in sets:
        gold_links(test_set)  # errors in them are reported before the work
    settings, folder = _settings(system, config), EvaluationFolder(path)
    aligner = Aligner(system.headliner.models[0], settings.samples, progress)

    def saved(*, ended: bool) -> EvaluationSummary:
        date = datetime.now(UTC).isoformat(timespec="seconds") if ended else None
        summary = EvaluationSummary(settings, command, __version__, commit(), date, done)
        folder.write_summary(summary)
        return summary

    with folder.opened(resume=resume):
        done = _done_sets(folder, settings, sets)
        try:
            with Stop().interrupting():
                for test_set in sets:
                    place = folder.test_set(test_set.name)
                    if test_set.name in done:
                        aligner.complete(place, test_set)
                        continue
                    saved(ended=False)
                    figures = _evaluate_set(system, test_set, place, config, command, progress)
                    place.write_alignment(aligner.align(test_set))
                    done[test_set.name] = figures
        except Interrupted as interrupted:
            return EvaluationResult(saved(ended=False), interrupted.number)
        return EvaluationResult(saved(ended=True), None)


def _check_names(sets: Sequence[EvaluationSet]) -> None:
    names = [one.name for one in sets]
    for name in names:
        if names.count(name) > 1:
            raise ScoreError(f"two test sets are called {name}; name them: NAME=FILE")
        if name == SUMMARY:
            raise ScoreError(
                f"a test set cannot be called {name}; the folder has a file of that name"
            )


# --- settings, and resuming with the same ---------------------------------------------------------


def _settings(system: EvaluatedSystem, config: EvaluationConfig) -> EvaluationSettings:
    headliner = system.headliner
    weights = (model_folder(one) / f"{WEIGHTS}.safetensors" for one in system.folders)
    return EvaluationSettings(
        system=system.name,
        models=system.folders,
        weights=tuple(map(_file_checksum, weights)),
        profile=system.profile.name,
        compared_in=_profile(system, config).name,
        precision=headliner.precision,
        device="cpu" if headliner.on_cpu else "cuda",
        search=headliner.resolve_search(config.options.search),
        replace_unknown=config.options.replace_unknown,
        scoring=config.scoring,
        samples=Samples(config.num_word_pairs, config.num_heat_maps, config.seed),
        checking=_check_settings(headliner.resolve_options(config.options)),
    )


def _check_settings(options: Options) -> CheckSettings | None:
    """How headlines are checked, of options with the defaults of the model."""
    if not options.check and not options.constrain:
        return None
    return CheckSettings(
        check=bool(options.check),
        rank=options.rank or "score",
        constrain=bool(options.constrain),
        min_support=options.min_support,
        verifier=verifier_checksum(VERIFIER) if options.check else None,
    )


def checksum(test_set: EvaluationSet) -> str:
    """The same for the same pairs and gold links, different for others."""
    texts = [test_set.ledes, test_set.headlines, test_set.alignments]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _file_checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _done_sets(
    folder: EvaluationFolder, settings: EvaluationSettings, sets: Sequence[EvaluationSet]
) -> dict[str, SetSummary]:
    """The test sets that are done, with the same settings.

    One that is asked for again, and whose files are damaged, is not done.
    """
    if not folder.summary_path.exists():
        return {}
    stored = folder.read_summary()
    _refuse_changes(stored, settings)
    asked, stored_sets = {one.name: one for one in sets}, stored.inner("sets")
    done = {}
    for name in stored_sets.values:
        fields = stored_sets.inner(name)
        if name not in asked:
            done[name] = SetSummary.read(fields)
        elif (summary := _read_whole(folder, asked[name], fields)) is not None:
            done[name] = summary
    return done


def _refuse_changes(stored: JsonFields, settings: EvaluationSettings) -> None:
    for key, value in ({"checking": None} | settings.as_dict()).items():
        before = stored.values.get(key)
        if key == "search" and isinstance(before, dict):
            before = LATER_SEARCH | before
        if key != "models" and before != value:  # the checksums of their weights say more
            raise ScoreError(
                f"{stored.path}: {key} was {json.dumps(before)} and is {json.dumps(value)} "
                f"now; {_advice(key, before, value)}name another folder"
            )


def _advice(key: str, before: object, value: Any) -> str:
    """How to resume a folder that had other defaults: of an earlier version, or without torch."""
    if key == "replace_unknown" and before is False:
        return "resume with --unknown keep, or "
    if key == "checking" and before is None and value["check"]:
        return "resume with --no-check, or "
    if (before, value) in (("int8", "float16"), ("cpu", "cuda")):  # auto, since torch is there
        return "resume with --device cpu, or "
    return ""


def _read_whole(
    folder: EvaluationFolder, test_set: EvaluationSet, fields: JsonFields
) -> SetSummary | None:
    """Read a test set that is done, of the same pairs; None if its files are damaged."""
    if fields.values.get("checksum", "") != checksum(test_set):
        raise ScoreError(
            f"{fields.path}: the test set {test_set.name} has other pairs than before; "
            "give it another name, or name another folder"
        )
    try:
        evaluated = folder.read_set(test_set.name, fields)
    except ScoreError:
        return None
    return None if evaluated.alignment is None else evaluated.summary


# --- one test set ---------------------------------------------------------------------------------


def _evaluate_set(
    system: EvaluatedSystem,
    test_set: EvaluationSet,
    place: SetFolder,
    config: EvaluationConfig,
    command: str,
    progress: Progress,
) -> SetSummary:
    """Write all files of a test set but its alignment, and return its figures."""
    seconds = _write_headlines(system, test_set, place.headlines_path, config, progress)
    headlines = place.read_headlines(len(test_set.ledes))
    words = _compared_words(system, test_set, headlines, config)
    sources, references, outputs = (list(map(" ".join, texts)) for texts in words)
    place.write_texts(sources, references, outputs, map(clean, test_set.headlines))
    scores = rouge.score_all(outputs, references, config.scoring, progress)
    odd_words = audit(words.outputs, words.references, words.sources)
    place.write_pairs(scores, odd_words)
    return SetSummary(
        files=test_set.files,
        checksum=checksum(test_set),
        num_pairs=len(headlines),
        signature=rouge.signature(config.scoring, 1),
        scores=_with_intervals(scores),
        odd=AuditSummary.of(odd_words),
        num_truncated=sum(one.truncated for one in headlines),
        num_empty=sum(not one.headline for one in headlines),
        seconds=seconds,
        command=command,
        checks=_count_checks(system, headlines, config),
    )


def _count_checks(
    system: EvaluatedSystem, headlines: Sequence[WrittenHeadline], config: EvaluationConfig
) -> CheckCounts | None:
    """What the checks found; None if headlines were not checked."""
    if not system.headliner.resolve_options(config.options).check:
        return None
    written = (one.check for one in headlines if one.check is not None and not one.left_out)
    return CheckCounts.of(written, sum(one.left_out for one in headlines))


def _write_headlines(
    system: EvaluatedSystem,
    test_set: EvaluationSet,
    path: Path,
    config: EvaluationConfig,
    progress: Progress,
) -> float | None:
    """Write those that are missing; return the seconds it took, if all were."""
    is_new, began = not path.exists(), time.monotonic()
    given = TextInput(test_set.ledes)
    with (
        LimitedReporter(lambda _: None, given.unit, unlimited=False, warnings=False) as reporter,
        open_output(path, given, as_json=True, resume=True) as output,
    ):
        generated = generate(
            system.headliner,
            given,
            output,
            config.options,
            reporter,
            lambda _, done, total: progress(f"{test_set.name}: headlines", done, total),
        )
    if generated.signal is not None:
        raise Interrupted(generated.signal)
    return time.monotonic() - began if is_new else None


class _ComparedWords(NamedTuple):
    """The words of each pair."""

    sources: list[list[str]]
    references: list[list[str]]
    outputs: list[list[str]]


def _compared_words(
    system: EvaluatedSystem,
    test_set: EvaluationSet,
    headlines: Sequence[WrittenHeadline],
    config: EvaluationConfig,
) -> _ComparedWords:
    profile = _profile(system, config)
    is_tokenised = profile is system.profile is PAPER  # what the model writes is tokens already
    outputs = (one.headline for one in headlines)
    return _ComparedWords(
        sources=[list(profile.plain(profile.words(lede))) for lede in test_set.ledes],
        references=[compared_words(text, profile) for text in test_set.headlines],
        outputs=[
            profile.compared_words(text.split()) if is_tokenised else compared_words(text, profile)
            for text in outputs
        ],
    )


def _profile(system: EvaluatedSystem, config: EvaluationConfig) -> Profile:
    """The profile of the comparison, by its name: without the marks that a model keeps."""
    return PROFILES[config.profile or system.profile.name]


def _with_intervals(scores: Sequence[Rouge]) -> dict[str, MeasureScore]:
    intervals = scoring.mean_intervals(scores)
    return {
        name: MeasureScore(**mean, **intervals[name]["f1"]._asdict())
        for name, mean in scoring.means(scores).items()
    }
