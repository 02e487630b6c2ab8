"""A model as a pip project, and what is read from models that are installed."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from installed_package import install
from ledeline import Headliner, __version__
from ledeline.config.extractive import ExtractiveWeights
from ledeline.core.errors import DatasetError, ModelError
from ledeline.core.shipped import SHIPPED
from ledeline.model.format.model_folder import load_model
from ledeline.model.format.model_summary import (
    NamedModel,
    first_line,
    named_models,
    summarize_model,
)
from ledeline.model.format.pack import add_extractive, pack
from ledeline.model.format.package import ModelPackage, write_package
from ledeline.text.tokenizer import Tokenizer

FILES = ["codes.txt", "model.json", "model.safetensors", "subwords.json", "system.toml"]
Change = Callable[[Path], object]


def packaged(model: Path, output: Path, **options: Any) -> ModelPackage:
    return write_package(model, output, "trial-desk", "0.2.0", **options)


def module_of(project: Path) -> Path:
    return project / "src" / "ledeline_trial_desk"


def settings_of(project: Path) -> dict[str, Any]:
    return tomllib.loads((project / "pyproject.toml").read_text())


# --- the project ----------------------------------------------------------------------------------


class TestProject:
    def test_its_files(self, model_folder: Path, tmp_path: Path) -> None:
        project = packaged(model_folder, tmp_path / "new" / "project").folder
        found = [str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()]
        module = "src/ledeline_trial_desk"
        assert sorted(found) == sorted(
            ["README.md", "pyproject.toml", f"{module}/__init__.py"]
            + [f"{module}/model/{name}" for name in FILES]
        )
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["project"]

    def test_its_settings(self, model_folder: Path, tmp_path: Path) -> None:
        settings = settings_of(packaged(model_folder, tmp_path / "project").folder)
        project = settings["project"]
        assert (project["name"], project["version"]) == ("ledeline-trial-desk", "0.2.0")
        assert project["dependencies"] == [f"ledeline>={__version__}"]
        assert project["entry-points"] == {"ledeline_models": {"trial-desk": "ledeline_trial_desk"}}
        assert project["description"].endswith("writes headlines, EncDec+sGate+SPM")
        assert "license-files" not in project

    def test_weights_are_kept(self, model_folder: Path, tmp_path: Path) -> None:
        made = packaged(model_folder, tmp_path / "project")
        for name in FILES:
            copy = module_of(made.folder) / "model" / name
            assert copy.read_bytes() == (model_folder / name).read_bytes()
        assert made.model.weights == "float32"

    @pytest.mark.parametrize("storage", ["int8", "float16", "float32"])
    def test_weights_are_packed(self, model_folder: Path, tmp_path: Path, storage: Any) -> None:
        made = packaged(model_folder, tmp_path / "project", storage=storage)
        packed = pack([model_folder], tmp_path / "packed", storage).folder
        for name in FILES:
            copy = module_of(made.folder) / "model" / name
            assert copy.read_bytes() == (packed / name).read_bytes()
        assert made.model.weights == storage

    def test_what_only_training_needs_is_left_out(self, model_folder: Path, tmp_path: Path) -> None:
        model = install(tmp_path, model=model_folder)
        (model / "optimizer.safetensors").write_text("x")
        made = packaged(model, tmp_path / "project")
        assert sorted(path.name for path in (module_of(made.folder) / "model").iterdir()) == FILES

    @pytest.mark.parametrize("storage", ["keep", "int8"])
    def test_a_card_is_the_readme(self, model_folder: Path, tmp_path: Path, storage: Any) -> None:
        card = tmp_path / "about.md"
        card.write_text('\n# "Größe" \\ {x}\n\nIt writes.\n')
        project = packaged(model_folder, tmp_path / "project", card=card, storage=storage).folder
        assert (module_of(project) / "model" / "card.md").read_bytes() == card.read_bytes()
        readme = (project / "README.md").read_text()
        assert readme.startswith(card.read_text().rstrip() + "\n\n## Install")
        assert "generate --model trial-desk" in readme
        assert settings_of(project)["project"]["description"] == '"Größe" \\ {x}'

    def test_the_models_own_card_is_kept(self, model_folder: Path, tmp_path: Path) -> None:
        model = pack([model_folder], tmp_path / "model").folder
        (model / "card.md").write_text("# Mine\n")
        for storage in ("keep", "float16"):
            made = packaged(model, tmp_path / storage, storage=storage)
            assert (module_of(made.folder) / "model" / "card.md").read_text() == "# Mine\n"
            assert made.model.description == "Mine"

    def test_a_licence(self, model_folder: Path, tmp_path: Path) -> None:
        project = packaged(model_folder, tmp_path / "project", licence="CC BY 4.0").folder
        assert (project / "LICENSE").read_text() == "CC BY 4.0\n"
        assert settings_of(project)["project"]["license-files"] == ["LICENSE"]

    def test_capitals_are_for_the_name_alone(self, model_folder: Path, tmp_path: Path) -> None:
        made = write_package(model_folder, tmp_path / "project", "News-EN2", "1")
        assert made.distribution == "ledeline-news-en2"
        points = settings_of(made.folder)["project"]["entry-points"]
        assert points == {"ledeline_models": {"News-EN2": "ledeline_news_en2"}}


class TestRefused:
    @pytest.mark.parametrize(
        "name",
        [
            "",
            "trial_desk",
            "news large",
            "-news",
            "news-",
            "a--b",
            "größe",
            "a/b",
            "a\n",
            "a" * 101,
        ],
    )
    def test_a_name(self, model_folder: Path, tmp_path: Path, name: str) -> None:
        with pytest.raises(ModelError, match="cannot be the name of a model; use letters"):
            write_package(model_folder, tmp_path / "project", name, "1.0")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["shipped", "Shipped"])
    def test_the_name_of_the_shipped_model(
        self, model_folder: Path, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(ModelError, match="is the name of the model that comes with ledeline"):
            write_package(model_folder, tmp_path / "project", name, "1.0")

    @pytest.mark.parametrize("version", ["", "v1", "1.", "1.0-1", "1.0 ", "one", "1.0rc", "01.2"])
    def test_a_version(self, model_folder: Path, tmp_path: Path, version: str) -> None:
        with pytest.raises(ModelError, match="cannot be the version of a package; write one"):
            write_package(model_folder, tmp_path / "project", "a", version)

    @pytest.mark.parametrize(
        "version", ["0", "0.2.0", "1.0rc1", "1!2.0a3.post4.dev5", "2026.1+gpu.2"]
    )
    def test_not_these_versions(self, model_folder: Path, tmp_path: Path, version: str) -> None:
        made = write_package(model_folder, tmp_path / "project", "a", version)
        assert settings_of(made.folder)["project"]["version"] == version

    def test_a_damaged_model(self, model_folder: Path, tmp_path: Path) -> None:
        model = install(tmp_path / "site", model=model_folder)
        weights = model / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        with pytest.raises(ModelError, match="cannot be read"):
            packaged(model, tmp_path / "project")
        assert [path.name for path in tmp_path.iterdir()] == ["site"]

    def test_a_card_that_is_not_text(self, model_folder: Path, tmp_path: Path) -> None:
        (tmp_path / "card.md").write_bytes(b"\xff")
        with pytest.raises(ModelError, match=r"card\.md: the card is not in UTF-8"):
            packaged(model_folder, tmp_path / "project", card=tmp_path / "card.md")

    def test_a_folder_that_is_there(self, model_folder: Path, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="already exists; name another folder"):
            packaged(model_folder, tmp_path)


# --- what models are ------------------------------------------------------------------------------


class TestSummary:
    @pytest.mark.parametrize("storage", ["int8", "float16", "float32"])
    def test_of_a_model(self, model_folder: Path, tmp_path: Path, storage: Any) -> None:
        (tmp_path / "card.md").write_text("---\n\n## About it\n\nMore.\n")
        packed = pack([model_folder], tmp_path / "packed", storage, tmp_path / "card.md")
        found = summarize_model(packed.folder)
        assert found == (
            "EncDec+sGate+SPM",
            packed.num_parameters,
            packed.num_bytes,
            storage,
            "natural",
            "About it",
        )

    def test_of_the_shipped_one(self) -> None:
        bundle = load_model(SHIPPED)
        found = summarize_model(SHIPPED)
        assert found.system == bundle.name
        assert found.num_parameters == sum(one.numel() for one in bundle.model.parameters())

    def test_features_are_part_of_the_name(self, model_folder: Path, tmp_path: Path) -> None:
        folder = add_extractive(model_folder, tmp_path / "tuned", ExtractiveWeights())
        assert summarize_model(folder).system == "EncDec+sGate+SPM+" == load_model(folder).name

    def test_a_description_is_one_printable_line(self, tmp_path: Path) -> None:
        (tmp_path / "card.md").write_bytes(b"# A \x1b[31mred\xff one\r\nMore.")
        assert first_line(tmp_path / "card.md") == "A [31mred\ufffd one"
        assert first_line(tmp_path / "none.md") == ""


# --- models that are installed --------------------------------------------------------------------


@pytest.fixture
def installed(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model folder of an installed package; the working directory is another one."""
    folder = install(tmp_path / "site", model=model_folder)
    (tmp_path / "work").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path / "work")
    return folder


def described(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / "model.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def listed(name: str) -> list[NamedModel]:
    return [one for one in named_models() if one.name == name]


DAMAGES: list[tuple[Change, str]] = [
    (
        described(version=4),
        "format version 4 .* reads versions 1 to 3 .*; install a newer ledeline",
    ),
    (described(system="gpt"), "names the system gpt, .*; install a newer ledeline"),
    (described(format="x"), "model.json does not describe a model of ledeline; install .* again"),
    (lambda folder: (folder / "model.json").write_text("{"), "json is damaged; install .* again"),
    (lambda folder: (folder / "model.json").unlink(), "has no model.json; install .* again"),
    (lambda folder: (folder / "system.toml").unlink(), "system.toml.*; install .* again"),
    (lambda folder: (folder / "codes.txt").unlink(), "codes.txt.*; install .* again"),
    (
        lambda folder: (folder / "model.safetensors").write_bytes(b"x"),
        "model.safetensors cannot be read: .*; install .* again",
    ),
]


class TestInstalled:
    def test_everything_finds_it_by_name(self, installed: Path, model_folder: Path) -> None:
        lede = "Rain fell in Oslo on Monday."
        one, other = (
            Headliner.load(name, precision="float32", device="cpu")(lede, beam=2).text
            for name in ("trial-desk", model_folder)
        )
        assert one == other
        assert Tokenizer.load("trial-desk") == Tokenizer.load(model_folder)
        packed = pack([Path("trial-desk")], Path("packed"), "float32").folder
        assert (packed / "model.json").read_bytes() == (model_folder / "model.json").read_bytes()
        again = write_package(Path("trial-desk"), Path("again"), "again", "1.0")
        assert again.model == summarize_model(model_folder)

    def test_they_are_listed_after_the_shipped_one(self, installed: Path) -> None:
        first, second = named_models()[0], *listed("trial-desk")
        assert (first.name, first.version, first.package) == ("shipped", __version__, "ledeline")
        assert (first.folder, first.summary) == (SHIPPED, summarize_model(SHIPPED))
        assert second[:3] == ("trial-desk", "0.2.0", "ledeline-trial-desk")
        assert (second.folder, second.summary) == (installed, summarize_model(installed))

    @pytest.mark.parametrize(("change", "sentence"), DAMAGES)
    def test_damage_is_one_sentence(self, installed: Path, change: Change, sentence: str) -> None:
        change(installed)
        begin = r"^the installed model trial-desk \(ledeline-trial-desk 0\.2\.0\) cannot be used: "
        with pytest.raises(ModelError, match=f"{begin}.*{sentence}$"):
            load_model("trial-desk")
        (found,) = listed("trial-desk")
        assert found.summary is None
        assert found.problem.startswith("the installed model trial-desk (")
        assert "\n" not in found.problem

    def test_a_name_that_is_taken_is_listed(self, installed: Path, tmp_path: Path) -> None:
        install(tmp_path / "site", distribution="other", value="other")
        install(tmp_path / "site", "shipped", distribution="third", value="third")
        one, two = listed("trial-desk")
        _, third = listed("shipped")
        assert one.problem == two.problem
        assert one.problem.startswith("2 installed packages have a model called trial-desk")
        assert third.problem.startswith("third 0.2.0 calls its model shipped, which is the name")

    def test_no_such_model(self, installed: Path) -> None:
        sentence = (
            r"it does not exist, and no installed model has this name \(installed: shipped, .*"
        )
        with pytest.raises(ModelError, match=f"^other is not a model folder: {sentence}trial-desk"):
            load_model("other")
        with pytest.raises(DatasetError, match=f"^other is neither a dataset nor .*: {sentence}"):
            Tokenizer.load("other")
        with pytest.raises(
            ModelError, match=r"^a/b is not a model folder: it does not exist; name"
        ):
            load_model("a/b")

    def test_a_folder_without_a_model_hides_it(self, installed: Path) -> None:
        Path("trial-desk").mkdir()
        sentence = f"it has no model.json; name {installed}, which is the installed model"
        with pytest.raises(ModelError, match=sentence):
            load_model("trial-desk")
