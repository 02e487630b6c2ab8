"""A model is found by the name that an installed package gives it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installed_package import install
from ledeline.core.errors import LedelineError, ModelError, NewerModelError
from ledeline.core.installed_models import (
    DESCRIPTION,
    explain_installed,
    find_installed,
    installed_models,
    not_installed,
)
from ledeline.core.shipped import SHIPPED, is_name, model_folder
from ledeline.text.tokenizer import MODEL_FILE


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages that Python looks into; the working directory is an empty one."""
    (tmp_path / "site").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "site"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """As little of a model folder as is looked at."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / DESCRIPTION).write_text("{}")
    return tmp_path / "tiny"


def test_the_description_of_a_model_has_one_name() -> None:
    assert DESCRIPTION == MODEL_FILE


class TestFolder:
    def test_of_an_installed_model(self, site: Path, tiny: Path) -> None:
        there = install(site, model=tiny)
        assert model_folder("trial-desk") == there
        assert model_folder(Path("trial-desk")) == there
        assert "ledeline_trial_desk" not in sys.modules

    def test_in_a_package_within_another(self, site: Path, tiny: Path) -> None:
        there = install(site, value="some_models.news.large", model=tiny)
        (site / "some_models" / "__init__.py").write_text("1 / 0\n")
        assert model_folder("trial-desk") == there

    def test_a_folder_goes_first(self, site: Path, tiny: Path) -> None:
        install(site, model=tiny)
        Path("trial-desk").mkdir()
        assert model_folder("trial-desk") == Path("trial-desk")

    @pytest.mark.parametrize("name", ["", ".", "a/trial-desk", "/trial-desk", "news-larg"])
    def test_what_is_no_name_stays(self, site: Path, tiny: Path, name: str) -> None:
        install(site, model=tiny)
        assert model_folder(name) == Path(name)

    def test_shipped_is_never_looked_for(self, site: Path, tiny: Path) -> None:
        install(site, "shipped", model=tiny)
        assert model_folder("shipped") == SHIPPED

    def test_names_have_one_part(self) -> None:
        found = [is_name(Path(name)) for name in ("a", "./a", "a/", "a/b", "/", "/a", "")]
        assert found == [True, True, True, False, False, False, False]


def test_nothing_is_looked_for_unless_it_must_be(model_folder: Path) -> None:
    code = (
        "import sys, ledeline\n"
        "from ledeline.core.shipped import model_folder\n"
        f"model_folder('shipped'), model_folder({str(model_folder)!r}), model_folder('no/where')\n"
        "assert 'ledeline.core.installed_models' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class TestList:
    def test_it_has_packages_and_versions(self, site: Path, tiny: Path) -> None:
        install(site, "small", model=tiny, distribution="some-models", value="some_models")
        install(site, model=tiny)
        found = {one.name: one for one in installed_models()}
        large, small = found["trial-desk"], found["small"]
        assert large == (
            "trial-desk",
            "ledeline-trial-desk",
            "0.2.0",
            site / "ledeline_trial_desk" / "model",
        )
        assert (small.name, small.package) == ("small", "some-models 0.2.0")

    def test_it_is_part_of_the_sentence(self, site: Path, tiny: Path) -> None:
        install(site, model=tiny)
        sentence = r"no installed model has this name \(installed: shipped, .*; pip install FOLDER"
        assert re.match(sentence, not_installed())
        assert ", trial-desk" in not_installed()

    @pytest.mark.parametrize("value", ["not a package!", ":", "sys", "some.thing:else [extra]"])
    def test_odd_values_do_not_break_it(self, site: Path, value: str) -> None:
        path = install(site).parents[1] / "ledeline_trial_desk-0.2.0.dist-info"
        (path / "entry_points.txt").write_text(f"[ledeline_models]\nodd = {value}\n")
        assert "odd" in [one.name for one in installed_models()]
        with pytest.raises(ModelError, match=r"the installed model odd .* has no model\.json"):
            find_installed("odd")


class TestRefused:
    def test_a_package_without_its_model(self, site: Path) -> None:
        there = install(site)
        with pytest.raises(ModelError) as error:
            model_folder("trial-desk")
        assert str(error.value) == (
            "the installed model trial-desk (ledeline-trial-desk 0.2.0) cannot be used: "
            f"{there} has no model.json; install ledeline-trial-desk again"
        )

    def test_a_package_that_is_gone(self, site: Path, tiny: Path) -> None:
        there = install(site, model=tiny)
        shutil.rmtree(there.parent)
        with pytest.raises(ModelError, match=f"{there} has no model.json; install"):
            model_folder("trial-desk")

    def test_two_packages_with_one_name(self, site: Path, tiny: Path) -> None:
        install(site, model=tiny)
        install(site, model=tiny, distribution="other", version="1.0", value="other")
        with pytest.raises(ModelError) as error:
            model_folder("trial-desk")
        assert str(error.value) == (
            "2 installed packages have a model called trial-desk: ledeline-trial-desk 0.2.0 and "
            "other 1.0; uninstall all but one"
        )

    def test_one_package_seen_twice_is_one(self, site: Path, tiny: Path, monkeypatch) -> None:
        install(site, model=tiny)
        first = install(site.parent / "first", model=tiny, version="0.3.0")
        monkeypatch.syspath_prepend(site.parent / "first")
        found = find_installed("trial-desk")
        assert found is not None
        assert (found.version, found.folder) == ("0.3.0", first)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ModelError("x is damaged"), "x is damaged; install ledeline-trial-desk again"),
        (NewerModelError("x is new"), "x is new; install a newer ledeline"),
    ],
)
def test_an_error_names_the_package_of_a_folder(
    site: Path, tiny: Path, error: LedelineError, advice: str
) -> None:
    there = install(site, model=tiny)
    assert explain_installed(tiny, error) is error
    assert str(explain_installed(there, error)).endswith(f"cannot be used: {advice}")
