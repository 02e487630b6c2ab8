"""Are the headlines true? What readers say of them, and how well a detector knows.

    python bench/truth.py count bench/truth/*.jsonl [--part test]
    python bench/truth.py compare bench/truth/*.jsonl --a beam20 --b ranked
    python bench/truth.py detect bench/truth/*.jsonl --pairs valid.parquet [--detector NAME ...]
        [--part test] [--writer NAME ...] [--figure risk.svg]
    python bench/truth.py choose bench/truth/train.jsonl --pairs valid.parquet --held-out
    python bench/truth.py examples bench/truth/final.jsonl --pairs valid.parquet
    python bench/truth.py rules bench/truth/*.jsonl --pairs valid.parquet train.parquet
    python bench/truth.py convert judged.jsonl --labels labels.jsonl --pairs pairs.jsonl

The files have a headline a line with the labels of one or two blind readings; truth_labels.py says
how. Ledes are in them as hashes, and are found in the tables of --pairs, by their columns lede and
headline. "All readings" counts a headline as false if each of its readings calls it so, "mean" as
half if one of two does; so does `detect`. Intervals are of 95 %: Wilson's for shares, the
bootstrap's over ledes for the rest. p is that of McNemar's exact test.

Detectors: `support` is that of `ledeline check`, with its doubts; `score` the mean probability that
the model gives the headline; `overlap` the share of its words that the lede has; `file:PATH` reads
lines of {"lede": hash, "headline": text, "support": number}, also with "doubts". `detect` leaves
publishers' headlines out unless --writer names them; the figure has their share as a line.
`choose` lets rankings choose among the labelled headlines of each lede, in the order of the file;
--held-out takes only ledes that the verifier was not trained on.
`examples` shows false headlines that have a doubt, and false ones that have none.
`rules` says how often each rule is right: which labels the headlines have that it doubts.
`convert` makes such files of one that has the ledes themselves, with label_a, kind_a, words_a and
so on; it is text of others, so keep what it writes to yourself.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import quick
import tiny
import truth_detectors as detectors
import truth_report as report
import truth_tables as tables
from ledeline.core.atomic import atomic_write
from ledeline.core.errors import LedelineError, ScoreError
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.report.numbers import plural
from machine import described
from truth_choice import choice_tables, choose, is_held_out
from truth_examples import example_tables, examples
from truth_figure import risk_figure
from truth_labels import PARTS, PUBLISHER, convert, find, load
from truth_rules import count_rules, rule_tables
from truth_stats import NUM_DRAWS, SEED
from truth_tiny import made, write_lines

TINY_DRAWS = 100
COMMANDS = ("count", "compare", "detect", "choose", "examples", "rules", "convert")


def run_count(options: argparse.Namespace) -> None:
    found = report.count(load(options.labels, options.part))
    show(options, found, lambda: tables.count_tables(found))


def run_compare(options: argparse.Namespace) -> None:
    judged = load(options.labels, options.part)
    found = report.compare(judged, options.a, options.b, drawn(options))
    show(options, found, lambda: tables.compare_tables(found))


def run_detect(options: argparse.Namespace) -> None:
    judged = load(options.labels, options.part)
    names = list(dict.fromkeys(options.detector or ["support"]))
    chosen = {detectors.label(name, names): detectors.named(name, options.model) for name in names}
    known = report.writers_of(judged)
    if absent := [name for name in options.writer or () if name not in known]:
        raise ScoreError(f"no headline is of {absent[0]!r}; the writers are {', '.join(known)}")
    writers = options.writer or [name for name in known if name != PUBLISHER] or known
    ours = find([one for one in judged if one.writer in writers], options.pairs)
    if not ours.items:
        raise ScoreError(f"{', '.join(map(str, options.pairs))}: has none of the judged ledes")
    texts = [(one.lede, one.headline) for one in ours.items]
    found = {}
    for name, detector in chosen.items():
        verdicts = detectors.run(name, detector, texts)
        found[name] = report.detect(ours.items, verdicts, options.target, drawn(options))
    publishers = report.publishers_share(judged, options.target)
    everything = {"writers": writers, "target": options.target, "not_found": ours.missing}
    everything |= {"ambiguous": ours.ambiguous, "publishers": publishers, "detectors": found}

    def lines() -> list[str]:
        told = [f"Headlines of {', '.join(writers)}; {plural(ours.missing, 'lede')} not found."]
        if ours.ambiguous:
            some = plural(ours.ambiguous, "publisher's headline")
            told.append(f"{some} not certain: the lede has several, and the first was taken.")
        return [*told, *tables.detect_tables(found, options.target)]

    show(options, everything, lines)
    if options.figure:
        curves = {name: one["risk"]["curve"] for name, one in found.items()}
        drawing = risk_figure(curves, publishers, options.target)
        with atomic_write(options.figure) as path:
            path.write_text(drawing, encoding="utf-8")


def run_choose(options: argparse.Namespace) -> None:
    judged = load(options.labels, options.part)
    kept = [one for one in judged if not options.held_out or is_held_out(one.lede)]
    found = choose(find(kept, options.pairs).items)
    show(options, found, lambda: choice_tables(found))


def run_examples(options: argparse.Namespace) -> None:
    found = examples(find(load(options.labels, options.part), options.pairs).items)
    show(options, found, lambda: example_tables(found))


def run_rules(options: argparse.Namespace) -> None:
    found = count_rules(find(load(options.labels, options.part), options.pairs).items)
    show(options, found, lambda: rule_tables(found))


def run_convert(options: argparse.Namespace) -> None:
    found = convert(options.judged, options.part, options.readings, options.model_writer)
    for path, rows in ((options.labels, found.labels), (options.pairs, found.pairs)):
        with atomic_write(path) as partial:
            write_lines(partial, rows)
    counted = {"headlines": len(found.labels), "ledes": len(found.pairs)}
    told = f"{plural(len(found.labels), 'headline')} of {plural(len(found.pairs), 'lede')}"
    show(options, counted, lambda: [told])


def drawn(options: argparse.Namespace) -> report.Draws:
    return report.Draws(options.seed, options.draws)


def show(
    options: argparse.Namespace, found: dict[str, Any], lines: Callable[[], list[str]]
) -> None:
    """Print tables, or JSON where that is asked for."""
    if options.json:
        print(json.dumps(plain(found), allow_nan=False))
    else:
        print(described(), "", *lines(), sep="\n")


def plain(value: Any) -> Any:
    """The same for JSON, which has no NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


# --- arguments ------------------------------------------------------------------------------------


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def svg(text: str) -> Path:
    if not text.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .svg")
    return Path(text)


def parsers() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print one JSON object")
    labelled = argparse.ArgumentParser(add_help=False)
    labelled.add_argument("labels", nargs="+", type=Path, metavar="LABELS")
    labelled.add_argument("--part", action="append", choices=PARTS, default=[])
    drawing = argparse.ArgumentParser(add_help=False)
    drawing.add_argument("--draws", type=positive, default=NUM_DRAWS, help="of the bootstrap")
    drawing.add_argument("--seed", type=int, default=SEED)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    counting = commands.add_parser("count", parents=[labelled, shared])
    counting.set_defaults(run=run_count)
    comparing = commands.add_parser("compare", parents=[labelled, drawing, shared])
    comparing.add_argument("--a", required=True, metavar="WRITER")
    comparing.add_argument("--b", required=True, metavar="WRITER")
    comparing.set_defaults(run=run_compare)
    detecting = commands.add_parser("detect", parents=[labelled, drawing, shared])
    detecting.add_argument("--pairs", nargs="+", type=Path, required=True, metavar="TABLE")
    detecting.add_argument("--detector", action="append", metavar="NAME", help="support if not set")
    detecting.add_argument("--writer", action="append", metavar="NAME", help="only headlines of it")
    detecting.add_argument("--target", choices=tuple(report.TARGETS), default="false")
    detecting.add_argument("--model", type=Path, default=Path(SHIPPED_NAME), help="for score")
    detecting.add_argument("--figure", type=svg, help="risk against coverage, .svg")
    detecting.set_defaults(run=run_detect)
    choosing = commands.add_parser("choose", parents=[labelled, shared])
    choosing.add_argument("--pairs", nargs="+", type=Path, required=True, metavar="TABLE")
    choosing.add_argument("--held-out", action="store_true", help="not those it was trained on")
    choosing.set_defaults(run=run_choose)
    showing = commands.add_parser("examples", parents=[labelled, shared])
    showing.add_argument("--pairs", nargs="+", type=Path, required=True, metavar="TABLE")
    showing.set_defaults(run=run_examples)
    ruling = commands.add_parser("rules", parents=[labelled, shared])
    ruling.add_argument("--pairs", nargs="+", type=Path, required=True, metavar="TABLE")
    ruling.set_defaults(run=run_rules)
    converting = commands.add_parser("convert", parents=[shared])
    converting.add_argument("judged", type=Path, metavar="JUDGED")
    converting.add_argument("--labels", type=Path, required=True)
    converting.add_argument("--pairs", type=Path, required=True)
    converting.add_argument("--part", choices=PARTS, default="test")
    converting.add_argument("--readings", nargs="+", default=["a", "b"], metavar="NAME")
    converting.add_argument("--model-writer", default="beam20", help="what the model is called")
    converting.set_defaults(run=run_convert)
    return parser


def tiny_commands() -> list[list[str]]:
    """All that it does, on what is made up."""
    truth = made()
    labels, model = str(truth.labels), str(tiny.model())
    draws = ["--draws", str(TINY_DRAWS)]
    detect = ["detect", labels, "--pairs", str(truth.pairs), *draws, "--model", model]
    for name in ("overlap", "score", f"file:{truth.supports}"):
        detect += ["--detector", name]
    return [
        ["count", labels, "--part", "test"],
        ["compare", labels, "--a", "beam20", "--b", "ranked", *draws],
        [*detect, "--figure", str(truth.figure)],
        [*detect, "--target", "unsupported", "--writer", PUBLISHER, "--json"],
        ["choose", labels, "--pairs", str(truth.pairs)],
        *([name, labels, "--pairs", str(truth.pairs)] for name in ("examples", "rules")),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; with --quick, all of them."""
    parser = parsers()
    is_quick = quick.offer(parser)
    every = [parser.parse_args(one) for one in tiny_commands()] if is_quick else []
    for options in every or [parser.parse_args(arguments)]:
        if not options.command:
            parser.error(
                "name a command: count, compare, detect, choose, examples, rules or convert"
            )
        try:
            options.run(options)
        except (LedelineError, OSError) as error:
            print(error, file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
