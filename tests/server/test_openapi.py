"""The OpenAPI document: it describes everything, and its examples are like real requests."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import HTTPRedirectHandler, Request, build_opener

import pytest
from fastapi import FastAPI

from ledeline.inference.headliner import Headliner
from ledeline.server.app import create_app
from live import TOKEN, fetch

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each route."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def example_of(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    """The first example of a schema, or its required fields with their examples."""
    schema = resolved(document, schema)
    if "examples" in schema:
        return schema["examples"][0]
    return {name: example_of(document, schema["properties"][name]) for name in schema["required"]}


def test_every_route_schema_field_and_status_is_described(document: dict[str, Any]) -> None:
    routes = [f"{method} {path}" for method, path, _ in operations(document)]
    assert routes == [
        "POST /v1/headlines",
        "POST /v1/check",
        "GET /v1/model",
        "GET /health",
        "GET /ready",
        "GET /metrics",
    ]
    for method, path, operation in operations(document):
        assert operation["description"], f"{method} {path}"
        for status, response in operation["responses"].items():
            if status != "200":
                assert response["description"].endswith("."), f"{method} {path} {status}"
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"], name
        for field, inner in schema["properties"].items():
            assert inner.get("description"), f"{name}.{field}"


def test_limits_are_those_of_the_server(document: dict[str, Any]) -> None:
    texts = document["components"]["schemas"]["HeadlinesRequest"]["properties"]["texts"]
    assert (texts["minItems"], texts["maxItems"]) == (1, 64)
    assert texts["items"]["maxLength"] == 5000


def test_examples_are_answered_as_they_say(document: dict[str, Any], base: str) -> None:
    for method, path, operation in operations(document):
        headers = {"Content-Type": "application/json"}
        body = None
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            body = json.dumps(example_of(document, content["schema"])).encode()
        if "401" in operation["responses"]:
            assert fetch(Request(base + path, body, headers, method=method)).status == 401
            headers["Authorization"] = f"Bearer {TOKEN}"
        answer = fetch(Request(base + path, body, headers, method=method))
        assert answer.status == 200, answer.text
        ((kind, content),) = operation["responses"]["200"]["content"].items()
        example = example_of(document, content["schema"])
        if kind == "application/json":
            assert keys(json.loads(answer.text)) == keys(example)
        else:
            assert all(line.split()[0] in answer.text for line in example.splitlines())


def keys(value: Any) -> Any:
    """The keys of an answer but for what depends on the model: warnings, and checks."""
    if isinstance(value, dict):
        varying = {"warnings"} | ({"support", "doubts"} if "headline" in value else set())
        return {name: keys(one) for name, one in value.items() if name not in varying}
    return [keys(one) for one in value] if isinstance(value, list) else None


def test_it_says_which_routes_need_a_token(document: dict[str, Any], headliner: Headliner) -> None:
    ((name, scheme),) = document["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for _, path, operation in operations(document):
        needs_token = "401" in operation["responses"]
        assert operation.get("security", []) == ([{name: []}] if needs_token else []), path
    without = create_app(headliner).openapi()
    assert "securitySchemes" not in without["components"]
    assert not any("security" in operation for _, _, operation in operations(without))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_docs_leads_to_it(base: str, method: str) -> None:
    seen = []

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            seen.append((code, headers["Location"], newurl))
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    with build_opener(Redirects).open(Request(f"{base}/docs", method=method)) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
    # Relative, so that it also leads there below a proxy's prefix.
    assert seen == [(308, "openapi.json", f"{base}/openapi.json")]
