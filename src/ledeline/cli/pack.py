"""The verb `pack`."""

from pathlib import Path
from typing import Annotated, Literal

from ledeline.cli.parameters import Argument, Option


def pack(
    models: Annotated[
        list[Path],
        Argument(
            metavar="MODEL",
            help="Model folder, or name of an installed model. With several, their weights are "
            "averaged.",
        ),
    ],
    output: Annotated[Path, Option(metavar="FOLDER", help="New folder to write.")],
    weights: Annotated[
        Literal["float32", "float16", "int8"],
        Option(help="Number format of the stored weights."),
    ] = "int8",
    card: Annotated[
        Path | None,
        Option(metavar="FILE.md", help="Model card. It is copied to card.md."),
    ] = None,
    block_ngrams: Annotated[
        int | None,
        Option(
            min=0,
            help="N-gram blocking that searches with this model use by default: no n-gram of this "
            "length occurs twice in a headline. 0 turns it off. Default: as in the given model.",
        ),
    ] = None,
    beam: Annotated[
        int | None,
        Option(
            min=1,
            help="Beam size that searches with this model use by default. Default: as in the given "
            "model.",
        ),
    ] = None,
) -> None:
    """Make a small model folder to ship.

    Files that only training needs are left out. Several models, such as the last checkpoints of one
    run, become one model with their mean weights. See docs/models.md.
    """
    from ledeline.model.format.pack import pack as pack_models

    packed = pack_models(models, output, weights, card, block_ngrams, beam)
    print(
        f"{packed.folder}: {packed.system}, {packed.num_parameters:,} parameters in {weights}, "
        f"{packed.num_bytes:,} bytes"
    )
