"""The verb `tune`: a model folder with weights of extractive features."""

import json
from pathlib import Path

import pytest

from command import ledeline
from ledeline.config.extractive import ExtractiveWeights
from ledeline.core.errors import ModelError
from ledeline.corpus.table_writer import write_table
from ledeline.inference.headliner import Headliner, system_name
from ledeline.model.format.model_folder import load_model
from ledeline.model.format.pack import add_extractive, pack
from ledeline.synth.newsroom import Story, generate

COPIED = ["model.safetensors", "system.toml", "codes.txt", "subwords.json"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    write_table(path, [story._asdict() for story in generate(15, 5)], Story._fields)
    return path


@pytest.mark.filterwarnings("ignore::ledeline.core.errors.EngineWarning")
def test_it_writes_a_model_with_weights(model_folder: Path, pairs: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "tuned"
    shown = ledeline(
        "tune", "--model", model_folder, "--pairs", pairs, "--limit", "12", "--beam", "3",
        "--rounds", "1", "--output", output, "--precision", "float32", "--device", "cpu",
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    first, second = shown.stdout.splitlines()
    weights = json.loads((output / "model.json").read_text())["extractive"]
    assert first == f"{output}: " + ", ".join(f"{key} {one:.4g}" for key, one in weights.items())
    assert second.startswith("ROUGE-1 and ROUGE-2, mean F1 of 12 pairs: ")
    before, after = (
        float(word) for word in second.split() if word.replace(".", "").isdigit() and "." in word
    )
    assert after >= before
    loaded = load_model(output)
    assert loaded.extractive == ExtractiveWeights(**weights)
    for name in COPIED:
        assert (output / name).read_bytes() == (model_folder / name).read_bytes()
    assert sorted(path.name for path in output.iterdir()) == sorted([*COPIED, "model.json"])
    about = json.loads((model_folder / "model.json").read_text())
    assert json.loads((output / "model.json").read_text()) == about | {"extractive": weights}
    assert system_name(Headliner([loaded], "float32")) == about_name(model_folder) + "+"


def about_name(folder: Path) -> str:
    return load_model(folder).model.config.name


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"--model": "nothing"}, "nothing is not a model folder"),
        ({"--pairs": "none.jsonl"}, "none.jsonl"),
        ({"--output": "."}, "already exists; name another folder"),
        ({"--precision": "float16"}, "float16 is for a GPU; here use float32 or auto\n"),
        (
            {"--precision": "int8"},
            "precision int8 needs the CPU engine, and PyTorch searches here; use float32 or auto\n",
        ),
    ],
)
def test_what_the_user_can_cause_is_one_sentence(
    model_folder: Path, pairs: Path, tmp_path: Path, changes: dict[str, str], sentence: str
) -> None:
    given = {"--model": str(model_folder), "--pairs": str(pairs), "--output": "new"}
    given |= {"--device": "cpu", **changes}
    shown = ledeline("tune", *(word for one in given.items() for word in one), cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert sentence in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_its_help_names_the_precisions_that_it_has() -> None:
    shown = " ".join(ledeline("tune", "--help").stdout.split())
    assert "--precision [auto|float32|float16] " in shown
    assert "int8" not in shown


class TestFolder:
    WEIGHTS = ExtractiveWeights(unigram=1.5, bigram=-0.25, order=-1.0)

    def test_packing_keeps_the_weights(self, model_folder: Path, tmp_path: Path) -> None:
        tuned = add_extractive(model_folder, tmp_path / "tuned", self.WEIGHTS)
        packed = pack([tuned], tmp_path / "packed", "float32")
        assert load_model(packed.folder).extractive == self.WEIGHTS
        assert packed.system.endswith("+")
        assert load_model(model_folder).extractive is None

    def test_a_card_is_copied_and_checks_are_not_the_default(
        self, model_folder: Path, tmp_path: Path
    ) -> None:
        card = tmp_path / "about.md"
        card.write_text("A model.\n")
        folder = pack([model_folder], tmp_path / "with", "float32", card).folder
        about = folder / "model.json"
        about.write_text(json.dumps(json.loads(about.read_text()) | {"check": True}))
        tuned = add_extractive(folder, tmp_path / "tuned", self.WEIGHTS)
        assert (tuned / "card.md").read_text() == "A model.\n"
        assert load_model(folder).check
        assert not load_model(tuned).check

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            (None, "extractive is None, not weights of features"),
            ([1.0], r"extractive is \[1.0\], not weights of features"),
            ({"unigram": "1"}, "not weights of features"),
            ({"unigram": True}, "not weights of features"),
            ({"unigram": float("nan")}, "not weights of features"),
            ({"bigram": float("inf")}, "not weights of features"),
            ({"fourgram": 1.0}, "not weights of features"),
            ({"lm": 0}, "is damaged: extractive: lm = 0.0: must be above 0"),
        ],
    )
    def test_damage_is_one_sentence(
        self, model_folder: Path, tmp_path: Path, values: object, sentence: str
    ) -> None:
        folder = add_extractive(model_folder, tmp_path / "tuned", self.WEIGHTS)
        about = json.loads((folder / "model.json").read_text()) | {"extractive": values}
        (folder / "model.json").write_text(json.dumps(about))
        with pytest.raises(
            ModelError,
            match=rf"model\.json is damaged: .*{sentence}" if "lm" not in sentence else sentence,
        ):
            load_model(folder)
