"""Error responses: each is one sentence, without a traceback and without the caller's text."""

from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ledeline.core.errors import ConfigError
from ledeline.server.admission import ServiceUnavailable
from ledeline.server.callers import TooManyRequests
from ledeline.server.price import TooDear
from ledeline.server.responses import AsciiJSONResponse
from ledeline.server.schemas import ErrorResponse, describe_validation_error

MAX_FIELD_NAME: Final = 60  # characters of a field's name that an error message repeats
NOT_JSON: Final = "the body is not JSON in UTF-8"
DESCRIPTIONS: Final = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    422: "A field is unknown, missing, of the wrong type or above its limit; or it is too dear.",
    429: "The caller has reached a limit of its own; retry after Retry-After seconds.",
    500: "Something went wrong in the server.",
    503: "There is no room or no time now; retry after Retry-After seconds.",
    504: "The answer was not ready in time.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says about these statuses."""
    return {
        status: {"model": ErrorResponse, "description": DESCRIPTIONS[status]} for status in statuses
    }


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error of a route with its status and one sentence."""

    @app.exception_handler(RequestValidationError)
    async def invalid_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return _error(400, NOT_JSON)
        field = ".".join(str(part)[:MAX_FIELD_NAME] for part in first["loc"][1:]) or "the body"
        return _error(422, f"{field}: {describe_validation_error(first)}")

    @app.exception_handler(ConfigError)
    async def contradictory_options(_: Request, error: ConfigError) -> Response:
        return _error(422, str(error))

    @app.exception_handler(TooDear)
    async def too_dear(_: Request, error: TooDear) -> Response:
        return _error(422, str(error))

    @app.exception_handler(TooManyRequests)
    async def too_many(_: Request, error: TooManyRequests) -> Response:
        return _error(429, str(error), {"Retry-After": str(round(error.retry_after))})

    @app.exception_handler(ServiceUnavailable)
    async def unavailable(_: Request, error: ServiceUnavailable) -> Response:
        return _error(503, str(error), {"Retry-After": str(round(error.retry_after))})

    @app.exception_handler(TimeoutError)
    async def timed_out(_: Request, __: TimeoutError) -> Response:
        return _error(504, "the answer was not ready in time; send fewer texts, or try later")

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        sentence = NOT_JSON if error.status_code == 400 else error.detail
        return _error(error.status_code, sentence, error.headers)


def _error(status: int, sentence: str, headers: Any = None) -> Response:
    return AsciiJSONResponse({"detail": sentence}, status, headers)
