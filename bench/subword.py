"""How fast words become sub-word ids, next to subword-nmt and Hugging Face tokenizers.

    python bench/subword.py [--input PATH] [--lines N] [--merges N] [--repeats N] [--learn]

All tools get the same merges, learned here from the same lines, and one thread each. Each sees all
lines once before, which fills its cache of words; then they take turns, so that a slow moment of
the machine hits them alike. PATH is a dataset, whose training pairs are taken, or a text file with
words between white space; without it the lines come from the synthetic newsroom. With --learn
subword-nmt learns from the same words too, and the merges are compared.

The tools do not do quite the same. ledeline gives the ids of all lines in one array. tokenizers
gives an object for each line, whose ids are read here as a list, and it drops characters that are
not in its vocabulary, where ledeline gives an unknown id. subword-nmt gives pieces as strings;
looking up their ids would come on top.
"""

import argparse
import io
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import quick
import tiny
from ledeline.data.dataset import Dataset
from ledeline.text.subwords import SPECIALS, Subwords
from machine import described

BATCH = 100  # lines in one call of tokenizers; with 1,000 or 10,000 it is slower
NUM_CHECKED = 2000  # lines on which the answers are compared

Run = Callable[[list[str]], object]


def main() -> None:
    options = read_options()
    print(described())
    lines = list(islice(read_lines(options), options.lines))
    counts = Counter(word for line in lines for word in line.split())
    print(f"{len(lines):,} lines, {counts.total():,} words, {len(counts):,} different words")
    begin = time.perf_counter()
    subwords = Subwords.learn(counts, options.merges)
    print(f"{len(subwords.merges):,} merges learned in {time.perf_counter() - begin:.1f} s")
    if options.learn:
        learn_with_subword_nmt(counts, subwords)
    print()
    runs = {"ledeline": subwords.encode_lines}
    runs |= subword_nmt_run(subwords, lines) | tokenizers_run(subwords, lines)
    seconds = measure(runs, lines, options.repeats)
    print_table({name: [counts.total() / each for each in seconds[name]] for name in runs})


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--input", type=Path, help="dataset or text (default: the newsroom)")
    parser.add_argument("--lines", type=int, default=200_000, help="how many to use, at most")
    parser.add_argument("--merges", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--learn", action="store_true", help="let subword-nmt learn, too")
    quick.offer(parser, input=tiny.dataset, lines=24, merges=50, repeats=1, learn=True)
    return parser.parse_args()


def read_lines(options: argparse.Namespace) -> Iterator[str]:
    if options.input and options.input.is_dir():
        dataset = Dataset(options.input)
        for pair in map(dataset["train"].__getitem__, range((options.lines + 1) // 2)):
            for ids in pair:
                yield " ".join(dataset.tokenizer.decode_words(ids))
    elif options.input:
        with options.input.open(encoding="utf-8") as file:
            yield from file
    else:
        from ledeline.synth.newsroom import generate

        for pair in generate((options.lines + 1) // 2, seed=1):
            yield pair.lede
            yield pair.headline


def learn_with_subword_nmt(counts: Counter[str], subwords: Subwords) -> None:
    from subword_nmt.learn_bpe import learn_bpe

    words = io.StringIO("".join(f"{word} {count}\n" for word, count in counts.items()))
    codes = io.StringIO()
    begin = time.perf_counter()
    learn_bpe(words, codes, len(subwords.merges), is_dict=True)
    same = codes.getvalue().split("\n")[1:-1] == [" ".join(pair) for pair in subwords.merges]
    seconds = time.perf_counter() - begin
    print(f"subword-nmt learned in {seconds:.1f} s, {'the same' if same else 'OTHER'} merges")


def subword_nmt_run(subwords: Subwords, lines: list[str]) -> dict[str, Run]:
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError:
        print("subword-nmt is not installed; to compare with it: pip install subword-nmt==0.3.8")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        subwords.save(Path(folder))
        with (Path(folder) / "codes.txt").open(encoding="utf-8") as codes:
            bpe = BPE(codes)

    def run(lines: list[str]) -> None:
        for line in lines:
            bpe.segment_tokens(line.split())

    for line in lines[:NUM_CHECKED]:
        pieces = [piece for word in line.split() for piece in subwords.segment(word)]
        assert bpe.segment_tokens(line.split()) == pieces, line
    return {f"subword-nmt {version('subword-nmt')}": run}


def tokenizers_run(subwords: Subwords, lines: list[str]) -> dict[str, Run]:
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers
    except ImportError:
        print("tokenizers is not installed; to compare with it: pip install tokenizers")
        return {}
    characters = [form for char in subwords.alphabet for form in (char, char + "</w>")]
    symbols = dict.fromkeys([*SPECIALS, *characters, *map("".join, subwords.merges)])
    model = models.BPE(
        vocab={symbol: number for number, symbol in enumerate(symbols)},
        merges=list(subwords.merges),
        end_of_word_suffix="</w>",
        cache_capacity=2**20,
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()

    def run(lines: list[str]) -> None:
        for start in range(0, len(lines), BATCH):
            batch = lines[start : start + BATCH]
            for line in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                line.ids  # noqa: B018

    for line in lines[:NUM_CHECKED]:
        assert tokenizer.encode(line).ids == subwords.encode(line.split()), line
    return {f"tokenizers {version('tokenizers')}": run}


def measure(runs: dict[str, Run], lines: list[str], repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            begin = time.perf_counter()
            run(lines)
            if repeat:  # the first time fills the caches
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def print_table(speeds: dict[str, list[float]]) -> None:
    print(f"{'':24}{'words/s, median':>18}{'lowest':>12}{'highest':>12}{'of ledeline':>14}")
    ours = statistics.median(speeds["ledeline"])
    for name, values in speeds.items():
        median = statistics.median(values)
        print(
            f"{name:24}{median:18,.0f}{min(values):12,.0f}{max(values):12,.0f}{median / ours:14.3f}"
        )


if __name__ == "__main__":
    main()
