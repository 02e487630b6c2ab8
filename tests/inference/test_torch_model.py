"""A model that PyTorch runs: the threads of its pool use a core each, and no others are disturbed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.core.steps import run_steps
from ledeline.data.dataset import padded
from ledeline.inference.torch_model import TorchModel
from ledeline.inference.traces import teacher_force
from ledeline.model.systems.gru import GruConfig
from ledeline.search import search
from systems import random_system

SOURCES = [[4, 5, 6, 7], [8, 9], [10, 4, 4]]
PAIRS = [(source, source[:2]) for source in SOURCES]


@pytest.fixture(scope="module")
def system() -> Any:
    return random_system("spm", system=GruConfig(embedding_size=3, hidden_size=4, dropout=0.0))


@pytest.fixture
def model(system: Any) -> TorchModel:
    return TorchModel(system, system, "float32")


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_its_search_is_that_of_the_system(model: TorchModel, system: Any) -> None:
    config = SearchConfig(beam=3, n_best=3)
    running = model.begin_search(SOURCES, config)
    while running.running:
        running.step()
    assert running.hypotheses == search(system, *padded(SOURCES), config)


def test_it_explains_by_the_system(model: TorchModel, system: Any) -> None:
    found = run_steps(model.attribution_steps(PAIRS))
    for (source, _), own, seen in zip(PAIRS, found, teacher_force(system, PAIRS), strict=True):
        assert own == seen.weights(source)
        assert own.spm is not None
        assert len(own.attention) == 2
        for row in own.attention:
            assert sum(row) == pytest.approx(1, abs=1e-5)


def test_it_is_on_a_cpu_with_the_threads_of_torch(
    model: TorchModel, threads: Callable[[int], None]
) -> None:
    assert model.on_cpu
    for number in (1, 3):
        threads(number)
        assert model.num_threads == number


def test_threads_of_a_pool_compute_alone_and_others_as_before(
    model: TorchModel, threads: Callable[[int], None]
) -> None:
    threads(2)
    with model.pool(3) as pool:
        numbers = {one.result() for one in [pool.submit(torch.get_num_threads) for _ in range(9)]}
    assert numbers == {1}
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as other:
        assert other.submit(torch.get_num_threads).result() == 2


def test_a_thread_that_begins_meanwhile_computes_as_all_others(
    model: TorchModel, threads: Callable[[int], None]
) -> None:
    """Also if it begins while another has a pool made, whose threads compute alone."""
    threads(2)
    counts: list[int] = []

    def begin() -> None:
        number = model.num_threads
        with model.pool(number) as pool:
            pool.submit(int).result()
        counts.append(torch.get_num_threads())

    for _ in range(10):
        new = [Thread(target=begin) for _ in range(4)]
        for one in new:
            one.start()
        for one in new:
            one.join(60)
    assert counts == [2] * 40
