"""What goes over the wire: requests, answers, and their schemas."""

import functools
import operator
from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from ledeline import __version__
from ledeline.config import SearchConfig
from ledeline.config.section import Field as ConfigField
from ledeline.config.section import fields
from ledeline.config.values import union_members
from ledeline.inference.headline import Alignment, Headline
from ledeline.inference.headliner import Options
from ledeline.server.settings import Limits

DECIMALS: Final = 5  # of what a heat map shows

EXAMPLE: Final = "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen."
COUNTED: Final = {  # the schema of /metrics
    "type": "string",
    "examples": ["# HELP ledeline_texts_total Texts answered.\nledeline_texts_total 1.0\n"],
}
# The options of the search that a request may set, and the largest values of those that the
# settings have no limit for.
NOT_OFFERED: Final = ("forbid_unknown", "stop_early")
SEARCH_FIELDS: Final = [one for one in fields(SearchConfig) if one.name not in NOT_OFFERED]
_LARGEST: Final = {"min_length": 512, "max_length": 512, "block_ngrams": 20}


class Asked(BaseModel):
    """A request for headlines; `request_schema` gives it the limits of a server."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: list[str]
    explain: bool = False
    heat_map: bool = False

    def options(self) -> Options:
        """For the headliner; `BadValue` where they contradict each other."""
        search = SearchConfig(**{one.name: getattr(self, one.name) for one in SEARCH_FIELDS})
        return Options(search=search, explain=self.explain or self.heat_map)


def request_schema(limits: Limits) -> type[Asked]:
    """The request with the limits of a server, so that its documentation has them too."""
    text = Annotated[str, Field(max_length=limits.characters)]
    request: dict[str, Any] = {
        "texts": (
            Annotated[list[text], Field(min_length=1, max_length=limits.texts)],
            Field(description="Ledes, each the first sentence of a story.", examples=[[EXAMPLE]]),
        ),
        "explain": (bool, Field(False, description="Say where words came from.")),
        "heat_map": (bool, Field(False, description="With all weights; explains, too.")),
    }
    request |= {one.name: _search_field(one, limits) for one in SEARCH_FIELDS}
    return create_model("HeadlinesRequest", __base__=Asked, **request)


def _search_field(key: ConfigField, limits: Limits) -> tuple[Any, Any]:
    """A field of the request made of a key of the search: its type, and its default and text."""
    smallest = next((one.minimum for one in key.limits if one.minimum is not None), None)
    largest = getattr(limits, key.name, _LARGEST.get(key.name))
    kinds = [
        Annotated[int, Field(ge=smallest, le=largest)] if one is int else one
        for one in union_members(key.kind)
    ]
    within = key.default is None or largest is None
    default = key.default if within else min(key.default, largest)
    return functools.reduce(operator.or_, kinds), Field(default, description=key.doc)


# --- answers ------------------------------------------------------------------------------------


def _example(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class Warned(BaseModel):
    """Something a reader of the headline should know."""

    kind: str
    message: str


class Alternative(BaseModel):
    """A headline of the n-best list."""

    headline: str
    score: float = Field(description="Mean log-probability of its sub-words; 0 is certainty.")
    truncated: bool


class Word(BaseModel):
    """A word of the headline, and the word of the text it came from."""

    word: str
    source: str
    place: int = Field(description="Of the word of the text, from 0.")
    spm: float | None = Field(description="Probability by the SPM; null without one.")
    attention: float


class Dropped(BaseModel):
    """A word of the text that no word of the headline came from."""

    word: str
    place: int


class HeatMap(BaseModel):
    """Every word of the headline (J) against every word of the text (I)."""

    source: list[str] = Field(description="Words of the text, each with the space before it.")
    headline: list[str]
    attention: list[list[float]] = Field(description="J rows of I shares.")
    spm: list[list[float]] | None


class Reasons(BaseModel):
    """Where the words came from, and what was dropped."""

    words: list[Word]
    dropped: list[Dropped]
    heat_map: HeatMap | None = None


class Answered(BaseModel):
    """The headline of one text, as `ledeline generate --json` has it."""

    source: str | None
    headline: str = Field(description="Empty where none can be written; a warning says why.")
    score: float | None
    truncated: bool
    warnings: list[Warned]
    alternatives: list[Alternative] | None = None
    alignment: Reasons | None = None


class Answers(BaseModel):
    """One headline for each text, in order."""

    model_config = _example(
        {
            "headlines": [
                {
                    "source": EXAMPLE,
                    "headline": "Tokyo stocks rise as exporters gained on weaker yen",
                    "score": -0.254,
                    "truncated": False,
                    "warnings": [],
                }
            ]
        }
    )

    headlines: list[Answered]


class Problem(BaseModel):
    """Why there is no answer."""

    model_config = _example({"detail": "beam: must be at most 50"})

    detail: str


class TrainState(BaseModel):
    """How the server is."""

    model_config = _example({"status": "ok"}, {"status": "ready"}, {"status": "shutting down"})

    status: str = Field(description="/health: ok; /ready: ready, or, with 503, shutting down.")


class ModelLimits(BaseModel):
    """What one request may ask for."""

    texts: int
    characters: int
    body_bytes: int
    beam: int
    n_best: int
    waiting: int
    seconds: float


class About(BaseModel):
    """What writes the headlines."""

    model_config = _example(
        {
            "system": "EncDec+sGate+SPM",
            "profile": "natural",
            "vocabulary": 8052,
            "parameters": 25774312,
            "precision": "int8",
            "device": "cpu",
            "version": __version__,
            "card": "# The model in the box\n\nEncDec+sGate+SPM, trained on English news.\n",
            "limits": asdict(Limits()),
        }
    )

    system: str
    profile: str
    vocabulary: int
    parameters: int
    precision: str
    device: str
    version: str
    card: str | None = Field(description="What is to be known of the model, in Markdown.")
    limits: ModelLimits


def answer(headline: Headline, *, heat_map: bool) -> dict[str, Any]:
    """A headline as JSON has it."""
    fields = headline.as_dict()
    if heat_map and headline.alignment is not None:
        fields["alignment"]["heat_map"] = _heat_map(headline.alignment)
    return fields


def _heat_map(alignment: Alignment) -> dict[str, Any]:
    def rounded(rows: Any) -> list[list[float]]:
        return [[round(share, DECIMALS) for share in row] for row in rows]

    return {
        "source": list(alignment.source),
        "headline": list(alignment.headline),
        "attention": rounded(alignment.attention),
        "spm": None if alignment.spm is None else rounded(alignment.spm),
    }


# --- what is wrong with a request ---------------------------------------------------------------

_WORDS: Final = {
    "missing": "is missing",
    "model_attributes_type": "must be a JSON object, sent as application/json",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "extra_forbidden": "there is no such field",
    "too_short": "has {actual_length}, and at least {min_length} is needed",
    "too_long": "has {actual_length}, and {max_length} is the limit",
    "string_too_long": "is longer than {max_length} characters, which is the limit",
    "less_than_equal": "must be at most {le}",
    "greater_than_equal": "must be at least {ge}",
    "string_unicode": "is not a text: it has half a character",
}


def in_words(error: Any) -> str:
    """What pydantic found, as a part of a sentence."""
    words = _WORDS.get(error["type"])
    return words.format(**error.get("ctx", {})) if words else error["msg"]
