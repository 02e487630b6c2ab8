"""The verb that makes a model fit to ship."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def pack(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL", help="Folder of the model; of several, the mean is taken."),
    ],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write, a new one.")],
    weights: Annotated[
        Literal["float32", "float16", "int8"], typer.Option(help="How the weights are stored.")
    ] = "int8",
    card: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="What is to be known of the model; put beside it."),
    ] = None,
    block_ngrams: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="No run of so many sub-words twice in its headlines, unless a search says "
            "otherwise; 0: off. That of the model, if not given.",
        ),
    ] = None,
) -> None:
    """Make a model folder fit to ship: small, and with nothing that only training needs.

    Several models, such as the last checkpoints of one run, become one with the mean of their
    weights. See docs/models.md.
    """
    from ledeline.model.format.pack import pack as pack_models

    packed = pack_models(models, output, weights, card, block_ngrams)
    print(
        f"{packed.folder}: {packed.system}, {packed.num_parameters:,} parameters in {weights}, "
        f"{packed.num_bytes:,} bytes"
    )
