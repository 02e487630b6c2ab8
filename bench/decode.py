"""Headlines on a GPU: from a file of ledes to a file of headlines, as `ledeline generate` does it.

- each precision goes through the same file, some turns; the first has never seen its words;
- time is told by part: reading and sub-words before the search, the search, words and writing;
- beside it, on fewer ledes, plain PyTorch: the trained module in float32, 32 sources at a time, no
  kernel of ours, and a look at every step;
- with `--references`, ROUGE of each precision.

Without `--model` the system is of the paper's size but untrained, and knows the newsroom's words;
its headlines are then forced to 18 sub-words. Without `--ledes` the newsroom writes them. What was
taken is printed. It works on a CPU, too: give a small `--number`.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import quick
import tiny
from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.core.steps import Steps
from ledeline.corpus.inputs import FileInput
from ledeline.data.dataset import padded
from ledeline.inference.engines import open_model
from ledeline.inference.generate import generate
from ledeline.inference.generation import Generation
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.outputs.open_output import open_output
from ledeline.inference.outputs.reporter import LimitedReporter
from ledeline.inference.source_text import SourceText
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.format.model_folder import ModelBundle
from ledeline.model.gpu import dispatch
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDec, EncDecConfig
from ledeline.search import search
from ledeline.search.beam import COMPACTIONS, Compaction
from ledeline.synth.newsroom import generate as newsroom
from ledeline.text.profiles import PROFILES
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from machine import CPU_PRECISIONS, described

LENGTH, PLAIN_BATCH = 18, 32
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


# --- what is measured -----------------------------------------------------------------------------


class Timed(Headliner):
    """A headliner with a clock: nothing else differs."""

    def warm_up(self, number: int, options: Options) -> None:
        """Write headlines for other ledes: kernels are made, memory is there."""
        self.reset()
        self.generate_batch([story.lede for story in newsroom(number, 3)], options)

    def reset(self) -> None:
        """Set everything to zero."""
        self.before = self.searching = self.after = 0.0
        self.num_source = self.num_headline = 0

    def generate_batch(
        self, texts: Sequence[object], options: Options, *, first: int = 1
    ) -> list[Headline]:
        """Time what is neither reading nor search as what comes after it."""
        began, before = time.perf_counter(), self.before + self.searching
        headlines = super().generate_batch(texts, options, first=first)
        took = time.perf_counter() - began
        self.after += max(0.0, took - (self.before + self.searching - before))
        return headlines

    def read(
        self, texts: Iterable[object], options: Options, *, first: int = 1
    ) -> list[SourceText]:
        """Time the reading."""
        began = time.perf_counter()
        ledes = super().read(texts, options, first=first)
        self.before += time.perf_counter() - began
        self.num_source += sum(len(lede.ids) for lede in ledes)
        return ledes

    def begin(self, ledes: Sequence[SourceText], options: Options) -> Generation:
        """Time the search of each batch; on a CPU batches may run side by side."""
        generation = super().begin(ledes, options)
        find = generation._find

        def timed() -> Steps[Any]:
            began = time.perf_counter()
            found = yield from find()
            self.searching += time.perf_counter() - began
            self.num_headline += sum(
                len(one[0].ids) + 1 for one in found.hypotheses.values() if one
            )
            return found

        generation._find = timed  # type: ignore[method-assign]
        return generation


def from_file_to_file(headliner: Headliner, ledes: Path, output: Path, options: Options) -> None:
    given = FileInput(ledes)
    with (
        LimitedReporter(lambda _: None, given.unit, unlimited=False, warnings=True) as reporter,
        open_output(output, given) as opened,
    ):
        generate(headliner, given, opened, options, reporter)


def plain_rate(model: EncDec, sources: Sequence[Sequence[int]], config: SearchConfig) -> float:
    """Ledes a second."""
    ranked = sorted(sources, key=len)
    batches = [ranked[i : i + PLAIN_BATCH] for i in range(0, len(ranked), PLAIN_BATCH)]
    with dispatch.kernel_mode("plain"), patch.dict(COMPACTIONS, {DEVICE: Compaction(1, 1.0)}):
        search(model, *padded(batches[0]), config)
        took = seconds(lambda: [search(model, *padded(batch), config) for batch in batches])
    return len(sources) / took


# --- what it is measured on -----------------------------------------------------------------------


def untrained(options: argparse.Namespace) -> ModelBundle:
    """A system of the paper's size that knows the newsroom's words."""
    profile, stories = PROFILES["paper"], newsroom(options.stories, 1)
    words = Counter(word for story in stories for word in profile.words(story.lede))
    subwords = Subwords.learn(words, options.merges, unknown_words=profile.unknown_words)
    system = SystemConfig.of(options.sizes, SelectiveGateConfig(), SourcePredictionConfig())
    return ModelBundle(build(system, len(subwords)).eval().to(DEVICE), Tokenizer(profile, subwords))


def ledes_of(options: argparse.Namespace) -> list[str]:
    if options.ledes is None:
        return [story.lede for story in newsroom(options.number, 2)]
    with options.ledes.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, options.number)]


# --- tables ---------------------------------------------------------------------------------------


def measure(headliner: Timed, ledes: Path, wanted: Options, turns: int) -> list[str]:
    """Print a row for each turn; the headlines."""
    number = sum(1 for _ in ledes.open())
    for turn in range(1, turns + 1):
        output = ledes.with_name(f"{headliner.precision}-{turn}.txt")
        headliner.reset()
        took = seconds(lambda to=output: from_file_to_file(headliner, ledes, to, wanted))
        files = took - headliner.before - headliner.searching - headliner.after
        tokens = headliner.num_source + headliner.num_headline
        parts = (headliner.before, headliner.searching, headliner.after, files)
        print(
            f"| {headliner.precision}, turn {turn} | {took:.2f} | {number / took:,.0f} | "
            f"{tokens / took:,.0f} | " + " | ".join(f"{part:.2f}" for part in parts) + " |",
            flush=True,
        )
    return output.read_text().splitlines()


def alone(headliner: Headliner, texts: Sequence[str], wanted: Options) -> str:
    headliner(texts[0], options=wanted)
    late = [1000 * seconds(lambda t=text: headliner(t, options=wanted)) for text in texts[:20]]
    return f"alone {statistics.median(late):.1f} ms ({min(late):.1f} to {max(late):.1f})"


def most_memory() -> str:
    if DEVICE == "cpu":
        return "no GPU memory"
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return f"at most {most / 2**30:.2f} GiB of the GPU"


def compare(texts: dict[str, list[str]], references: Path | None) -> None:
    total = len(next(iter(texts.values())))
    if len(texts) > 1:
        same = sum(map(str.__eq__, *texts.values()))
        print(f"\n{same:,} of {total:,} headlines are the same in both precisions")
    if references is None:
        return
    with references.open(encoding="utf-8") as file:
        wanted = [line.rstrip("\n") for line in islice(file, total)]
    print("\n| | R-1 | R-2 | R-L |\n| --- | ---: | ---: | ---: |")
    for precision, written in texts.items():
        mean = rouge.mean(rouge.score_all(written, wanted, rouge.Settings(stem=False)))
        scores = (mean.rouge1, mean.rouge2, mean.rouge_l)
        print(f"| {precision} | " + " | ".join(f"{100 * one.f1:.2f}" for one in scores) + " |")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="a model folder")
    parser.add_argument("--ledes", type=Path, help="a text file, a lede a line")
    parser.add_argument("--references", type=Path, help="a text file, the headlines of the ledes")
    parser.add_argument("--number", type=int, default=10_000, help="ledes")
    parser.add_argument("--plain", type=int, default=256, help="ledes for plain PyTorch; 0: none")
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--batch", type=int, help="ledes in a batch, where not ours to choose")
    parser.add_argument("--turns", type=int, default=3)
    parser.set_defaults(stories=20_000, merges=5_000, sizes=EncDecConfig())
    sizes = {"stories": 16, "merges": tiny.MERGES, "sizes": tiny.MODEL}
    references = partial(tiny.lines, "headlines.txt", "headline")
    quick.offer(parser, **sizes, number=8, plain=4, turns=1, references=references)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU"
    print(f"{described()}, torch {torch.__version__}, {device}")
    precisions = ["float16", "float32"] if DEVICE == "cuda" else CPU_PRECISIONS[::-1]
    started = seconds(lambda: torch.zeros(1, device=DEVICE))
    search_options = SearchConfig(beam=options.beam)
    if options.model is None:
        search_options = SearchConfig(beam=options.beam, min_length=LENGTH, max_length=LENGTH)
    wanted = Options(search=search_options, batch_size=options.batch)
    texts, written = ledes_of(options), {}
    print(f"system: {options.model or f'untrained, headlines forced to {LENGTH} sub-words'}")
    source = options.ledes or "of the synthetic newsroom"
    print(f"ledes: {source}, {len(texts):,}, beam {options.beam}")
    head = "s | ledes/s | sub-words/s, both sides | before the search | search | after it | files"
    with tempfile.TemporaryDirectory() as folder:
        ledes = Path(folder) / "ledes.txt"
        ledes.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        print(f"\n| | {head} |\n| --- |" + " ---: |" * 7)
        lines = [f"start of the device {started:.1f} s"]
        for precision in precisions:
            began = time.perf_counter()
            loaded = open_model(options.model, DEVICE) if options.model else untrained(options)
            headliner = Timed([loaded], precision)
            loading = time.perf_counter() - began
            warm_up = seconds(lambda one=headliner: one.warm_up(min(2_048, len(texts)), wanted))
            written[precision] = measure(headliner, ledes, wanted, options.turns)
            lines += [
                f"{precision}: loading {loading:.1f} s, warm-up {warm_up:.1f} s, "
                f"{most_memory()}, {alone(headliner, texts, wanted)}"
            ]
        print("\n" + "\n".join(lines))
    if options.plain:
        tokenizer = loaded.tokenizer
        sources = [tokenizer.encode(tokenizer.words(text)) for text in texts[: options.plain]]
        rate = plain_rate(loaded.model, sources, search_options)
        scaled = f"so {len(texts) / rate:.1f} s for all, if it went on so"
        print(f"plain PyTorch, search alone: {rate:.1f} ledes/s ({len(sources)} ledes), {scaled}")
    compare(written, options.references)


if __name__ == "__main__":
    main()
