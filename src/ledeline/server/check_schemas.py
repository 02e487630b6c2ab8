"""Schemas of /v1/check: requests and responses, from which /openapi.json is made."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from ledeline.core.errors import ConfigError
from ledeline.inference.checks.doubt import DoubtKind
from ledeline.server.settings import LimitsConfig

MAX_HEADLINE_CHARACTERS: Final = 500
_EXAMPLE: Final[dict[str, Any]] = {
    "lede": "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen.",
    "headline": "Osaka stocks rise on weaker yen",
}
# Either one pair or a list of them.
_PAIR_OR_PAIRS: Final[list[Any]] = [
    {
        "required": ["lede", "headline"],
        "properties": {
            "lede": {"type": "string"},
            "headline": {"type": "string"},
            "pairs": {"type": "null"},
        },
    },
    {
        "required": ["pairs"],
        "properties": {
            "lede": {"type": "null"},
            "headline": {"type": "null"},
            "pairs": {"type": "array"},
        },
    },
]


class PairSchema(BaseModel):
    """A lede and a headline."""

    model_config = ConfigDict(extra="forbid", strict=True)

    lede: str
    headline: str


class CheckRequest(BaseModel):
    """A request for checks; `check_request_schema` adds the limits of a server."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"oneOf": _PAIR_OR_PAIRS, "examples": [_EXAMPLE]},
    )

    lede: str | None = None
    headline: str | None = None
    pairs: list[PairSchema] | None = None

    def all_pairs(self) -> list[PairSchema]:
        """The pairs; raises a `ConfigError` if there is neither one nor a list of them."""
        one = (self.lede, self.headline)
        if self.pairs is not None and one == (None, None):
            return self.pairs
        if self.pairs is not None or self.lede is None or self.headline is None:
            raise ConfigError("the body: must have a lede and a headline, or pairs of them")
        return [PairSchema(lede=self.lede, headline=self.headline)]


def check_request_schema(limits: LimitsConfig) -> type[CheckRequest]:
    """The request with the limits of a server, so that /openapi.json has them too."""
    about_lede, about_headline = "What the headline is checked against.", "Anybody's headline."
    lede = Annotated[str, Field(max_length=limits.characters)]
    headline = Annotated[str, Field(max_length=min(limits.characters, MAX_HEADLINE_CHARACTERS))]
    pair = create_model(
        "PairSchema",
        __base__=PairSchema,
        __doc__=PairSchema.__doc__,
        lede=(lede, Field(description=about_lede)),
        headline=(headline, Field(description=about_headline)),
    )
    pairs: Any = Annotated[list[pair], Field(min_length=1, max_length=limits.texts)]  # type: ignore[valid-type]
    return create_model(
        "CheckRequest",
        __base__=CheckRequest,
        __doc__="A lede and a headline, or pairs of them; an unknown field is refused.",
        lede=(lede | None, Field(None, description=about_lede)),
        headline=(headline | None, Field(None, description=about_headline)),
        pairs=(pairs | None, Field(None, description="Several pairs instead.")),
    )


# --- responses ----------------------------------------------------------------------------------


class DoubtSchema(BaseModel):
    """Words of a headline that its text does not support."""

    start: int = Field(description="Of the first character in the headline, from 0.")
    end: int = Field(description="Behind the last character.")
    words: str = Field(description="What stands there.")
    kind: DoubtKind = Field(description="A word for programs.")
    why: str = Field(description="A phrase for people; quotes the text where it can.")


class CheckSchema(BaseModel):
    """How far a lede supports a headline, as in `ledeline check --json`."""

    support: float | None = Field(
        description="From 0 to 1; null if the lede or the headline has no words."
    )
    doubts: list[DoubtSchema] = Field(description="Words that the lede does not support.")


class ChecksResponse(BaseModel):
    """One check for each pair, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "checks": [
                        {
                            "support": 0.325,
                            "doubts": [
                                {
                                    "start": 0,
                                    "end": 5,
                                    "words": "Osaka",
                                    "kind": "name",
                                    "why": "the lede does not name Osaka",
                                }
                            ],
                        }
                    ]
                }
            ]
        }
    )

    checks: list[CheckSchema] = Field(description="As many as there were pairs.")
