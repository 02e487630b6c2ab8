"""The page /docs: it has every route, its examples work, and nothing comes from elsewhere."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import Request

import pytest
from fastapi import FastAPI

from ledeline.inference.headliner import Headliner
from ledeline.server import schemas
from ledeline.server.api_page import reference
from ledeline.server.app import FILES, create_app
from ledeline.server.middleware import POLICY
from live import TOKEN, asked, fetch, listening

PAGE = Path(schemas.__file__).parent / "page"

pytestmark = pytest.mark.usefixtures("one_thread")


class Read(HTMLParser):
    """Elements in order, each with its attributes and its text; nesting is checked on the way."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[int] = []
        self.feed(html)
        self.close()
        assert not self._open, "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link"):
            self._open.append(len(self.elements))
        self.elements.append((tag, {name: value or "" for name, value in attrs}, []))

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for number in self._open:
            self.elements[number][2].append(data)

    def texts(self, tag: str) -> list[str]:
        return ["".join(text) for name, _, text in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(base: str) -> str:
    return fetch(f"{base}/docs").text


def commands(page: str) -> list[str]:
    return [text for text in Read(page).texts("pre") if text.startswith("curl ")]


def document(**changes: Any) -> dict[str, Any]:
    """A document of one route, or with something else in it."""
    answer = {"description": "Fine.", "content": {"application/json": {"schema": {}}}}
    operation = {"description": "Says it.", "responses": {"200": answer}, **changes}
    info = {"title": "t", "version": "1"}
    return {"info": info, "paths": {"/say": {"put": operation}}, "components": {"schemas": {}}}


def test_it_has_every_route_and_every_field(app: FastAPI, page: str) -> None:
    read = Read(page)
    found = app.openapi()
    routes = [f"{method.upper()} {path}" for path, one in found["paths"].items() for method in one]
    assert len(routes) == 5
    assert read.texts("h2") == routes
    shown = read.texts("td")
    for name, schema in found["components"]["schemas"].items():
        assert read.texts("h4").count(name) == 1
        assert all(field in shown for field in schema["properties"]), name
    assert {"400", "401", "413", "422", "503", "504"} <= set(shown)
    assert "1 to 64 items, each at most 5000 characters" in shown


def test_its_links_lead_somewhere(base: str, page: str) -> None:
    elements = Read(page).elements
    places = [found["id"] for _, found, _ in elements if "id" in found]
    assert len(set(places)) == len(places)
    for _, found, _ in elements:
        target = found.get("href", found.get("src", ""))
        if target.startswith("#"):
            assert target[1:] in places
        elif target:
            assert fetch(urljoin(f"{base}/docs", target)).status == 200


def test_its_examples_work(app: FastAPI, base: str, page: str) -> None:
    found = commands(page)
    assert len(found) == 5
    for command, (path, methods) in zip(found, app.openapi()["paths"].items(), strict=True):
        request = asked(command, {"LEDELINE_TOKEN": TOKEN})
        assert request.full_url == base + path
        answer = fetch(request)
        assert answer.status == 200, answer.text
        ((_, operation),) = methods.items()
        if "401" in operation["responses"]:
            assert fetch(asked(command)).status == 401
        else:
            assert "Authorization" not in command


def test_example_answers_are_like_real_ones(base: str, page: str) -> None:
    def keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: keys(one) for name, one in value.items()}
        return [keys(one) for one in value] if isinstance(value, list) else None

    sections = re.split(r"<section ", page)[1:]
    for section in sections:
        command, *examples = Read(f"<section {section.split('</main>')[0]}").texts("pre")
        real = fetch(asked(command, {"LEDELINE_TOKEN": TOKEN})).text
        assert examples
        if real.startswith("{"):
            shown, answer = json.loads(examples[0]), json.loads(real)
            for one in (shown, answer):
                for headline in one.get("headlines", []):
                    headline["warnings"] = []  # the test's model has some
            assert keys(shown) == keys(answer)
        else:
            assert all(line.split()[0] in real for line in examples[0].splitlines())
    assert json.loads(fetch(f"{base}/openapi.json").text)["components"]["schemas"]["Answers"][
        "examples"
    ]


def test_without_a_token_none_is_sent(model_folder: Path) -> None:
    app = create_app(Headliner.load(model_folder, device="cpu"))
    page = reference(app.openapi(), "https://desk.example/ledeline/", needs_token=False)
    assert "Authorization" not in page
    assert "asks for a token" not in page
    assert all("https://desk.example/ledeline/" in command for command in commands(page))


def test_addresses_are_those_that_a_proxy_is_known_by(model_folder: Path) -> None:
    app = create_app(Headliner.load(model_folder, device="cpu"))
    with listening(app, "/ledeline") as base:
        headers = {"Host": "desk.example", "X-Forwarded-Proto": "https"}
        page = fetch(Request(f"{base}/docs", headers=headers)).text
    found = commands(page)
    assert len(found) == 5
    assert all(command.startswith("curl https://desk.example/ledeline/") for command in found)


def test_nothing_comes_from_elsewhere_and_nothing_is_inline(base: str, page: str) -> None:
    answer = fetch(f"{base}/docs")
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for tag, found, text in Read(page).elements:
        assert tag != "style"
        assert not (tag == "script" and "".join(text).strip())
        assert not [name for name in found if name == "style" or name.startswith("on")]
        target = found.get("href", found.get("src", ""))
        assert "//" not in target
        assert not target.startswith("/")
    for name in FILES:
        if name.startswith("reference."):
            text = (PAGE / name).read_text()
            assert not re.search(r"https?:|//\w|@import|url\(|innerHTML|outerHTML|eval", text)


def test_text_is_escaped() -> None:
    bad = "<script>alert(1)</script> & \"quotes\" 'too'"
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"examples": [bad]}}}
    body = {"content": {"application/json": {"schema": schema}}}
    parameters = [{"name": bad, "in": "query", "schema": {"type": bad, "enum": [bad]}}]
    one = document(description=bad, requestBody=body, parameters=parameters)
    one["info"] = {"title": bad, "version": bad, "description": bad}
    one["paths"][f"/{bad}"] = one["paths"].pop("/say")
    page = reference(one, "http://here/" + bad, needs_token=True)
    assert "<script>" not in page
    read = Read(page)
    assert [tag for tag, _, _ in read.elements].count("script") == 1  # its own
    assert bad in read.texts("h1")[0]
    (command,) = commands(page)
    request = asked(command)
    assert request.method == "PUT"
    assert json.loads(request.data or b"") == {"a": bad}  # type: ignore[arg-type]
    (example,) = [found for _, found, _ in read.elements if found.get("class") == "example"]
    assert json.loads(example["data-body"]) == {"a": bad}


def test_an_address_cannot_leave_its_word() -> None:
    (command,) = commands(reference(document(), "http://x/$(rm)`id`;y", needs_token=False))
    assert command == "curl 'http://x/$(rm)`id`;y/say' \\\n  -X PUT"


@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ({"minimum": 1.0, "maximum": 50.0}, "1 to 50"),
        ({"minimum": 0.5}, "at least 0.5"),
        ({"maxLength": 7}, "at most 7 characters"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "at least 1"),
        ({"items": {"minLength": 1, "maxLength": 2}, "maxItems": 3}, "at most 3 items, each 1 to 2 characters"),
        ({}, ""),
    ],
)  # fmt: skip
def test_limits_are_in_words(field: dict[str, Any], limits: str) -> None:
    parameters = [{"name": "it", "in": "query", "schema": field}]
    page = reference(document(parameters=parameters), "http://here", needs_token=False)
    cells = [
        text for tag, found, text in Read(page).elements if found.get("data-column") == "limits"
    ]
    assert ["".join(text) for text in cells] == [limits]
