"""The columns that a table gets: headlines, their support, their doubts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ledeline.core.errors import ConfigError, CorpusError
from ledeline.inference.headline import Headline

if TYPE_CHECKING:
    import pyarrow as pa

ColumnKey: TypeAlias = Literal["headline", "support", "doubts"]

# How the value of a column can end in JSON.
_JSON_ENDS: Final[dict[ColumnKey, tuple[str, ...]]] = {
    "headline": ('"',),
    "support": (*"0123456789", "null"),
    "doubts": ("]", "null"),
}


class AddedColumn(NamedTuple):
    """A column that is added to a table."""

    key: ColumnKey  # what it holds
    name: str  # in the table
    option: str | None = None  # that gives it another name

    def value(self, headline: Headline) -> object:
        """Its value as JSON has it; null where nothing was checked."""
        if self.key == "headline":
            return headline.text
        if self.key == "support" or headline.support is None:
            return headline.support
        return [doubt.as_dict() for doubt in headline.doubts]

    @property
    def json_ends(self) -> tuple[str, ...]:
        """How its value can end in JSON."""
        return _JSON_ENDS[self.key]

    def arrow_type(self) -> "pa.DataType":
        """Its type in Parquet."""
        import pyarrow as pa

        match self.key:
            case "headline":
                return pa.string()
            case "support":
                return pa.float64()
        places = [(name, pa.int64()) for name in ("start", "end")]
        texts = [(name, pa.string()) for name in ("words", "kind", "why")]
        return pa.list_(pa.struct(places + texts))


CHECK_COLUMNS: Final = (AddedColumn("support", "support"), AddedColumn("doubts", "doubts"))


def headline_columns(column: str | None, support: str | None = None) -> tuple[AddedColumn, ...]:
    """The column of headlines, and that of their support if it has a name."""
    headline = AddedColumn("headline", column or "headline", "--column")
    if support is None:
        return (headline,)
    if support == headline.name:
        raise ConfigError(f"--support-column {support}: the headlines have this name; give another")
    return (headline, AddedColumn("support", support, "--support-column"))


def refuse_taken(place: str, columns: Sequence[str], added: Sequence[AddedColumn]) -> None:
    """Refuse the name of a column that exists."""
    for one in added:
        if one.name in columns:
            advice = f"name another with {one.option}" if one.option else "give it another name"
            raise CorpusError(f"{place}: the table already has a column {one.name!r}; {advice}")
