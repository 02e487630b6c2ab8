"""Where a result came from: the command, the versions, the commit and the machine."""

import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from ledeline import __version__


def circumstances() -> dict[str, Any]:
    """What a run ran on: enough to run it again."""
    import torch  # heavy, and `commit` needs none of it

    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "ledeline": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def commit() -> str | None:
    """The commit of this code, with a + if it has changed since; None outside a repository."""
    where = Path(__file__).parent
    try:
        head = _git(where, "rev-parse", "HEAD")
        return head + "+" * bool(_git(where, "status", "--porcelain", "--", str(where.parent)))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(where: Path, *arguments: str) -> str:
    command = ["git", "-C", str(where), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
