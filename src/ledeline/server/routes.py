"""The routes of the API and those for operating the server."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

from fastapi import Depends, FastAPI, Request, Response
from fastapi.security import HTTPBearer

from ledeline import __version__
from ledeline.inference.headliner import Headliner, system_name
from ledeline.server.check_schemas import ChecksResponse, check_request_schema
from ledeline.server.error_handlers import error_responses
from ledeline.server.metrics import Metrics
from ledeline.server.middleware import CLIENT_CLOSED_REQUEST
from ledeline.server.responses import AsciiJSONResponse
from ledeline.server.schemas import (
    METRICS_SCHEMA,
    HeadlinesResponse,
    LimitsSchema,
    ModelResponse,
    StatusResponse,
    request_schema,
)
from ledeline.server.settings import LimitsConfig

# Documents the token in /openapi.json; AccessMiddleware is what checks it.
_BEARER: Final = HTTPBearer(
    scheme_name="token", description="The server's token.", auto_error=False
)
T = TypeVar("T")
_WORK_ERRORS: Final = (400, 401, 408, 413, 422, 429, 500, 503, 504)  # of requests for work


def add_api_routes(
    app: FastAPI, model: ModelResponse, limits: LimitsConfig, *, needs_token: bool
) -> None:
    """Add /v1/headlines, /v1/check and /v1/model."""
    request_type: Any = request_schema(limits)
    check_request_type: Any = check_request_schema(limits)
    security = _security(needs_token)

    @app.post(
        "/v1/headlines",
        response_model=None,
        responses={
            200: {"model": HeadlinesResponse, "description": "One headline for each text."},
            **error_responses(*_WORK_ERRORS),
        },
        dependencies=security,
        tags=["headlines"],
    )
    async def headlines(request: Request, asked: request_type) -> Response:
        """Write a headline for each text.

        A text gets the same headline whichever texts are sent with it, and whoever else calls at
        the same time. The weights of its alignment differ at most by rounding.
        """
        return await _answered(request, app.state.service.answer(asked, _caller(request)))

    @app.post(
        "/v1/check",
        response_model=None,
        responses={
            200: {"model": ChecksResponse, "description": "One check for each pair."},
            **error_responses(*_WORK_ERRORS),
        },
        dependencies=security,
        tags=["headlines"],
    )
    async def check(request: Request, asked: check_request_type) -> Response:
        """Say how far each lede supports its headline, and which words are doubtful.

        The headlines may be anybody's. Whichever model is served, the same verifier judges them.
        """
        return await _answered(request, app.state.service.answer_check(asked, _caller(request)))

    @app.head("/v1/model", include_in_schema=False, dependencies=security)
    @app.get(
        "/v1/model",
        name="model",
        responses=error_responses(401),
        dependencies=security,
        tags=["headlines"],
    )
    async def read_model() -> ModelResponse:
        """Describe the model, and the limits of a request."""
        return model


def add_operations_routes(app: FastAPI, metrics: Metrics, *, needs_token: bool) -> None:
    """Add /health, /ready and /metrics."""

    @app.head("/health", include_in_schema=False)
    @app.get("/health", tags=["operation"])
    async def health() -> StatusResponse:
        """Answer while the process is alive."""
        return StatusResponse(status="ok")

    @app.head("/ready", include_in_schema=False)
    @app.get(
        "/ready",
        responses={
            503: {"model": StatusResponse, "description": "The server is shutting down or busy."}
        },
        tags=["operation"],
    )
    async def ready(response: Response) -> StatusResponse:
        """Say whether the server accepts texts: not if the queue has been full for a while."""
        batcher = app.state.batcher
        if batcher.is_open and not batcher.is_busy:
            return StatusResponse(status="ready")
        response.status_code = 503
        return StatusResponse(status="busy" if batcher.is_open else "shutting down")

    @app.head("/metrics", include_in_schema=False)
    @app.get(
        "/metrics",
        name="metrics",
        responses={
            200: {"content": {"text/plain": {"schema": METRICS_SCHEMA}}},
            **error_responses(401),
        },
        response_class=Response,
        dependencies=_security(needs_token),
        tags=["operation"],
    )
    async def read_metrics() -> Response:
        """Give the metrics in Prometheus's text format."""
        page = metrics.render(app.state.batcher.load)
        return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")


def describe_model(headliner: Headliner, limits: LimitsConfig, card: str | None) -> ModelResponse:
    """What /v1/model answers."""
    return ModelResponse(
        system=system_name(headliner),
        profile=headliner.models[0].tokenizer.profile.name,
        vocabulary=headliner.models[0].tokenizer.vocabulary_size,
        parameters=sum(one.model.num_parameters for one in headliner.models),
        precision=headliner.precision,
        device="cpu" if headliner.on_cpu else "cuda",
        version=__version__,
        card=card,
        limits=LimitsSchema(**asdict(limits)),
    )


def _security(needs_token: bool) -> Sequence[Any]:
    return [Depends(_BEARER)] if needs_token else []


def _caller(request: Request) -> str:
    caller: str = getattr(request.state, "caller", "")
    return caller


async def _answered(request: Request, work: Coroutine[Any, Any, bytes]) -> Response:
    """The answer whose body the work gives; the work is given up when the client disconnects."""
    body = await _unless_disconnected(request, work)
    if body is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    return Response(body, media_type=AsciiJSONResponse.media_type)


async def _unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work, or None if the client disconnects first; the work is cancelled."""
    working = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        disconnected.cancel()
        working.cancel()


async def _disconnected(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
