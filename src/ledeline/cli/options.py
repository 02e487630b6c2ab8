"""Options that several verbs have, each defined once."""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from ledeline.cli.parameters import Option
from ledeline.config.search import DEVICE_DOC, PRECISION_DOC, SearchConfig
from ledeline.config.search import Device as DeviceName
from ledeline.config.search import Precision as PrecisionName
from ledeline.config.section import Field, fields
from ledeline.inference.options import Options
from ledeline.inference.options import Rank as RankName

# --- the search ---------------------------------------------------------------------------------

DEFAULT_SEARCH: Final = SearchConfig()


def with_search_options(
    *, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb an option for each key of `SearchConfig`, in place of its argument `search`.

    Keys in `without` have no option, and keep their defaults.
    """
    keys = [field for field in fields(SearchConfig) if field.name not in without]

    def expand(verb: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for one in inspect.signature(verb).parameters.values():
            by_name = one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += map(_parameter, keys) if one.name == "search" else [by_name]

        @functools.wraps(verb)
        def run(**values: Any) -> None:
            search = SearchConfig(**{key.name: values.pop(key.name) for key in keys})
            verb(search=search, **values)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return expand


def _parameter(key: Field) -> inspect.Parameter:
    """The option of a key; one that is true or false is a flag."""
    flag = [f"--{key.name.replace('_', '-')}"] if key.kind is bool else []
    return inspect.Parameter(
        key.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=key.default,
        annotation=Annotated[key.kind, Option(*flag, help=key.doc)],
    )


Unknown: TypeAlias = Annotated[
    Literal["replace", "keep", "forbid"],
    Option(
        help="Words that the model cannot spell: replace <unk> with the aligned word of the lede, "
        "keep <unk>, or forbid it in the search."
    ),
]

# --- checks of headlines ------------------------------------------------------------------------

_DOCS: Final = {field.name: field.doc for field in fields(Options)}

Check: TypeAlias = Annotated[
    bool | None, Option("--check/--no-check", help=_DOCS["check"], show_default=False)
]
Rank: TypeAlias = Annotated[RankName | None, Option(help=_DOCS["rank"])]
Constrain: TypeAlias = Annotated[
    bool | None,
    Option("--constrain/--no-constrain", help=_DOCS["constrain"], show_default=False),
]
MinSupport: TypeAlias = Annotated[float | None, Option(min=0, max=1, help=_DOCS["min_support"])]

# --- the input ----------------------------------------------------------------------------------

FORMAT_HELP: Final = (
    "Format of the input, if its name does not show it. Standard input cannot be parquet."
)

Delimiter: TypeAlias = Annotated[
    Literal["auto", "comma", "semicolon", "tab", "bar"],
    Option(help="Field delimiter of CSV input. auto detects it from the header."),
]
Resume: TypeAlias = Annotated[
    bool,
    Option("--resume", help="Continue an --output that was stopped. Use the same options."),
]

# --- the model ----------------------------------------------------------------------------------

Precision: TypeAlias = Annotated[PrecisionName, Option(help=PRECISION_DOC)]
Device: TypeAlias = Annotated[DeviceName, Option(help=DEVICE_DOC)]

# --- test sets ----------------------------------------------------------------------------------

SETS = "a table with columns lede and headline, or two text files, LEDES,HEADLINES."
ModelFolder: TypeAlias = Annotated[
    Path, Option(metavar="FOLDER", help="Model folder, or name of an installed model.")
]
LedeColumn: TypeAlias = Annotated[str, Option("--lede", help="Column of the ledes, in a table.")]
HeadlineColumn: TypeAlias = Annotated[
    str, Option("--headline", help="Column of the headlines, in a table.")
]
NumWordPairs: TypeAlias = Annotated[
    int,
    Option("--word-pairs", min=0, help="Pairs to take the table of aligned words from."),
]
SampleSeed: TypeAlias = Annotated[
    int, Option("--seed", min=0, help="Random seed that these pairs are drawn with.")
]

# --- scores -------------------------------------------------------------------------------------

ScoreUnknown: TypeAlias = Annotated[
    Literal["keep", "drop", "strict"],
    Option(
        help="How ROUGE treats <unk> and UNK: keep compares them like words, drop removes them "
        "from both texts, strict lets those of a headline match nothing."
    ),
]
Stem: TypeAlias = Annotated[bool, Option(help="Compare stems, as the paper does.")]
AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print one JSON object.")]
