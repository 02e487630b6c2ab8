"""JSON responses in ASCII, so that any text can be sent back, even with half a surrogate pair."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi.responses import JSONResponse

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


def encode_headlines(headlines: Sequence[Headline], *, heat_map: bool) -> bytes:
    """The body of a response, encoded one headline at a time so that other threads can run."""
    encoded = (encode_json(headline_as_dict(one, heat_map=heat_map)) for one in headlines)
    return b'{"headlines":[%s]}' % b",".join(encoded)
