"""A model as a pip package of its own, which `ledeline.core.installed_models` finds by name.

| file | what it is |
| --- | --- |
| `pyproject.toml` | its name, version and dependency, and the entry point that names the model |
| `README.md` | the card of the model, and how to install it |
| `LICENSE` | the licence, if one is given |
| `src/ledeline_NAME/model` | the model folder |
"""

import json
import re
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from ledeline import __version__
from ledeline.core.errors import ModelError
from ledeline.core.installed_models import FOLDER, GROUP
from ledeline.core.shipped import SHIPPED_NAME, model_folder
from ledeline.model.format.description import CARD, Storage
from ledeline.model.format.model_folder import load_model
from ledeline.model.format.model_summary import ModelSummary, summarize_model
from ledeline.model.format.pack import copy_model, new_folder, pack, read_card

PackageStorage: TypeAlias = Storage | Literal["keep"]

_NAME: Final = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_VERSION: Final = re.compile(  # PEP 440, as it is normalised
    r"([1-9][0-9]*!)?(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))*((a|b|rc)(0|[1-9][0-9]*))?"
    r"(\.post(0|[1-9][0-9]*))?(\.dev(0|[1-9][0-9]*))?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)
_MOST_LETTERS: Final = 100  # of a name, which becomes part of names of files

_PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{distribution}"
version = "{version}"
description = {description}
readme = "README.md"
{licence}requires-python = ">=3.11"
dependencies = ["ledeline>={ledeline}"]

[project.entry-points.{group}]
{name} = "{module}"

[tool.setuptools]
package-dir = {{ "" = "src" }}
packages = ["{module}"]

[tool.setuptools.package-data]
{module} = ["{folder}/*"]
"""
_MODULE: Final = '"""The model {name} of ledeline: `Headliner.load("{name}")` finds it."""\n'
_README: Final = """\
{card}

## Install and use

In this folder:

```
pip install .
ledeline generate --model {name} "Rain fell in Oslo on Monday."
```

`ledeline models` lists all models that are installed.
"""


class ModelPackage(NamedTuple):
    """The project that was written."""

    folder: Path
    distribution: str  # the package, as pip calls it
    model: ModelSummary


def write_package(
    model: Path,
    output: Path,
    name: str,
    version: str,
    *,
    card: Path | None = None,
    storage: PackageStorage = "keep",
    licence: str = "",
) -> ModelPackage:
    """Write a new pip project that holds a model under a name.

    Without a card, the model's own is taken, if it has one.
    """
    _refuse_name(name)
    _refuse_version(version)
    card = _own_card(model) if card is None else card
    card_text = "" if card is None else _read_text(card)
    distribution = f"ledeline-{name.lower()}"
    module = distribution.replace("-", "_")
    with new_folder(output) as project:
        package = project / "src" / module
        package.mkdir(parents=True)
        summary = _write_model(model, package / FOLDER, card, storage)
        plain = f"A model of ledeline that writes headlines, {summary.system}"
        _write(package / "__init__.py", _MODULE.format(name=name))
        readme = _README.format(card=(card_text or f"# {name}\n\n{plain}.").rstrip(), name=name)
        _write(project / "README.md", readme)
        if licence:
            _write(project / "LICENSE", f"{licence}\n")
        about = _PYPROJECT.format(
            distribution=distribution,
            version=version,
            description=_quoted(summary.description or plain),
            licence='license-files = ["LICENSE"]\n' if licence else "",
            ledeline=__version__,
            group=GROUP,
            name=name,
            module=module,
            folder=FOLDER,
        )
        _write(project / "pyproject.toml", about)
    return ModelPackage(output, distribution, summary)


# --- what is refused ------------------------------------------------------------------------------


def _refuse_name(name: str) -> None:
    if name.lower() == SHIPPED_NAME:
        raise ModelError(
            f"{name} is the name of the model that comes with ledeline; choose another name"
        )
    if not _NAME.fullmatch(name) or len(name) > _MOST_LETTERS:
        raise ModelError(
            f"{name!r} cannot be the name of a model; use letters, digits and single hyphens, as "
            f"in news-large, at most {_MOST_LETTERS}"
        )


def _refuse_version(version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise ModelError(
            f"{version!r} cannot be the version of a package; write one such as 0.2.0 or 1.0rc1"
        )


# --- parts ----------------------------------------------------------------------------------------


def _own_card(model: Path) -> Path | None:
    card = model_folder(model) / CARD
    return card if card.is_file() else None


def _read_text(card: Path) -> str:
    try:
        return read_card(card).decode()
    except UnicodeDecodeError:
        raise ModelError(f"{card}: the card is not in UTF-8; save it in UTF-8") from None


def _write_model(
    model: Path, folder: Path, card: Path | None, storage: PackageStorage
) -> ModelSummary:
    """Write the model folder."""
    if storage == "keep":
        load_model(model)  # so that no damaged one is given to others
        copy_model(model_folder(model), folder, {} if card is None else {CARD: _read_text(card)})
    else:
        pack([model], folder, storage, card)
    return summarize_model(folder)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _quoted(line: str) -> str:
    """A line of printable characters as a string of TOML."""
    return json.dumps(line, ensure_ascii=False)
