"""The application: its routes, and how what goes wrong is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from ledeline import __version__
from ledeline.core.errors import ConfigError
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Headliner, system_name
from ledeline.inference.sample_ledes import LEDES
from ledeline.server import schemas
from ledeline.server.api_page import reference
from ledeline.server.batcher import Batcher, Refused
from ledeline.server.example import worked_example
from ledeline.server.metrics import Metrics
from ledeline.server.middleware import Envelope, Gate
from ledeline.server.schemas import About, Answers, Asked, Problem, TrainState, answer
from ledeline.server.settings import ServeConfig

PAGE: Final = Path(__file__).parent / "page"
_OURS: Final = ("icon.svg", "page.css", "page.js", "reference.css", "reference.js")
FILES: Final = {
    "base.css": PAGE.parents[1] / "report" / "base.css",  # which the report has, too
    **{name: PAGE / name for name in _OURS},
}
TYPES: Final = {".svg": "image/svg+xml", ".css": "text/css", ".js": "text/javascript"}
READ: Final = ["GET", "HEAD"]
LONGEST_NAME: Final = 60  # characters of a field's name that are told back
GONE: Final = 499  # for the log and the counters: nobody reads it
T = TypeVar("T")


class Json(JSONResponse):
    """JSON in ASCII: whatever a text has, half a character even, can be sent back."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer."""
        return _json(content)


def _json(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _body(headlines: Sequence[Headline], *, heat_map: bool) -> bytes:
    """The answer to a request, made headline by headline: other threads come in between."""
    shown = (_json(answer(one, heat_map=heat_map)) for one in headlines)
    return b'{"headlines":[%s]}' % b",".join(shown)


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem, "description": _WHY[status]} for status in statuses}


_WHY: Final = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    422: "The request asks for something that there is not, or for more than the limit.",
    500: "Something went wrong here.",
    503: "Too much is waiting, or the server shuts down; come back after Retry-After seconds.",
    504: "The answer was not there in time.",
}


def create_app(
    headliner: Headliner,
    settings: ServeConfig | None = None,
    token: str | None = None,
    card: str | None = None,
) -> FastAPI:
    """The application around a headliner; `app.state.batcher` is what works."""
    settings = settings or ServeConfig()
    limits, metrics = settings.limits, Metrics()
    about = _about(headliner, settings, card)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(
            headliner.generate_batch, settings.batching, limits.waiting, metrics
        )
        app.state.worked = await asyncio.to_thread(worked_example, headliner)
        yield
        await app.state.batcher.close()

    app = FastAPI(
        title="ledeline",
        version=__version__,
        description="Headlines from ledes, and which words they used and dropped.",
        docs_url=None,  # they would be loaded from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # they would lead to whatever host a request names
        lifespan=lifespan,
        default_response_class=Json,
    )
    _tell_of_errors(app)
    _add_page(app, needs_token=token is not None)
    request_type: Any = schemas.request_schema(limits)

    @app.post(
        "/v1/headlines",
        response_model=None,
        responses={200: {"model": Answers}, **_problems(400, 401, 408, 413, 422, 500, 503, 504)},
        tags=["headlines"],
    )
    async def headlines(request: Request, asked: request_type) -> Response:
        """Write a headline for each text.

        The headline of a text does not depend on the texts beside it, nor on other callers; nor do
        the weights of its reasons, but for rounding.
        """
        found: Asked = asked
        work = app.state.batcher.submit(found.texts, found.options(), limits.seconds)
        answers = await _while_there(request, work)
        if answers is None:
            return Response(status_code=GONE)
        if found.heat_map:  # megabytes, maybe; others must not wait for them
            body = await asyncio.to_thread(_body, answers, heat_map=True)
        else:
            body = _body(answers, heat_map=False)
        return Response(body, media_type=Json.media_type)

    @app.get("/v1/model", responses=_problems(401), tags=["headlines"])
    async def model() -> About:
        """What writes the headlines, and what one request may ask for."""
        return about

    @app.get("/health", tags=["operation"])
    async def health() -> TrainState:
        """Whether the process lives."""
        return TrainState(status="ok")

    @app.get("/ready", responses={503: {"model": TrainState}}, tags=["operation"])
    async def ready(response: Response) -> TrainState:
        """Whether it takes texts."""
        if app.state.batcher.is_open:
            return TrainState(status="ready")
        response.status_code = 503
        return TrainState(status="shutting down")

    @app.get(
        "/metrics",
        responses={
            200: {"content": {"text/plain": {"schema": schemas.COUNTED}}},
            **_problems(401),
        },
        response_class=Response,
        tags=["operation"],
    )
    async def counted() -> Response:
        """What was counted, for Prometheus."""
        page = metrics.page(app.state.batcher)
        return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_middleware(Gate, limits=limits, token=token)
    if settings.server.origins:  # around the gate, so that their pages can read what it says
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.server.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(Envelope, metrics=metrics)
    return app


# --- the page -----------------------------------------------------------------------------------


def _add_page(app: FastAPI, *, needs_token: bool) -> None:
    @app.api_route("/", methods=READ, include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html; charset=utf-8")

    @app.api_route("/docs", methods=READ, include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        base = str(request.base_url)
        return HTMLResponse(reference(app.openapi(), base, needs_token=needs_token))

    @app.api_route("/page/examples.json", methods=READ, include_in_schema=False)
    async def examples() -> Response:
        return Json({"ledes": LEDES, "worked": app.state.worked})

    @app.api_route("/page/{name}", methods=READ, include_in_schema=False)
    async def file(name: str) -> FileResponse:
        if name not in FILES:
            raise HTTPException(404, "there is no such page")
        path = FILES[name]
        return FileResponse(path, media_type=f"{TYPES[path.suffix]}; charset=utf-8")


def _about(headliner: Headliner, settings: ServeConfig, card: str | None) -> About:
    models = [one.model for one in headliner.models]
    return About(
        system=system_name(headliner),
        profile=headliner.models[0].tokenizer.profile.name,
        vocabulary=headliner.models[0].tokenizer.vocabulary_size,
        parameters=sum(one.numel() for model in models for one in model.parameters()),
        precision=headliner.precision,
        device=models[0].device.type,
        version=__version__,
        card=card,
        limits=schemas.ModelLimits(**asdict(settings.limits)),
    )


# --- callers, and what goes wrong ---------------------------------------------------------------


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to; None, and the work is given up, where the caller goes away."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        leaving.cancel()
        working.cancel()


async def _gone(request: Request) -> None:
    """Return when the caller has ended the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _tell_of_errors(app: FastAPI) -> None:
    """Every error is one sentence; none has a traceback or a text in it."""

    @app.exception_handler(RequestValidationError)
    async def not_valid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return Json({"detail": "the body is not JSON"}, 400)
        place = ".".join(str(part)[:LONGEST_NAME] for part in first["loc"][1:]) or "the body"
        return Json({"detail": f"{place}: {schemas.in_words(first)}"}, 422)

    @app.exception_handler(ConfigError)
    async def contradiction(_: Request, error: ConfigError) -> Response:
        return Json({"detail": str(error)}, 422)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        retry = {"Retry-After": str(round(error.seconds))}
        return Json({"detail": str(error)}, 503, retry)

    @app.exception_handler(TimeoutError)
    async def late(_: Request, __: TimeoutError) -> Response:
        return Json({"detail": "the answer was not there in time; ask for less, or later"}, 504)

    @app.exception_handler(AnyHTTPException)
    async def other(_: Request, error: AnyHTTPException) -> Response:
        sentence = "the body is not JSON in UTF-8" if error.status_code == 400 else error.detail
        return Json({"detail": sentence}, error.status_code, error.headers)
