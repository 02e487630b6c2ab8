"""The guide docs/serve.md: its commands and settings work, and its answers are like real ones."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from ledeline.config.toml import load
from ledeline.core.shipped import SHIPPED
from ledeline.inference.headliner import Headliner
from ledeline.model.format.description import CARD
from ledeline.server.app import create_app
from ledeline.server.settings import ServeConfig, find_tokens
from live import TOKEN, curl_commands, curl_request, fetch, listening
from pages import ROOT, blocks

GUIDE = (ROOT / "docs" / "serve.md").read_text()
VARIABLES = {"LEDELINE_TOKEN": TOKEN}
ADDRESS = "http://127.0.0.1:8000"
COMMANDS = [block.text for block in blocks(GUIDE) if not block.language]
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.usefixtures("one_thread")


def of(language: str) -> list[str]:
    return [block.text for block in blocks(GUIDE) if block.language == language]


def table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without backticks."""
    part = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return [[cell.replace("`", "") for cell in row] for row in rows[2:]]


def shape(value: Any) -> Any:
    """The keys of an answer; of a list, those of its first."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


# --- the API ------------------------------------------------------------------------------------


def test_the_requests_are_answered_as_it_says(base: str) -> None:
    commands = [one for text in COMMANDS for one in curl_commands(text)]
    first, headlines, check, model = [command.replace(ADDRESS, base) for command in commands]
    assert fetch(curl_request(first)).status == 401
    documented = [json.loads(text) for text in of("json")]
    assert len(documented) == 3

    found = json.loads(fetch(curl_request(headlines, VARIABLES)).text)["headlines"]
    said = documented[0]["headlines"]
    for headline in (said[0], found[0]):
        headline["warnings"] = []  # the test's model has some
    for headline in (said[0], *said[0]["alternatives"]):
        assert 0 <= headline.pop("support") <= 1  # only those of the bundled model are checked
        assert headline.pop("doubts") == []
    assert [shape(one) for one in found] == [shape(one) for one in said]
    assert found[1] == said[1]

    checks = json.loads(fetch(curl_request(check, VARIABLES)).text)
    assert shape(checks) == shape(documented[1])
    assert checks["checks"][0]["doubts"] == documented[1]["checks"][0]["doubts"]

    about = json.loads(fetch(curl_request(model, VARIABLES)).text)
    assert shape(about) == shape(documented[2])
    assert about["limits"] == documented[2]["limits"]


def test_the_first_request_needs_no_token(model_folder: Path) -> None:
    with listening(create_app(Headliner.load(model_folder, device="cpu"))) as base:
        (command,) = curl_commands(COMMANDS[0])
        answer = fetch(curl_request(command.replace(ADDRESS, base)))
        assert answer.status == 200
        assert json.loads(answer.text)["headlines"][0]["source"].startswith("Tokyo")
        for address in re.findall(rf"<{ADDRESS}(.*?)>", GUIDE):
            assert fetch(base + address).status == 200


def test_the_python_runs(base: str) -> None:
    (code,) = of("python")
    run = [sys.executable, "-c", code.replace(ADDRESS, base)]
    environment = os.environ | VARIABLES
    shown = subprocess.run(run, env=environment, check=True, capture_output=True, text=True)
    assert shown.stdout.strip()


def test_the_routes_are_all_there(app: FastAPI) -> None:
    rows = {place: token for place, _, token in table("The API")}
    for path, methods in app.openapi()["paths"].items():
        ((method, operation),) = methods.items()
        token = "needed" if "401" in operation["responses"] else "no"
        assert rows[f"{method.upper()} {path}"] == token


def test_the_statuses_are_all_there(app: FastAPI, base: str) -> None:
    said = {status for row in table("Statuses") for status in row[0].split(", ")}
    for methods in app.openapi()["paths"].values():
        for operation in methods.values():
            assert set(operation["responses"]) <= said
    (example,) = re.findall(r'`(\{"detail".*?\})`', GUIDE)
    command = f"curl {base}/v1/headlines -H 'Authorization: Bearer {TOKEN}' -H 'Content-Type: application/json'"
    answer = fetch(curl_request(command + """ -d '{"texts": ["Rain."], "beam": 51}'"""))
    assert (answer.status, json.loads(answer.text)) == (422, json.loads(example))
    assert fetch(f"{base}/nothing").status == 404
    assert (
        fetch(curl_request(f"curl {base}/v1/headlines -H 'Authorization: Bearer {TOKEN}'")).status
        == 405
    )


def test_what_is_counted_is_all_there(base: str) -> None:
    page = fetch(curl_request(f"curl {base}/metrics -H 'Authorization: Bearer {TOKEN}'")).text
    counted = dict(re.findall(r"# TYPE (\S+) (\S+)", page))
    counted = {name: kind for name, kind in counted.items() if not name.endswith("_created")}
    assert {name: kind for name, kind, _ in table("Metrics")} == counted


# --- settings -----------------------------------------------------------------------------------


def test_settings_can_be_read_and_fit_those_of_proxies(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    read = []
    for text in of("toml"):
        path.write_text(text)
        read.append(load(ServeConfig, path, ["--limits.texts=16"]))
        assert read[-1].limits.texts == 16
    plain, callers, proxied = read
    assert plain.limits.beam == 20
    assert callers.callers.texts_in_work == 128
    assert proxied.server.prefix == "/ledeline"
    assert f"server_name {proxied.server.hosts[0]};" in "".join(of("nginx"))
    nginx, caddy = "".join(of("nginx")), "".join(of("caddy"))
    kept = re.findall(r"keepalive_timeout (\d+)s", nginx) + re.findall(r"keepalive (\d+)s", caddy)
    waits = re.findall(r"read_timeout (\d+)s", nginx) + re.findall(r"er_timeout (\d+)s", caddy)
    assert len(kept) == 3
    assert len(waits) == 2
    assert all(int(seconds) < proxied.server.keep_alive_seconds for seconds in kept)
    assert all(int(seconds) > proxied.limits.seconds for seconds in waits)


def test_keys_that_are_named_exist() -> None:
    keys = {f"{section}.{key}" for section, keys in settings().items() for key in keys}
    named = set(re.findall(r"`((?:server|limits|batching|model)\.[a-z_]+)", GUIDE)) - {"models.md"}
    assert named
    assert named <= keys


def settings() -> dict[str, list[str]]:
    page = (ROOT / "docs" / "config.md").read_text().split("## `ledeline serve`")[1]
    parts = page.split("### `[")[1:]
    return {part.split("]")[0]: re.findall(r"^\| `(\w+)`", part, re.M) for part in parts}


def test_the_commands_start_and_stop_a_server(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text(of("toml")[0])
    make_token, serve = COMMANDS[-1].splitlines()
    subprocess.run(make_token, shell=True, check=True, cwd=tmp_path)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    (token,) = find_tokens(tmp_path / "token")
    command = [BIN / "ledeline", *serve.split()[1:], "--server.port=0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            line = server.stderr.readline()
            base = re.search(r"listening on (http://127\.0\.0\.1:\d+)", line)
            assert base is not None, line
            about = f"curl {base[1]}/v1/model -H 'Authorization: Bearer {token}'"
            found = json.loads(fetch(curl_request(about)).text)
            assert found["limits"]["beam"] == 20
            assert found["card"] == (SHIPPED / CARD).read_text(encoding="utf-8")
            assert fetch(f"{base[1]}/ready").status == 200
        finally:
            server.send_signal(signal.SIGTERM)
            rest = server.stderr.read()
    assert "SIGTERM" in rest
    assert token not in rest


# --- other programs -----------------------------------------------------------------------------


def test_the_unit_is_one_to_systemd(tmp_path: Path) -> None:
    (text,) = of("ini")
    server = ServeConfig().server
    assert int(re.findall(r"TimeoutStopSec=(\d+)", text)[0]) > server.shutdown_seconds
    assert int(re.findall(r"LimitNOFILE=(\d+)", text)[0]) > 2 * server.connections
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not there")
    unit = tmp_path / "ledeline-test.service"
    unit.write_text(text.replace("/opt/ledeline/bin/ledeline", str(shutil.which("true"))))
    shown = subprocess.run([program, "verify", "--man=no", unit], capture_output=True, text=True)
    if "Failed to initialize manager" in shown.stderr:
        pytest.skip("systemd-analyze cannot work here")
    complaints = [line for line in shown.stderr.splitlines() if unit.name in line]
    assert not complaints
    assert shown.returncode == 0, shown.stderr


def test_the_configurations_are_some_to_nginx(tmp_path: Path) -> None:
    one, several = of("nginx")
    assert one.count("{") == one.count("}")
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("nginx is not there")
    server = one[one.index("server {\n    listen") :].replace(
        "listen 80;", "listen 127.0.0.1:8080;"
    )
    retry = re.search(r"`(proxy_next_upstream .*?;)`", GUIDE)
    assert retry is not None
    more = server.replace("location /ledeline/ {", "location /ledeline/ {\n" + retry[1])
    for text in (one.replace("listen 80;", "listen 127.0.0.1:8080;"), several + more):
        path = tmp_path / "nginx.conf"
        path.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{text}\n}}\n")
        check = [program, "-t", "-q", "-p", tmp_path, "-c", path, "-e", tmp_path / "log"]
        shown = subprocess.run(check, capture_output=True, text=True)
        assert shown.returncode == 0, shown.stderr


def test_the_image_has_what_it_needs_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    let_in = [line[1:] for line in lines if line.startswith("!")]
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.M)
    assert sorted(name for names in copied for name in names.split()) == sorted(let_in)
    assert all((ROOT / name).exists() for name in let_in)
    assert dockerfile.count("--constraint constraints.txt") == dockerfile.count("pip install")
    last = dockerfile.split("FROM ")[-1]
    assert "USER 10001" in last
    assert "/ready" in last
    assert "TOKEN" not in dockerfile
    assert "--model" not in last  # that in the box is the default
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "serve" in extras["optional-dependencies"]
    assert (ROOT / "pyproject.toml").read_text().count('readme = "README.md"') == 1
