"""Several models in the engine's search: it finds what PyTorch's `Ensemble` finds."""

from typing import Any

import pytest

from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.inference.engine_weights import engine_of
from ledeline.runtime.cpu import kinds
from ledeline.runtime.engine import Engine
from ledeline.runtime.extension import extension
from ledeline.search import search
from ledeline.search.engine_search import EngineSearch
from ledeline.search.hypothesis import Hypothesis
from ledeline.search.step_model import Ensemble
from systems import random_system

SOURCES = [[5, 6, 7, 8, 9], [9, 8], [6, 6, 7], [5]]
CHOICES: list[dict[str, Any]] = [
    {},
    {"beam": 1},
    {"beam": 5, "n_best": 4, "min_length": 3, "max_length": 6},
    {"beam": 4, "n_best": 3, "keep_finished": True},
    {"beam": 4, "n_best": 2, "recombine": 2, "block_ngrams": 2},
    {"beam": 6, "n_best": 2, "stop_early": True, "forbid_unknown": True},
]


@pytest.fixture(scope="module")
def models() -> list[Any]:
    return [random_system(seed=seed).float().eval() for seed in range(3)]


@pytest.fixture(scope="module")
def engines(models: list[Any]) -> list[Engine]:
    return [engine_of(model, "float32") for model in models]


def found(
    engines: list[Engine], config: SearchConfig, sources: Any = SOURCES, **options: Any
) -> list[list[Hypothesis]]:
    running = EngineSearch(engines, sources, config, **options)
    while running.running:
        running.step()
    return running.hypotheses


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_it_finds_what_the_ensemble_finds(
    models: list[Any], engines: list[Engine], number: int, choice: dict[str, Any]
) -> None:
    config = SearchConfig(**{"block_ngrams": 0, "recombine": 0} | choice)
    expected = search(Ensemble(models[:number]), *padded(SOURCES), config)
    for own, lists in zip(found(engines[:number], config), expected, strict=True):
        assert [one.ids for one in own] == [one.ids for one in lists]
        assert [one.truncated for one in own] == [one.truncated for one in lists]
        assert [one.cost for one in own] == pytest.approx([one.cost for one in lists], rel=1e-4)


def test_it_is_another_search_than_that_of_a_single_model(engines: list[Engine]) -> None:
    config = SearchConfig(n_best=5)
    costs = [found(some, config)[0][0].cost for some in (engines[:1], engines[1:2], engines)]
    assert len(set(costs)) == 3


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_every_kind_of_processor_and_every_batch_has_the_same_bits(
    models: list[Any], precision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, expected = SearchConfig(n_best=4), []
    for kind in kinds():
        monkeypatch.setenv("LEDELINE_CPU", kind)
        some = [engine_of(model, precision) for model in models]
        expected = expected or found(some, config)
        assert found(some, config) == expected
        assert [found(some, config, [one])[0] for one in SOURCES] == expected


def test_forbidden_words_are_not_written(engines: list[Engine]) -> None:
    config = SearchConfig(n_best=3)
    never = [list({word for one in own for word in one.ids})[:3] for own in found(engines, config)]
    assert any(never)
    for own, words in zip(found(engines, config, forbidden=never), never, strict=True):
        assert not any(set(one.ids) & set(words) for one in own)


def test_a_source_that_is_given_up_changes_no_other(engines: list[Engine]) -> None:
    config = SearchConfig(min_length=4)
    running = EngineSearch(engines, SOURCES, config)
    running.step()
    running.give_up([0, 2])
    while running.running:
        running.step()
    expected = found(engines, config)
    assert [running.hypotheses[n] for n in (1, 3)] == [expected[n] for n in (1, 3)]
    assert running.hypotheses[0] == []


def test_states_are_kept_of_one_model_only(engines: list[Engine]) -> None:
    with pytest.raises(ValueError, match="keep_states goes with one model"):
        EngineSearch(engines, SOURCES, SearchConfig(), keep_states=3)


def test_a_search_needs_models(engines: list[Engine]) -> None:
    with pytest.raises(ValueError, match="a search needs a model"):
        EngineSearch([], SOURCES, SearchConfig())
    with pytest.raises(TypeError):
        extension().Search(
            [engines[0].native, 5], SOURCES, 2, 1, 1, -1, 0, 0, False, False, False, False, 0, None
        )


def test_models_share_a_vocabulary(engines: list[Engine]) -> None:
    other = engine_of(random_system(vocabulary=23).float(), "float32")
    with pytest.raises(ValueError, match="different vocabularies"):
        EngineSearch([engines[0], other], SOURCES, SearchConfig())
