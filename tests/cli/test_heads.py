"""The verb `heads`: the attention that explains headlines best, and a copy of the model with it."""

import json
import tomllib
from pathlib import Path

import pytest
import torch

from command import ledeline
from known_heads import RIGHT, write_beginnings, write_place_transformer
from ledeline.model.format.model_folder import load_model
from ledeline.text.tokenizer import Tokenizer

SAME = ["model.safetensors", "model.json", "codes.txt", "subwords.json"]


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> Tokenizer:
    return load_model(model_folder).tokenizer


@pytest.fixture(scope="module")
def folder(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_place_transformer(tmp_path_factory.mktemp("heads") / "model", tokenizer)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_beginnings(tmp_path_factory.mktemp("pairs") / "pairs.jsonl", 9)


def heads(*arguments: object) -> tuple[int, str, str]:
    shown = ledeline("heads", "--device", "cpu", *arguments)
    return shown.returncode, shown.stdout, shown.stderr


def test_it_prints_a_table_and_writes_a_copy(folder: Path, pairs: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "copy"
    status, shown, errors = heads("--model", folder, "--input", pairs, "--output", output)
    assert (status, errors) == (0, "")
    assert "4 pairs choose (1st half), 5 check (2nd)" in shown
    name = "layer {}, head {}".format(*RIGHT)
    lines = [line.strip() for line in shown.splitlines()]
    rows = [line for line in lines if line.startswith(("layer", "mean", "the model"))]
    assert rows[0].split() == [*name.split(), "same", *["0.000"] * 2, *["1.000"] * 4]
    assert len(rows) == 14 + 1
    assert rows[-1].startswith("the model as it is")
    *_, how_many, _, best, written = shown.splitlines()
    assert how_many == "14 of 14 are shown, the best on the first half first."
    assert best.startswith(f"Best at the step that writes the word: {name}, with an error rate of ")
    assert best.endswith(" 0.000 on the first half and 0.000 on the second.")
    assert written == f"{output}: explains headlines by {name}"
    assert sorted(path.name for path in output.iterdir()) == sorted([*SAME, "system.toml"])
    assert_copied(folder, output)


def assert_copied(folder: Path, output: Path) -> None:
    for name in SAME:
        assert (output / name).read_bytes() == (folder / name).read_bytes()
    before, after = (
        tomllib.loads((one / "system.toml").read_text())["system"] for one in (folder, output)
    )
    layer, head = RIGHT
    assert after == before | {"attention_layer": layer, "attention_head": head}
    old, new = load_model(folder).model, load_model(output).model
    assert new.config.system.attention_head == head
    for weight, other in zip(old.parameters(), new.parameters(), strict=True):
        assert torch.equal(weight, other)


def test_the_copy_explains_by_the_choice(folder: Path, pairs: Path, tmp_path: Path) -> None:
    heads("--model", folder, "--input", pairs, "--output", tmp_path / "copy")
    errors = []
    for one in (folder, tmp_path / "copy"):
        shown = ledeline("align", "--model", one, "--input", pairs, "--json", "--device", "cpu")
        errors.append(json.loads(shown.stdout)["quality"]["attention"]["error_rate"])
    assert errors[0] > 0.2
    assert errors[1] == 0


def test_json_and_a_file_of_gold_links(folder: Path, pairs: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in pairs.read_text().splitlines()]
    names = {
        "lede": tmp_path / "a.txt",
        "headline": tmp_path / "b.txt",
        "alignment": tmp_path / "g",
    }
    for column, path in names.items():
        path.write_text("".join(f"{row[column]}\n" for row in rows))
    given = f"{names['lede']},{names['headline']}"
    more = ["--gold", names["alignment"], "--pairs", "6", "--json"]
    status, shown, errors = heads("--model", folder, "--input", given, *more)
    assert (status, errors) == (0, "")
    found = json.loads(shown)
    assert found["pairs"] == {"first": 3, "second": 3}
    assert (found["best"]["layer"], found["best"]["head"]) == RIGHT
    assert found["best"]["first"] == {"precision": 1, "recall": 1, "error_rate": 0}
    assert len(found["attentions"]) == 14
    first = found["attentions"][0]
    assert (first["layer"], first["head"], first["method"]) == (*RIGHT, "attention")
    assert list(found["others"]) == ["attention"]


def test_the_spm_stands_beside(tokenizer: Tokenizer, pairs: Path, tmp_path: Path) -> None:
    folder = write_place_transformer(tmp_path / "model", tokenizer, "spm")
    status, shown, _ = heads("--model", folder, "--input", pairs)
    assert status == 0
    names = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert [name for name in names if name.startswith("spm")] == ["spm-vocabulary", "spm-sentence"]
    assert "This model explains headlines by its SPM" in shown.splitlines()[-1]


def test_a_model_that_writes_by_its_attention_keeps_it(
    tokenizer: Tokenizer, pairs: Path, tmp_path: Path
) -> None:
    given = ["--model", write_place_transformer(tmp_path / "model", tokenizer, "copy")]
    assert heads(*given, "--input", pairs)[0] == 0
    status, shown, errors = heads(*given, "--input", pairs, "--output", tmp_path / "copy")
    assert (status, shown) == (2, "")
    assert "so a copy with another one would write worse; leave --output out" in errors
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"--model": "encdec"}, "EncDec+sGate+SPM has one attention only, so there is no layer or"),
        ({"--input": "bare.jsonl"}, "bare.jsonl has no gold links; name a file that has them with"),
        ({"--output": "."}, "already exists; name another folder to write to"),
        ({"--pairs": "1"}, "and 1 pair is too few for that; give more pairs"),
        ({"--model": "nothing"}, "nothing is not a model folder"),
        ({"--gold": "bare.jsonl:lede"}, "is not a link; write the positions"),
    ],
)
def test_what_the_user_can_cause_is_one_sentence(
    folder: Path,
    model_folder: Path,
    pairs: Path,
    tmp_path: Path,
    changes: dict[str, str],
    sentence: str,
) -> None:
    (tmp_path / "encdec").symlink_to(model_folder)
    write_beginnings(tmp_path / "bare.jsonl", 9, gold=False)
    given = {"--model": str(folder), "--input": str(pairs), "--output": "new", **changes}
    words = [word for one in given.items() for word in one]
    shown = ledeline("heads", "--device", "cpu", *words, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert sentence in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.jsonl", "encdec"]
