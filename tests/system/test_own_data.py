"""The guide docs/own-data.md: its commands work, and errors have the messages that it shows."""

import csv
import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ledeline.cli import app
from ledeline.core.shipped import SHIPPED
from ledeline.data.dataset import Dataset
from ledeline.inference.headliner import Headliner
from ledeline.model.format.model_folder import load_model
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems.transformer import TransformerConfig
from pages import ROOT, Block, blocks, run

GUIDE = (ROOT / "docs" / "own-data.md").read_text()
FILES = ["pairs.toml", "scratch.toml", "tuned.toml"]
TUNED = tomllib.loads([text for language, text in blocks(GUIDE) if language == "toml"][2])
# Training the bundled model takes a minute, so a small model in a folder `shipped` replaces it: a folder
# with that name takes precedence. The sizes in the guide are replaced, too. What is quick enough is
# tested with the bundled model itself, at the end.
SIZES = {
    "embedding_size = 448": "embedding_size = 16",
    "hidden_size = 1792": "hidden_size = 32",
    "encoder_layers = 12": "encoder_layers = 3",
    "heads = 7": "heads = 2",
}
SMALL = TransformerConfig(
    embedding_size=16, hidden_size=32, encoder_layers=3, decoder_layers=2, heads=2
)


def with_small_sizes(text: str) -> str:
    for size, small in SIZES.items():
        text = text.replace(size, small)
    return text


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, make_model: Callable[..., Path]) -> Path:
    """A folder in which the whole guide was followed."""
    folder = tmp_path_factory.mktemp("desk")
    small = make_model(system=SystemConfig(system=SMALL))
    shutil.copytree(small, folder / "shipped")
    run([Block(one.language, with_small_sizes(one.text)) for one in blocks(GUIDE)], folder, FILES)
    return folder


def test_the_files_are_called_as_the_guide_says() -> None:
    named = re.findall(r"^`(\w+\.toml)`", GUIDE, re.M)
    assert named == FILES


def test_the_sizes_are_those_of_the_bundled_model() -> None:
    box = load_model(SHIPPED).model.config
    assert TUNED["system"] == {key: getattr(box.system, key) for key in TUNED["system"]}
    assert TUNED.keys() & ADDON_CONFIGS.keys() == {*box.addons}
    assert all(size in GUIDE for size in SIZES)


def test_following_the_guide_gives_headlines(desk: Path) -> None:
    assert (desk / "report.html").stat().st_size
    assert Headliner.load(desk / "models" / "desk")("Rain fell in Oslo.", beam=2) is not None
    lines = (desk / "suggestions.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "published,title,standfirst,suggestion"
    assert len(lines) == 301


def test_most_pairs_train(desk: Path) -> None:
    report = json.loads((desk / "data" / "scratch" / "report.json").read_text())
    assert {split: part["read"] for split, part in report.items()} == {
        "train": 240,
        "valid": 30,
        "test": 30,
    }


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_found(
    monkeypatch: pytest.MonkeyPatch, desk: Path, tmp_path: Path, delimiter: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with (desk / "pairs.csv").open(newline="") as pairs, Path("pairs.csv").open("w") as others:
        csv.writer(others, delimiter=delimiter, lineterminator="\n").writerows(csv.reader(pairs))
    shown = CliRunner().invoke(app, ["prepare", str(desk / "pairs.toml")])
    assert shown.exit_code == 0
    assert Dataset(tmp_path / "data/scratch").checksum == Dataset(desk / "data/scratch").checksum


def test_the_split_does_not_depend_on_the_sub_words(desk: Path) -> None:
    scratch, tuned = (desk / "data" / name for name in ("scratch", "tuned"))
    assert (scratch / "test.jsonl").read_bytes() == (tuned / "test.jsonl").read_bytes()
    assert Dataset(tuned).tokenizer.types != Dataset(scratch).tokenizer.types
    drawn = Dataset(desk / "data" / "random")
    assert [len(drawn[split]) for split in ("valid", "test")] == [30, 30]


PREPARE = ["prepare", "pairs.toml", "--dataset.output=data/none"]
SCRATCH = ["train", "scratch.toml", "--run", "runs/scratch"]
FROM_BOX = ["train", "scratch.toml", "--train.start_from=shipped"]
# In the order of the table, without the last row, which would use up all memory.
WRONG = [
    [*PREPARE, "--corpus.lede=lede"],
    [*PREPARE, "--corpus.train=latin.csv"],
    [*PREPARE, "--corpus.train=dates.csv"],
    [*PREPARE, "--split.by=random", "--split.num_valid=300", "--split.num_test=300"],
    [*PREPARE, "--split.valid_from=2026-01-01", "--split.test_from=2026-02-01"],
    [*PREPARE, "--split.valid_from=2025-01-02", "--split.test_from=2025-01-03"],
    SCRATCH,
    [*SCRATCH, "--resume", "--train.batch_size=16"],
    [*FROM_BOX, "--run", "runs/words"],
    [*FROM_BOX, "--run", "runs/sizes", "--data.dataset=data/tuned"],
]
MESSAGES = re.findall(r"^\| `(.*?)`", GUIDE.split("## 7.")[1], re.M)


@pytest.fixture(scope="module")
def faulty(desk: Path) -> Path:
    """The same folder, with faulty tables added."""
    header = "published,title,standfirst\n"
    (desk / "latin.csv").write_bytes(header.encode() + b'2025-01-31,Caf\xe9 wins,"Caf\xe9s won."\n')
    (desk / "dates.csv").write_text(header + "31.1.2025,Cafe wins,A cafe won.\n")
    return desk


@pytest.mark.parametrize(("arguments", "message"), [*zip(WRONG, MESSAGES[:-1], strict=True)])
def test_errors_have_the_messages_of_the_guide(
    monkeypatch: pytest.MonkeyPatch, faulty: Path, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(faulty)
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == (0 if "leave only 10 of 300" in message else 2)  # that is a warning
    assert f"ledeline: {with_small_sizes(message)}\n" in shown.stderr


# --- the bundled model itself -------------------------------------------------------------------


@pytest.fixture(scope="module")
def box(desk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without the small model, in which part 3b was begun."""
    folder = tmp_path_factory.mktemp("box")
    for name in ("pairs.csv", "pairs.toml", "scratch.toml", "data/scratch"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(desk / name)
    commands = GUIDE.split("## 3b.")[1].split("## 4.")[0]
    prepare, tuned, train = blocks(commands)
    begin = Block("", train.text.splitlines()[0].replace("0.05", "0.0001"))
    run([prepare, tuned, begin], folder, ["tuned.toml"])
    return folder


def test_training_starts_from_the_bundled_model(box: Path) -> None:
    (checkpoint,) = (box / "runs" / "tuned" / "checkpoints").iterdir()
    start, trained = load_model(SHIPPED), load_model(checkpoint).model.state_dict()
    assert Dataset(box / "data" / "tuned").tokenizer == start.tokenizer
    most = TUNED["optimizer"]["learning_rate"] * int(checkpoint.name)  # that, at each step
    for name, weight in start.model.state_dict().items():
        assert 0 < (trained[name] - weight).abs().max() <= 1.1 * most, name


@pytest.mark.parametrize("which", [-2, -1])
def test_errors_with_the_bundled_model(
    monkeypatch: pytest.MonkeyPatch, box: Path, which: int
) -> None:
    monkeypatch.chdir(box)
    shown = CliRunner().invoke(app, WRONG[which])
    assert shown.exit_code == 2
    assert f"ledeline: {MESSAGES[:-1][which]}\n" in shown.stderr
