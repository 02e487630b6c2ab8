"""The verb `package`."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

from ledeline.cli.parameters import Argument, Option


def package(
    model: Annotated[
        Path, Argument(metavar="MODEL", help="Model folder, or name of an installed model.")
    ],
    name: Annotated[str, Option(help="Name of the model: letters, digits and single hyphens.")],
    version: Annotated[str, Option(help="Version of the package, such as 0.2.0.")],
    output: Annotated[Path, Option(metavar="FOLDER", help="New folder to write.")],
    card: Annotated[
        Path | None,
        Option(metavar="FILE.md", help="Model card. Default: the model's own, if any."),
    ] = None,
    weights: Annotated[
        Literal["keep", "float32", "float16", "int8"],
        Option(help="Number format of the stored weights. keep: as they are."),
    ] = "keep",
    licence: Annotated[str, Option(metavar="TEXT", help="Licence. It is written to LICENSE.")] = "",
) -> None:
    """Make a pip package of a model.

    Once pip has installed it, the model is found by its name wherever a model folder is named. See
    docs/models.md.
    """
    from ledeline.model.format.package import write_package

    made = write_package(model, output, name, version, card=card, storage=weights, licence=licence)
    print(
        f"{made.folder}: {made.distribution} {version}, {made.model.system}, "
        f"{made.model.num_parameters:,} parameters in {made.model.weights}, "
        f"{made.model.num_bytes:,} bytes"
    )
    place = output if output.is_absolute() else f"./{output}"
    print(f"install it: pip install {shlex.quote(str(place))}")
