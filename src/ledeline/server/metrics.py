"""What is counted, for Prometheus."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ledeline.server.batcher import Batcher

_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_TEXTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ledeline_requests",
            "Requests, by path and status.",
            ["path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "ledeline_request_seconds",
            "Seconds from a request to its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._texts = Counter("ledeline_texts", "Texts answered.", registry=self._registry)
        self._batches = Histogram(
            "ledeline_batch_texts", "Texts of a batch.", buckets=_TEXTS, registry=self._registry
        )
        self._search = Histogram(
            "ledeline_batch_seconds",
            "Seconds that a batch took.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._waiting = Gauge("ledeline_texts_waiting", "Texts waiting.", registry=self._registry)
        self._running = Gauge("ledeline_texts_running", "Texts running.", registry=self._registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, num_texts: int, seconds: float) -> None:
        """A batch of so many texts was answered."""
        self._texts.inc(num_texts)
        self._batches.observe(num_texts)
        self._search.observe(seconds)

    def page(self, batcher: Batcher) -> bytes:
        """All of it, in the text format."""
        load = batcher.load
        self._waiting.set(load.waiting)
        self._running.set(load.running)
        return generate_latest(self._registry)
