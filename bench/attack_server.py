"""The server that bench/attack.py attacks: a process of its own, with default settings."""

import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

from attack_http import BROKEN, asked, got

START_SECONDS: Final = 120.0
DESCRIPTORS: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0]  # before we take more
LISTENING: Final = re.compile(r"listening on http://[\d.]+:(\d+)\s")
GAUGES: Final = ("ledeline_texts_running", "ledeline_texts_waiting")


class Attacked:
    """A server that listens, and what it logs."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process, self._log = process, log
        self.pid = process.pid
        self.port = 0

    @classmethod
    async def start(
        cls,
        options: Any,
        folder: Path,
        settings: Sequence[str] = (),
        descriptors: int | None = None,
    ) -> Self:
        """Start one; return when it takes texts."""
        log = folder / "log"
        command = [sys.executable, "-m", "ledeline", "serve", "--port", "0", *settings]
        command += ["--model", str(options.model)] if options.model else []
        limited = f'ulimit -Sn {descriptors or DESCRIPTORS}; exec "$@"'
        path = (str(options.checkout / "src"), os.environ.get("PYTHONPATH"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["sh", "-c", limited, "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
                cwd=folder,
            )
        server = cls(process, log)
        try:
            await server._ready()
        except BaseException:
            server.kill()
            raise
        return server

    async def _ready(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends and self.alive:
            found = LISTENING.search(self._log.read_text("utf-8", "replace"))
            if found:
                self.port = int(found[1])
                if (await asked(self.port, got("/ready"))).status == 200:
                    return
            await asyncio.sleep(0.05)
        said = self._log.read_text("utf-8", "replace")[-500:]
        raise SystemExit(f"the server does not start: {said}")

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    @property
    def log_bytes(self) -> int:
        """How much it has logged."""
        return self._log.stat().st_size

    @property
    def resident(self) -> float:
        """MiB of memory now."""
        return memory(self.pid)[0]

    async def metrics(self) -> dict[str, float]:
        """What it says of itself; nothing where it does not answer."""
        with suppress(*BROKEN, TimeoutError):
            async with asyncio.timeout(5):
                return counted((await asked(self.port, got("/metrics"))).body)
        return {}

    async def is_idle(self, seconds: float) -> bool:
        """Whether nothing runs or waits within so many seconds."""
        ends = time.monotonic() + seconds
        while True:
            found = await self.metrics()
            if found and not any(found[one] for one in GAUGES):
                return True
            if time.monotonic() > ends or not self.alive:
                return False
            await asyncio.sleep(0.02)

    async def stop(self, seconds: float) -> float | None:
        """Send SIGTERM; the seconds until it ends, or None where it must be killed after all."""
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        while time.monotonic() < began + seconds:
            if not self.alive:
                return time.monotonic() - began
            await asyncio.sleep(0.005)
        self.kill()
        return None

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a log."""
    with TemporaryDirectory(prefix="ledeline-attack-") as folder:
        yield Path(folder)


def counted(page: bytes) -> dict[str, float]:
    """The figures of /metrics that have no label."""
    lines = (line.split() for line in page.decode().splitlines() if line and line[0] != "#")
    return {line[0]: float(line[-1]) for line in lines if "{" not in line[0]}


def memory(process: int) -> tuple[float, float]:
    """MiB of a process: now, and the most it had."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines if line.startswith("Vm"))
        if "VmRSS" in sizes:  # not in one that has ended
            now, most = (int(sizes[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
            return now, most
    return 0.0, 0.0


def forget_peak(process: int) -> None:
    """Let the most that a process had begin anew, where the kernel lets us."""
    with suppress(OSError):
        Path(f"/proc/{process}/clear_refs").write_text("5")
