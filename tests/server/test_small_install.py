"""`ledeline serve` needs the small install and the extra `serve`, nothing heavier."""

import pytest

pytest.importorskip("uvicorn")

from serve_process import command

HEAVY = ("torch", "numpy", "pyarrow", "safetensors", "tensorboard", "matplotlib")
# The command, where nothing heavy can be imported; at the end it says what was imported all the same.
SCRIPT = f"""
import importlib.abc
import sys


class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{fullname!r}}", name=fullname)


sys.meta_path.insert(0, Missing())
sys.argv[0] = "ledeline"
from ledeline.cli import main

try:
    main()
finally:
    print("heavy:", *[name for name in {HEAVY!r} if name in sys.modules], flush=True)
"""
LEDE = "At least 14 people were killed when a bus fell into a river in Peru on Tuesday."


def test_it_writes_explains_and_checks_without_heavy_packages() -> None:
    with command("serve", "--port", 0, script=SCRIPT) as process:
        asked = {"texts": [LEDE], "beam": 2, "heat_map": True}
        status, body = process.ask("/v1/headlines", asked)
        assert status == 200, body
        assert body["headlines"][0]["headline"]
        assert body["headlines"][0]["alignment"]["words"]
        assert body["headlines"][0]["support"] > 0
        status, body = process.ask("/v1/check", {"lede": LEDE, "headline": "15 killed in Peru"})
        assert status == 200, body
        assert "number" in [doubt["kind"] for doubt in body["checks"][0]["doubts"]]
        assert process.ask("/v1/model")[1]["precision"] == "int8"
        process.process.terminate()
        assert process.end() == 0
        assert process.lines[-1] == "heavy:", process.said
