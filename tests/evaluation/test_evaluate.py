"""Evaluation folders: what is in them, that the other commands agree, and going on after a stop."""

import json
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.core.atomic import exclusive_lock
from ledeline.core.errors import CorpusError, LeftOutWarning, ScoreError
from ledeline.corpus.evaluation_sets import EvaluationSet, read_evaluation_set
from ledeline.corpus.table_writer import write_table
from ledeline.evaluation import audit as audits
from ledeline.evaluation import evaluate as module
from ledeline.evaluation.evaluate import (
    EvaluatedSystem,
    EvaluationConfig,
    EvaluationResult,
    evaluate,
)
from ledeline.evaluation.evaluation_folder import EvaluationFolder
from ledeline.evaluation.scoring import score_files
from ledeline.evaluation.summary import EvaluationSummary
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import VERIFIER
from ledeline.inference.checks.doubt import Doubt, DoubtKind
from ledeline.inference.checks.verifier_folder import verifier_checksum
from ledeline.inference.generate import GenerateResult
from ledeline.inference.headliner import Headliner, Options, system_name
from ledeline.model.format.model_folder import load_model
from ledeline.synth.newsroom import Story, generate
from ledeline.text.profiles import NATURAL, PAPER
from ledeline.text.subwords import EOS, UNK

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = EvaluationConfig(
    options=Options(search=SearchConfig(beam=2, max_length=12), replace_unknown=False),
    num_word_pairs=5,
    num_heat_maps=2,
)


@pytest.fixture(scope="module")
def systems(make_model: Callable[..., Path]) -> dict[str, EvaluatedSystem]:
    found = {}
    for profile in ("natural", "paper"):
        folder = make_model(profile)
        headliner = Headliner.load(folder, precision="float32", device="cpu")
        found[profile] = EvaluatedSystem(headliner, (str(folder),), system_name(headliner))
    return found


@pytest.fixture
def unspelling(make_model: Callable[..., Path]) -> EvaluatedSystem:
    """A system that writes <unk>, and then ends."""
    folder = make_model(seed=3)
    loaded = load_model(folder)
    with torch.no_grad():
        loaded.model.output.bias[UNK] += 500
        loaded.model.output.bias[EOS] += 400
    headliner = Headliner([loaded._replace(block_ngrams=1)], precision="float32")
    return EvaluatedSystem(headliner, (str(folder),), "unspelling")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSet:
    path = tmp_path_factory.mktemp("room") / "room.jsonl"
    write_table(path, (story._asdict() for story in generate(12, 7)), Story._fields)
    return read_evaluation_set(str(path))


@pytest.fixture(scope="module")
def near(systems: dict[str, EvaluatedSystem], room: EvaluationSet) -> EvaluationSet:
    """References that share words with what the untrained model writes: no score is 0 for all."""
    answers = systems["natural"].headliner.generate_batch(room.ledes, QUICK.options)
    headlines = [
        " ".join([*one.text.split()[: 1 + place % 4], *["Oslo"] * (place % 3)])
        for place, one in enumerate(answers)
    ]
    return room._replace(headlines=headlines, alignments=None)


def evaluated(
    system: EvaluatedSystem, folder: Path, *sets: EvaluationSet, **options: Any
) -> EvaluationResult:
    config = options.pop("config", QUICK)
    return evaluate(system, sets, folder, config, command="ledeline evaluate", **options)


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "evaluation.json").read_text())
    return found


def without_times(summary: EvaluationSummary) -> EvaluationSummary:
    sets = {name: replace(one, seconds=None) for name, one in summary.sets.items()}
    return replace(summary, date=None, sets=sets)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


class TestFolder:
    def test_everything_is_there(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        result = evaluated(systems["natural"], tmp_path / "e", room)
        assert result.signal is None
        assert result.summary.as_dict() == summary_of(tmp_path / "e")
        names = {path.name for path in (tmp_path / "e" / "room").iterdir()}
        assert names == {
            "source.txt",
            "reference.txt",
            "output.txt",
            "gold.txt",
            "headlines.jsonl",
            "pairs.tsv",
            "alignment.json",
        }
        summary = result.summary.as_dict()
        assert summary["system"] == "EncDec+sGate+SPM"
        assert summary["profile"] == summary["compared_in"] == "natural"
        assert summary["search"]["beam"] == 2
        assert summary["date"] is not None
        one = summary["sets"]["room"]
        assert one["files"] == list(room.files)
        assert one["pairs"] == 12
        assert one["seconds"] > 0
        for name in ("source.txt", "reference.txt", "output.txt", "headlines.jsonl"):
            assert len(lines(tmp_path / "e" / "room" / name)) == 12
        answers = [json.loads(line) for line in lines(tmp_path / "e" / "room" / "headlines.jsonl")]
        assert [one["source"] for one in answers] == room.ledes
        assert lines(tmp_path / "e" / "room" / "gold.txt") == room.headlines
        assert all(line.endswith(" .") for line in lines(tmp_path / "e" / "room" / "source.txt"))
        assert (summary["precision"], summary["device"]) == ("float32", "cpu")
        assert one["command"] == summary["command"] == "ledeline evaluate"

    def test_score_and_audit_of_its_files_agree(
        self, systems: dict[str, EvaluatedSystem], near: EvaluationSet, tmp_path: Path
    ) -> None:
        for profile, system in systems.items():
            folder = tmp_path / profile
            one = evaluated(system, folder, near).summary.as_dict()["sets"]["room"]
            if profile == "natural":
                assert (
                    len({0, 1, *(one["rouge1"][part] for part in ("precision", "recall", "f1"))})
                    == 5
                )
            output, reference, source = (
                str(folder / "room" / name)
                for name in ("output.txt", "reference.txt", "source.txt")
            )
            scored = score_files(output, [reference], rouge.Settings())
            assert scored.summary["signature"] == one["signature"]
            for name in ("rouge1", "rouge2", "rougeL"):
                interval = scored.summary["intervals"][name]["f1"]
                assert one[name] == scored.summary[name] | interval
            audited = audits.audit_files([output], reference, source, None)
            assert audits.as_dict(audited.systems["output"]) == one["odd"]

    def test_headlines_are_those_of_the_options(
        self, systems: dict[str, EvaluatedSystem], near: EvaluationSet, tmp_path: Path
    ) -> None:
        one = evaluated(systems["natural"], tmp_path, near).summary.as_dict()["sets"]["room"]
        answers = [json.loads(line) for line in lines(tmp_path / "room" / "headlines.jsonl")]
        wanted = systems["natural"].headliner.generate_batch(near.ledes, QUICK.options)
        assert [answer["headline"] for answer in answers] == [answer.text for answer in wanted]
        assert one["truncated"] == sum(answer.truncated for answer in wanted)
        assert one["empty"] == sum(not answer.text for answer in wanted) == 0

    def test_settings_of_scores_reach_the_folder(
        self, systems: dict[str, EvaluatedSystem], near: EvaluationSet, tmp_path: Path
    ) -> None:
        config = replace(QUICK, scoring=rouge.Settings(stem=False, unknown="strict"))
        summary = evaluated(systems["natural"], tmp_path, near, config=config).summary.as_dict()
        assert summary["sets"]["room"]["signature"] == rouge.signature(config.scoring, 1)
        for other in (
            QUICK,
            replace(config, options=replace(config.options, replace_unknown=True)),
            replace(
                config,
                options=replace(
                    config.options, search=replace(config.options.search, forbid_unknown=True)
                ),
            ),
            replace(config, profile="paper"),
            replace(config, seed=9),
        ):
            with pytest.raises(ScoreError, match=r"\w+ was .* and is .* now"):
                evaluated(systems["natural"], tmp_path, near, config=other, resume=True)

    def test_unknown_words_survive_every_profile(
        self, systems: dict[str, EvaluatedSystem], tmp_path: Path
    ) -> None:
        test_set = EvaluationSet("u", (), ["Rain fell in Oslo."], ["Mayor <unk> wins"])
        for name in ("natural", "paper"):
            evaluated(systems[name], tmp_path / name, test_set)
            assert "<unk>" in lines(tmp_path / name / "u" / "reference.txt")[0].split()

    def test_a_word_that_the_model_cannot_spell(
        self, unspelling: EvaluatedSystem, tmp_path: Path
    ) -> None:
        """It is written as `ledeline generate` writes it, and is no odd word."""
        test_set = EvaluationSet("u", (), ["Rain fell in Łódź."], ["Łódź floods"])
        replaced, kept = (
            evaluated(
                unspelling,
                tmp_path / name,
                test_set,
                config=replace(QUICK, options=replace(QUICK.options, replace_unknown=choice)),
            ).summary.as_dict()
            for name, choice in (("replaced", True), ("kept", False))
        )
        assert lines(tmp_path / "replaced" / "u" / "output.txt") == ["Łódź"]
        assert lines(tmp_path / "kept" / "u" / "output.txt") == ["<unk>"]
        assert unspelling.headliner(test_set.ledes[0], beam=1).text == "Łódź"
        assert replaced["replace_unknown"] is EvaluationConfig().options.replace_unknown is True
        assert kept["replace_unknown"] is False
        assert replaced["sets"]["u"]["odd"]["irrelevant"] == 0
        assert kept["sets"]["u"]["odd"]["irrelevant"] == 1

    def test_a_folder_that_kept_them_says_how_to_go_on(
        self, systems: dict[str, EvaluatedSystem], near: EvaluationSet, tmp_path: Path
    ) -> None:
        """As all do that were made when this was the default."""
        evaluated(systems["natural"], tmp_path, near)
        options = replace(QUICK.options, replace_unknown=True)
        with pytest.raises(
            ScoreError, match="was false and is true now; resume with --unknown keep"
        ):
            evaluated(
                systems["natural"],
                tmp_path,
                near,
                config=replace(QUICK, options=options),
                resume=True,
            )
        assert evaluated(systems["natural"], tmp_path, near, resume=True).signal is None

    def test_marks_do_not_count(self, systems: dict[str, EvaluatedSystem], tmp_path: Path) -> None:
        """A model may keep typographic marks; they are compared as if it did not."""
        (one,) = systems["natural"].headliner.models
        keeping = replace(one.tokenizer, profile=one.tokenizer.profile.keeping_marks("’"))
        headliner = Headliner([one._replace(tokenizer=keeping)], "float32")
        system = systems["natural"]._replace(headliner=headliner)
        evaluated(system, tmp_path, EvaluationSet("m", (), ["Rain’s here"], ["Oslo’s rain"]))
        assert lines(tmp_path / "m" / "reference.txt") == ["Oslo 's rain"]
        assert lines(tmp_path / "m" / "source.txt") == ["Rain 's here"]

    def test_a_line_for_each_pair(
        self, systems: dict[str, EvaluatedSystem], near: EvaluationSet, tmp_path: Path
    ) -> None:
        one = evaluated(systems["natural"], tmp_path, near).summary.as_dict()["sets"]["room"]
        header, *rows = lines(tmp_path / "room" / "pairs.tsv")
        names = header.split("\t")
        assert names == ["rouge1", "rouge2", "rougeL", "repeating", "lacking", "irrelevant"]
        columns = dict(
            zip(names, zip(*(row.split("\t") for row in rows), strict=True), strict=True)
        )
        assert len(rows) == 12
        for name in ("rouge1", "rouge2", "rougeL"):
            mean = sum(map(float, columns[name])) / 12
            assert mean == pytest.approx(one[name]["f1"], abs=1e-9)
        for kind in ("repeating", "lacking", "irrelevant"):
            assert sum(map(int, columns[kind])) == one["odd"][kind]

    def test_texts_are_those_of_the_profile(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        for profile, name in ((PAPER, "paper"), (NATURAL, "natural")):
            evaluated(systems[name], tmp_path / name, room)
            place = tmp_path / name / "room"
            wanted = [
                " ".join(profile.compared_words(profile.words(one))) for one in room.headlines
            ]
            assert lines(place / "reference.txt") == wanted
            headlines = [json.loads(line)["headline"] for line in lines(place / "headlines.jsonl")]
            words = map(str.split if name == "paper" else NATURAL.words, headlines)
            assert lines(place / "output.txt") == [
                " ".join(map(str, profile.compared_words(one))) for one in words
            ]  # type: ignore[arg-type]

    def test_outputs_can_be_compared_in_another_profile(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        result = evaluated(
            systems["natural"], tmp_path, room, config=replace(QUICK, profile="paper")
        )
        assert result.summary.settings.compared_in == "paper"
        for name in ("reference.txt", "output.txt"):
            text = (tmp_path / "room" / name).read_text()
            assert text == text.lower()
            assert not any(map(str.isdigit, text))

    def test_alignment(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        found = json.loads((tmp_path / "room" / "alignment.json").read_text())
        assert list(found["words"]) == ["spm-vocabulary", "attention"]
        assert found["words"]["attention"]["pairs"] == 5
        assert found["quality"]["diagonal"]["dropped_recall"] is not None
        assert len(found["heatmaps"]) == 2
        assert found["heatmaps"][0]["spm_rows"][-1].startswith("<pad>")

    def test_no_gold_no_quality(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(systems["natural"], tmp_path, room._replace(alignments=None))
        found = json.loads((tmp_path / "room" / "alignment.json").read_text())
        assert found["quality"] is None

    def test_gold_that_leads_nowhere_is_named(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        wrong = room._replace(alignments=["0-99"] * 12)
        with pytest.raises(CorpusError, match=r"room\.jsonl, line 1: the link 0-99"):
            evaluated(systems["natural"], tmp_path / "e", wrong)
        assert not (tmp_path / "e").exists()  # it is said before the work

    def test_names_that_are_not_utf8(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        strange = room._replace(files=("caf\udce9.csv",), alignments=None)
        evaluated(systems["natural"], tmp_path, strange)
        assert summary_of(tmp_path)["sets"]["room"]["files"] == ["caf\udce9.csv"]

    def test_empty_texts_are_judged_too(
        self, systems: dict[str, EvaluatedSystem], tmp_path: Path
    ) -> None:
        test_set = EvaluationSet(
            "odd", (), ["", "Rain fell in Oslo on Monday.", "\U0001f600"], ["a", "", ""]
        )
        one = evaluated(systems["natural"], tmp_path, test_set).summary.as_dict()["sets"]["odd"]
        assert one["pairs"] == 3
        assert one["empty"] >= 1
        assert one["rouge1"]["f1"] == 0


class TestGoingOn:
    def test_a_folder_is_not_overwritten(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(systems["natural"], tmp_path / "e", room)
        before = (tmp_path / "e" / "evaluation.json").read_bytes()
        with pytest.raises(ScoreError, match="already exists; continue it with --resume"):
            evaluated(systems["natural"], tmp_path / "e", room)
        assert (tmp_path / "e" / "evaluation.json").read_bytes() == before
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("x")
        for resume in (False, True):
            with pytest.raises(ScoreError, match=r"mine(: has no evaluation.json| already exists)"):
                evaluated(systems["natural"], tmp_path / "mine", room, resume=resume)
        (tmp_path / "file").write_text("x")
        with pytest.raises(ScoreError, match="file is a file"):
            evaluated(systems["natural"], tmp_path / "file", room)

    def test_a_stop_is_noted_and_the_rest_is_done_later(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        other = room._replace(
            name="other", ledes=room.ledes[::-1], headlines=room.headlines[::-1], alignments=None
        )
        whole = evaluated(systems["natural"], tmp_path / "whole", room, other).summary
        real = module.generate

        def stopped(headliner: Any, given: Any, output: Any, *rest: Any) -> GenerateResult:
            """Write some headlines of the second set, then hear a signal."""
            texts = [record.text for record in given.records(whole=False)]
            if texts != other.ledes:
                return real(headliner, given, output, *rest)
            real(headliner, type(given)(texts[:5]), output, *rest)
            return GenerateResult(5, signal.SIGTERM)

        monkeypatch.setattr(module, "generate", stopped)
        result = evaluated(systems["natural"], tmp_path / "e", room, other)
        assert result.signal == signal.SIGTERM
        there = summary_of(tmp_path / "e")
        assert list(there["sets"]) == ["room"]
        assert there["date"] is None
        monkeypatch.setattr(module, "generate", real)
        result = evaluated(systems["natural"], tmp_path / "e", room, other, resume=True)
        assert result.signal is None
        assert result.summary.sets["other"].seconds is None  # it was not done in one go
        assert result.summary.sets["room"].seconds
        assert without_times(result.summary) == without_times(whole)
        for path in (tmp_path / "whole").rglob("*.*"):
            if path.name != "evaluation.json":
                again = tmp_path / "e" / path.relative_to(tmp_path / "whole")
                assert again.read_bytes() == path.read_bytes()

    def test_a_set_that_is_done_is_not_done_again(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        monkeypatch.setattr(module, "generate", None)
        again = evaluated(systems["natural"], tmp_path, room, resume=True)
        assert list(again.summary.sets) == ["room"]

    def test_a_further_set_leaves_the_others_as_they_are(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        before = summary_of(tmp_path)["sets"]["room"]
        other = room._replace(name="other", alignments=None)
        evaluated(systems["natural"], tmp_path, other, resume=True)
        after = summary_of(tmp_path)
        assert list(after["sets"]) == ["room", "other"]
        assert after["sets"]["room"] == before
        del after["sets"]["room"]["rouge2"]
        (tmp_path / "evaluation.json").write_text(json.dumps(after))
        monkeypatch.setattr(module, "generate", None)  # it is said before the work
        with pytest.raises(ScoreError, match=r"sets\.room\.rouge2 is not there"):
            evaluated(systems["natural"], tmp_path, room._replace(name="third"), resume=True)

    def test_what_changed_meanwhile_is_named(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        room = room._replace(alignments=None)
        evaluated(systems["natural"], tmp_path, room)
        other = replace(QUICK, options=replace(QUICK.options, search=SearchConfig(beam=3)))
        with pytest.raises(ScoreError, match=r"search was .*\"beam\": 2.* and is .*\"beam\": 3"):
            evaluated(systems["natural"], tmp_path, room, config=other, resume=True)
        with pytest.raises(ScoreError, match=r"weights was|models was"):
            evaluated(systems["paper"], tmp_path, room, resume=True)
        fewer = EvaluationSet("room", room.files, room.ledes[:3], room.headlines[:3])
        others = [
            fewer,
            room._replace(headlines=[*room.headlines[:-1], "another"]),
            room._replace(ledes=[*room.ledes[:-1], "another"]),
        ]
        for other_set in others:
            with pytest.raises(ScoreError, match="the test set room has other pairs than before"):
                evaluated(systems["natural"], tmp_path, other_set, resume=True)
        evaluated(systems["natural"], tmp_path, room._replace(files=("elsewhere",)), resume=True)

    def test_two_sets_of_one_name(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        with pytest.raises(ScoreError, match="two test sets are called room"):
            evaluated(systems["natural"], tmp_path, room, room)
        with pytest.raises(ScoreError, match="a test set cannot be called"):
            evaluated(systems["natural"], tmp_path, room._replace(name="evaluation.json"))

    def test_other_weights_under_the_same_name_are_refused(
        self, make_model: Callable[..., Path], room: EvaluationSet, tmp_path: Path
    ) -> None:
        place = tmp_path / "model"
        for seed in (1, 2):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(make_model(seed=seed), place)
            headliner = Headliner.load(place, precision="float32", device="cpu")
            system = EvaluatedSystem(headliner, (str(place),), "x")
            if seed == 1:
                evaluated(system, tmp_path / "e", room)
        with pytest.raises(ScoreError, match="weights was"):
            evaluated(system, tmp_path / "e", room, resume=True)

    @pytest.mark.parametrize(
        "place",
        [
            "evaluate._write_headlines",
            "evaluation_folder.SetFolder.read_headlines",
            "evaluate._compared_words",
            "evaluation_folder.SetFolder.write_texts",
            "evaluation_folder.SetFolder.write_pairs",
            "set_alignment.alignment_summary",
            "evaluation_folder.SetFolder.write_alignment",
            "evaluate._with_intervals",
        ],
    )
    @pytest.mark.parametrize("how", ["killed", "stopped"])
    def test_a_stop_at_any_point_can_be_gone_on_with(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        place: str,
        how: str,
    ) -> None:
        class Killed(BaseException):
            pass

        def stop(*_: Any, **__: Any) -> None:
            if how == "killed":
                raise Killed
            signal.raise_signal(signal.SIGTERM)

        whole = evaluated(systems["natural"], tmp_path / "whole", room).summary
        with monkeypatch.context() as patch:
            patch.setattr(f"ledeline.evaluation.{place}", stop)
            if how == "killed":
                with pytest.raises(Killed):
                    evaluated(systems["natural"], tmp_path / "e", room)
            else:
                result = evaluated(systems["natural"], tmp_path / "e", room)
                assert result.signal == signal.SIGTERM
        assert summary_of(tmp_path / "e")["sets"] == {}
        again = evaluated(systems["natural"], tmp_path / "e", room, resume=True).summary
        assert without_times(again) == without_times(whole)

    def test_a_lock_that_was_left_is_no_folder_of_somebody(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        (tmp_path / ".evaluation.json.lock").touch()
        assert evaluated(systems["natural"], tmp_path, room).signal is None

    def test_another_run_at_work(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        with (
            exclusive_lock(tmp_path / "evaluation.json", ScoreError),
            pytest.raises(ScoreError, match="another run"),
        ):
            evaluated(systems["natural"], tmp_path, room, resume=True)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("output.txt", None),
            ("alignment.json", None),
            ("pairs.tsv", "x"),
            ("alignment.json", "{"),
            ("gold.txt", "one\n"),
        ],
    )
    def test_what_was_damaged_is_done_again(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        name: str,
        text: str | None,
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        path = tmp_path / "room" / name
        before = path.read_bytes()
        path.unlink()
        if text is not None:
            path.write_text(text)
        evaluated(systems["natural"], tmp_path, room, resume=True)
        assert path.read_bytes() == before

    def test_a_damaged_summary_is_named(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        path = tmp_path / "evaluation.json"
        sound = summary_of(tmp_path)
        for text, sentence in [
            ("{", "is not JSON"),
            ("[]", "holds no object"),
            ('{"format": 9}', "format is 9"),
            (json.dumps({**sound, "sets": None}), "sets is null"),
            (json.dumps({**sound, "sets": {"room": None}}), r"sets\.room is null"),
        ]:
            path.write_text(text)
            with pytest.raises(ScoreError, match=sentence):
                evaluated(systems["natural"], tmp_path, room, resume=True)
        del sound["sets"]["room"]["rouge1"]
        path.write_text(json.dumps(sound))
        again = evaluated(systems["natural"], tmp_path, room, resume=True)  # done again
        assert "rouge1" in again.summary.sets["room"].scores


class NoTorch:
    """Lets nothing be imported that needs torch."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "ledeline.evaluation.set_alignment":
            raise self.error


@contextmanager
def no_torch(error: Exception | None = None) -> Iterator[None]:
    error = error or ModuleNotFoundError("No module named 'torch'", name="torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "ledeline.evaluation.set_alignment", raising=False)
        patch.setattr(sys, "meta_path", [NoTorch(error), *sys.meta_path])
        yield


class TestWithoutTorch:
    def test_an_alignment_that_is_left_out_is_completed_later(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        other = room._replace(name="other", alignments=None)
        evaluated(systems["natural"], tmp_path / "whole", room, other)
        folder, path = tmp_path / "e", tmp_path / "e" / "room" / "alignment.json"
        reason = (
            "alignment needs torch, which is not installed; run: pip install 'ledeline[train]', and "
            "evaluate again with --resume"
        )
        with no_torch(), pytest.warns(LeftOutWarning) as warned:
            evaluated(systems["natural"], folder, room, other)
        assert [str(one.message) for one in warned] == [
            f"the alignment of {name} is left out: {reason}" for name in ("room", "other")
        ]
        nothing = {"words": {}, "quality": None, "heatmaps": [], "left_out": reason}
        assert json.loads(path.read_text()) == nothing
        found = EvaluationFolder(folder).read().sets["room"].alignment
        assert found is not None
        assert found.left_out == reason
        monkeypatch.setattr(module, "generate", None)  # no headline is written again
        with no_torch(), pytest.warns(LeftOutWarning, match="the alignment of room is left out"):
            evaluated(systems["natural"], folder, room, resume=True)
        assert json.loads(path.read_text()) == nothing
        result = evaluated(systems["natural"], folder, room, other, resume=True)
        assert list(result.summary.sets) == ["room", "other"]
        for name in ("room", "other"):
            wanted = (tmp_path / "whole" / name / "alignment.json").read_bytes()
            assert (folder / name / "alignment.json").read_bytes() == wanted
            assert b"left_out" not in wanted

    @pytest.mark.parametrize(
        "error", [ImportError("no libcudart\nat all"), OSError("no libcudart")]
    )
    def test_a_torch_that_cannot_be_imported(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        error: Exception,
    ) -> None:
        said = r"left out: torch cannot be imported \(no libcudart\)"
        with no_torch(error), pytest.warns(LeftOutWarning, match=said):
            evaluated(systems["natural"], tmp_path, room)

    def test_errors_of_ours_are_not_left_out(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        error = ModuleNotFoundError("No module named 'ledeline.x'", name="ledeline.x")
        with no_torch(error), pytest.raises(ModuleNotFoundError, match=r"ledeline\.x"):
            evaluated(systems["natural"], tmp_path, room)

    @pytest.mark.parametrize(
        ("key", "value", "now"), [("precision", "int8", "float16"), ("device", "cpu", "cuda")]
    )
    def test_a_gpu_that_torch_finds_is_named(
        self,
        systems: dict[str, EvaluatedSystem],
        room: EvaluationSet,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        key: str,
        value: str,
        now: str,
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        summary = summary_of(tmp_path)
        (tmp_path / "evaluation.json").write_text(json.dumps(summary | {key: value}))
        settings = module._settings(systems["natural"], QUICK)
        changed = replace(settings, **{key: now})
        monkeypatch.setattr(module, "_settings", lambda *_: changed)
        with pytest.raises(ScoreError, match=f'"{now}" now; resume with --device cpu, or name'):
            evaluated(systems["natural"], tmp_path, room, resume=True)


def test_the_system_in_pytorch_is_loaded_once(
    systems: dict[str, EvaluatedSystem],
    room: EvaluationSet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[Path] = []

    def load(folder: Path) -> Any:
        loaded.append(folder)
        return load_model(folder)

    monkeypatch.setattr("ledeline.model.format.model_folder.load_model", load)
    sets = [room._replace(name=name, alignments=None) for name in ("one", "two", "three")]
    evaluated(systems["natural"], tmp_path, *sets)
    assert len(loaded) == 1
    evaluated(systems["natural"], tmp_path, *sets, resume=True)
    assert len(loaded) == 1  # nothing is left to align


class StandInChecker:
    """Doubts the first word of headlines with an odd number of letters."""

    @classmethod
    def load(cls, _: object = None) -> "StandInChecker":
        return cls()

    def check(self, headline: str) -> Check:
        kind: DoubtKind = "name" if len(headline) % 4 == 1 else "role"
        doubt = Doubt(0, 1, headline[0], kind, "the lede has another")
        return Check(0.25, (doubt,)) if len(headline) % 2 else Check(0.875)

    def steps(
        self, asked: Sequence[tuple[str, Sequence[str]]]
    ) -> Generator[None, None, list[list[Check]]]:
        yield
        return [[self.check(one) for one in headlines] for _, headlines in asked]


CHECKED = replace(QUICK, options=replace(QUICK.options, check=True))


class TestChecks:
    @pytest.fixture
    def system(
        self, systems: dict[str, EvaluatedSystem], monkeypatch: pytest.MonkeyPatch
    ) -> EvaluatedSystem:
        monkeypatch.setattr("ledeline.inference.headliner.Checker", StandInChecker)
        one = systems["natural"]
        return one._replace(headliner=Headliner(one.headliner.models, "float32"))

    def test_doubts_are_counted(
        self, system: EvaluatedSystem, room: EvaluationSet, tmp_path: Path
    ) -> None:
        summary = evaluated(system, tmp_path, room, config=CHECKED).summary
        headlines = system.headliner.generate_batch(room.ledes, CHECKED.options)
        wanted = [StandInChecker().check(one.text) for one in headlines]
        doubted = [one for one in wanted if one.doubts]
        assert 0 < len(doubted) < 12
        counts = summary.sets["room"].checks
        assert counts is not None
        assert (counts.num_checked, counts.num_doubted, counts.num_left_out) == (
            *(12, len(doubted), 0),
        )
        assert counts.mean_support == pytest.approx(0.875 - 0.625 * len(doubted) / 12)
        assert Counter(counts.doubts) == Counter(one.doubts[0].kind for one in doubted)
        found = EvaluationFolder(tmp_path).read().sets["room"]
        assert found.summary == summary.sets["room"]
        assert [(one.support, one.doubts) for one in found.checks if one] == [
            (one.support, one.doubts) for one in wanted
        ]

    def test_settings_are_recorded(
        self, system: EvaluatedSystem, room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(system, tmp_path, room, config=CHECKED)
        assert summary_of(tmp_path)["checking"] == {
            "check": True,
            "rank": "score",  # the default of a model that the verifier does not know
            "constrain": False,
            "min_support": None,
            "verifier": verifier_checksum(VERIFIER),
        }

    def test_headlines_without_support_are_left_out(
        self, system: EvaluatedSystem, room: EvaluationSet, tmp_path: Path
    ) -> None:
        config = replace(QUICK, options=replace(QUICK.options, min_support=0.5))
        one = evaluated(system, tmp_path, room, config=config).summary.sets["room"]
        assert one.checks is not None
        headlines = system.headliner.generate_batch(room.ledes, QUICK.options)
        num_low = sum(len(headline.text) % 2 for headline in headlines)
        assert one.checks.num_left_out == one.num_empty == num_low > 0
        assert one.checks.num_checked == 12 - num_low
        assert one.checks.num_doubted == 0
        assert one.checks.mean_support == 0.875

    def test_nothing_is_said_where_nothing_was_checked(
        self, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(systems["natural"], tmp_path, room)
        summary = summary_of(tmp_path)
        assert "checking" not in summary
        assert "checks" not in summary["sets"]["room"]
        assert "support" not in (tmp_path / "room" / "headlines.jsonl").read_text()

    def test_a_folder_is_resumed_as_it_was_begun(
        self, system: EvaluatedSystem, room: EvaluationSet, tmp_path: Path
    ) -> None:
        evaluated(system, tmp_path / "checked", room, config=CHECKED)
        evaluated(system, tmp_path / "plain", room)
        with pytest.raises(ScoreError, match=r"checking was null .*; resume with --no-check"):
            evaluated(system, tmp_path / "plain", room, config=CHECKED, resume=True)
        with pytest.raises(ScoreError, match=r"checking was .* and is null now; name another"):
            evaluated(system, tmp_path / "checked", room, resume=True)
        constrained = replace(QUICK, options=replace(QUICK.options, constrain=True))
        with pytest.raises(ScoreError, match=r"checking was null and is \{.*\} now; name another"):
            evaluated(system, tmp_path / "plain", room, config=constrained, resume=True)
        again = evaluated(system, tmp_path / "checked", room, config=CHECKED, resume=True)
        assert again.summary.sets["room"].checks is not None


def test_the_model_in_the_box_has_a_name(
    monkeypatch, systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
) -> None:
    system = systems["natural"]
    monkeypatch.setattr("ledeline.core.shipped.SHIPPED", Path(system.folders[0]))
    monkeypatch.chdir(tmp_path)  # where no folder has that name
    evaluated(system, tmp_path / "named", room)
    evaluated(system._replace(folders=("shipped",)), tmp_path / "shipped-one", room)
    one, other = (summary_of(tmp_path / name) for name in ("named", "shipped-one"))
    assert other["models"] == ["shipped"]
    assert other["weights"] == one["weights"]


def test_an_ensemble_says_so(
    systems: dict[str, EvaluatedSystem], make_model: Callable[..., Path]
) -> None:
    folders = [make_model(seed=seed) for seed in (1, 2)]
    headliner = Headliner.load(*folders, precision="float32", device="cpu")
    assert system_name(headliner) == "EncDec+sGate+SPM x 2"


def test_a_folder_of_a_version_with_fewer_options_is_resumed(
    systems: dict[str, EvaluatedSystem], room: EvaluationSet, tmp_path: Path
) -> None:
    evaluated(systems["natural"], tmp_path, room)
    summary = summary_of(tmp_path)
    assert (summary["search"].pop("recombine"), summary["search"].pop("keep_finished")) == (
        0,
        False,
    )
    (tmp_path / "evaluation.json").write_text(json.dumps(summary))
    search = replace(QUICK.options.search, keep_finished=True)
    other = replace(QUICK, options=replace(QUICK.options, search=search))
    with pytest.raises(ScoreError, match=r"search was .*; name another folder"):
        evaluated(systems["natural"], tmp_path, room, config=other, resume=True)
    assert evaluated(systems["natural"], tmp_path, room, resume=True).signal is None
