"""The engine under sanitizers: addresses, undefined behaviour, threads, and hostile models.

    python bench/sanitize.py

The driver of the engine runs the bundled models on ledes of the golden file with all options of the
search, and hostile models and questions (tests/runtime/native/fuzz.c), with every kind of kernels.
With `--extension`, the tests of the extension run with one that is built for sanitizers.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import golden
import native_driver
import quick
from machine import described

ADDRESS: Final = ("-g", "-O1", "-fsanitize=address,undefined,float-cast-overflow")
ADDRESS_ONLY: Final = ("-fno-sanitize-recover=all",)
THREAD: Final = ("-g", "-O1", "-fsanitize=thread")
EXTENSION_TESTS: Final = (
    "test_native.py",
    "test_native_misuse.py",
    "test_native_transformer.py",
    "test_past.py",
)
OPTIONS: Final[tuple[dict[str, int], ...]] = (
    {"beam": 1},
    {"beam": 7, "n_best": 7, "min_length": 9, "max_length": 12},
    {"beam": 5, "n_best": 2, "stop_early": 1, "keep_states": 1},
    {"beam": 6, "n_best": 3, "keep_finished": 1, "keep_states": 1, "max_states": 2},
    {"beam": 8, "n_best": 4, "recombine": 2, "block_ngrams": 1},
    {"beam": 4, "forbid_unknown": 1, "max_length": 3, "forbid": 1},
    {"beam": 3, "give_up": 2, "batch": 7},
    {"beam": 2, "int8": 0, "max_length": 2**63 - 1, "block_ngrams": 2**62},
)


class Result(NamedTuple):
    """A run of a program."""

    name: str
    runs: int
    findings: int
    seconds: float
    said: str


def programs(folder: Path) -> dict[str, Path]:
    """The programs, built with sanitizers."""
    fuzz = ("fuzz.c", "run.c")
    address, hostile = (*ADDRESS, *ADDRESS_ONLY), (*ADDRESS, *ADDRESS_ONLY, "-DRANDOM_DRIVER")
    build, engine = native_driver.build, native_driver.compile_engine("gcc", folder / "o", address)
    return {
        "address": build("gcc", folder / "address", address, engine=engine),
        "thread": build("gcc", folder / "thread", THREAD),
        "fuzz": build("gcc", folder / "fuzz", hostile, main=fuzz, engine=engine),
    }


def missing() -> str | None:
    """Why sanitizers cannot be used here, or None."""
    return native_driver.cannot_link("gcc", *ADDRESS) or native_driver.cannot_link("gcc", *THREAD)


def run_options(name: str, driver: Path, dump: Path, threads: int, number: int) -> Result:
    """Options of the search, with the kinds of kernels in turn, but for the slowest."""
    began, findings, said = time.perf_counter(), 0, ""
    kinds = native_driver.kinds([str(driver)])
    kinds = kinds[1:] or kinds
    for turn, options in enumerate(OPTIONS[:number]):
        kind = kinds[-1 - turn % len(kinds)]
        done = native_driver.run([str(driver)], dump, kind=kind, threads=threads, **options)
        findings += done.returncode != 0 or "Sanitizer" in done.stderr or not done.stdout
        said = said or ("" if done.returncode == 0 else done.stderr[:2000])
    return Result(name, len(OPTIONS[:number]), findings, time.perf_counter() - began, said)


def run_damaged(driver: Path, dump: Path, folder: Path) -> Result:
    """Dumps that end early or have another byte: refused, or run, but never wrong."""
    began, whole, findings, said = time.perf_counter(), dump.read_bytes(), 0, ""
    changes = [whole[:size] for size in (0, 7, 40, 60, 1000, len(whole) // 2, len(whole) - 1)]
    changes += [whole[:at] + b"\xff" + whole[at + 1 :] for at in (0, 15, 24, 47, 56, 100, 5000)]
    for data in changes:
        path = folder / "damaged"
        path.write_bytes(data)
        done = native_driver.run([str(driver)], path, beam=1, max_length=2)
        good = done.returncode in (0, 3, 6) and "Sanitizer" not in done.stderr
        findings, said = findings + (not good), said or ("" if good else done.stderr[:2000])
    return Result(
        "damaged dumps, address", len(changes), findings, time.perf_counter() - began, said
    )


def run_fuzzer(driver: Path, cases: int, seed: int) -> Result:
    """Hostile models and questions."""
    began = time.perf_counter()
    done = subprocess.run([str(driver), str(cases), str(seed)], capture_output=True, text=True)
    said = done.stdout.strip() + done.stderr[:2000]
    return Result(
        "hostile models, address",
        cases,
        int(done.returncode != 0),
        time.perf_counter() - began,
        said,
    )


def run_extension(folder: Path) -> Result:
    """The tests of the extension, built for the sanitizer of addresses."""
    began = time.perf_counter()
    package = folder / "src"
    subprocess.run(["cp", "-r", str(native_driver.ROOT / "src"), str(package)], check=True)
    (folder / "pyproject.toml").write_bytes((native_driver.ROOT / "pyproject.toml").read_bytes())
    (folder / "README.md").touch()
    environment = {**os.environ, "CFLAGS": "-g -fsanitize=address", "LDFLAGS": "-fsanitize=address"}
    setup = [sys.executable, "-c", "from setuptools import setup; setup()"]
    subprocess.run(
        [*setup, "build_ext", "--inplace", "--force"],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(package)},
        check=True,
        capture_output=True,
    )
    asked = ["gcc", "-print-file-name=libasan.so"]
    library = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    folder_of_tests = native_driver.ROOT / "tests" / "runtime"
    tests = [str(folder_of_tests / name) for name in EXTENSION_TESTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=native_driver.ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(package),
            "LD_PRELOAD": library,
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        },
        capture_output=True,
        text=True,
    )
    last = (done.stdout.strip().splitlines() or [""])[-1]
    said = last if done.returncode == 0 else done.stdout[-1500:] + done.stderr[-1500:]
    return Result(
        "tests of the extension, address",
        1,
        int(done.returncode != 0),
        time.perf_counter() - began,
        said,
    )


def run_all(
    ledes: Sequence[int], threaded: int, cases: int, seed: int, *, extension: bool
) -> list[Result]:
    """All of it, on some ledes of the golden file."""
    sources = golden.encoded(golden.ledes())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = programs(folder)
        dump = golden.write_dump(folder / "dump", [sources[number] for number in ledes])
        found = [
            run_options("options of the search, address", own["address"], dump, 1, len(OPTIONS)),
            run_options("options of the search, thread", own["thread"], dump, 3, threaded),
            run_damaged(own["address"], dump, folder),
            run_fuzzer(own["fuzz"], cases, seed),
        ]
        return [*found, run_extension(folder)] if extension else found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ledes", type=int, nargs="*", default=[0, 250, 480, 481, 485, 489, 490, 491]
    )
    parser.add_argument("--cases", type=int, default=10_000, help="hostile models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--extension", action="store_true", help="also the extension in Python")
    parser.set_defaults(threaded=len(OPTIONS))
    quick.offer(parser, ledes=[480, 481], cases=300, threaded=3)
    options = parser.parse_args()
    print(f"{described()}\n")
    if reason := missing():
        print(f"0 runs: {reason}")
        return 0
    sizes = (options.ledes, options.threaded, options.cases, options.seed)
    results = run_all(*sizes, extension=options.extension)
    print("| what | runs | findings | s |\n| --- | ---: | ---: | ---: |")
    for one in results:
        print(f"| {one.name} | {one.runs} | {one.findings} | {one.seconds:.1f} |")
    for one in results:
        if one.said:
            print(f"\n{one.name}: {one.said}")
    return 1 if any(one.findings for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
