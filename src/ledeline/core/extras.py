"""The packages that only some of ledeline needs, and the extras of its installation with them.

`pip install ledeline` writes and checks headlines. What else ledeline does needs an extra, such as
`ledeline[train]`; where its packages are missing, a sentence names it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from ledeline.core.errors import LedelineError

# Extra -> the modules that it brings. A module is asked of the first extra that has it, unless what
# needs it has an extra of its own.
EXTRAS: Final[Mapping[str, Sequence[str]]] = {
    "parquet": ("pyarrow",),
    "serve": ("fastapi", "prometheus_client", "pydantic", "pydantic_core", "starlette", "uvicorn"),
    "evaluate": ("jinja2", "markupsafe", "numpy", "pyarrow"),
    "plot": ("matplotlib", "numpy"),
    "train": ("numpy", "pyarrow", "safetensors", "torch"),
    "tensorboard": ("tensorboard",),
}


class MissingExtraError(LedelineError, ModuleNotFoundError):
    """A package that an extra of ledeline brings is not installed."""


def missing_extra(error: ModuleNotFoundError, what: str, *own: str) -> MissingExtraError | None:
    """Which extras to install for something of ledeline that did not find a module.

    `own` are the extras that it is installed with; all of them are named at once. None if no extra
    has the module: then the error is none of the user's.
    """
    module = (error.name or "").partition(".")[0]
    having = [extra for extra, modules in EXTRAS.items() if module in modules]
    if not having:
        return None
    extras = ",".join(having[:1] if set(own).isdisjoint(having) else own)
    return MissingExtraError(
        f"{what} needs {module}, which is not installed; run: pip install 'ledeline[{extras}]'",
        name=error.name,
    )


@contextmanager
def needed_by(what: str, *own: str) -> Iterator[None]:
    """Say which extras to install for a module that is missing within, as `missing_extra`."""
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        sentence = missing_extra(error, what, *own)
        if sentence is None:
            raise
        raise sentence from None
