"""The page /docs: the OpenAPI document as HTML, whole without scripts and from nowhere else."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from ledeline.server.settings import TOKEN_VARIABLE

Node = Mapping[str, Any]

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_JSON: Final = "application/json"
_NO_TOKEN: Final = 401
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}: the API</title>
<link rel="icon" href="page/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page/base.css">
<link rel="stylesheet" href="page/reference.css">
<script type="module" src="page/reference.js"></script>
</head>
<body>
<header>
<h1>{title} <small>{version}</small></h1>
<p>{description}</p>
<p><a href="./">The page for people</a>, and <a href="openapi.json">this one for programs</a>.</p>
{token}
<nav aria-label="Routes"><ul>
{contents}
</ul></nav>
</header>
<main>
{routes}
</main>
</body>
</html>
"""


def reference(document: Node, base: str, *, needs_token: bool) -> str:
    """The page for an OpenAPI document of a server that callers know as `base`."""
    return _Page(document, base.rstrip("/"), needs_token).html()


class _Page:
    """One page while it is written."""

    def __init__(self, document: Node, base: str, needs_token: bool) -> None:
        self._document, self._base, self._needs_token = document, base, needs_token
        self._shown: set[str] = set()  # schemas that have their table

    def html(self) -> str:
        about = self._document["info"]
        operations = [
            (method, path, operation)
            for path, methods in self._document["paths"].items()
            for method, operation in methods.items()
            if method in _METHODS
        ]
        note = f"This server asks for a token; the examples take it from `{TOKEN_VARIABLE}`."
        return _PAGE.format(
            title=escape(about["title"]),
            version=escape(about["version"]),
            description=_prose(about.get("description", "")),
            token=f"<p>{_prose(note)}</p>" if self._needs_token else "",
            contents="\n".join(_link(method, path) for method, path, _ in operations),
            routes="\n".join(self._route(*one) for one in operations),
        )

    # --- a route ------------------------------------------------------------------------------

    def _route(self, method: str, path: str, operation: Node) -> str:
        asked = _content(operation.get("requestBody", {}))
        answered = _content(operation["responses"].get("200", {}))
        body = None if asked is None else self._filled(asked[1])
        parts = [
            f'<section id="{_place(method, path)}" aria-labelledby="{_place(method, path)}-title">',
            f'<h2 id="{_place(method, path)}-title">{_named(method, path)}</h2>',
            *_paragraphs(operation.get("description", "")),
            *self._parameters(operation.get("parameters", [])),
        ]
        if asked is not None:
            parts += ["<h3>Request</h3>", *self._tables(asked, is_request=True)]
        command = self._command(method, path, operation, body)
        parts += ["<h3>Example</h3>", self._trial(method, path, operation, body, command)]
        if answered is not None:
            parts += self._answers(answered)
            parts += ["<h3>Answer</h3>", *self._tables(answered)]
        return "\n".join([*parts, *self._errors(operation["responses"]), "</section>"])

    def _command(self, method: str, path: str, operation: Node, body: Any) -> str:
        """What to type in a shell."""
        words = [f"curl {shlex.quote(self._base + path)}"]
        if method != ("get" if body is None else "post"):
            words.append(f"-X {method.upper()}")
        if self._asks(operation):
            words.append(f'-H "Authorization: Bearer ${TOKEN_VARIABLE}"')
        if body is not None:
            words += [f"-H 'Content-Type: {_JSON}'", f"-d {shlex.quote(json.dumps(body))}"]
        return " \\\n  ".join(words)

    def _asks(self, operation: Node) -> bool:
        return self._needs_token and str(_NO_TOKEN) in operation["responses"]

    def _trial(self, method: str, path: str, operation: Node, body: Any, command: str) -> str:
        """The command; beside it the script puts a button that does the same."""
        data = {"method": method.upper(), "path": path.removeprefix("/")}
        if body is not None:
            data["body"] = json.dumps(body, indent=2)
        if self._asks(operation):
            data["token"] = "yes"
        told = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
        return f'<div class="example"{told}><pre><code>{escape(command)}</code></pre></div>'

    def _answers(self, content: tuple[str, Node]) -> Iterator[str]:
        kind, schema = content
        for number, example in enumerate(self._resolved(schema).get("examples", [])):
            text = json.dumps(example, indent=2) if kind == _JSON else str(example)
            yield "<p>or</p>" if number else "<p>The answer, for example:</p>"
            yield f'<pre class="answer"><code>{escape(text)}</code></pre>'

    def _errors(self, responses: Node) -> Iterator[str]:
        rows: list[list[str]] = []
        tables: list[str] = []
        for status, response in responses.items():
            if (content := _content(response)) is not None and status != "200":
                meaning = _prose(response["description"])
                rows.append([escape(status), meaning, self._type(content[1])])
                tables += self._tables(content)
        if rows:
            yield "<h3>Other statuses</h3>"
            yield _table(("status", "when", "answer"), rows)
            yield from tables

    # --- fields -------------------------------------------------------------------------------

    def _parameters(self, parameters: list[Node]) -> Iterator[str]:
        if not parameters:
            return
        rows = []
        for one in parameters:
            field = {"description": one.get("description", ""), **one["schema"]}
            name = f"{one['name']} ({one['in']})"
            rows.append(self._row(name, field, one.get("required", False), is_request=True))
        yield "<h3>Parameters</h3>"
        yield _table(("field", "type", "default", "limits", "meaning"), rows)

    def _tables(self, content: tuple[str, Node], *, is_request: bool = False) -> Iterator[str]:
        """A table for each schema that is not on the page so far, the outermost first."""
        kind, schema = content
        if kind != _JSON:
            yield f"<p>{escape(kind)}</p>"
        for name in self._names(schema):
            if name in self._shown:
                continue
            self._shown.add(name)
            found = self._document["components"]["schemas"][name]
            required = found.get("required", [])
            rows = [
                self._row(field, inner, field in required, is_request=is_request)
                for field, inner in found.get("properties", {}).items()
            ]
            about = found.get("description", "")
            if found.get("additionalProperties") is False:
                about = f"{about} Other fields are refused.".strip()
            wide = ("default", "limits") if is_request else ()
            yield f'<h4 id="schema-{escape(name)}">{escape(name)}</h4>'
            yield from _paragraphs(about)
            yield _table(("field", "type", *wide, "meaning"), rows)

    def _names(self, schema: Any) -> list[str]:
        """The schemas that a schema is made of, each once."""
        found: dict[str, None] = {}
        waiting = [schema]
        while waiting:
            one = waiting.pop(0)
            if isinstance(one, list):
                waiting += one
            elif isinstance(one, dict):
                name = one.get("$ref", "").rpartition("/")[2]
                if name and name not in found:
                    found[name] = None
                    waiting.append(self._document["components"]["schemas"][name])
                waiting += [
                    inner for key, inner in one.items() if key not in ("example", "examples")
                ]
        return list(found)

    def _row(self, name: str, field: Node, required: bool, *, is_request: bool) -> list[str]:
        meaning = field.get("description") or self._inherited(field)
        cells = [f"<code>{escape(name)}</code>", self._type(field)]
        if is_request:
            default = _code(field.get("default")) if not required else "required"
            cells += [default, escape(_limits(field))]
        elif not required:
            meaning = f"Only where asked for. {meaning}"
        return [*cells, _prose(meaning)]

    def _inherited(self, field: Node) -> str:
        """What the schema of a field says of itself."""
        names = self._names(field)
        about = self._document["components"]["schemas"][names[0]] if names else {}
        return str(about.get("description", ""))

    def _type(self, field: Node) -> str:
        """A type in words; schemas link to their tables."""
        if "$ref" in field:
            name = escape(field["$ref"].rpartition("/")[2])
            return f'<a href="#schema-{name}">{name}</a>'
        if "anyOf" in field:
            return " or ".join(self._type(one) for one in field["anyOf"])
        if "enum" in field:
            return " or ".join(_code(one) for one in field["enum"])
        if field.get("type") == "array":
            return f"list of {self._type(field.get('items', {}))}"
        return escape(str(field.get("type", "any")))

    def _resolved(self, schema: Node) -> Node:
        name = schema.get("$ref", "").rpartition("/")[2]
        found: Node = self._document["components"]["schemas"][name] if name else schema
        return found

    def _filled(self, schema: Node) -> Any:
        """The least that a schema asks for, with the examples of its fields."""
        schema = self._resolved(schema)
        if schema.get("examples"):
            return schema["examples"][0]
        if schema.get("type") == "object":
            fields = schema.get("properties", {})
            return {name: self._filled(fields[name]) for name in schema.get("required", [])}
        return schema.get("default")


# --- small pieces -------------------------------------------------------------------------------


def _content(part: Node) -> tuple[str, Node] | None:
    """The kind and the schema of a body, if it has one."""
    for kind, content in part.get("content", {}).items():
        return kind, content.get("schema", {})
    return None


def _place(method: str, path: str) -> str:
    words = "".join(sign if sign.isalnum() else " " for sign in path).split()
    return escape("-".join([method, *words]))


def _named(method: str, path: str) -> str:
    return f"<code>{method.upper()} {escape(path)}</code>"


def _link(method: str, path: str) -> str:
    return f'<li><a href="#{_place(method, path)}">{_named(method, path)}</a></li>'


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        if paragraph.strip():
            yield f"<p>{_prose(paragraph.strip())}</p>"


def _prose(text: str) -> str:
    """Text, and what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table; each cell knows its column, for where there is no room for columns."""
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td data-column="{name}">{cell}</td>' for name, cell in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _code(value: Any) -> str:
    return f"<code>{escape(json.dumps(value))}</code>"


def _limits(field: Node) -> str:
    """The limits of a field, and of what is in it, in words."""
    bounds = (
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", " items"),
        ("minLength", "maxLength", " characters"),
    )
    found = []
    for least, most, unit in bounds:
        if least in field and most in field:
            found.append(f"{_number(field[least])} to {_number(field[most])}{unit}")
        elif most in field:
            found.append(f"at most {_number(field[most])}{unit}")
        elif least in field:
            found.append(f"at least {_number(field[least])}{unit}")
    found += [inner for one in field.get("anyOf", []) if (inner := _limits(one))]
    if "items" in field and (inner := _limits(field["items"])):
        found.append(f"each {inner}")
    return ", ".join(found)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
