"""The golden file: what the engine finds for 500 ledes, to the last bit.

    python bench/golden.py write    # once more, after the order of a sum has changed
    python bench/golden.py check
    python bench/golden.py check --on aarch64
    python bench/golden.py check --on windows

The bundled model in int8 writes, and the bundled verifier judges. The file holds what was found;
every kind of kernels, every size of batch and any number of threads must find the same. With
`--on` the engine is compiled for another system, without Python, and runs under QEMU or Wine.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import native_driver
import quick
from ledeline.config import SearchConfig
from ledeline.config.engine_systems import EngineConfig, TransformerConfig
from ledeline.config.toml import load as load_config
from ledeline.core.shipped import SHIPPED
from ledeline.model.format.description import RENAMED
from ledeline.runtime.cpu import kinds
from ledeline.runtime.engine import Engine
from ledeline.runtime.tensor_file import read_tensors
from ledeline.runtime.verifier_engine import GeneratorView, VerifierEngine
from ledeline.search.engine_search import EngineSearch
from ledeline.synth.newsroom import generate
from ledeline.text.tokenizer import Tokenizer
from machine import described
from native_driver import ROOT, Sizes, Verifier

FILE: Final = ROOT / "tests" / "runtime" / "golden.jsonl"
SEED: Final = 23
NUM_LEDES: Final = 500
OPTIONS: Final = {"beam": 5, "block_ngrams": 2}  # n-grams as the model's folder says
VERIFIER: Final = SHIPPED.parent / "verifier"

ODD: Final = (
    "Rain",
    "?",
    "...",
    "a",
    "2026",
    "the the the the the the the the the the",
    "SHARES FELL ON MONDAY AFTER THE BANK OF ENGLAND RAISED INTEREST RATES AGAIN.",
    "shares fell on monday after the bank of england raised interest rates again",
    "東京 の 株 は 火曜日 に 上昇 した",
    "Акции выросли во вторник, сообщили аналитики в Москве.",
    "🚒🚒 Firefighters 🚒 saved 🐈 a cat ‽ in Køge",
    "Zzyzx qwrtpsdfg xkcdvbnm hjklqwrt Bnmxcvzlk.",
    "$ % & * ( ) [ ] { } ~ | < > = + @ #",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25",
    "Pneumonoultramicroscopicsilicovolcanoconiosis antidisestablishmentarianism "
    "floccinaucinihilipilification",
    '"I will not resign," said the "interim" minister; "not today, not tomorrow, not ever."',
    "The U.S. and the U.K. agreed at 10:30 p.m. on a £1.5bn (€1.7bn, $1.9bn) deal, up 3.4% on "
    "2025's.",
    "x " * 60,
    "A man was rescued from a river in Leeds after his car left the road during heavy rain, police "
    "said. " * 12,
    "officials said on Monday that " * 40 + "nothing had changed.",
)


class Golden(NamedTuple):
    """What was found for a lede."""

    cost: float
    labels: str  # the verifier's, the bits of four floats
    seen: str  # checksums of states and log-probabilities, attention, source predictions, doubts
    ids: tuple[int, ...]


def ledes() -> list[str]:
    """Ledes of the newsroom, and odd ones."""
    return [one.lede for one in generate(NUM_LEDES - len(ODD), SEED)] + [*map(str.strip, ODD)]


def encoded(texts: Sequence[str]) -> list[list[int]]:
    """The ids of ledes."""
    tokenizer = Tokenizer.load(SHIPPED)
    return [list(tokenizer.encode(tokenizer.words(text))) for text in texts]


def config() -> EngineConfig:
    """That of the bundled model."""
    return load_config(EngineConfig, SHIPPED / "system.toml", renamed=RENAMED, quiet=True)


def vocabulary() -> int:
    """That of the bundled model."""
    return int(json.loads((SHIPPED / "model.json").read_text("utf-8"))["vocabulary"])


def verifier_parts() -> Verifier:
    """The bundled verifier."""
    about = json.loads((VERIFIER / "verifier.json").read_text("utf-8"))
    tensors = read_tensors(VERIFIER / "model.safetensors")
    return Verifier(about["shape"], tensors)


def write_dump(path: Path, sources: Sequence[Sequence[int]]) -> Path:
    """The bundled models and some sources, for the driver in C."""
    given = config()
    system = given.system
    assert isinstance(system, TransformerConfig)
    sizes = Sizes(
        vocabulary(),
        system.embedding_size,
        system.hidden_size,
        system.decoder_layers,
        gate="sgate" in given.addons,
        spm="spm" in given.addons,
        is_transformer=True,
        encoder_layers=system.encoder_layers,
        heads=system.heads,
        attention_layer=system.attention_layer or system.decoder_layers,
        attention_head=system.attention_head,
    )
    tensors = read_tensors(SHIPPED / "model.safetensors")
    return native_driver.write_dump(path, sizes, tensors, sources, verifier_parts())


class Models(NamedTuple):
    """The bundled models in the engine."""

    engine: Engine
    verifier: VerifierEngine


def load(kind: str) -> Models:
    """The bundled models, for a kind of kernels."""
    tensors = read_tensors(SHIPPED / "model.safetensors")
    engine = Engine(config(), vocabulary(), tensors, "int8", kind=kind)
    return Models(engine, VerifierEngine(*verifier_parts(), "int8", kind=kind))


def find(
    models: Models, sources: Sequence[Sequence[int]], batch: int = 32, threads: int = 1
) -> list[Golden]:
    """What is found for sources, in batches, by some threads."""
    batches = [sources[first : first + batch] for first in range(0, len(sources), batch)]
    if threads == 1:
        return [one for some in batches for one in _find_batch(models, some)]
    with ThreadPoolExecutor(threads) as pool:
        return [one for some in pool.map(partial(_find_batch, models), batches) for one in some]


def _find_batch(models: Models, sources: Sequence[Sequence[int]]) -> list[Golden]:
    running = EngineSearch([models.engine], sources, SearchConfig(**OPTIONS, recombine=0))
    while running.running:
        running.step()
    best = [found[0] for found in running.hypotheses]
    return list(_judged(models, sources, [(one.ids, one.cost) for one in best]))


def _judged(
    models: Models, sources: Sequence[Sequence[int]], best: Sequence[tuple[Any, float]]
) -> Iterator[Golden]:
    asked = [(number, ids) for number, (ids, _) in enumerate(best)]
    following = models.engine.follow(sources, asked, explain=True)
    while True:
        try:
            next(following)
        except StopIteration as ended:
            followed = ended.value
            break
    for number, (ids, cost) in enumerate(best):
        values, one = followed.values(number), followed.headline(number)
        view = GeneratorView(sources[number], values, [ids], one.states, [one.logs.tolist()])
        says = models.verifier.judge(view)
        seen = (
            zlib.crc32(one.states, zlib.crc32(one.logs, zlib.crc32(values))),
            zlib.crc32(one.attention or b""),
            zlib.crc32(one.predictions or b""),
            zlib.crc32(_floats(says.doubts[0]) + _floats(says.kinds[0])),
        )
        labels = "".join(struct.pack(">f", value).hex() for value in says.labels[0])
        yield Golden(cost, labels, "".join(f"{part:08x}" for part in seen), tuple(ids))


def _floats(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


# --- the file -------------------------------------------------------------------------------------


def write() -> None:
    """Write the file, by the fastest kind; the check then compares it with all."""
    found = find(load(kinds()[-1]), encoded(ledes()), threads=2)
    rows = (
        {"cost": one.cost.hex(), "labels": one.labels, "seen": one.seen, "ids": one.ids}
        for one in found
    )
    FILE.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def read() -> list[Golden]:
    """What the file has, lede by lede."""
    rows = map(json.loads, FILE.read_text("utf-8").splitlines())
    return [
        Golden(float.fromhex(row["cost"]), row["labels"], row["seen"], tuple(row["ids"]))
        for row in rows
    ]


def differences(
    kind: str, *, every: int = 1, batch: int = 32, threads: int = 1, models: Models | None = None
) -> list[int]:
    """Which ledes have other bits than the file."""
    sources, wanted = encoded(ledes()), read()
    found = find(models or load(kind), sources[::every], batch, threads)
    pairs = zip(found, wanted[::every], strict=True)
    return [number * every for number, (own, other) in enumerate(pairs) if own != other]


def check(every: int) -> int:
    """Print how many ledes differ, in all ways; returns how many."""
    wrong = 0
    print("| kernels | batches of | threads | ledes | others | s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in kinds():
        models = load(kind)
        for batch, threads in ((32, 1), (1, 1), (32, 3), (1, 3)):
            began = time.perf_counter()
            others = differences(kind, every=every, batch=batch, threads=threads, models=models)
            seconds = time.perf_counter() - began
            number = len(range(0, NUM_LEDES, every))
            print(f"| {kind} | {batch} | {threads} | {number} | {len(others)} | {seconds:.1f} |")
            if others:
                print(f"the first are {others[:8]}")
            wrong += len(others)
    return wrong


ELSEWHERE: Final = {  # the compiler for a system, and what runs its programs
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "windows": ("x86_64-w64-mingw32-gcc", "wine"),
}
LEDES_AT_ONCE: Final = 10  # in a process


def check_elsewhere(system: str, every: int, folder: Path) -> int:
    """How many ledes differ on another system; portable C, which is slow, finds a tenth of them."""
    compiler, runner = ELSEWHERE[system]
    driver = [runner, str(native_driver.build(compiler, folder / "driver.exe", ["-static"]))]
    sources, wanted, wrong = encoded(ledes()), read(), 0
    print(f"| kernels, {system} | ledes | others | s |\n| --- | ---: | ---: | ---: |")
    for kind in native_driver.kinds(driver):
        began = time.perf_counter()
        numbers = range(0, NUM_LEDES, every * (10 if kind == "portable" else 1))

        def others(start: int, kind: str = kind, numbers: range = numbers) -> int:
            some = numbers[start : start + LEDES_AT_ONCE]
            dump = write_dump(folder / f"{kind}-{start}", [sources[number] for number in some])
            ngrams = OPTIONS["block_ngrams"]
            lines = native_driver.lines(
                native_driver.run(driver, dump, kind=kind, block_ngrams=ngrams)
            )
            dump.unlink()
            found = [Golden(one.cost, one.labels, one.seen, one.ids) for one in lines]
            return sum(own != wanted[number] for own, number in zip(found, some, strict=True))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            number = sum(pool.map(others, range(0, len(numbers), LEDES_AT_ONCE)))
        seconds = time.perf_counter() - began
        print(f"| {kind} | {len(numbers)} | {number} | {seconds:.0f} |", flush=True)
        wrong += number
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["write", "check"], default="check")
    parser.add_argument("--every", type=int, default=5, help="check only every so many ledes")
    parser.add_argument("--on", choices=ELSEWHERE, help="another system")
    quick.offer(parser, every=250)
    options = parser.parse_args()
    if options.what == "write":
        write()
        print(f"{FILE.name}: {NUM_LEDES} ledes, {FILE.stat().st_size} bytes")
        return 0
    print(f"{described()}\n")
    if options.on is None:
        return 1 if check(options.every) else 0
    if reason := native_driver.missing(*ELSEWHERE[options.on]):
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as folder:
        return 1 if check_elsewhere(options.on, options.every, Path(folder)) else 0


if __name__ == "__main__":
    sys.exit(main())
