"""The web page: its files, and the example that it shows at first."""

from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import FileResponse, RedirectResponse

from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.sample_ledes import LEDES
from ledeline.server.responses import AsciiJSONResponse
from ledeline.server.schemas import headline_as_dict

PAGE: Final = Path(__file__).parent / "page"
FILES: Final = {
    "base.css": PAGE.parents[1] / "report" / "base.css",  # shared with the report
    **{name: PAGE / name for name in ("icon.svg", "page.css", "page.js")},
}
MEDIA_TYPES: Final = {".svg": "image/svg+xml", ".css": "text/css", ".js": "text/javascript"}
READ_METHODS: Final = ["GET", "HEAD"]


def add_page_routes(app: FastAPI) -> None:
    """Add the page, its files and its examples; none of them is part of the API."""

    @app.api_route("/", methods=READ_METHODS, include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html; charset=utf-8")

    @app.api_route("/docs", methods=READ_METHODS, include_in_schema=False)
    async def docs() -> RedirectResponse:  # for one version; 0.1.0 had a page of the API here
        return RedirectResponse("openapi.json", 308)  # relative, for proxies that add a prefix

    @app.api_route("/page/examples.json", methods=READ_METHODS, include_in_schema=False)
    async def examples() -> Response:
        return AsciiJSONResponse({"ledes": LEDES, "answer": app.state.example})

    @app.api_route("/page/{name}", methods=READ_METHODS, include_in_schema=False)
    async def file(name: str) -> FileResponse:
        if name not in FILES:
            raise HTTPException(404, "there is no such page")
        path = FILES[name]
        return FileResponse(path, media_type=f"{MEDIA_TYPES[path.suffix]}; charset=utf-8")


def example_headline(headliner: Headliner) -> dict[str, Any]:
    """The first sample lede with headline, alternatives and alignment, as the API gives them."""
    headline = headliner(LEDES[0], n_best=3, options=Options(explain=True))
    return headline_as_dict(headline, heat_map=True)
