"""The systems that the paper compares itself with, as a user has them: each configuration trains,
and every verb works with what it makes.
"""

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest
import torch

import command
from ledeline.config.toml import load
from ledeline.core.errors import EngineWarning
from ledeline.inference.headliner import Headliner
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.model.systems.abs import AbsConfig
from ledeline.server.app import create_app
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import UNK, Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.train_config import TrainConfig
from live import fetch, listening
from pages import ROOT
from systems import random_system

CONFIGS = {path.stem: path for path in sorted((ROOT / "configs" / "compared").glob("*.toml"))}
NAMES = sorted({name.removesuffix("-fair") for name in CONFIGS})
LEDE = "Rain fell in Oslo on Monday, and two schools in the city were closed."
# Sizes are cut, and nothing else, so that each takes seconds; keys that a system lacks stay out.
SMALL = {
    "embedding_size": 6,
    "hidden_size": 8,
    "attention_size": 4,
    "readout_size": 4,
    "latent_size": 4,
    "encoder_size": 4,
    "filters": 4,
}
TOKENIZER = Tokenizer(NATURAL, Subwords.learn(Counter(LEDE.split()), 40))
BATCH = {"pairs": 4, "words": 64}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, prepare_newsroom: Any) -> Path:
    folder = tmp_path_factory.mktemp("newsroom")
    return prepare_newsroom(folder, 36, seed=5, merges=600, num_valid=8, cut=True)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    done = command.ledeline("synth", "--pairs", "3", "--seed", "4", "--output", str(path))
    assert done.returncode == 0, done.stderr
    return path


def train(name: str, dataset: Path, run: Path, *more: str) -> None:
    config = load(TrainConfig, CONFIGS[name])
    sizes = {key: size for key, size in SMALL.items() if hasattr(config.system, key)}
    keys = {f"system.{key}": size for key, size in sizes.items()} | {
        "data.dataset": dataset,
        "train.batch_size": BATCH[config.train.batch_unit],
        "train.epochs": 1,
        "validation.headlines": 2,
        "run.device": "cpu",
    }
    given = [f"--{key}={value}" for key, value in keys.items()]
    done = command.ledeline("train", str(CONFIGS[name]), "--run", str(run), *given, *more)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def trained(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The run of a configuration, trained once."""
    done: dict[str, Path] = {}

    def run(name: str) -> Path:
        if name not in done:
            folder = tmp_path_factory.mktemp("runs") / name
            train(name, dataset, folder)
            done[name] = folder
        return done[name]

    return run


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def loaded(run: Path) -> Headliner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)  # most systems have no engine
        return Headliner.load(run / "best", device="cpu", precision="float32")


def ledeline(*words: object) -> str:
    """A command that goes well; that a system writes itself is said in a warning, and allowed."""
    done = command.ledeline(*map(str, words), env={"PYTHONWARNINGS": "default"})
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_each_has_a_published_and_a_fair_setting() -> None:
    assert {f"{name}{which}" for name in NAMES for which in ("", "-fair")} == set(CONFIGS)


@pytest.mark.parametrize("name", NAMES)
def test_the_fair_setting_is_the_papers_recipe(name: str) -> None:
    paper, fair = (
        load(TrainConfig, path)
        for path in (ROOT / "configs" / "paper-encdec.toml", CONFIGS[f"{name}-fair"])
    )
    assert (fair.optimizer, fair.schedule, fair.train) == (
        paper.optimizer,
        paper.schedule,
        paper.train,
    )
    assert fair.system.dropout == paper.system.dropout


@pytest.mark.parametrize("name", CONFIGS)
def test_it_trains(name: str, trained: Any) -> None:
    lines = read_lines(trained(name) / "metrics.jsonl")
    steps = [line for line in lines if line["event"] == "train"]
    assert steps[-1]["step"] > 3
    assert load_model(trained(name) / "best").model.config.name


@pytest.mark.parametrize("name", NAMES)
class TestVerbs:
    """With the fair setting, whose sizes are cut."""

    def test_generate_is_the_same_in_any_batch(self, name: str, trained: Any, pairs: Path) -> None:
        headliner = loaded(trained(f"{name}-fair"))
        ledes = [one["lede"] for one in read_lines(pairs)]
        together = [one.text for one in headliner.stream(ledes, beam=4)]
        assert together == [headliner(lede, beam=4).text for lede in ledes]

    def test_explain(self, name: str, trained: Any) -> None:
        model = trained(f"{name}-fair") / "best"
        out = ledeline("generate", "--model", model, "--beam", 2, "--explain", LEDE)
        assert "attention" in out

    def test_evaluate_audit_report(
        self, name: str, trained: Any, pairs: Path, tmp_path: Path
    ) -> None:
        model = trained(f"{name}-fair") / "best"
        folder, page, test = tmp_path / "evaluation", tmp_path / "report.html", f"newsroom={pairs}"
        ledeline("evaluate", "--model", model, "--test", test, "--beam", 2, "--output", folder)
        summary = json.loads((folder / "evaluation.json").read_text())
        assert summary["system"] == load_model(model).model.config.name
        texts = {
            one: folder / "newsroom" / f"{one}.txt" for one in ("output", "source", "reference")
        }
        audited = ledeline(
            "audit", texts["output"], "--source", texts["source"], "--reference", texts["reference"]
        )
        assert "repeating" in audited
        ledeline("report", folder, "--output", page)
        assert summary["system"] in page.read_text()

    def test_serve(self, name: str, trained: Any) -> None:
        headliner = loaded(trained(f"{name}-fair"))
        body = json.dumps({"texts": [LEDE], "beam": 2, "explain": True}).encode()
        with listening(create_app(headliner)) as address:
            request = Request(f"{address}/v1/headlines", body, {"Content-Type": "application/json"})
            answer = fetch(request)
        assert answer.status == 200
        assert json.loads(answer.text)["headlines"][0]["headline"] == headliner(LEDE, beam=2).text

    def test_resumed_it_ends_with_the_same_bits(
        self, name: str, dataset: Path, trained: Any, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        train(f"{name}-fair", dataset, run, "--max-minutes=0")
        train(f"{name}-fair", dataset, run, "--resume")
        weights = [
            load_model(folder / "best").model.state_dict()
            for folder in (run, trained(f"{name}-fair"))
        ]
        assert all((weights[0][key] == value).all() for key, value in weights[1].items())


@pytest.mark.parametrize("encoder", ["bow", "conv", "none"])
def test_without_attention_it_writes_and_says_that_it_cannot_explain(
    encoder: str, dataset: Path, pairs: Path, tmp_path: Path
) -> None:
    run, folder = tmp_path / "run", tmp_path / "evaluation"
    train("abs-fair", dataset, run, f"--system.encoder={encoder}")
    best, test = run / "best", f"newsroom={pairs}"
    ledeline("evaluate", "--model", best, "--test", test, "--beam", 2, "--output", folder)
    ledeline("report", folder, "--output", tmp_path / "report.html")
    assert json.loads((folder / "newsroom" / "alignment.json").read_text())["words"] == {}
    refused = command.ledeline("generate", "--model", best, "--explain", LEDE)
    assert refused.returncode == 2
    assert "explain = true: this system has no attention" in refused.stderr


def test_a_word_that_a_system_without_attention_does_not_know_stays_unknown() -> None:
    """With attention, the word that it looks at would stand there."""
    config = AbsConfig(embedding_size=3, hidden_size=4, encoder_size=3, encoder="bow")
    model = random_system(system=config, vocabulary=len(TOKENIZER.subwords))
    with torch.no_grad():
        model.output.bias[UNK] += 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        headliner = Headliner([ModelBundle(model, TOKENIZER)])
    headline = headliner(LEDE, beam=2)
    assert "<unk>" in headline.text
    assert "unseen" in {one.kind for one in headline.warnings}
