"""How the body of a request becomes Python values: strictly, and without standing still.

The event loop does nothing else meanwhile, so a body of a megabyte must not take long, whatever is
in it. What took long were numbers and deep lists in Python's own parser, garbage collections while
many small values were made, and pydantic's errors, one for each unknown field.
"""

import gc
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeAlias, get_args

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json

from ledeline.server.middleware import LimitedBody
from ledeline.server.schemas import HALF_A_PAIR

_DEAR: Final = (b"[", b"{", b",")  # what makes Python's own parser slow
_MOST_DEAR: Final = 20_000
_MOST_MEMBERS: Final = 3  # of an object in a list; a pair has two
_SOME_BODY: Final = b"..."  # stands for a body that is not empty

KnownFields: TypeAlias = Mapping[str, bool]  # the fields of a request; whether they list objects


class ParsedRoute(APIRoute):
    """A route whose body is parsed here."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """FastAPI's handler, with another kind of request."""
        handle = super().get_route_handler()
        model: Any = self.body_field.field_info.annotation if self.body_field else None
        known = _known_fields(model)

        async def parse_and_handle(request: Request) -> Response:
            return await handle(_ParsedRequest(request, known))

        return parse_and_handle


class _ParsedRequest(Request):
    """A request that forgets its body as soon as it has been parsed.

    FastAPI keeps what `body` returns until the answer is sent, so that gets only a stand-in.
    """

    def __init__(self, request: Request, known: KnownFields) -> None:
        super().__init__(request.scope, request.receive)
        self._known, self._data = known, b""
        self._limited: LimitedBody = request.scope["state"]["body"]

    async def body(self) -> bytes:
        """Read the body; returns something that is empty if the body is."""
        if not hasattr(self, "_body"):
            self._data = await self._limited.read()
            self._body = _SOME_BODY if self._data else b""
        return self._body

    async def json(self) -> Any:
        """Parse the body."""
        data, self._data = self._data, b""
        try:
            with _without_collections():
                return _plain(_parse(data), self._known)
        except ValueError:
            invalid = {"type": "json_invalid", "loc": ("body",), "msg": "", "input": None}
            raise NotJSON([invalid]) from None
        finally:
            self._limited.release()


class NotJSON(RequestValidationError):
    """The body is not JSON in UTF-8."""


def _parse(data: bytes) -> Any:
    """The content of JSON; raises a `ValueError` if it is none, or deeper than 200 lists."""
    try:
        return from_json(data, cache_strings="none")
    except ValueError as error:
        if "escape" not in str(error):
            raise
    # Perhaps half a character. Python's parser takes it, so that the text that has it can be named.
    if sum(map(data.count, _DEAR)) > _MOST_DEAR:
        raise HTTPException(422, f"the body: {HALF_A_PAIR}, or another wrong escape")
    return json.loads(data.decode("utf-8"))


def _known_fields(model: Any) -> KnownFields:
    """The fields of a request."""
    return {
        name: any(_is_model(one) for one in _parts(field.annotation))
        for name, field in getattr(model, "model_fields", {}).items()
    }


def _parts(kind: Any) -> Iterator[Any]:
    """A type, and those that it is made of."""
    yield kind
    for one in get_args(kind):
        yield from _parts(one)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _plain(content: Any, known: KnownFields) -> Any:
    """The content as pydantic shall see it, without what it would only refuse.

    One unknown field is left, values that no field can have become smaller ones of their type, and
    5.0 becomes 5.
    """
    if not isinstance(content, dict):
        return [] if isinstance(content, list) else content
    kept = {
        name: _field(content[name], has_objects=has_objects)
        for name, has_objects in known.items()
        if name in content
    }
    unknown = next((name for name in content if name not in known), None)
    return kept if unknown is None else {**kept, unknown: None}


def _field(content: Any, *, has_objects: bool) -> Any:
    if isinstance(content, float) and content.is_integer():
        return int(content)
    if isinstance(content, list):
        if has_objects:
            return [_small(one) if isinstance(one, dict) else None for one in content]
        return [one if isinstance(one, str) else None for one in content]
    return {} if isinstance(content, dict) else content


def _small(content: dict[str, Any]) -> dict[str, Any]:
    """An object of a list; of one that has too many fields, so many that it is refused."""
    return (
        content if len(content) <= _MOST_MEMBERS else dict(islice(content.items(), _MOST_MEMBERS))
    )


@contextmanager
def _without_collections() -> Iterator[None]:
    """Let Python collect no garbage: parsed JSON has no cycles, and there can be much of it.

    When collections are allowed again, as little of it as possible should be left.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
