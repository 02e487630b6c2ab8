"""What requests cost: their price, and the seconds that they really take.

    python bench/price.py [--model MODEL] [--turns 3]

Each request goes through the server's own service (all but HTTP), alone. A unit of the price should
take about as long in every row, or less where a search ends early; `docs/serve.md` has the table.
"""

import argparse
import asyncio
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import quick
import tiny
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.inference.headliner import Headliner
from ledeline.inference.sample_ledes import LEDES
from ledeline.inference.threads import num_threads
from ledeline.server.metrics import Metrics
from ledeline.server.price import text_prices
from ledeline.server.schemas import HeadlinesRequest, request_schema
from ledeline.server.service import HeadlineService
from ledeline.server.settings import LimitsConfig, ServeConfig
from machine import described
from rows import Column, Rows, Table

# A text of 5,000 characters that the model knows little of: as many sub-words as are read.
LONG: Final = "".join(f"w{number}q " for number in range(1000))[:5000]
LEDES_64: Final = [LEDES[number % len(LEDES)] for number in range(64)]
REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "one lede, beam 5": {"texts": [LEDES[0]], "beam": 5},
    "one lede, beam 20": {"texts": [LEDES[0]], "beam": 20},
    "one lede, beam 50": {"texts": [LEDES[0]], "beam": 50},
    "one lede, explained, beam 20": {"texts": [LEDES[0]], "beam": 20, "explain": True},
    "64 ledes, beam 5": {"texts": LEDES_64, "beam": 5},
    "64 ledes, beam 20": {"texts": LEDES_64, "beam": 20},
    "64 ledes, beam 50, max_length 40": {
        "texts": LEDES_64,
        "beam": 50,
        "max_length": 40,
    },
    "5,000 characters, beam 20": {"texts": [LONG], "beam": 20},
    "the same with a heat map": {"texts": [LONG], "beam": 20, "heat_map": True},
    "64 x 5,000 characters, beam 5, max_length 20": {
        "texts": [LONG] * 64,
        "beam": 5,
        "max_length": 20,
    },
    "5 x 5,000 characters, beam 50, min_length 500, max_length 500": {
        "texts": [LONG] * 5,
        "beam": 50,
        "min_length": 500,
        "max_length": 500,
    },
}
COLUMNS: Final = (
    Column("request", "request"),
    Column("price", "price", ",.0f"),
    Column("seconds", "seconds", ".2f"),
    Column("unit", "core-microseconds a unit", ".0f"),
)


def price_of(headliner: Headliner, asked: HeadlinesRequest) -> float:
    """The price of a request."""
    options = headliner.resolve_options(asked.options())
    sources = headliner.read(asked.texts, options)
    followed = not headliner.is_known_to_verifier
    prices = text_prices(sources, options, heat_map=asked.heat_map, followed=followed)
    return sum(one.most for one in prices)


async def measure(options: argparse.Namespace, headliner: Headliner, rows: Rows) -> None:
    """Answer each request some times; the median counts."""
    limits = replace(LimitsConfig(), price=10**9, seconds=600.0)
    service = HeadlineService(headliner, ServeConfig(limits=limits), Metrics())
    service.start()
    try:
        await answer_all(options, headliner, service, rows)
    finally:
        await service.close()


async def answer_all(
    options: argparse.Namespace, headliner: Headliner, service: HeadlineService, rows: Rows
) -> None:
    """A row for each request."""
    schema = request_schema(LimitsConfig())
    table = Table(rows, "price", *COLUMNS)
    await service.answer(schema(**REQUESTS["one lede, beam 5"]), "warm-up")
    for name, request in REQUESTS.items():
        asked = schema(**request)
        seconds = []
        for _ in range(options.turns):
            began = time.perf_counter()
            await service.answer(asked, "bench")
            seconds.append(time.perf_counter() - began)
        price, took = price_of(headliner, asked), statistics.median(seconds)
        busy = min(num_threads(), len(asked.texts))  # a single text has one core
        table.add(request=name, price=price, seconds=took, unit=1e6 * took * busy / price)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=Path(SHIPPED_NAME), help="a model folder")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all rows there")
    quick.offer(parser, model=tiny.model, turns=1)
    options = parser.parse_args()
    if options.quick:
        for request in REQUESTS.values():
            request.update(texts=["Rain fell."], max_length=4)
            request.pop("min_length", None)
    about = f"{described()}, {num_threads()} threads"
    print(f"{about}\n", flush=True)
    headliner = Headliner.load(options.model)
    asyncio.run(measure(options, headliner, Rows(options.json, about)))


if __name__ == "__main__":
    main()
