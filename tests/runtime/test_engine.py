"""The engine is the same system: close to `EncDec` in float32, near it in int8, and each source
has the same bits in whatever batch it is, on whatever kind of CPU.
"""

from typing import Any

import numpy as np
import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.config.engine_systems import EncDecConfig, EngineConfig
from ledeline.core.errors import ModelError
from ledeline.core.steps import run_steps
from ledeline.data.dataset import Batch, padded
from ledeline.inference.engine_weights import engine_of
from ledeline.inference.traces import teacher_force
from ledeline.runtime import engine as module
from ledeline.runtime.cpu import kinds
from ledeline.runtime.engine import Engine, FollowedHeadline
from ledeline.search import search
from ledeline.search.engine_search import EngineSearch
from ledeline.search.hypothesis import Hypothesis
from ledeline.text.subwords import BOS

VOCABULARY = 300
SIZES = {"embedding": 24, "hidden": 48, "vocabulary": VOCABULARY, "spread": 0.25}
PRECISIONS = ["float32", "int8"]
# Of sources and headlines: equal, mixed, a single sub-word, no headline, long.
LENGTHS = [(9, 4), (9, 7), (1, 3), (17, 0), (4, 6), (140, 5)]

pytestmark = pytest.mark.usefixtures("one_thread")


def rows_of(lengths: list[int], vocabulary: int = VOCABULARY, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(4, vocabulary, length).tolist() for length in lengths]


def pairs_of(vocabulary: int = VOCABULARY) -> list[tuple[list[int], list[int]]]:
    sources = rows_of([source for source, _ in LENGTHS], vocabulary)
    headlines = rows_of([headline for _, headline in LENGTHS], vocabulary, 1)
    return list(zip(sources, headlines, strict=True))


def followed(
    engine: Engine, pairs: list[tuple[list[int], list[int]]], *, explain: bool = True
) -> list[FollowedHeadline]:
    """What the engine sees of pairs, all at once."""
    headlines = [(row, headline) for row, (_, headline) in enumerate(pairs)]
    seen = run_steps(engine.follow([source for source, _ in pairs], headlines, explain=explain))
    return [seen.headline(row) for row in range(len(pairs))]


def matrix(values: memoryview | None, steps: int) -> Any:
    assert values is not None
    return np.array(values).reshape(steps, -1)


@torch.inference_mode()
def forced(model: Any, pairs: list[tuple[list[int], list[int]]]) -> list[Any]:
    """Log-probabilities of what is written, for each pair alone."""
    found = []
    for source, headline in pairs:
        trace = model.trace(model.pairs(Batch.of([(source, headline)])))
        found.append(trace.log_probabilities[0, : len(headline) + 1].numpy())
    return found


def searched(
    engine: Engine, rows: list[list[int]], config: SearchConfig, **options: Any
) -> list[list[Hypothesis]]:
    running = EngineSearch([engine], rows, config, **options)
    while running.running:
        running.step()
    return running.hypotheses


# --- the same as the system -------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_float32_is_the_system(make: Any, system: str, layers: int) -> None:
    model, pairs = make(system, layers=layers, **SIZES).float(), pairs_of()
    logs, seen = forced(model, pairs), followed(engine_of(model, "float32"), pairs)
    for (source, headline), log, trace, own in zip(
        pairs, logs, teacher_force(model, pairs), seen, strict=True
    ):
        steps = len(headline) + 1
        assert np.array(own.logs) == pytest.approx(log, abs=5e-5)
        np.testing.assert_allclose(matrix(own.attention, steps), trace.attention, atol=2e-5)
        assert (own.predictions is None) == (trace.q is None)
        if trace.q is not None:
            q = matrix(own.predictions, steps)
            np.testing.assert_allclose(q, trace.q[:, source], atol=2e-5)
    assert np.ptp(np.concatenate(logs)) > 1.5  # far from uniform


@pytest.mark.parametrize("size", [(7, 13), (13, 7), (33, 33), (1, 1), (16, 50)], ids=str)
@pytest.mark.parametrize("layers", [1, 2])
def test_sizes_need_not_be_those_of_registers(
    make: Any, layers: int, size: tuple[int, int]
) -> None:
    embedding, hidden = size
    sizes: dict[str, Any] = {
        "embedding": embedding,
        "hidden": hidden,
        "layers": layers,
        "vocabulary": 37,
    }
    sizes["spread"] = min(0.6, 1.5 / hidden**0.5)  # larger ones multiply every rounding
    model, pairs = make("EncDec+sGate+SPM", **sizes).float(), pairs_of(37)
    for own, log, trace in zip(
        followed(engine_of(model, "float32"), pairs),
        forced(model, pairs),
        teacher_force(model, pairs),
        strict=True,
    ):
        assert np.array(own.logs) == pytest.approx(log, abs=5e-5)
        np.testing.assert_allclose(matrix(own.attention, len(log)), trace.attention, atol=2e-5)
    in_int8 = np.concatenate([one.logs for one in followed(engine_of(model, "int8"), pairs)])
    assert np.abs(in_int8 - np.concatenate(forced(model, pairs))).mean() < 0.1


@pytest.mark.parametrize("layers", [1, 3])
def test_int8_is_near_the_system(make: Any, system: str, layers: int) -> None:
    model, pairs = make(system, layers=layers, **SIZES).float(), pairs_of()
    seen = followed(engine_of(model, "int8"), pairs)
    found = np.concatenate([one.logs for one in seen])
    expected = np.concatenate(forced(model, pairs))
    assert np.abs(found - expected).mean() < 0.05
    assert np.corrcoef(found, expected)[0, 1] > 0.998
    assert not np.array_equal(
        found, np.concatenate([one.logs for one in followed(engine_of(model, "float32"), pairs)])
    )
    for own, trace in zip(seen, teacher_force(model, pairs), strict=True):
        steps = len(trace.attention)
        assert np.abs(matrix(own.attention, steps) - trace.attention).mean() < 0.01


@torch.inference_mode()
def test_states_and_values_are_those_of_the_system(make: Any) -> None:
    """They are what the verifier reads."""
    model, pairs = make("EncDec+sGate+SPM", **SIZES).float(), pairs_of()
    headlines = [(row, headline) for row, (_, headline) in enumerate(pairs)]
    seen = run_steps(engine_of(model, "float32").follow([source for source, _ in pairs], headlines))
    for row, (source, headline) in enumerate(pairs):
        state, memory = model.encode(torch.tensor([source]))
        values = np.frombuffer(seen.values(row), np.float32).reshape(len(source), -1)
        of_context = model.decoder.attention.mix.weight[:, : values.shape[1]]  # W_s
        np.testing.assert_allclose(values, memory.memory.states[0] @ of_context.T, atol=2e-5)
        states = matrix(seen.headline(row).states, len(headline) + 1)
        for word, own in zip([BOS, *headline], states, strict=True):
            _, state = model.step(torch.tensor([[word]]), state, memory)
            np.testing.assert_allclose(own, state.decoder.attentional[0, 0], atol=2e-5)


CHOICES: list[dict[str, Any]] = [
    {},
    {"beam": 1, "n_best": 1},
    {"beam": 7, "n_best": 7, "min_length": 9, "max_length": 12},
    {"beam": 5, "n_best": 2, "stop_early": True},
    {"beam": 6, "n_best": 3, "keep_finished": True},
    {"beam": 8, "n_best": 4, "recombine": 2, "block_ngrams": 1},
    {"beam": 8, "n_best": 8, "block_ngrams": 2, "min_length": 3},
    {"beam": 4, "forbid_unknown": True, "max_length": 3},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_a_search_finds_what_one_of_the_system_finds(make: Any, choice: dict[str, Any]) -> None:
    config = SearchConfig(**{"beam": 6, "n_best": 2, "max_length": 15} | choice)
    rows = rows_of([9, 1, 17, 4, 30])
    for name in ("EncDec", "EncDec+sGate+SPM"):
        model = make(name, seed=2, **SIZES).float()
        found = searched(engine_of(model, "float32"), rows, config)
        for own, lists in zip(found, search(model, *padded(rows), config), strict=True):
            assert [one.ids for one in own] == [one.ids for one in lists]
            assert [one.truncated for one in own] == [one.truncated for one in lists]
            assert [one.cost for one in own] == pytest.approx([one.cost for one in lists], rel=1e-4)


# --- the same bits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_source_has_the_same_bits_in_every_batch(make: Any, precision: Any) -> None:
    engine = engine_of(make("EncDec+sGate+SPM", **SIZES).float(), precision)
    rows = rows_of([31, 1, 16, 17, 8, 31, 40, 2, 5])
    config = SearchConfig(beam=11, n_best=11, min_length=3, max_length=12)
    alone = [searched(engine, [row], config)[0] for row in rows]
    assert len({one[0].ids for one in alone}) > 3
    for order in (range(9), [8, 3, 1, 6], [4, 4, 2], [7, 0]):
        together = searched(engine, [rows[place] for place in order], config)
        assert together == [alone[place] for place in order]  # to the last bit of the cost


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_headline_that_is_followed_has_the_same_bits_in_every_batch(
    make: Any, precision: Any
) -> None:
    engine = engine_of(make("EncDec+sGate+SPM", **SIZES).float(), precision)
    pairs = pairs_of()
    alone = [followed(engine, [pair])[0] for pair in pairs]
    for order in (range(len(pairs)), [5, 0, 3], [2, 2]):
        together = followed(engine, [pairs[place] for place in order])
        assert together == [alone[place] for place in order]


def test_several_headlines_of_a_source_are_as_if_it_were_read_for_each(make: Any) -> None:
    engine = engine_of(make("EncDec+sGate+SPM", **SIZES).float(), "int8")
    (source, other), headlines = rows_of([12, 5]), rows_of([4, 0, 9], seed=1)
    asked = [(1, headlines[2]), *((0, one) for one in headlines)]
    seen = run_steps(engine.follow([source, other], asked, explain=True))
    for number, (row, headline) in enumerate(asked):
        (alone,) = followed(engine, [((source, other)[row], headline)])
        assert seen.headline(number) == alone


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_kind_of_cpu_has_the_same_bits(
    make: Any, precision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs = make("EncDec+sGate+SPM", **SIZES).float(), pairs_of()
    config, found = SearchConfig(beam=5, n_best=5, max_length=9), []
    for kind in kinds():
        monkeypatch.setenv("LEDELINE_CPU", kind)
        engine = engine_of(model, precision)
        found.append((followed(engine, pairs), searched(engine, [one for one, _ in pairs], config)))
    assert all(one == found[0] for one in found)


# --- what is asked for, and what is not -------------------------------------------------------------


def test_attention_is_there_if_it_is_asked_for(make: Any) -> None:
    pairs = pairs_of()
    engine = engine_of(make("EncDec+SPM", **SIZES).float(), "float32")
    for plain, explained in zip(
        followed(engine, pairs, explain=False), followed(engine, pairs), strict=True
    ):
        assert plain.attention is None
        assert plain.predictions is None
        assert explained.attention is not None
        assert plain[:2] == explained[:2]


def test_a_step_of_following_writes_a_word_of_each(make: Any) -> None:
    """So that other work can go on between two."""
    engine = engine_of(make("EncDec", **SIZES).float(), "float32")
    short, long = (
        sum(1 for _ in engine.follow([[5, 6]], [(0, [7] * length)])) for length in (2, 9)
    )
    assert long - short == 7


@pytest.mark.parametrize("wanted", [None, *kinds()])
def test_the_kind_of_cpu_is_that_of_the_variable(
    make: Any, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = module.extension()

    class Watched:
        def Model(self, *values: Any, kind: str, **named: Any) -> Any:  # noqa: N802
            asked.append(kind)
            return real.Model(*values, kind=kind, **named)

    monkeypatch.setattr(module, "extension", Watched)
    monkeypatch.setenv("LEDELINE_CPU", wanted or "")
    engine_of(make("EncDec").float(), "int8")
    assert asked == [wanted or kinds()[-1]]


def test_a_source_without_words_is_refused(make: Any) -> None:
    engine = engine_of(make("EncDec", **SIZES).float(), "float32")
    with pytest.raises(ValueError, match="source"):
        EngineSearch([engine], [[5], []], SearchConfig())


def test_weights_are_those_of_the_moment(make: Any) -> None:
    """A system that is trained on changes no engine that was made of it."""
    model, pairs = make("EncDec", **SIZES).float(), pairs_of()
    engine = engine_of(model, "float32")
    before = followed(engine, pairs)
    with torch.no_grad():
        model.output.bias += torch.linspace(0, 3, VOCABULARY)
    assert followed(engine, pairs) == before
    assert followed(engine_of(model, "float32"), pairs) != before


def test_what_is_wrong_with_weights_is_said_with_their_file(tmp_path: Any) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(ModelError, match=rf"^{path} is damaged: .* is missing$"):
        Engine(EngineConfig(system=EncDecConfig()), 30, {}, path=path)
    with pytest.raises(ModelError, match=r"^the model is damaged: .* is missing$"):
        Engine(EngineConfig(system=EncDecConfig()), 30, {})
