"""What a figure belongs to: the command, the processor, the version of Python."""

import os
import platform
import shlex
import sys
from pathlib import Path


def described() -> str:
    """Two lines for the head of a table."""
    cpu, facts = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if facts.exists():
        models = [line for line in facts.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(": ")[2] if models else cpu
    python = f"Python {platform.python_version()}"
    return f"$ python {shlex.join(sys.argv)}\n{cpu}, {os.cpu_count()} cores, {python}"
