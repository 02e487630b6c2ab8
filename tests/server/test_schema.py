"""What the schema of the API says, tried with what it allows and with what it forbids."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

schemathesis = pytest.importorskip("schemathesis")

from schemathesis.engine import events, from_schema  # noqa: E402

from ledeline.server.settings import LimitsConfig  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

# Small ones, for what is searched takes time.
LIMITS = LimitsConfig(texts=3, characters=40, beam=4, n_best=4)
TRIED = {
    "seed": 1,
    "workers": 1,
    "generation": {
        "max-examples": 150,
        "mode": "all",
        "deterministic": True,
        "no-shrink": True,
        "database": "none",
    },
    "phases": {"stateful": {"enabled": False}},
    "checks": {"positive_data_acceptance": {"expected-statuses": ["200", "422"]}},
}
# What a schema cannot say: n_best is at most beam, max_length at least min_length, which a text must
# be able to need; support is known only of what is checked; and the price.
UNSAID = re.compile(
    r"n_best = |max_length = |min_length = |(rank|min_support) = .*: needs check|the request costs "
)


class Tried:
    """What was sent and came back."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.answers: Counter[tuple[str, str, int]] = Counter()
        self.checks: Counter[str] = Counter()

    def see(self, event: Any) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            self.wrong.append(repr(event))
        if isinstance(event, events.ScenarioFinished):
            for key, one in event.recorder.interactions.items():
                self._answer(event.recorder.cases[key].value, one)
            for found in event.recorder.checks.values():
                for check in found:
                    self.checks[check.name] += 1
                    if check.failure_info is not None:
                        self.wrong.append(f"{event.label}: {check.failure_info.failure!r}")

    def _answer(self, case: Any, one: Any) -> None:
        status, path = one.response.status_code, urlsplit(one.request.uri).path
        self.answers[one.request.method, path, status] += 1
        if case.meta.generation.mode.is_positive and status == 422:
            detail = json.loads(one.response.content)["detail"]
            if not UNSAID.match(detail):
                self.wrong.append(f"{case.body!r} was refused: {detail}")


@pytest.fixture(scope="module")
def server(serve) -> Iterator[Any]:
    with serve(limits=LIMITS) as running:
        yield running


def test_every_answer_is_as_described(server) -> None:
    address = f"http://127.0.0.1:{server.port}"
    config = schemathesis.Config.from_dict({**TRIED, "base-url": address})
    tried = Tried()
    for event in from_schema(
        schemathesis.openapi.from_dict(server.app.openapi(), config=config)
    ).execute():
        tried.see(event)
    assert tried.wrong == []
    assert max(status for _, _, status in tried.answers) < 500
    for path in ("/v1/model", "/health", "/ready", "/metrics"):
        assert tried.answers["GET", path, 200]
    for path in ("/v1/headlines", "/v1/check"):
        assert tried.answers["POST", path, 200] > 50  # else it is not much of a test
        assert tried.answers["POST", path, 422] > 50
    assert tried.checks["response_schema_conformance"] > 150
