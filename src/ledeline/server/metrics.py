"""Metrics for Prometheus."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ledeline.server.batcher import Load

_SECONDS_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_TEXTS_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters and histograms of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ledeline_requests",
            "Requests, by path and status.",
            ["path", "status"],
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "ledeline_request_seconds",
            "Seconds from a request to its answer.",
            ["path"],
            buckets=_SECONDS_BUCKETS,
            registry=self._registry,
        )
        self._num_texts = Counter("ledeline_texts", "Texts answered.", registry=self._registry)
        self._given_up = Counter(
            "ledeline_texts_given_up",
            "Texts whose search ended without a headline: nobody waited any more, or it failed.",
            registry=self._registry,
        )
        self._batch_texts = Histogram(
            "ledeline_batch_texts",
            "Texts of a batch.",
            buckets=_TEXTS_BUCKETS,
            registry=self._registry,
        )
        self._batch_seconds = Histogram(
            "ledeline_batch_seconds",
            "Seconds that a batch took.",
            buckets=_SECONDS_BUCKETS,
            registry=self._registry,
        )
        self._waiting = Gauge("ledeline_texts_waiting", "Texts waiting.", registry=self._registry)
        self._running = Gauge("ledeline_texts_running", "Texts running.", registry=self._registry)

    def observe_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(path, str(status)).inc()
        self._request_seconds.labels(path).observe(seconds)

    def observe_batch(self, num_texts: int, num_given_up: int, seconds: float) -> None:
        """Count a batch that has ended."""
        self._num_texts.inc(num_texts - num_given_up)
        self._given_up.inc(num_given_up)
        self._batch_texts.observe(num_texts)
        self._batch_seconds.observe(seconds)

    def render(self, load: Load) -> bytes:
        """All metrics in Prometheus's text format."""
        self._waiting.set(load.waiting)
        self._running.set(load.running)
        return generate_latest(self._registry)
