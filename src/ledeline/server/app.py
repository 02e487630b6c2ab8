"""The FastAPI application: routes, error handlers and middleware around one headliner."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from ledeline import __version__
from ledeline.inference.headliner import Headliner
from ledeline.server.error_handlers import add_error_handlers
from ledeline.server.host_check import HostMiddleware, plain_origins
from ledeline.server.metrics import Metrics
from ledeline.server.middleware import AccessMiddleware, CapacityMiddleware, ResponseMiddleware
from ledeline.server.request_body import ParsedRoute
from ledeline.server.responses import AsciiJSONResponse
from ledeline.server.routes import add_api_routes, add_operations_routes, describe_model
from ledeline.server.service import HeadlineService
from ledeline.server.settings import ServeConfig
from ledeline.server.web_page import add_page_routes, example_headline


def create_app(
    headliner: Headliner,
    settings: ServeConfig | None = None,
    tokens: Sequence[str] = (),
    card: str | None = None,
) -> FastAPI:
    """Build the application; once it has started, `app.state.batcher` writes the headlines."""
    settings = settings or ServeConfig()
    metrics = Metrics()
    app = FastAPI(
        title="ledeline",
        version=__version__,
        description="Writes headlines from ledes, and says which words were used and dropped.",
        docs_url=None,  # FastAPI's pages load their scripts from another site
        redoc_url=None,
        redirect_slashes=False,  # a redirect would go to whatever host the request names
        lifespan=_lifespan(headliner, settings, metrics),
        default_response_class=AsciiJSONResponse,
    )
    app.router.route_class = ParsedRoute
    add_error_handlers(app)
    add_page_routes(app)
    model = describe_model(headliner, settings.limits, card)
    add_api_routes(app, model, settings.limits, needs_token=bool(tokens))
    add_operations_routes(app, metrics, needs_token=bool(tokens))
    _add_middleware(app, settings, tokens, metrics)
    return app


def _lifespan(
    headliner: Headliner, settings: ServeConfig, metrics: Metrics
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Start the service and make the page's example; close the service at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = HeadlineService(headliner, settings, metrics)
        app.state.batcher = app.state.service.batcher
        app.state.example = await asyncio.to_thread(example_headline, headliner)
        app.state.service.start()
        yield
        await app.state.service.close()

    return lifespan


def _add_middleware(
    app: FastAPI, settings: ServeConfig, tokens: Sequence[str], metrics: Metrics
) -> None:
    """Add the middleware; what is added last sees a request first."""
    app.add_middleware(AccessMiddleware, limits=settings.limits, tokens=tokens)
    if settings.server.origins:  # outside, so that other sites' pages can read a 401 or 413
        app.add_middleware(
            CORSMiddleware,
            allow_origins=plain_origins(settings.server.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(HostMiddleware, server=settings.server, has_token=bool(tokens))
    app.add_middleware(CapacityMiddleware)
    app.add_middleware(ResponseMiddleware, metrics=metrics, log=settings.server.access_log)
