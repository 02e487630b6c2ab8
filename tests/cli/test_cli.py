import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import ledeline
from ledeline import __version__
from ledeline.data.dataset import Dataset

WORKING_VERBS = [
    "prepare",
    "train",
    "generate",
    "check",
    "evaluate",
    "score",
    "audit",
    "align",
    "heads",
    "report",
    "tune",
    "pack",
    "package",
    "models",
    "serve",
    "synth",
]


def test_help_shows_only_what_works() -> None:
    shown = ledeline("--help")
    assert shown.returncode == 0
    commands = shown.stdout.split("Commands:")[1]
    assert [line.split()[0] for line in commands.splitlines() if line.strip()] == WORKING_VERBS


def test_version() -> None:
    assert ledeline("--version").stdout == f"ledeline {__version__}\n"


def test_no_verb_shows_the_help() -> None:
    shown = ledeline()
    assert "Commands:" in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    "arguments", [["headline"], ["prepare"], ["synth"], ["synth", "--pairs", "0", "--output", "x"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    shown = ledeline(*arguments)
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr
    assert shown.stderr


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.jsonl.gz", "b/a.csv"]
)
def test_synth_then_prepare(tmp_path: Path, name: str) -> None:
    table = tmp_path / name
    assert ledeline("synth", "--pairs", "50", "--seed", "3", "--output", table).returncode == 0
    (tmp_path / "c.toml").write_text(f'[corpus]\ntrain = ["{table}"]\n')
    output = tmp_path / "out"
    shown = ledeline(
        "prepare", tmp_path / "c.toml", f"--dataset.output={output}", "--subword.merges=20"
    )
    assert shown.returncode == 0, shown.stderr
    assert "read" in shown.stderr
    assert "sub-word types" in shown.stdout
    assert len(Dataset(output)["train"]) == 50


def test_synth_writes_lede_headline_and_alignment(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        ledeline("synth", "--pairs", "20", "--seed", "3", "--output", tmp_path / name)
    text = (tmp_path / "a.jsonl").read_text()
    assert text == (tmp_path / "b.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == 20
    for row in rows:
        assert list(row) == ["lede", "headline", "alignment"]
        num_lede, num_headline = len(row["lede"].split()), len(row["headline"].split())
        for link in row["alignment"].split():
            i, j = map(int, link.split("-"))
            assert i < num_lede
            assert j < num_headline


@pytest.mark.parametrize(
    ("config", "overrides", "sentence"),
    [
        (
            "[corpus]\ntrian = 1",
            [],
            "c.toml: corpus.trian = 1: no such key; did you mean corpus.train?",
        ),
        ('[corpus]\ntrain = ["x.jsonl"]', [], "c.toml: dataset.output is missing"),
        ('[corpus]\ntrain = ["x.jsonl"]', ["--dataset.output=out"], "x.jsonl: no such file"),
        ("", ["--corpus.trian=x"], "command line: corpus.trian"),
        ("", ["--frob"], "command line: --frob: overrides look like --section.key=value"),
        ("[corpus", [], "c.toml: is not TOML"),
    ],
)
def test_what_the_user_can_cause_is_one_sentence(
    tmp_path: Path, config: str, overrides: list[str], sentence: str
) -> None:
    (tmp_path / "c.toml").write_text(config)
    shown = ledeline("prepare", "c.toml", *overrides, cwd=tmp_path)
    assert shown.returncode == 2
    assert sentence in shown.stderr
    assert shown.stderr.count("\n") <= 2  # the sentence, and the line of the progress bar
    assert "Traceback" not in shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


@pytest.mark.parametrize(
    ("config", "overrides", "sentence"),
    [
        ("", [], "c.toml: data.dataset is missing"),
        ('data.dataset = "none"', [], "none is not a dataset"),
        ('data.dataset = "none"\nsystem.hiden = 3', [], "did you mean system.hidden_size?"),
        ('data.dataset = "none"', ["--spm.c=-1"], "command line: spm.c = -1.0: must be above 0"),
        ('data.dataset = "none"', ["--train.epochs=many"], "train.epochs"),
    ],
)
def test_what_the_user_can_cause_in_training_is_one_sentence(
    tmp_path: Path, config: str, overrides: list[str], sentence: str
) -> None:
    (tmp_path / "c.toml").write_text(config)
    shown = ledeline("train", "c.toml", *overrides, cwd=tmp_path)
    assert shown.returncode == 2
    assert sentence in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    shown = ledeline("synth", "--pairs", "5", "--output", tmp_path / "file" / "a.jsonl")
    assert shown.returncode == 2
    assert str(tmp_path / "file") in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_terminal_without_unicode_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"lede": "Café owners\u2028 win, again", "headline": "☃"}\n')
    (tmp_path / "c.toml").write_text(
        '[text]\nprofile = "natural"\n[corpus]\ntrain = ["a.jsonl"]\n[dataset]\noutput = "é"\n',
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ledeline", "prepare", "c.toml"]
    shown = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "?" in shown.stdout


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    ledeline("synth", "--pairs", "20000", "--output", tmp_path / "a.jsonl")
    (tmp_path / "c.toml").write_text('[corpus]\ntrain = ["a.jsonl"]\n[dataset]\noutput = "out"\n')
    command = [sys.executable, "-m", "ledeline", "prepare", "c.toml"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in background jobs
    ) as process:
        partial = tmp_path / ".out.partial"
        deadline = time.monotonic() + 60
        while not partial.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        errors = process.stderr.read()
    assert process.returncode == 130
    assert "ledeline: stopped" in errors
    assert "Traceback" not in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "c.toml"]


def test_starting_is_light() -> None:
    code = "import sys, ledeline.cli; print([m for m in ('torch', 'numpy', 'pyarrow', 'rich') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in shown.stdout
    assert "numpy" not in shown.stdout
    assert "pyarrow" not in shown.stdout


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
        ({"GOMP_SPINCOUNT": "5"}, {"GOMP_SPINCOUNT": "5"}),
    ],
)
def test_waiting_threads_sleep_unless_somebody_says_otherwise(
    said: dict[str, str], found: dict[str, str]
) -> None:
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    code = f"import json, os, ledeline; print(json.dumps([os.environ.get(n) for n in {names}]))"
    others = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, env=others | said, capture_output=True, check=True)
    assert json.loads(shown.stdout) == [found.get(name) for name in names]
