"""`ledeline` as a command, without two seconds of importing torch for each.

A process that has imported everything waits for commands and forks a child for each. The child is a
process of its own with its own arguments, folder, environment, streams and exit status, so a test
sees what a user would see. What an import costs or needs is tested elsewhere, in new processes.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PRELOADED = (
    "torch",
    "numpy",
    "pyarrow.parquet",
    "rich.console",
    "ledeline.align",
    "ledeline.analysis.report",
    "ledeline.analysis.significance",
    "ledeline.cli",
    "ledeline.evaluate",
    "ledeline.headliner",
    "ledeline.pack",
    "ledeline.prepare",
    "ledeline.train.loop",
)


def ledeline(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; `env` adds to the environment. Warnings are errors in it."""
    words = [str(argument) for argument in arguments]
    environment = {**os.environ, "COLUMNS": "120", "PYTHONWARNINGS": "error", **(env or {})}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        paths[0].write_bytes(stdin)
        streams = [str(path) for path in paths]
        where = str(cwd or Path.cwd())
        request = {"arguments": words, "cwd": where, "env": environment, "streams": streams}
        status = _server().answer(request)
        out, err = (path.read_text(encoding="utf-8") for path in paths[1:])
    return subprocess.CompletedProcess(["ledeline", *words], status, out, err)


class _Server:
    """The process that forks, as its user has it."""

    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process: Any = subprocess.Popen([sys.executable, __file__], **pipes)

    def answer(self, request: dict[str, Any]) -> int:
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.close)
    return server


# --- the process itself ---------------------------------------------------------------------------


def _serve() -> None:
    for name in PRELOADED:
        __import__(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, Any]) -> None:
    """Be the command, to its end."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (path, mode) in enumerate(zip(request["streams"], modes, strict=True)):
        os.dup2(os.open(path, mode), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115, PTH123
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115, PTH123
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115, PTH123
    sys.argv = ["ledeline", *request["arguments"]]
    warnings.simplefilter(os.environ["PYTHONWARNINGS"])  # type: ignore[arg-type]
    status = _status()
    sys.stdout.flush()
    os._exit(status)


def _status() -> int:
    from ledeline.cli import main

    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _serve()
