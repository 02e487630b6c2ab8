"""The options of a request are those of `SearchConfig`."""

from typing import Annotated, Any, Literal

import pytest

pytest.importorskip("fastapi")

from pydantic import ValidationError

from ledeline.config import SearchConfig
from ledeline.config.section import BadValue, at_least, fields, section
from ledeline.inference.options import Options
from ledeline.server import schemas
from ledeline.server.settings import LimitsConfig

LIMITS = LimitsConfig(beam=7, n_best=3)
PROPERTIES: dict[str, Any] = schemas.request_schema(LIMITS).model_json_schema()["properties"]


@pytest.mark.parametrize("key", fields(SearchConfig), ids=lambda key: key.name)
def test_every_key_is_a_field(key: Any) -> None:
    if key.name in schemas.NOT_OFFERED:
        assert key.name not in PROPERTIES
        return
    found = PROPERTIES[key.name]
    assert found["description"] == key.doc
    assert found["default"] == key.default
    if key.kind is bool:
        assert found["type"] == "boolean"
        return
    bounds = found["anyOf"][0] if "anyOf" in found else found
    assert bounds["minimum"] == key.limits[0].minimum
    assert "maximum" in bounds, f"a request may ask for any {key.name}; see schemas._LARGEST"


def test_what_is_not_offered_is_a_key() -> None:
    assert set(schemas.NOT_OFFERED) <= {key.name for key in fields(SearchConfig)}


def test_they_reach_the_search() -> None:
    given = {"beam": 5, "n_best": 2, "min_length": 3, "max_length": 9, "block_ngrams": 4}
    given |= {"recombine": 3, "keep_finished": True}
    request = schemas.request_schema(LIMITS)(texts=["a"], **given)  # type: ignore[arg-type]
    assert request.options().search == SearchConfig(**given)  # type: ignore[arg-type]
    assert schemas.request_schema(LIMITS)(texts=["a"]).options().search == SearchConfig()
    with pytest.raises(BadValue, match="max_length = 2: must be at least min_length, 3"):
        schemas.request_schema(LIMITS)(texts=["a"], min_length=3, max_length=2).options()  # type: ignore[call-arg]


@pytest.mark.parametrize("name", schemas.CHECK_OPTIONS)
def test_the_options_of_the_check_are_fields(name: str) -> None:
    key = next(key for key in fields(Options) if key.name == name)
    found = PROPERTIES[name]
    assert (found["description"], found["default"]) == (key.doc, None)
    if name == "min_support":
        assert (found["anyOf"][0]["minimum"], found["anyOf"][0]["maximum"]) == (0, 1)


def test_they_reach_the_options() -> None:
    given: dict[str, Any] = {"check": True, "rank": "score", "constrain": True, "min_support": 0.5}
    request: Any = schemas.request_schema(LIMITS)
    assert request(texts=["a"], **given).options() == Options(search=SearchConfig(), **given)
    for key, value in (("rank", "support"), ("min_support", 0.5)):
        with pytest.raises(BadValue, match=f"{key} = .*: needs check"):
            request(texts=["a"], check=False, **{key: value}).options()


@section
class Longer:
    """Options with more kinds of values."""

    beam: Annotated[int, "As before.", at_least(1)] = 20
    order: Annotated[Literal["best", "first"], "Which."] = "best"
    penalty: Annotated[float | None, "A number, or none."] = None


def test_a_new_key_becomes_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "SEARCH_FIELDS", fields(Longer))
    request: Any = schemas.request_schema(LIMITS)
    made = request(texts=["a"], order="first", penalty=0.5)
    assert (made.beam, made.order, made.penalty) == (7, "first", 0.5)
    with pytest.raises(ValidationError):
        request(texts=["a"], order="worst")
    assert request.model_json_schema()["properties"]["order"]["enum"] == ["best", "first"]
