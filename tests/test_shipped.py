"""The model in the box, as a user meets it: offline, right after the installation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ledeline import Headliner
from ledeline.model.files import SHIPPED, load_model
from ledeline.pack import CARD

ROOT = Path(__file__).parent.parent
LEDES = (ROOT / "examples" / "ledes.txt").read_text(encoding="utf-8").splitlines()
MOST_BYTES = 40_000_000


@pytest.fixture(scope="module")
def headliner() -> Headliner:
    return Headliner.load()


def test_it_is_what_it_says() -> None:
    loaded = load_model("shipped")
    assert loaded.model.config.name == "EncDec+sGate+SPM"
    assert loaded.profile.name == "natural"
    assert 7_500 <= len(loaded.subwords) <= 8_500


def test_it_is_small_and_whole() -> None:
    files = {path.name: path.stat().st_size for path in SHIPPED.iterdir()}
    assert sum(files.values()) <= MOST_BYTES
    assert {"model.json", "model.safetensors", "system.toml", "codes.txt", CARD} <= files.keys()


def test_its_card_has_what_a_card_needs() -> None:
    card = (SHIPPED / CARD).read_text(encoding="utf-8").casefold()
    for word in (
        "data",
        "intended use",
        "limits",
        "bias",
        "rouge",
        "speed",
        "dates",
        "ledeline evaluate",
    ):
        assert word in card, word


@pytest.mark.parametrize("lede", LEDES, ids=lambda lede: lede.split()[0])
def test_headlines_of_the_demonstration(headliner: Headliner, lede: str) -> None:
    headline = headliner(lede, explain=True)
    words = headline.text.split()
    assert 4 <= len(words) <= 20, headline.text
    assert headline.text[0].isupper()
    assert not headline.truncated
    assert not [one for one in headline.warnings if one.kind == "unseen"]
    assert len(headline.text) < len(lede)
    read = {word.casefold().strip(".,'") for word in lede.split()}
    from_lede = [word for word in words if word.casefold().strip(".,':") in read]
    assert len(from_lede) >= len(words) / 3, headline.text  # it is of this lede, not of any
    alignment = headline.alignment
    assert alignment is not None
    assert alignment.spm is not None
    assert 0 < len(alignment.dropped) < len(alignment.source)


def test_precisions_agree(headliner: Headliner) -> None:
    """Rounding may change a headline now and then, but not most of them."""
    exact = Headliner.load(precision="float32", device="cpu")
    same = [headliner(lede, beam=5).text == exact(lede, beam=5).text for lede in LEDES]
    assert sum(same) >= len(LEDES) - 2


def test_the_command_needs_no_model_to_be_named() -> None:
    command = [sys.executable, "-m", "ledeline", "generate", "--json", "--beam", "5", LEDES[0]]
    result = subprocess.run(command, capture_output=True, check=True, text=True)
    assert json.loads(result.stdout)["headline"]


def test_the_demonstration() -> None:
    command = [sys.executable, ROOT / "examples" / "demo.py"]
    result = subprocess.run(command, capture_output=True, check=True, text=True)
    assert result.stdout.count("dropped: ") == len(LEDES) == 5
    assert result.stdout.count(" ms\n") == 5
