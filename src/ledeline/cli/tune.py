"""The verb `tune`."""

from pathlib import Path
from typing import Annotated

from ledeline.cli.command import progress_bar
from ledeline.cli.options import (
    SETS,
    Device,
    HeadlineColumn,
    LedeColumn,
    ModelFolder,
)
from ledeline.cli.parameters import Option
from ledeline.config.search import Precision


def tune(
    model: ModelFolder,
    pairs: Annotated[str, Option(metavar="SET", help=f"Pairs to tune on: {SETS}")],
    output: Annotated[Path, Option(metavar="FOLDER", help="New folder to write.")],
    limit: Annotated[
        int | None,
        Option(min=1, help="Number of pairs to use, from the first. Default: all."),
    ] = None,
    lede: LedeColumn = "lede",
    headline: HeadlineColumn = "headline",
    beam: Annotated[
        int, Option(min=1, help="Beam size, and number of headlines in each list.")
    ] = 20,
    rounds: Annotated[
        int, Option(min=1, help="How often headlines are searched for, and weights tuned.")
    ] = 4,
    seed: Annotated[int, Option(min=0, help="Random seed of the search for weights.")] = 1,
    precision: Annotated[
        Precision,
        Option(
            metavar="[auto|float32|float16]",  # int8 is refused in a sentence
            help="Numeric precision of the searches, which PyTorch runs: float32 on a CPU, also "
            "float16 on a GPU; auto uses the fastest that the device has.",
        ),
    ] = "auto",
    device: Device = "auto",
) -> None:
    """Tune a model to copy words from the lede, as ABS+.

    Writes a copy of the model whose searches reward words of the lede, and pairs and triples of
    them. The weights are those with the best ROUGE on the given pairs. See docs/search.md.
    """
    from ledeline.corpus.evaluation_sets import read_evaluation_set
    from ledeline.evaluation.tune_features import TuningConfig, described, tune_features
    from ledeline.inference.engines import open_model
    from ledeline.model.format.pack import add_extractive, refuse_existing

    refuse_existing(output)
    config = TuningConfig(beam=beam, rounds=rounds, seed=seed)
    given = read_evaluation_set(pairs, lede=lede, headline=headline).pairs[:limit]
    loaded = open_model(model, device)
    with progress_bar(wanted=True) as progress:
        tuned = tune_features(loaded, given, config, precision=precision, progress=progress)
    add_extractive(model, output, tuned.weights)
    print(f"{output}: {described(tuned.weights)}")
    print(
        f"ROUGE-1 and ROUGE-2, mean F1 of {tuned.num_pairs:,} pairs: "
        f"{100 * tuned.before:.2f} before, {100 * tuned.after:.2f} after"
    )
