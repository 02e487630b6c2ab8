"""What `pip install ledeline` gives works without any package of an extra; the rest names its extra."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from safetensors.torch import save_file

from ledeline.config.engine_systems import EncDecConfig, WordPredictionConfig
from ledeline.core.extras import EXTRAS, missing_extra
from ledeline.core.shipped import SHIPPED
from ledeline.inference.headliner import Headliner
from ledeline.model.build import build
from ledeline.model.format.model_folder import write_description
from ledeline.model.system_config import SystemConfig
from ledeline.text.tokenizer import Tokenizer
from pages import ROOT

LEDE = "Rain fell in Oslo on Monday."
HEADLINE = "Rain falls in Oslo"
BLOCK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
ABSENT = {module for modules in EXTRAS.values() for module in modules}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no module of an extra can be imported."""
    return environment_without(ABSENT, tmp_path_factory.mktemp("absent"))


def environment_without(modules: set[str], folder: Path) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(BLOCK.format(modules=modules))
    paths = [str(folder), str(ROOT / "src")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120"}


def run(
    environment: dict[str, str], *words: str | Path, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=environment, cwd=cwd, capture_output=True, text=True
    )


def ledeline(
    environment: dict[str, str], *words: str | Path, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return run(environment, "-m", "ledeline", *words, cwd=cwd)


@pytest.mark.parametrize("module", sorted(ABSENT))
def test_the_modules_are_absent(environment: dict[str, str], module: str) -> None:
    done = run(environment, "-c", f"import {module}")
    assert "ModuleNotFoundError" in done.stderr


def test_generate(environment: dict[str, str]) -> None:
    done = ledeline(environment, "generate", LEDE)
    assert (done.stdout, done.stderr) == (f"{HEADLINE}\n", "")
    explained = ledeline(environment, "generate", "--explain", LEDE)
    assert explained.stdout.startswith(f"{HEADLINE}\nsupport ")
    assert "[on Monday.]" in explained.stdout


def test_generate_for_a_table(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"lede\n{LEDE}\n")
    done = ledeline(
        environment, "generate", "--input", "in.csv", "--output", "out.jsonl", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text())["headline"] == HEADLINE


def test_check(environment: dict[str, str]) -> None:
    done = ledeline(environment, "check", "--json", LEDE, "Rain falls in Paris")
    assert done.returncode == 0, done.stderr
    assert [doubt["words"] for doubt in json.loads(done.stdout)["doubts"]] == ["Paris"]


def test_synth(environment: dict[str, str], tmp_path: Path) -> None:
    done = ledeline(environment, "synth", "--pairs", "3", "--output", tmp_path / "a.jsonl")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 3


def test_python(environment: dict[str, str]) -> None:
    code = (
        "from ledeline import Headliner, check\n"
        f"print(Headliner.load()({LEDE!r}, explain=True))\n"
        f"print(check({LEDE!r}, {HEADLINE!r}).support > 0.5)\n"
    )
    done = run(environment, "-c", code)
    assert done.stdout == f"{HEADLINE}\nTrue\n", done.stderr


def test_the_demo(environment: dict[str, str]) -> None:
    done = run(environment, ROOT / "examples" / "demo.py")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extras"),
    [
        (["train", "paper.toml"], {"train"}),
        (["prepare", "pairs.toml"], {"train"}),
        (["serve"], {"serve"}),
        (["score", "a.txt", "-r", "a.txt"], {"evaluate"}),
        (["report", "folder", "--output", "a.html"], {"evaluate"}),
        (["generate", "--input", "a.parquet"], {"parquet"}),
        (["generate", LEDE, "--output", "b.parquet"], {"parquet"}),
        (["synth", "--pairs", "3", "--output", "b.parquet"], {"parquet"}),
        (["check", "--input", "a.parquet"], {"parquet"}),
        (["audit", "a.txt", "-r", "a.txt", "--figure", "a.svg"], {"plot"}),
        (["evaluate", "--model", "m", "--test", "a=a.jsonl", "--output", "e"], {"evaluate"}),
        (["align", "--model", "m", "--input", "a.jsonl"], {"train,evaluate"}),
        (["heads", "--model", "m", "--input", "a.jsonl"], {"train,evaluate"}),
        (["tune", "--model", "m", "--pairs", "a.jsonl", "--output", "n"], {"train,evaluate"}),
        (["pack", "m", "--output", "n"], {"train"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)  # fmt: skip
def test_a_verb_names_its_extra(
    environment: dict[str, str], tmp_path: Path, words: list[str], extras: set[str]
) -> None:
    for name in ("a.txt", "a.parquet"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "a.jsonl").write_text('{"lede": "a", "headline": "b"}\n')
    (tmp_path / "paper.toml").write_text('data.dataset = "none"\n')
    (tmp_path / "pairs.toml").write_text('corpus.train = ["a.jsonl"]\ndataset.output = "d"\n')
    done = ledeline(environment, *words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    sentence = done.stderr.splitlines()[-1]
    assert "which is not installed; run: pip install 'ledeline[" in sentence
    assert sentence.split("[")[1].split("]")[0] in extras
    assert sentence.startswith(
        (f"ledeline: ledeline {words[0]} needs ", "ledeline: drawing needs ")
    )


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({"system": "gru"}, "the system gru"),
        ({"addons": ["sgate", "coverage"]}, "the add-on coverage"),
        ({"extractive": {"unigram": 1.0}}, "extractive features"),
    ],
    ids=str,
)
def test_a_model_that_the_engine_does_not_know(
    environment: dict[str, str], tmp_path: Path, changes: dict[str, object], unknown: str
) -> None:
    for path in SHIPPED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    about = json.loads((tmp_path / "model.json").read_text())
    about |= {"version": 3, "system": "encdec", "addons": ["sgate", "spm"], **changes}
    (tmp_path / "model.json").write_text(json.dumps(about))
    said = (
        f"{tmp_path}: the engine does not know {unknown}, so the model needs torch, which is not "
        "installed; run: pip install 'ledeline[train]'"
    )
    code = f"from ledeline import Headliner\nHeadliner.load({str(tmp_path)!r})"
    done = run(environment, "-c", code)
    assert done.stderr.splitlines()[-1] == f"ledeline.core.extras.MissingExtraError: {said}"
    done = ledeline(environment, "generate", "--model", tmp_path, LEDE)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ledeline: {said}\n")


def test_an_add_on_that_acts_in_training_alone_needs_no_torch(
    environment: dict[str, str], model_folder: Path, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.load(model_folder)
    config = SystemConfig.of(EncDecConfig(embedding_size=8, hidden_size=8), WordPredictionConfig())
    write_description(tmp_path, config, tokenizer)
    system = build(config, tokenizer.vocabulary_size)
    save_file(system.state_dict(), tmp_path / "model.safetensors")
    done = ledeline(environment, "generate", "--model", tmp_path, "--json", LEDE)
    assert (done.returncode, done.stderr) == (0, "")
    headliner = Headliner.load(tmp_path, device="cpu")
    assert json.loads(done.stdout)["score"] == headliner(LEDE).score


def test_a_gpu_that_is_asked_for(environment: dict[str, str]) -> None:
    said = "device cuda needs torch, which is not installed; run: pip install 'ledeline[train]'"
    done = run(environment, "-c", "from ledeline import Headliner\nHeadliner.load(device='cuda')")
    assert done.stderr.splitlines()[-1] == f"ledeline.core.extras.MissingExtraError: {said}"
    done = ledeline(environment, "generate", "--device", "cuda", LEDE)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ledeline: {said}\n")


def test_an_evaluation_without_torch_is_completed_with_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The extra `evaluate` comes first, and `train` later."""
    (tmp_path / "without").mkdir()
    without = environment_without(ABSENT - set(EXTRAS["evaluate"]), tmp_path / "without")
    both = environment | {"PYTHONPATH": str(ROOT / "src")}
    ledeline(without, "synth", "--pairs", "4", "--output", "a.jsonl", cwd=tmp_path)
    words = "evaluate --model shipped --test a=a.jsonl --output e --beam 2 --device cpu".split()
    for command, place, is_left_out in (
        (words, without, True),
        ([*words, "--resume"], both, False),
    ):
        done = ledeline(place, *command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("the alignment of a is left out: " in done.stderr) == is_left_out
        aligned = json.loads((tmp_path / "e" / "a" / "alignment.json").read_text())
        assert ("left_out" in aligned) == (not aligned["words"]) == is_left_out
        shown = ledeline(place, "report", "e", "--output", "e.html", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        page = (tmp_path / "e.html").read_text()
        assert ("was not aligned: alignment needs torch" in page) == is_left_out


def test_python_names_the_extra(environment: dict[str, str]) -> None:
    code = "import ledeline.evaluation.scoring"
    assert "numpy" in run(environment, "-c", code).stderr
    code = "from ledeline.core.extras import *\nwith needed_by('this'):\n    import torch"
    last = run(environment, "-c", code).stderr.splitlines()[-1]
    assert last.endswith(
        "this needs torch, which is not installed; run: pip install 'ledeline[train]'"
    )


def test_other_missing_modules_stay_errors_of_ours() -> None:
    error = ModuleNotFoundError("No module named 'ledeline.nothing'", name="ledeline.nothing")
    assert missing_extra(error, "this") is None


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    assert set(declared) - {"all", "dev"} == set(EXTRAS)
    for extra, packages in declared.items():
        if extra in EXTRAS:
            names = {one.partition(">")[0].replace("-", "_") for one in packages}
            assert names <= set(EXTRAS[extra]), extra
    base = {one.partition(">")[0] for one in project["dependencies"]}
    assert not base & ABSENT


@pytest.mark.parametrize(
    ("module", "own", "extras"),
    [
        ("numpy", ("train", "evaluate"), "train,evaluate"),
        ("torch.nn", ("train", "evaluate"), "train,evaluate"),
        ("torch", ("evaluate",), "train"),  # it is none of its own
        ("numpy", (), "evaluate"),
    ],
)
def test_all_extras_of_its_own_are_named_at_once(
    module: str, own: tuple[str, ...], extras: str
) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert str(missing_extra(error, "this", *own)).endswith(
        f"; run: pip install 'ledeline[{extras}]'"
    )
