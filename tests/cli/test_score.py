"""The verbs score, audit, align, evaluate and report, run as commands."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import command
from ledeline import rouge
from ledeline.cli import app
from ledeline.config import SearchConfig
from ledeline.corpus.table_writer import write_table
from ledeline.evaluation.evaluate import EvaluationConfig, EvaluationResult
from ledeline.inference.headliner import Options
from ledeline.synth.newsroom import Story, generate

OUTPUTS = ["stocks rise rise in tokyo", "rain", "", "<unk> wins vote"]
OTHERS = ["stocks rise in tokyo", "heavy rain floods oslo", "x", "mayor wins vote"]
REFERENCES = ["tokyo stocks rose", "heavy rain floods oslo", "fire", "<unk> won the vote"]
SOURCES = ["stocks rose in tokyo on monday", "heavy rain fell in oslo", "a fire", "<unk> won"]


def ledeline(
    folder: Path, *arguments: str | Path, status: int = 0
) -> subprocess.CompletedProcess[str]:
    done = command.ledeline(*arguments, cwd=folder, env={"COLUMNS": "80"})
    assert done.returncode == status, done.stderr
    if status == 2:
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def files(tmp_path: Path) -> Path:
    texts = {"out": OUTPUTS, "other": OTHERS, "ref": REFERENCES, "src": SOURCES}
    for name, lines in texts.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


class TestScore:
    def test_json(self, files: Path) -> None:
        found = json.loads(ledeline(files, "score", "out.txt", "-r", "ref.txt", "--json").stdout)
        mean = rouge.mean(rouge.score_all(OUTPUTS, REFERENCES))
        assert found["pairs"] == 4
        for name, wanted in (
            ("rouge1", mean.rouge1),
            ("rouge2", mean.rouge2),
            ("rougeL", mean.rouge_l),
        ):
            assert found[name] == {
                "precision": wanted.precision,
                "recall": wanted.recall,
                "f1": wanted.f1,
            }
            low, high = found["intervals"][name]["f1"].values()
            assert low <= wanted.f1 <= high
        assert found["signature"] == rouge.signature(rouge.Settings(), 1)
        assert "rougeW" not in found

    def test_table(self, files: Path) -> None:
        shown = ledeline(files, "score", "out.txt", "--reference", "ref.txt", "--rouge-w").stdout
        mean = rouge.mean(rouge.score_all(OUTPUTS, REFERENCES, rouge.Settings(weighted=True)))
        assert mean.rouge_w is not None
        for name, one in (("ROUGE-1", mean.rouge1), ("ROUGE-W", mean.rouge_w)):
            (line,) = [line for line in shown.splitlines() if f" {name} " in line]
            assert f"{100 * one.f1:.2f}" in line
        assert rouge.signature(rouge.Settings(weighted=True), 1) in shown

    def test_per_pair(self, files: Path) -> None:
        ledeline(files, "score", "out.txt", "-r", "ref.txt", "--per-pair", "pairs.tsv")
        header, *rows = (files / "pairs.tsv").read_text().splitlines()
        assert header == "rouge1\trouge2\trougeL"
        for row, output, reference in zip(rows, OUTPUTS, REFERENCES, strict=True):
            one = rouge.score(output, reference)
            f1 = (one.rouge1.f1, one.rouge2.f1, one.rouge_l.f1)
            assert row == "\t".join(f"{value:.5f}" for value in f1)
        printed = ledeline(files, "score", "out.txt", "-r", "ref.txt", "--per-pair", "-").stdout
        assert printed == (files / "pairs.tsv").read_text()

    def test_settings_reach_the_scores(self, files: Path) -> None:
        common = ("score", "out.txt", "-r", "ref.txt", "-r", "other.txt", "--json")
        options = ("--no-stem", "--bytes", "9", "--unknown", "strict")
        found = json.loads(ledeline(files, *common, *options).stdout)
        settings = rouge.Settings(stem=False, limit_bytes=9, unknown="strict")
        both = list(zip(REFERENCES, OTHERS, strict=True))
        mean = rouge.mean(rouge.score_all(OUTPUTS, both, settings))
        assert found["rouge1"]["recall"] == mean.rouge1.recall
        assert found["signature"] == rouge.signature(settings, 2)

    def test_compare(self, files: Path) -> None:
        common = ("score", "out.txt", "-r", "ref.txt", "--compare", "other.txt")
        found = json.loads(ledeline(files, *common, "--json").stdout)["compare"]
        ours, theirs = (
            rouge.mean(rouge.score_all(one, REFERENCES)).rouge1 for one in (OUTPUTS, OTHERS)
        )
        assert (found["with"], found["by"]) == ("other.txt", "f1")
        assert found["rouge1"]["mean"] == theirs.f1
        assert found["rouge1"]["difference"] == pytest.approx(theirs.f1 - ours.f1)
        assert 0 < found["rouge1"]["randomisation_p"] <= 1
        assert 0 < found["rouge1"]["bootstrap_p"] <= 1
        again = json.loads(ledeline(files, *common, "--json").stdout)["compare"]
        assert again == found
        by_recall = json.loads(ledeline(files, *common, "--json", "--bytes", "75").stdout)
        assert by_recall["compare"]["by"] == "recall"
        shown = ledeline(files, *common).stdout
        assert "other.txt, by F1" in shown
        assert f"{100 * (theirs.f1 - ours.f1):+.2f}" in shown

    def test_tables_and_columns(self, files: Path) -> None:
        rows = [{"headline": r, "written": o} for r, o in zip(REFERENCES, OUTPUTS, strict=True)]
        write_table(files / "t.csv", rows, ["headline", "written"])
        found = ledeline(files, "score", "t.csv:written", "-r", "t.csv", "--json").stdout
        assert found == ledeline(files, "score", "out.txt", "-r", "ref.txt", "--json").stdout

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["nothing.txt", "-r", "ref.txt"], "nothing.txt: no such file"),
            (["out.txt", "-r", "empty.txt"], "empty.txt: the file is empty"),
            (["out.txt", "-r", "one.txt"], "out.txt has 4 lines and one.txt has 1"),
            (["one.txt", "-r", "one.txt", "--compare", "out.txt"], "has 1 lines and out.txt has 4"),
            (["out.txt", "-r", "ref.txt", "--json", "--per-pair", "-"], "name a file"),
            (["out.txt", "-r", "ref.txt", "--bytes", "0"], "--bytes"),
            (["out.txt"], "--reference"),
            (["out.txt", "-r", "ref.txt", "--per-pair", "ref.txt"], "ref.txt is an input"),
        ],
    )
    def test_bad_input_is_one_sentence(
        self, files: Path, arguments: list[str], sentence: str
    ) -> None:
        (files / "empty.txt").write_text("")
        (files / "one.txt").write_text("a\n")
        before = (files / "ref.txt").read_bytes()
        assert sentence in ledeline(files, "score", *arguments, status=2).stderr
        assert (files / "ref.txt").read_bytes() == before

    def test_standard_input(self, files: Path) -> None:
        command = [sys.executable, "-m", "ledeline", "score", "-", "-r", "ref.txt", "--json"]
        with (files / "out.txt").open() as given:
            done = subprocess.run(command, stdin=given, capture_output=True, text=True, cwd=files)
        assert done.stdout == ledeline(files, "score", "out.txt", "-r", "ref.txt", "--json").stdout


class TestAudit:
    def test_json(self, files: Path) -> None:
        common = ("audit", "out.txt", "-r", "ref.txt")
        found = json.loads(ledeline(files, *common, "-s", "src.txt", "--json").stdout)
        assert {key: found[key] for key in ("pairs", "repeating", "lacking", "irrelevant")} == {
            "pairs": 4,
            "repeating": 2,  # rise, which the reference does not have
            "lacking": 3 + 1 + 1,
            "irrelevant": 2 + 1,  # rise twice, wins
        }
        without = json.loads(ledeline(files, *common, "--json").stdout)
        assert without["irrelevant"] is None
        assert without["repeating"] == 2

    def test_several_systems(self, files: Path) -> None:
        common = ("audit", "out.txt", "other.txt", "-r", "ref.txt", "-s", "src.txt")
        found = json.loads(ledeline(files, *common, "--json").stdout)
        assert list(found) == ["out", "other"]
        assert found["other"]["repeating"] == 0
        shown = ledeline(files, *common, "--worst", "1").stdout
        assert "other" in shown
        assert "stocks rise rise in tokyo" in shown.replace("[", "").replace("]", "")
        quiet = ledeline(files, *common, "--worst", "0").stdout
        assert "rise" not in quiet

    def test_a_profile_parts_words_from_punctuation(self, tmp_path: Path) -> None:
        (tmp_path / "out.txt").write_text("Rain, rain, rain\n")
        (tmp_path / "ref.txt").write_text("Rain\n")
        common = ("audit", "out.txt", "-r", "ref.txt", "--json")
        assert json.loads(ledeline(tmp_path, *common).stdout)["repeating"] == 0
        natural = ledeline(tmp_path, *common, "--profile", "natural").stdout
        assert json.loads(natural)["repeating"] == 2  # the first is no repetition: another case
        paper = ledeline(tmp_path, *common, "--profile", "paper").stdout
        assert json.loads(paper)["repeating"] == 2

    def test_checks(self, tmp_path: Path) -> None:
        """A rule's doubt is certain, whatever the verifier says."""
        texts = {
            "a": ["Rain kills 7 in Oslo", ""],
            "b": ["Rain kills 3 in Oslo", "Gas falls"],
            "ref": ["Rain kills 3", "Gas falls"],
            "src": ["Heavy rain killed 3 people in Oslo on Monday.", "Gas prices fell."],
        }
        for name, lines in texts.items():
            (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        common = ("audit", "a.txt", "b.txt", "-r", "ref.txt", "-s", "src.txt")
        plain = json.loads(ledeline(tmp_path, *common, "--json").stdout)
        found = json.loads(ledeline(tmp_path, *common, "--check", "--json").stdout)
        assert found["a"] == plain["a"] | {"checks": found["a"]["checks"]}
        checks = found["a"]["checks"]
        assert (checks["checked"], checks["doubted"], checks["doubted_share"]) == (1, 1, 1.0)
        assert (checks["doubts"]["number"], checks["doubts_per_1000"]["number"]) == (1, 1000.0)
        assert 0 <= checks["mean_support"] <= 1
        assert found["b"]["checks"]["checked"] == 2
        shown = ledeline(tmp_path, *common, "--check", "--worst", "0").stdout
        rows = [line.split() for line in shown.splitlines()]
        assert ["headlines", "checked", "1", "2"] in rows
        assert ["with", "a", "doubt", "100.0%"] in [row[:4] for row in rows]
        alone = ("audit", "a.txt", "-r", "ref.txt", "-s", "src.txt", "--check", "--per-pair", "-")
        header, first, second = ledeline(tmp_path, *alone).stdout.splitlines()
        assert header.split("\t")[3:] == ["support", "doubts"]
        assert int(first.split("\t")[4]) >= 1
        assert second.endswith("\t\t")

    def test_per_pair_and_figure(self, files: Path) -> None:
        pytest.importorskip("matplotlib")
        ledeline(
            files, "audit", "out.txt", "-r", "ref.txt", "--per-pair", "p.tsv", "--figure", "f.svg"
        )
        assert (files / "p.tsv").read_text().splitlines() == [
            "repeating\tlacking\tirrelevant",
            "2\t0\t",
            "0\t3\t",
            "0\t1\t",
            "0\t1\t",
        ]
        assert "<svg" in (files / "f.svg").read_text()

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["out.txt", "-r", "one.txt"], "out.txt has 4 lines and one.txt has 1"),
            (["out.txt", "-r", "ref.txt", "-s", "one.txt"], "one.txt has 1"),
            (["out.txt", "other.txt", "-r", "ref.txt", "--per-pair", "x"], "of one system"),
            (["out.txt", "-r", "ref.txt", "--figure", "f.gif"], "f.gif"),
            (["out.txt", "-r", "ref.txt", "--check"], "--check needs the ledes"),
            (["out.txt", "out.txt", "-r", "ref.txt"], "out.txt is named 2 times"),
            (["out.txt", "-r", "ref.txt", "--json", "--per-pair", "-"], "name a file"),
        ],
    )
    def test_bad_input_is_one_sentence(
        self, files: Path, arguments: list[str], sentence: str
    ) -> None:
        (files / "one.txt").write_text("a\n")
        assert sentence in ledeline(files, "audit", *arguments, status=2).stderr


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    write_table(path, (story._asdict() for story in generate(8, 5)), Story._fields)
    return path


class TestAlign:
    def test_one_pair(self, tmp_path: Path, model_folder: Path) -> None:
        pytest.importorskip("matplotlib")
        pair = ("Police arrested two men in Oslo on Monday.", "Police arrest men")
        common = ("align", "--model", model_folder, *pair)
        shown = ledeline(tmp_path, *common, "--heat-map", "m.png").stdout
        assert [line.split()[0] for line in shown.splitlines()[4:7]] == pair[1].split()
        assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
        links = json.loads(ledeline(tmp_path, *common, "--json").stdout)["links"]
        assert links["identity"] == "0-0 1-1 2-2"

    def test_many_pairs_with_gold(self, pairs: Path, model_folder: Path) -> None:
        common = ("align", "--model", model_folder, "--input", pairs)
        found = json.loads(ledeline(pairs.parent, *common, "--json").stdout)
        assert found["pairs"] == 8
        assert list(found["quality"]) == [
            "spm-vocabulary",
            "spm-sentence",
            "attention",
            "attention-shifted",
            "identity",
            "diagonal",
        ]
        assert found["words"]["attention"]["tokens"] > 0
        shown = ledeline(pairs.parent, *common, "--word-pairs", "3").stdout
        assert "diagonal" in shown
        assert "3 pairs" in shown

    def test_links_can_be_gold_again(self, pairs: Path, model_folder: Path) -> None:
        common = ("align", "--model", model_folder, "--input", pairs, "--word-pairs", "0")
        ledeline(pairs.parent, *common, "--method", "attention", "--output", "a.txt")
        printed = ledeline(pairs.parent, *common, "--method", "attention", "--output", "-").stdout
        assert printed == (pairs.parent / "a.txt").read_text()
        assert len(printed.splitlines()) == 8
        found = json.loads(ledeline(pairs.parent, *common, "--gold", "a.txt", "--json").stdout)
        assert found["quality"]["attention"]["error_rate"] == 0
        assert found["quality"]["identity"]["error_rate"] > 0

    def test_bad_input_is_one_sentence(self, pairs: Path, model_folder: Path) -> None:
        (pairs.parent / "gold.txt").write_text("0-0\n" * 7 + "0-x\n")
        for arguments, sentence in [
            (["a", "b", "--input", "pairs.jsonl"], "a lede and its headline, or many pairs"),
            (["a"], "one pair is two texts"),
            (["--input", "pairs.jsonl", "--gold", "gold.txt"], "gold.txt, line 8: '0-x'"),
            (
                ["--input", "pairs.jsonl", "--row", "9", "--heat-map", "a.png"],
                "there are only 8 pairs",
            ),
            (["a", "b", "--row", "1"], "no effect without --heat-map"),
            (["a", "b", "--method", "attention"], "no effect without --output"),
            (["a", "b", "--json", "--output", "-"], "name a file"),
            (["--input", "pairs.jsonl", "--output", "pairs.jsonl"], "pairs.jsonl is an input"),
            (["a", "b", "--heat-map", "a.bmp"], "a.bmp"),
        ]:
            done = ledeline(pairs.parent, "align", "--model", model_folder, *arguments, status=2)
            assert sentence in done.stderr


class TestEvaluateAndReport:
    def test_from_model_to_page(self, pairs: Path, model_folder: Path) -> None:
        folder = pairs.parent
        common = ("--model", model_folder, "--test", "room=pairs.jsonl", "--max-length", "12")
        for name, beam in (("one", 1), ("two", 2)):
            shown = ledeline(
                folder, "evaluate", *common, "--beam", str(beam), "--output", name, "--name", name
            )
            assert f"{name}, beam {beam}" in shown.stdout
        summary = json.loads((folder / "two" / "evaluation.json").read_text())
        assert summary["command"].startswith("ledeline evaluate --model ")
        again = ledeline(
            folder, "score", "two/room/output.txt", "-r", "two/room/reference.txt", "--json"
        )
        f1 = json.loads(again.stdout)["rouge1"]["f1"]
        assert f1 == summary["sets"]["room"]["rouge1"]["f1"]
        assert ledeline(folder, "report", "one", "two", "--output", "r.html").stdout == "r.html\n"
        page = (folder / "r.html").read_text()
        assert f"{100 * f1:.2f}" in page
        taken = ledeline(folder, "evaluate", *common, "--output", "two", status=2)
        assert "--resume" in taken.stderr

    def test_a_stop_can_be_gone_on_with(self, tmp_path: Path, model_folder: Path) -> None:
        path = tmp_path / "pairs.jsonl"
        write_table(path, (story._asdict() for story in generate(4000, 5)), Story._fields)
        command = [sys.executable, "-m", "ledeline", "evaluate", "--model", str(model_folder)]
        command += ["--test", "pairs.jsonl", "--output", "e", "--word-pairs", "0"]
        running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        headlines = tmp_path / "e" / "pairs" / "headlines.jsonl"
        deadline = time.monotonic() + 60
        while not (headlines.exists() and headlines.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 128 + signal.SIGTERM
        assert said.endswith("ledeline: stopped; run the same command with --resume to continue\n")
        done = len(headlines.read_text().splitlines())
        assert 0 < done < 4000
        assert json.loads((tmp_path / "e" / "evaluation.json").read_text())["sets"] == {}


class TestOptionsArrive:
    """Run in this process, with a stand-in for what would do the work."""

    def test_of_evaluate(
        self, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: dict[str, Any] = {}

        def evaluated(
            system: Any, sets: Any, folder: Any, config: Any, **rest: Any
        ) -> EvaluationResult:
            seen.update(rest, system=system, sets=sets, folder=folder, config=config)
            return EvaluationResult(None, signal.SIGTERM)  # type: ignore[arg-type]

        monkeypatch.setattr("ledeline.evaluation.evaluate.evaluate", evaluated)
        (tmp_path / "t.csv").write_text("body,title\nx,y\n")
        arguments = f"""evaluate --model {model_folder} --test n={tmp_path}/t.csv
            --output {tmp_path}/e --name mine --resume --lede body --headline title --beam 3
            --min-length 2 --max-length 9 --block-ngrams 2 --stop-early --unknown keep
            --score-unknown strict --no-stem --profile paper --word-pairs 7 --heat-maps 1 --seed 4
            --check --rank support --no-constrain --min-support 0.25
            --precision float32 --device cpu""".split()
        monkeypatch.setattr(sys, "argv", ["ledeline", *arguments])
        assert CliRunner().invoke(app, arguments).exit_code == 128 + signal.SIGTERM
        search = SearchConfig(beam=3, min_length=2, max_length=9, block_ngrams=2, stop_early=True)
        assert seen["config"] == EvaluationConfig(
            options=Options(
                search=search,
                replace_unknown=False,
                check=True,
                rank="support",
                constrain=False,
                min_support=0.25,
            ),
            scoring=rouge.Settings(stem=False, unknown="strict"),
            profile="paper",
            num_word_pairs=7,
            num_heat_maps=1,
            seed=4,
        )
        assert (seen["system"].name, seen["system"].headliner.precision) == ("mine", "float32")
        assert seen["sets"][0].pairs == [("x", "y")]
        assert seen["resume"] is True
        assert seen["command"] == shlex.join(["ledeline", *arguments])

    @pytest.mark.parametrize(
        ("unknown", "replaced", "forbidden"),
        [
            (["--unknown=replace"], True, False),
            (["--unknown=keep"], False, False),
            (["--unknown=forbid"], False, True),
            ([], True, False),  # as ledeline generate
        ],
    )
    def test_unknown_words_of_evaluate(
        self,
        model_folder: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        unknown: list[str],
        replaced: bool,
        forbidden: bool,
    ) -> None:
        seen: list[EvaluationConfig] = []

        def evaluated(
            _: Any, sets: Any, folder: Any, config: EvaluationConfig, **rest: Any
        ) -> EvaluationResult:
            seen.append(config)
            return EvaluationResult(None, signal.SIGTERM)  # type: ignore[arg-type]

        monkeypatch.setattr("ledeline.evaluation.evaluate.evaluate", evaluated)
        (tmp_path / "t.csv").write_text("lede,headline\nx,y\n")
        files = ["--test", f"{tmp_path}/t.csv", "--output", f"{tmp_path}/e"]
        CliRunner().invoke(app, ["evaluate", "--model", str(model_folder), *files, *unknown])
        ((options, scoring),) = [(one.options, one.scoring) for one in seen]
        assert (options.replace_unknown, options.search.forbid_unknown) == (replaced, forbidden)
        assert scoring.unknown == "keep"

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            (["--no-check", "--rank", "support"], 'rank = "support": needs check'),
            (["--no-check", "--min-support", "0.5"], "min_support = 0.5: needs check"),
            (["--min-support", "2"], "--min-support"),
        ],
    )
    def test_checks_of_evaluate_that_make_no_sense(
        self, tmp_path: Path, given: list[str], sentence: str
    ) -> None:
        common = ("--model", "m", "--test", "t.csv", "--output", "e")
        assert sentence in ledeline(tmp_path, "evaluate", *common, *given, status=2).stderr

    def test_of_report(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[Any] = []
        monkeypatch.setattr("ledeline.report.write_report", lambda *_, **k: seen.append(k))
        options = ["--output", "r.html", "--baseline", "x", "--title", "t"]
        assert CliRunner().invoke(app, ["report", "a", "b", *options]).exit_code == 0
        assert seen == [{"baseline": "x", "title": "t"}]

    def test_the_seed_of_score(self, tmp_path: Path) -> None:
        for name, step in (("o", 7), ("r", 11)):
            lines = (" ".join(f"w{i * j % step}" for j in range(1, 3 + i % 6)) for i in range(40))
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))

        def run(*options: str) -> str:
            files = [str(tmp_path / "o"), "-r", str(tmp_path / "r")]
            return CliRunner().invoke(app, ["score", *files, "--json", *options]).stdout

        assert run() == run("--seed", "12345")
        assert run() != run("--seed", "1")
