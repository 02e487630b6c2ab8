"""The verbs `evaluate`, `align` and `report`."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from ledeline.cli.command import (
    leave,
    progress_bar,
    refuse_idle,
    refuse_input,
    refuse_mixture,
    write,
)
from ledeline.cli.options import (
    DEFAULT_SEARCH,
    SETS,
    AsJson,
    Check,
    Constrain,
    Device,
    HeadlineColumn,
    LedeColumn,
    MinSupport,
    ModelFolder,
    NumWordPairs,
    Precision,
    Rank,
    SampleSeed,
    ScoreUnknown,
    Stem,
    Unknown,
    with_search_options,
)
from ledeline.cli.parameters import Argument, Option
from ledeline.config.search import SearchConfig


@with_search_options(without=("n_best", "forbid_unknown"))  # --unknown says the latter
def evaluate(
    model: Annotated[
        list[Path],
        Option(
            metavar="FOLDER",
            help="Model folder, or name of an installed model. Repeat it for an ensemble.",
        ),
    ],
    test: Annotated[
        list[str],
        Option(metavar="SET", help=f"Test set, as NAME=FILE. Can be repeated. FILE is {SETS}"),
    ],
    output: Annotated[Path, Option(metavar="FOLDER", help="Evaluation folder to write.")],
    name: Annotated[
        str | None,
        Option(metavar="NAME", help="Name of the system. Default: its parts, as EncDec+SPM."),
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Continue a folder. Finished test sets are kept.")
    ] = False,
    lede: LedeColumn = "lede",
    headline: HeadlineColumn = "headline",
    search: SearchConfig = DEFAULT_SEARCH,
    unknown: Unknown = "replace",
    check: Check = None,
    rank: Rank = None,
    constrain: Constrain = None,
    min_support: MinSupport = None,
    stem: Stem = True,
    score_unknown: ScoreUnknown = "keep",
    profile: Annotated[
        Literal["paper", "natural"] | None,
        Option(help="Text profile to compare headlines in. Default: the model's."),
    ] = None,
    word_pairs: NumWordPairs = 500,
    heat_maps: Annotated[int, Option(min=0, help="Number of pairs to store heat maps of.")] = 3,
    seed: SampleSeed = 1,
    precision: Precision = "auto",
    device: Device = "auto",
) -> None:
    """Evaluate a model on test sets.

    Writes a headline for each pair, then scores, audits and aligns them. Where headlines are
    checked, it also counts doubts. All results are in the evaluation folder, which ledeline report
    reads. See docs/evaluation.md.
    """
    from rich.console import Console

    from ledeline import rouge
    from ledeline.cli.views.scores import evaluation_table
    from ledeline.corpus.evaluation_sets import read_evaluation_set
    from ledeline.evaluation.evaluate import EvaluatedSystem, EvaluationConfig
    from ledeline.evaluation.evaluate import evaluate as evaluate_system
    from ledeline.inference.headliner import Headliner, Options, system_name

    search = replace(search, forbid_unknown=unknown == "forbid")
    config = EvaluationConfig(
        options=Options(
            search=search,
            replace_unknown=unknown == "replace",
            check=check,
            rank=rank,
            constrain=constrain,
            min_support=min_support,
        ),
        scoring=rouge.Settings(stem=stem, unknown=score_unknown),
        profile=profile,
        num_word_pairs=word_pairs,
        num_heat_maps=heat_maps,
        seed=seed,
    )
    sets = [read_evaluation_set(one, lede=lede, headline=headline) for one in test]
    headliner = Headliner.load(*model, precision=precision, device=device)
    system = EvaluatedSystem(headliner, tuple(map(str, model)), name or system_name(headliner))
    with progress_bar(wanted=True) as progress:
        result = evaluate_system(
            system,
            sets,
            output,
            config,
            command=shlex.join(["ledeline", *sys.argv[1:]]),
            resume=resume,
            progress=progress,
        )
    if result.signal is not None:
        leave("stopped; run the same command with --resume to continue", 128 + result.signal)
    Console().print(evaluation_table(result.summary), soft_wrap=True)


def align(
    model: ModelFolder,
    pair: Annotated[
        list[str] | None, Argument(metavar="LEDE HEADLINE", help="One pair to align.")
    ] = None,
    pairs: Annotated[
        str | None, Option("--input", metavar="SET", help=f"File with many pairs: {SETS}")
    ] = None,
    gold: Annotated[
        str | None,
        Option(help="File with gold links, one line per pair. A table can have them in a column."),
    ] = None,
    lede: LedeColumn = "lede",
    headline: HeadlineColumn = "headline",
    output: Annotated[
        str | None,
        Option(metavar="FILE", help="Write the links of each pair, as 0-1 2-3. - prints them."),
    ] = None,
    method: Annotated[
        Literal[
            "spm-vocabulary",
            "spm-sentence",
            "attention",
            "attention-shifted",
            "identity",
            "diagonal",
        ]
        | None,
        Option(help="Links to write. Default: spm-vocabulary; attention without an SPM."),
    ] = None,
    heat_map: Annotated[
        Path | None,
        Option(metavar="FILE", help="Draw the heat map of one pair to a .png or .svg file."),
    ] = None,
    row: Annotated[
        int | None, Option(min=1, help="Number of the pair to draw. Default: 1.")
    ] = None,
    word_pairs: NumWordPairs = 500,
    seed: SampleSeed = 1,
    as_json: AsJson = False,
    device: Device = "auto",
) -> None:
    """Show which word of a lede became which word of its headline.

    Four methods read the links from the SPM and from attention; two baselines are shown beside
    them. With gold links, each method is scored. See docs/evaluation.md.
    """
    from ledeline.evaluation.align import align_pairs, chosen_method, draw_pair, find_pairs
    from ledeline.inference.engines import open_model

    refuse_mixture(as_json, output, "--output")
    refuse_idle("--row", row, "--heat-map", heat_map)
    refuse_idle("--method", method, "--output", output)
    test_set = find_pairs(pair or [], pairs, gold, lede=lede, headline=headline)
    loaded = open_model(model, device)
    chosen = chosen_method(loaded, method)
    if heat_map is not None:
        draw_pair(loaded, test_set, row or 1, refuse_input(heat_map, test_set.files))
    with progress_bar(wanted=pairs is not None) as progress:
        aligned = align_pairs(loaded, test_set, word_pairs, seed, progress)
    if output is not None:
        write(output, aligned.lines(chosen), (*test_set.files, test_set.gold_file))
    if as_json:
        print(json.dumps(aligned.as_dict(), ensure_ascii=False))
    elif output != "-":
        from rich.console import Console

        from ledeline.cli.views.alignment import alignment_tables

        Console().print(alignment_tables(aligned), soft_wrap=True)


def report(
    folders: Annotated[
        list[Path], Argument(metavar="EVALUATION", help="Folders from ledeline evaluate.")
    ],
    output: Annotated[Path, Option(metavar="FILE", help="HTML file to write.")],
    baseline: Annotated[
        str | None,
        Option(help="System to compare the others with. Default: the first."),
    ] = None,
    title: Annotated[str, Option(help="Title of the page.")] = "Headline systems compared",
) -> None:
    """Compare evaluated systems on one HTML page.

    It shows scores, odd words, alignments and examples. The page is one file and needs no network.
    See docs/evaluation.md.
    """
    from ledeline.report import write_report

    write_report(folders, output, baseline=baseline, title=title)
    print(output)
