"""Schemas of requests and responses, from which /openapi.json is made."""

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
from ledeline.server.check_schemas import DoubtSchema
from ledeline.server.settings import LimitsConfig

DECIMALS: Final = 5  # of the weights of a heat map

EXAMPLE: Final = "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen."
METRICS_SCHEMA: Final = {
    "type": "string",
    "examples": ["# HELP ledeline_texts_total Texts answered.\nledeline_texts_total 1.0\n"],
}
# The options of the search that a request may set, and the largest values of those that the
# settings have no limit for.
NOT_OFFERED: Final = ("forbid_unknown", "stop_early")
SEARCH_FIELDS: Final = [one for one in fields(SearchConfig) if one.name not in NOT_OFFERED]
_LARGEST: Final = {
    "min_length": 512,
    "max_length": 512,
    "block_ngrams": 20,
    "recombine": 20,
    "min_support": 1,
}
# The options of the check that a request may set.
CHECK_OPTIONS: Final = ("check", "rank", "constrain", "min_support")
CHECK_FIELDS: Final = [one for one in fields(Options) if one.name in CHECK_OPTIONS]


class HeadlinesRequest(BaseModel):
    """A request for headlines; `request_schema` adds the limits of a server."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: list[str]
    explain: bool = False
    heat_map: bool = False

    def options(self) -> Options:
        """The options for the headliner; raises `BadValue` if they contradict each other."""
        search = SearchConfig(**{one.name: getattr(self, one.name) for one in SEARCH_FIELDS})
        checks = {one.name: getattr(self, one.name) for one in CHECK_FIELDS}
        return Options(search=search, explain=self.explain or self.heat_map, **checks)


def request_schema(limits: LimitsConfig) -> type[HeadlinesRequest]:
    """The request with the limits of a server, so that /openapi.json has them too."""
    text = Annotated[str, Field(max_length=limits.characters)]
    request: dict[str, Any] = {
        "texts": (
            Annotated[list[text], Field(min_length=1, max_length=limits.texts)],
            Field(description="Ledes, each the first sentence of a story.", examples=[[EXAMPLE]]),
        ),
        "explain": (bool, Field(False, description="Say where words came from.")),
        "heat_map": (bool, Field(False, description="With all weights; explains, too.")),
    }
    request |= {one.name: _option_field(one, limits) for one in (*SEARCH_FIELDS, *CHECK_FIELDS)}
    about = "Texts, and options of the search and the check; an unknown field is refused."
    return create_model("HeadlinesRequest", __base__=HeadlinesRequest, __doc__=about, **request)


def _option_field(key: ConfigField, limits: LimitsConfig) -> tuple[Any, Any]:
    """A field of the request made of a key of the options: its type, and its default and text."""
    smallest = next((one.minimum for one in key.limits if one.minimum is not None), None)
    largest = getattr(limits, key.name, _LARGEST.get(key.name))
    kinds = [
        Annotated[one, Field(ge=smallest, le=largest)] if one in (int, float) else one
        for one in union_members(key.kind)
    ]
    within = key.default is None or largest is None
    default = key.default if within else min(key.default, largest)
    return functools.reduce(operator.or_, kinds), Field(default, description=key.doc)


# --- responses ----------------------------------------------------------------------------------


def _examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


_SUPPORT: Final = "How far the text supports it, from 0 to 1; if it was checked."
_DOUBTS: Final = "Words that the text does not support; if it was checked. Often empty."


class WarningSchema(BaseModel):
    """Something that a reader of the headline should know."""

    kind: str = Field(description="A word for programs, such as `empty` or `cut`.")
    message: str = Field(description="A sentence for people.")


class AlternativeSchema(BaseModel):
    """A headline of the n-best list."""

    headline: str = Field(description="Its text.")
    score: float = Field(description="Mean log-probability of its sub-words; 0 is certainty.")
    truncated: bool = Field(description="Whether it was cut off at the maximum length.")
    support: float | None = Field(None, description=_SUPPORT)
    doubts: list[DoubtSchema] | None = Field(None, description=_DOUBTS)


class WordSchema(BaseModel):
    """A word of the headline, and the word of the text that it came from."""

    word: str = Field(description="The word of the headline.")
    source: str = Field(description="The word of the text.")
    place: int = Field(description="Position of the word of the text, from 0.")
    spm: float | None = Field(description="Its probability by the SPM; null without one.")
    attention: float = Field(description="Its attention weight.")


class DroppedWordSchema(BaseModel):
    """A word of the text that no word of the headline came from."""

    word: str = Field(description="The word.")
    place: int = Field(description="Its position, from 0.")


class HeatMapSchema(BaseModel):
    """The weight of every word of the text (I of them) for every word of the headline (J)."""

    source: list[str] = Field(description="Words of the text, each with the space before it.")
    headline: list[str] = Field(description="Words of the headline, likewise.")
    attention: list[list[float]] = Field(description="J rows of I attention weights.")
    spm: list[list[float]] | None = Field(
        description="J rows of I probabilities by the SPM; null without one."
    )


class AlignmentSchema(BaseModel):
    """Where the words came from, and which words were dropped."""

    words: list[WordSchema] = Field(description="The words of the headline, in order.")
    dropped: list[DroppedWordSchema] = Field(description="The words of the text that were dropped.")
    heat_map: HeatMapSchema | None = Field(None, description="All weights, if asked for.")


class HeadlineSchema(BaseModel):
    """The headline of one text, as in `ledeline generate --json`."""

    source: str | None = Field(description="The text.")
    headline: str = Field(description="Empty if none can be written; a warning says why.")
    score: float | None = Field(description="Mean log-probability of its sub-words.")
    truncated: bool = Field(description="Whether it was cut off at the maximum length.")
    warnings: list[WarningSchema] = Field(description="Often empty.")
    support: float | None = Field(None, description=_SUPPORT)
    doubts: list[DoubtSchema] | None = Field(None, description=_DOUBTS)
    alternatives: list[AlternativeSchema] | None = Field(
        None, description="The n best headlines, if n_best is above 1."
    )
    alignment: AlignmentSchema | None = Field(None, description="The explanation, if asked for.")


class HeadlinesResponse(BaseModel):
    """One headline for each text, in order."""

    model_config = _examples(
        {
            "headlines": [
                {
                    "source": EXAMPLE,
                    "headline": "Tokyo stocks rise as exporters gain on weaker yen",
                    "score": -0.183,
                    "truncated": False,
                    "warnings": [],
                    "support": 0.9699,
                    "doubts": [],
                }
            ]
        }
    )

    headlines: list[HeadlineSchema] = Field(description="As many as there were texts.")


class ErrorResponse(BaseModel):
    """Why a request was refused or failed."""

    model_config = _examples({"detail": "beam: must be at most 50"})

    detail: str = Field(description="One sentence.")


class StatusResponse(BaseModel):
    """The state of the server."""

    model_config = _examples({"status": "ok"}, {"status": "ready"}, {"status": "busy"})

    status: str = Field(
        description="ok from /health; ready from /ready, or busy or shutting down with status 503."
    )


class LimitsSchema(BaseModel):
    """The limits of a request; see `[limits]` in the settings."""

    texts: int = Field(description="Texts per request.")
    characters: int = Field(description="Characters per text.")
    body_bytes: int = Field(description="Bytes of the request body.")
    beam: int = Field(description="Largest beam.")
    n_best: int = Field(description="Most headlines per text.")
    price: int = Field(description="What a request may cost.")
    waiting: int = Field(description="Texts of all callers in the queue.")
    seconds: float = Field(description="Seconds to answer a request.")


class ModelResponse(BaseModel):
    """The model, and the limits of a request."""

    model_config = _examples(
        {
            "system": "Transformer",
            "profile": "natural",
            "vocabulary": 8052,
            "parameters": 39027956,
            "precision": "int8",
            "device": "cpu",
            "version": __version__,
            "card": "# The model in the box\n\nA Transformer, trained on English news.\n",
            "limits": asdict(LimitsConfig()),
        }
    )

    system: str = Field(description="The encoder-decoder and its add-ons.")
    profile: str = Field(description="The text profile.")
    vocabulary: int = Field(description="Number of sub-words.")
    parameters: int = Field(description="Number of parameters, of all models of an ensemble.")
    precision: str = Field(description="Number format of the weights.")
    device: str = Field(description="cpu or cuda.")
    version: str = Field(description="Version of ledeline.")
    card: str | None = Field(description="The model card, in Markdown.")
    limits: LimitsSchema = Field(description="The limits of a request.")


def headline_as_dict(headline: Headline, *, heat_map: bool) -> dict[str, Any]:
    """A headline as in a `HeadlinesResponse`."""
    fields = headline.as_dict()
    if heat_map and headline.alignment is not None:
        fields["alignment"]["heat_map"] = _heat_map(headline.alignment)
    return fields


def _heat_map(alignment: Alignment) -> dict[str, Any]:
    def rounded(rows: Any) -> list[list[float]]:
        return [[round(weight, DECIMALS) for weight in row] for row in rows]

    return {
        "source": list(alignment.source),
        "headline": list(alignment.headline),
        "attention": rounded(alignment.attention),
        "spm": None if alignment.spm is None else rounded(alignment.spm),
    }


# --- invalid requests ---------------------------------------------------------------------------

HALF_A_PAIR: Final = "is not valid Unicode: it has half of a surrogate pair"
_VALIDATION_MESSAGES: Final = {
    "missing": "is missing",
    "model_attributes_type": "must be a JSON object, sent as application/json",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "extra_forbidden": "there is no such field",
    "too_short": "has {actual_length}, and at least {min_length} is needed",
    "too_long": "has {actual_length}, and {max_length} is the limit",
    "string_too_long": "is longer than {max_length} characters, which is the limit",
    "less_than_equal": "must be at most {le}",
    "greater_than_equal": "must be at least {ge}",
    "string_unicode": HALF_A_PAIR,
}


def describe_validation_error(error: Any) -> str:
    """Pydantic's first error as the end of a sentence that begins with the field."""
    message = _VALIDATION_MESSAGES.get(error["type"])
    if not message:
        return str(error["msg"])
    limits = {
        name: int(one) if isinstance(one, float) and one.is_integer() else one  # 1, not 1.0
        for name, one in error.get("ctx", {}).items()
    }
    return message.format(**limits)
