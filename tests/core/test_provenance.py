import json
import re
import shutil
from pathlib import Path

import pytest

import ledeline
from ledeline.core import provenance
from ledeline.core.provenance import circumstances, commit


def test_circumstances_name_versions_and_commit() -> None:
    found = circumstances()
    assert found["ledeline"] == ledeline.__version__
    assert found["commit"] == commit()
    json.dumps(found)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_this_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "ledeline" / "core" / "p.py"))
    (tmp_path / "ledeline" / "core").mkdir(parents=True)
    assert commit() is None  # no repository
    (tmp_path / "ledeline" / "a.py").touch()
    (tmp_path / "b.py").touch()
    git = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    provenance._git(tmp_path, "init")
    provenance._git(tmp_path, "add", "ledeline")
    provenance._git(tmp_path, *git, "commit", "-m", "x")
    head = commit()
    assert head is not None
    assert re.fullmatch("[0-9a-f]{40,64}", head)  # what lies beside the package does not count
    (tmp_path / "ledeline" / "a.py").write_text("changed")
    assert commit() == f"{head}+"
