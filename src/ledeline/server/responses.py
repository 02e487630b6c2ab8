"""JSON responses in ASCII, so that any text can be sent back, even with half a surrogate pair."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi.responses import JSONResponse

from ledeline.inference.checks.check import Check
from ledeline.inference.headline import Headline
from ledeline.server.schemas import headline_as_dict


class AsciiJSONResponse(JSONResponse):
    """A JSON response in which other characters than ASCII are escaped."""

    def render(self, content: Any) -> bytes:
        """Encode the content."""
        return encode_json(content)


def encode_json(content: Any) -> bytes:
    """Compact JSON in ASCII."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def encode_headline(headline: Headline, *, heat_map: bool) -> bytes:
    """A headline as JSON, encoded in pieces."""
    return _encode_in_pieces(headline_as_dict(headline, heat_map=heat_map))


def _encode_in_pieces(content: Any) -> bytes:
    """As `encode_json`, but a matrix row by row: other threads can run only between two calls."""
    if isinstance(content, dict):
        members = (
            b"%s:%s" % (encode_json(name), _encode_in_pieces(one)) for name, one in content.items()
        )
        return b"{%s}" % b",".join(members)
    if isinstance(content, list) and content and isinstance(content[0], list):
        return b"[%s]" % b",".join(map(encode_json, content))
    return encode_json(content)


def encode_check(check: Check) -> bytes:
    """A check as JSON."""
    return encode_json(check.as_dict())


def join_headlines(headlines: Sequence[bytes]) -> bytes:
    """The body of a response, of headlines as JSON."""
    return b'{"headlines":[%s]}' % b",".join(headlines)


def join_checks(checks: Sequence[bytes]) -> bytes:
    """The body of a response, of checks as JSON."""
    return b'{"checks":[%s]}' % b",".join(checks)
