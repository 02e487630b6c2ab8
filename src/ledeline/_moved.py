"""Modules under their names of version 0.1.0, for one version: they warn and give the new one."""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

from ledeline.core.errors import RenamedWarning

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

    class _Importer(MetaPathFinder, Loader):
        pass

else:  # `importlib.abc` takes 13 ms to import, and has nothing that is used
    _Importer = object

MOVED: Final = {
    "align": "evaluation.align",
    "analysis": "evaluation",
    "analysis.audit": "evaluation.audit",
    "analysis.report": "report",
    "analysis.scoring": "evaluation.scoring",
    "analysis.significance": "evaluation.significance",
    "batches": "data.batches",
    "corpus.newsroom": "synth.newsroom",
    "dataset": "data.dataset",
    "errors": "core.errors",
    "evaluate": "evaluation.evaluate",
    "headline": "inference.headline",
    "headliner": "inference.headliner",
    "model.files": "model.format.model_folder",
    "pack": "model.format.pack",
    "prepare": "data.prepare",
    "section": "config.section",
    "subword": "text.subwords",
    "words": "text.function_words",
}


class MovedModules(_Importer):
    """Finds a module under its old name."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the name says all
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """A spec for the old names alone."""
        if fullname.removeprefix("ledeline.") not in MOVED:
            return None
        return ModuleSpec(fullname, self, is_package=fullname == "ledeline.analysis")

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty one, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module with the new name in its place."""
        old = module.__name__
        new = f"ledeline.{MOVED[old.removeprefix('ledeline.')]}"
        warnings.warn(f"{old} is called {new} now", RenamedWarning, stacklevel=2)
        sys.modules[old] = importlib.import_module(new)


sys.meta_path.insert(0, MovedModules())  # before the one that looks into folders
