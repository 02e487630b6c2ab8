"""What a figure belongs to: the command, the processor, the version of Python, the GPU."""

import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CPU_PRECISIONS = ["float32", "int8"]  # in which a CPU writes headlines


def described() -> str:
    """Two lines for the head of a table."""
    cpu, facts = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if facts.exists():
        models = [line for line in facts.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(": ")[2] if models else cpu
    python = f"Python {platform.python_version()}"
    return f"$ python {shlex.join(sys.argv)}\n{cpu}, {os.cpu_count()} cores, {python}"


def accelerator() -> str:
    """A line on the GPU, its driver, and what computes there; torch stays out where it can."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(
            asked, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        found = []
    gpu = found[0].replace(", ", ", driver ") if found else "no GPU"
    return ", ".join([gpu, *(f"{name} {_version(name)}" for name in ("torch", "triton"))])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not there"
