"""The model in the box, as a user meets it: offline, right after the installation."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from ledeline import Headliner
from ledeline.config import SearchConfig
from ledeline.core.shipped import SHIPPED
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Options
from ledeline.inference.sample_ledes import LEDES
from ledeline.model.format.description import CARD
from ledeline.model.format.model_folder import load_model
from ledeline.synth.newsroom import generate
from ledeline.text.function_words import is_content
from ledeline.text.profiles import NATURAL, TYPOGRAPHIC
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer
from pages import ROOT, blocks

MOST_BYTES = 40_000_000
NEAR = 0.05  # of a score, on a processor that rounds otherwise

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def headliner() -> Headliner:
    return Headliner.load(device="cpu")


@pytest.fixture(scope="module")
def headlines(headliner: Headliner) -> dict[str, Headline]:
    """Of the ledes of the demonstration."""
    return {lede: headliner(lede, explain=True) for lede in LEDES}


# --- the folder ---------------------------------------------------------------------------------


def test_it_is_what_it_says() -> None:
    loaded = load_model("shipped")
    assert loaded.name == "Transformer"
    assert sum(one.numel() for one in loaded.model.parameters()) == 39_027_956
    assert (loaded.beam, loaded.block_ngrams, loaded.check) == (5, 2, True)
    assert loaded.tokenizer.profile.name == "natural"
    assert 7_500 <= loaded.tokenizer.vocabulary_size <= 8_500


def test_it_is_small_and_whole() -> None:
    files = {path.name: path.stat().st_size for path in SHIPPED.iterdir()}
    assert sum(files.values()) < MOST_BYTES
    words = {"codes.txt", "subwords.json"}
    assert files.keys() == {"model.json", "model.safetensors", "system.toml", CARD} | words


@pytest.mark.parametrize(
    "words",
    ["data", "intended use", "limits", "bias", "rouge", "speed", "dates", "ledeline evaluate"],
)
def test_its_card_has_what_a_card_needs(words: str) -> None:
    assert words in (SHIPPED / CARD).read_text(encoding="utf-8").casefold()


def test_it_is_installed_with_the_package() -> None:
    """What setuptools puts into a wheel beside the modules."""
    read = (
        "from setuptools.dist import Distribution; package = Distribution();"
        "package.parse_config_files(['pyproject.toml']); build = package.get_command_obj('build_py');"
        "build.ensure_finalized(); build.manifest_files = {};"
        "print(*build.find_data_files('ledeline', 'src/ledeline'), sep='\\n')"
    )
    command = [sys.executable, "-W", "ignore", "-c", read]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    files = {(ROOT / line).resolve() for line in shown.stdout.splitlines()}
    assert set(SHIPPED.resolve().iterdir()) <= files


def test_opening_it_takes_no_compiler() -> None:
    """Arithmetic on outlines of tensors would load torch's, which takes two seconds."""
    opened = "import sys; from ledeline import Headliner; Headliner.load(device='cpu')"
    code = f"{opened}; print('torch._dynamo' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout == "False\n"


# --- its headlines ------------------------------------------------------------------------------


@pytest.mark.parametrize("lede", LEDES, ids=lambda lede: lede.split()[0])
def test_headlines_of_the_demonstration(headlines: dict[str, Headline], lede: str) -> None:
    headline = headlines[lede]
    assert 4 <= len(headline.tokens) <= 20, headline.text
    assert headline.text[0].isupper()
    assert not headline.text.isupper()
    assert not headline.truncated
    assert not [one for one in headline.warnings if one.kind == "unseen"]
    assert len(headline.text) < len(lede)


@pytest.mark.parametrize("lede", LEDES, ids=lambda lede: lede.split()[0])
def test_they_are_of_their_lede_and_of_no_other(headlines: dict[str, Headline], lede: str) -> None:
    said = content(headlines[lede].text)
    shared = {other: len(said & content(other)) for other in LEDES}
    assert shared.pop(lede) >= max(3, len(said) / 2)
    assert all(number <= 1 for number in shared.values())


def content(text: str) -> set[str]:
    words = NATURAL.words(text)
    return {word.casefold().strip("\uffed") for word in words if is_content(word)}


@pytest.mark.parametrize("lede", LEDES, ids=lambda lede: lede.split()[0])
def test_they_have_reasons(headlines: dict[str, Headline], lede: str) -> None:
    alignment = headlines[lede].alignment
    assert alignment is not None
    assert alignment.spm is None  # attention explains them
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in alignment.attention)
    assert 0 < len(alignment.dropped) < len(alignment.source)
    same = [
        alignment.headline[link.headline].strip() == alignment.source[link.source].strip()
        for link in alignment.links
    ]
    assert sum(same) >= len(same) / 2  # a word comes from itself, more often than not


def test_precisions_agree(headliner: Headliner, headlines: dict[str, Headline]) -> None:
    """Rounding may change a headline now and then, but not most of them."""
    exact = Headliner.load(precision="float32", device="cpu")
    same = [exact(lede).text == headlines[lede].text for lede in LEDES]
    assert sum(same) >= len(LEDES) - 2


# --- typographic marks --------------------------------------------------------------------------

QUICK = Options(search=SearchConfig(beam=4), explain=True)


def test_every_mark_of_a_typesetter_is_known() -> None:
    """Either as it is, as « is, or as what it becomes."""
    tokenizer = Tokenizer.load("shipped")
    assert {mark for mark in TYPOGRAPHIC if tokenizer.words(mark) == [mark]} == {*"‚«»"}
    assert TYPOGRAPHIC.keys() & set(tokenizer.subwords.alphabet) == {*"‚«»"}
    for mark in TYPOGRAPHIC:
        assert UNK not in tokenizer.encode(tokenizer.words(f"Oslo{mark}Rome {mark} a"))


def typeset(text: str) -> str:
    """As a typesetter writes it, in the marks that the newsroom's ledes and those below have."""
    text = re.sub('"([^"]*)"', r"“\1”", text).replace("'", "’")
    return text.replace(" - ", " – ").replace("-", "\u2011").replace("...", "…")


def straight_marks(text: str) -> str:
    """A message that quotes a typeset lede, as it would quote the same before it was typeset."""
    for mark, plain in zip("“”’–\u2011", '""\'--', strict=True):
        text = text.replace(mark, plain)
    return text.replace("…", "...")


def test_typeset_ledes_have_the_same_headlines(headliner: Headliner) -> None:
    ledes = [story.lede for story in generate(100, 7) if {"'", "-"} & {*story.lede}][:12]
    ledes += [f'"{lede[:-1]}" - so the mayor\'s office said...' for lede in ledes[:4]]
    assert all(lede != typeset(lede) for lede in ledes)
    straight = headliner.generate_batch(ledes, QUICK)
    for one, other in zip(
        headliner.generate_batch([*map(typeset, ledes)], QUICK), straight, strict=True
    ):
        assert (one.text, one.score, one.tokens) == (other.text, other.score, other.tokens)
        assert one.alignment == other.alignment
        assert [straight_marks(str(each)) for each in one.warnings] == [*map(str, other.warnings)]


def test_a_typeset_lede_by_hand(headliner: Headliner) -> None:
    lede = (
        "The company’s “historic” €3.5bn deal – the largest in its history – was announced on "
        "Monday."
    )
    straight = lede.replace("’", "'").replace("“", '"').replace("”", '"').replace("–", "-")
    one, other = headliner(lede), headliner(straight)
    assert (one.text, one.score, one.warnings) == (other.text, other.score, ())
    assert one.source == lede


# --- as it is met -------------------------------------------------------------------------------


def test_the_demonstration(headlines: dict[str, Headline]) -> None:
    command = [sys.executable, ROOT / "examples" / "demo.py"]
    shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert all(lede in shown for lede in LEDES)
    assert len(re.findall(r"^    dropped: \S", shown, re.M)) == len(LEDES) == 5
    assert len(re.findall(r"^    \d+ ms$", shown, re.M)) == 5
    parts = re.split("|".join(map(re.escape, LEDES)), shown)[1:]
    for lede, part in zip(LEDES, parts, strict=True):
        headline = headlines[lede]
        assert f"    {headline.text}\n" in part
        alignment = headline.alignment
        assert alignment is not None
        (line,) = re.findall(r"^    dropped: (.*)$", part, re.M)
        begins = [place for place in alignment.dropped if place - 1 not in alignment.dropped]
        assert line.count(" ... ") == len(begins) - 1  # dots stand for what is used between them
        words = "".join(alignment.source[place] for place in alignment.dropped)
        assert line.replace(" ... ", "").replace(" ", "") == words.replace(" ", "")


def test_the_readme_shows_what_the_command_shows() -> None:
    """To the last digit, for the answers are the same on every CPU."""
    page = blocks((ROOT / "README.md").read_text().split("## Use")[1])
    (commands, *_), (said, *_) = (
        [block.text for block in page if block.language == language] for language in ("", "text")
    )
    shell = f"set -e\nledeline() {{ '{sys.executable}' -m ledeline \"$@\"; }}\n{commands}"
    shown = subprocess.run(shell, shell=True, capture_output=True, check=True, text=True).stdout
    first, rest = shown.split("\n", 1)
    assert f"The first answers `{first}`." in (ROOT / "README.md").read_text()
    assert rest.strip() == said.strip()


def test_the_readme_shows_what_the_server_answers(headliner: Headliner) -> None:
    page = blocks((ROOT / "README.md").read_text().split("## Use")[1])
    (console,) = [block.text for block in page if block.language == "console"]
    (said,) = json.loads(console.splitlines()[-1])["headlines"]
    found = headliner(said["source"]).as_dict()
    assert {key: found[key] for key in said} == said


def test_the_api_shows_what_it_writes(headliner: Headliner) -> None:
    schemas = pytest.importorskip("ledeline.server.schemas")
    (example,) = schemas.HeadlinesResponse.model_config["json_schema_extra"]["examples"][0][
        "headlines"
    ]
    check(headliner, example)
    (about,) = schemas.ModelResponse.model_config["json_schema_extra"]["examples"]
    check_description(about)


def test_the_guide_of_the_server_shows_what_it_writes(headliner: Headliner) -> None:
    page = blocks((ROOT / "docs" / "serve.md").read_text())
    answers, checks, about = [json.loads(block.text) for block in page if block.language == "json"]
    check(headliner, answers["headlines"][0])
    assert [doubt["kind"] for one in checks["checks"] for doubt in one["doubts"]]
    check_description(about)


def check(headliner: Headliner, said: dict[str, Any]) -> None:
    """Whether an answer is that of the model, but for digits."""
    number = len(said.get("alternatives", [None]))
    found = headliner(said["source"], n_best=number, explain=True).as_dict()
    pairs = [(found, said)]
    if number > 1:
        pairs += zip(found["alternatives"], said["alternatives"], strict=True)
    for one, other in pairs:
        assert one["headline"] == other["headline"]
        assert one["score"] == pytest.approx(other["score"], abs=NEAR)
    for key in ("words", "dropped") if "alignment" in said else ():
        for one, other in zip(found["alignment"][key], said["alignment"][key], strict=True):
            assert one == near(other)


def near(fields: dict[str, Any]) -> dict[str, Any]:
    shares = {key for key, value in fields.items() if isinstance(value, float)}
    return {
        key: pytest.approx(fields[key], abs=NEAR) if key in shares else fields[key]
        for key in fields
    }


def check_description(said: dict[str, Any]) -> None:
    loaded = load_model(SHIPPED)
    assert said["system"] == loaded.model.config.name
    assert said["profile"] == loaded.tokenizer.profile.name
    assert said["vocabulary"] == loaded.tokenizer.vocabulary_size
    assert said["parameters"] == sum(one.numel() for one in loaded.model.parameters())
