"""The Transformer in the engine beside the system in PyTorch, in searches and with known headlines."""

# mypy: disable-error-code="no-untyped-call"

import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.nn import functional

from ledeline.config import SearchConfig
from ledeline.core.errors import ModelError
from ledeline.data.dataset import Batch, padded
from ledeline.model.format.weights import as_stored
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.runtime.engine import Engine
from ledeline.search import search
from ledeline.search.engine_search import EngineSearch
from systems import random_system

_runtime = pytest.importorskip("ledeline.runtime._runtime")

VOCABULARY = 61
TYPES = {torch.float32: "F32", torch.float16: "F16", torch.int8: "I8"}
SIZES = {"embedding_size": 24, "hidden_size": 40, "heads": 2, "encoder_layers": 2, "dropout": 0.0}
# The second has heads of 3, and the third of 20 values, which fill no group of 16 outputs.
SHAPES: dict[str, dict[str, int]] = {
    "deep encoder": {"encoder_layers": 3, "decoder_layers": 1, "attention_head": 2},
    "deep decoder": {"encoder_layers": 1, "decoder_layers": 3, "heads": 8, "attention_layer": 2},
    "wide": {"embedding_size": 40, "hidden_size": 70, "decoder_layers": 2, "attention_layer": 1},
    "one head": {"embedding_size": 6, "heads": 1, "decoder_layers": 2, "attention_head": 1},
}
ADDONS = [(), ("sgate",), ("spm",), ("sgate", "spm")]
CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {"beam": 1},
    {"beam": 7, "n_best": 7, "min_length": 9, "max_length": 12},
    {"beam": 5, "n_best": 2, "stop_early": True},
    {"beam": 6, "n_best": 3, "keep_finished": True, "max_length": 30},
    {"beam": 8, "n_best": 4, "recombine": 2, "block_ngrams": 1},
    {"beam": 4, "n_best": 4, "recombine": 3, "block_ngrams": 2},
    {"beam": 4, "forbid_unknown": True, "max_length": 3},
)


def words(length: int, seed: int) -> list[int]:
    drawn: list[int] = np.random.default_rng(seed).integers(4, VOCABULARY, length).tolist()
    return drawn


SOURCES = [words(length, seed) for seed, length in enumerate((5, 1, 17, 33, 16, 8))]


def system(*addons: str, **sizes: Any) -> Any:
    own = TransformerConfig(**SIZES | sizes)
    return random_system(*addons, system=own, vocabulary=VOCABULARY, std=0.3)


def tensors_of(of: Any, storage: Any = "float32") -> dict[str, Any]:
    stored = as_stored(of.state_dict(), storage, of.int8_layouts())
    return {
        name: (TYPES[one.dtype], tuple(one.shape), one.numpy().tobytes())
        for name, one in stored.items()
    }


def engine(of: Any, precision: Any = "float32", storage: Any = "float32", **more: Any) -> Engine:
    tensors = more.pop("tensors", None) or tensors_of(of, storage)
    return Engine(of.config, VOCABULARY, tensors, precision, **more)


def found(own: Engine, sources: Sequence[Sequence[int]], config: SearchConfig) -> list[Any]:
    running = EngineSearch([own], sources, config)
    while running.running:
        running.step()
    return running.hypotheses


def followed(
    own: Engine, sources: Sequence[Sequence[int]], headlines: Sequence[Any], *, explain: bool = True
) -> Any:
    steps = own.follow(sources, headlines, explain=explain)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def matrix(values: Any, steps: int) -> npt.NDArray[np.float32]:
    return np.asarray(values).reshape(steps, -1)


def traced(of: Any, source: list[int], headline: list[int]) -> tuple[npt.NDArray[np.float64], ...]:
    """Log-probabilities, states, attention and, with the SPM, predictions of a headline's steps."""
    with torch.inference_mode():
        trace = of.trace(of.pairs(Batch.of([(source, headline)])))
    seen = [trace.log_probabilities, trace.states, trace.attention]
    if trace.source_predictions is not None:
        seen.append(trace.source_predictions[:, :, source])
    return tuple(one[0, : len(headline) + 1].double().numpy() for one in seen)


def assert_followed(own: Engine, of: Any, pairs: list[tuple[list[int], list[int]]]) -> None:
    headlines = [(number, headline) for number, (_, headline) in enumerate(pairs)]
    all_seen = followed(own, [source for source, _ in pairs], headlines)
    for number, (source, headline) in enumerate(pairs):
        seen, steps = all_seen.headline(number), len(headline) + 1
        logs, states, attention, *predictions = traced(of, source, headline)
        assert np.asarray(seen.logs) == pytest.approx(logs, abs=1e-4)
        assert matrix(seen.states, steps) == pytest.approx(states, abs=1e-5)
        assert matrix(seen.attention, steps) == pytest.approx(attention, abs=1e-5)
        assert (seen.predictions is None) == (not predictions) == (not own.has_spm)
        for expected in predictions:
            assert matrix(seen.predictions, steps) == pytest.approx(expected, abs=1e-5)


PAIRS = [
    (SOURCES[0], words(3, 20)),
    (SOURCES[1], []),
    (SOURCES[2], words(30, 21)),
    (SOURCES[3], words(2, 22)),
]


@pytest.mark.parametrize("addons", ADDONS, ids="+".join)
@pytest.mark.parametrize("shape", SHAPES)
def test_known_headlines_are_seen_as_the_system_sees_them(
    shape: str, addons: tuple[str, ...]
) -> None:
    of = system(*addons, **SHAPES[shape])
    own = engine(of)
    assert own.size == of.config.system.embedding_size
    assert_followed(own, of.double(), PAIRS)


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_weights_that_are_stored_in_fewer_bits_are_read_as_they_are(storage: str) -> None:
    of = system("sgate", "spm", **SHAPES["deep decoder"])
    own, stored = engine(of, storage=storage), as_stored(of.state_dict(), storage, {})  # type: ignore[arg-type]
    for name, one in of.state_dict().items():
        scale = stored.get(f"{name}.scale", torch.ones(()))
        one.copy_(stored[name].float() * scale)
    assert_followed(own, of.double(), PAIRS)


def test_places_have_no_end() -> None:
    of = system("spm", decoder_layers=2)
    assert_followed(
        engine(of), of, [(words(400, 30), words(300, 31)), (SOURCES[0], words(140, 32))]
    )


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("shape", ["deep encoder", "deep decoder"])
def test_a_search_finds_what_the_system_finds(shape: str, choice: dict[str, Any]) -> None:
    of = system("sgate", **SHAPES[shape])
    own = engine(of)
    config = SearchConfig(**{"n_best": 1, "block_ngrams": 0, "recombine": 0} | choice)
    expected = search(of.double(), *padded(SOURCES), config)
    for mine, lists in zip(found(own, SOURCES, config), expected, strict=True):
        assert [one.ids for one in mine] == [one.ids for one in lists]
        assert [one.truncated for one in mine] == [one.truncated for one in lists]
        assert [one.cost for one in mine] == pytest.approx([one.cost for one in lists], rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8"])
class TestBits:
    config = SearchConfig(beam=9, n_best=9, max_length=14)

    def test_a_source_alone_has_those_that_it_has_among_others(self, precision: str) -> None:
        own = engine(system("sgate", **SHAPES["wide"]), precision)
        sources = [words(length, length) for length in range(1, 60, 3)]  # more than one group
        together = found(own, sources, self.config)
        assert [found(own, [one], self.config)[0] for one in sources] == together
        assert found(own, sources[::-1], self.config) == together[::-1]

    def test_every_kind_of_processor_has_them(self, precision: str) -> None:
        of = system("sgate", "spm", **SHAPES["wide"])
        first, *others = (engine(of, precision, kind=kind) for kind in _runtime.kinds())
        headlines = [(2, words(9, 40)), (0, words(2, 41)), (2, [])]
        expected = followed(first, SOURCES, headlines)
        for other in others:
            assert found(other, SOURCES, self.config) == found(first, SOURCES, self.config)
            seen = followed(other, SOURCES, headlines)
            assert all(bits(seen.headline(n)) == bits(expected.headline(n)) for n in range(3))
            assert all(seen.values(n) == expected.values(n) for n in range(len(SOURCES)))

    def test_following_sees_what_the_search_saw(self, precision: str) -> None:
        own = engine(system("sgate", **SHAPES["deep decoder"]), precision)
        running = EngineSearch([own], SOURCES, self.config, keep_states=100)
        while running.running:
            running.step()
        lists = running.hypotheses
        pairs = [(row, one.ids) for row, all_of in enumerate(lists) for one in all_of[:2]]
        seen, number = followed(own, SOURCES, pairs, explain=False), 0
        for row, all_of in enumerate(lists):
            assert running.seen(row, all_of).values == seen.values(row)
            for one in all_of[:2]:
                states = seen.headline(number).states
                kept, steps = running.seen(row, [one]), len(one.ids) + (not one.truncated)
                assert kept.states == bytes(states)[: steps * own.size * 4]
                assert seen.headline(number).attention is None
                number += 1

    def test_threads_that_share_a_model_do_not_meet(self, precision: str) -> None:
        own = engine(system(**SHAPES["wide"]), precision)
        expected = found(own, SOURCES, self.config)
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(found, own, SOURCES, self.config) for _ in range(12)]
            assert all(one.result() == expected for one in asked)

    def test_a_source_that_is_given_up_changes_no_other(self, precision: str) -> None:
        own = engine(system(**SHAPES["wide"]), precision)
        expected, running = (
            found(own, SOURCES, self.config),
            EngineSearch([own], SOURCES, self.config),
        )
        running.step()
        running.step()
        running.give_up([0, 3])
        while running.running:
            running.step()
        for number in (1, 2, 4, 5):
            assert running.hypotheses[number] == expected[number]
        with pytest.raises(ValueError, match="no such source"):
            running.seen(3, [])


def bits(seen: Any) -> list[bytes | None]:
    return [None if one is None else bytes(one) for one in seen]


def test_what_attention_mixes_is_what_the_system_says() -> None:
    of = system("sgate", **SHAPES["wide"])
    seen = followed(engine(of), SOURCES, [])
    for number, source in enumerate(SOURCES):
        with torch.inference_mode():
            _, memory = of.encode(torch.tensor([source]))
        expected = memory.memory.states[0].numpy()
        values = np.frombuffer(seen.values(number), np.float32).reshape(expected.shape)
        assert values == pytest.approx(expected, abs=1e-5)


class TestInt8:
    """Each row of activations has levels of its own, of which 63 is its largest value."""

    @pytest.fixture
    def rounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """PyTorch multiplies rows that are rounded to levels."""
        multiply = functional.linear

        def of_levels(values: Any, weight: Any, bias: Any = None) -> Any:
            steps = values.abs().amax(-1, keepdim=True) / 63
            return multiply((values / steps + 0.5).floor() * steps, weight, bias)

        monkeypatch.setattr(functional, "linear", of_levels)

    @pytest.mark.usefixtures("rounded")
    @pytest.mark.parametrize("addons", ADDONS, ids="+".join)
    @pytest.mark.parametrize("shape", ["deep decoder", "wide"])
    def test_stored_levels_and_scales_are_used_as_they_are(
        self, shape: str, addons: tuple[str, ...]
    ) -> None:
        of = system(*addons, **SHAPES[shape])
        stored, doubled = as_stored(of.state_dict(), "int8", {}), deepcopy(of).double()
        for name, one in doubled.state_dict().items():
            if one.dim() > 1:  # levels up to 63, which no quantisation of these weights would make
                stored[name] //= 2
                stored[f"{name}.scale"] *= 2
                one.copy_(stored[name].double() * stored[f"{name}.scale"].double())
        tensors = {
            name: (TYPES[one.dtype], tuple(one.shape), one.numpy().tobytes())
            for name, one in stored.items()
        }
        own = engine(of, "int8", tensors=tensors)
        headlines = [(2, words(30, 21)), (0, words(3, 20)), (1, [])]
        seen = followed(own, SOURCES, headlines)
        for number, (source, headline) in enumerate(headlines):
            _, states, attention, *predictions = traced(doubled, SOURCES[source], headline)
            one, steps = seen.headline(number), len(headline) + 1
            logs = doubled.output(torch.from_numpy(states)).log_softmax(-1)
            expected = logs[range(steps), [*headline, 3]].detach().numpy()
            assert np.asarray(one.logs) == pytest.approx(expected, abs=1e-3)
            assert matrix(one.states, steps) == pytest.approx(states, abs=1e-3)
            assert matrix(one.attention, steps) == pytest.approx(attention, abs=1e-3)
            for expected in predictions:
                assert matrix(one.predictions, steps) == pytest.approx(expected, abs=1e-3)

    @pytest.mark.parametrize("storage", ["float32", "int8"])
    def test_it_is_near_the_system(self, storage: str) -> None:
        of = system("sgate", "spm", **SHAPES["wide"])
        own, exact = engine(of, "int8", storage), engine(of, "float32")
        headlines = [(n, words(12, 50 + n)) for n in range(len(SOURCES))]
        int8, float32 = (followed(one, SOURCES, headlines) for one in (own, exact))
        for number in range(len(headlines)):
            near, far = int8.headline(number), float32.headline(number)
            assert np.asarray(near.logs) == pytest.approx(np.asarray(far.logs), abs=0.15)
            assert np.asarray(near.attention) == pytest.approx(np.asarray(far.attention), abs=0.05)
        assert bits(int8.headline(0)) != bits(float32.headline(0))

    def test_rows_of_zeros_stay_zeros(self) -> None:
        of = system()
        for name, one in of.state_dict().items():
            if "norm" in name or name == "output.bias":
                one.zero_()
        own = engine(of, "int8")
        seen = followed(own, SOURCES, [(0, [7, 8])]).headline(0)
        assert list(seen.states) == [0.0] * 3 * own.size
        assert list(seen.logs) == pytest.approx([-np.log(VOCABULARY)] * 3, abs=1e-6)


@pytest.fixture(scope="module")
def of() -> Any:
    return system("sgate", "spm", decoder_layers=2)


class TestDamage:
    NAMES = (
        "encoder.words.table.weight",
        "encoder.layers.1.attention.of_state.weight",
        "encoder.norm.bias",
        "decoder.layers.0.source_norm.weight",
        "decoder.layers.1.source_attention.of_source.bias",
        "decoder.layers.1.feed_forward.outward.weight",
        "output.bias",
        "gate.of_state.weight",
        "spm.output.bias",
    )

    @pytest.mark.parametrize("name", NAMES)
    def test_a_tensor_that_is_missing_is_named(self, of: Any, name: str) -> None:
        tensors = tensors_of(of)
        del tensors[name]
        with pytest.raises(ModelError, match=f"the model is damaged: {name} is missing"):
            engine(of, tensors=tensors)

    @pytest.mark.parametrize("name", NAMES)
    def test_another_shape_is_refused(self, of: Any, name: str) -> None:
        tensors = tensors_of(of)
        kind, (rows, *others), values = tensors[name]
        size = 4 * int(np.prod(others)) if others else 4
        tensors[name] = kind, (rows - 1, *others), values[:-size]
        with pytest.raises(ModelError, match=rf"{name} is \(\d+, \d+\) but should be \(\d+, \d+\)"):
            engine(of, tensors=tensors)

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    @pytest.mark.parametrize("precision", ["float32", "int8"])
    @pytest.mark.parametrize("name", NAMES)
    def test_numbers_that_are_not_finite_are_refused(
        self, of: Any, name: str, precision: str, number: float
    ) -> None:
        tensors = tensors_of(of)
        kind, shape, values = tensors[name]
        tensors[name] = kind, shape, values[:-4] + struct.pack("f", number)
        with pytest.raises(ModelError, match=f"{name} has weights that are not finite numbers"):
            engine(of, precision, tensors=tensors)

    @pytest.mark.parametrize("precision", ["float32", "int8"])
    def test_levels_need_scales(self, of: Any, precision: str) -> None:
        tensors = tensors_of(of, "int8")
        del tensors["decoder.layers.0.attention.mix.weight.scale"]
        with pytest.raises(ModelError, match=r"attention\.mix\.weight\.scale is missing"):
            engine(of, precision, tensors=tensors)

    @pytest.mark.parametrize(
        "sizes",
        [
            {"heads": 0},
            {"heads": 5},
            {"heads": 2**62},
            {"embedding": 0},
            {"embedding": 25, "heads": 5},
            {"embedding": 2**40},
            {"hidden": -1},
            {"hidden": 2**62},
            {"layers": 0},
            {"layers": 2**40},
            {"encoder_layers": 2**40},
            {"encoder_layers": -3},
            {"vocabulary": 3},
            {"vocabulary": 2**60},
            {"attention_layer": 0},
            {"attention_layer": 3},
            {"attention_head": -1},
            {"attention_head": 3},
        ],
        ids=str,
    )
    def test_sizes_that_are_not_possible_are_refused(self, of: Any, sizes: dict[str, int]) -> None:
        with pytest.raises(ValueError, match="the sizes of the model are not possible"):
            model(of, **sizes)

    def test_an_unknown_system_is_refused(self, of: Any) -> None:
        with pytest.raises(ValueError, match="the engine has no system seq3seq"):
            model(of, system="seq3seq")

    def test_huge_weights_do_no_harm(self, of: Any) -> None:
        tensors = tensors_of(of)
        for name in ("decoder.layers.0.attention.of_state.weight", "encoder.norm.weight"):
            kind, shape, values = tensors[name]
            tensors[name] = kind, shape, struct.pack("f", 3e38) * (len(values) // 4)
        for precision in ("float32", "int8"):
            config = SearchConfig(beam=3, max_length=5)
            assert len(found(engine(of, precision, tensors=tensors), SOURCES, config)) == len(
                SOURCES
            )


def model(of: Any, **changes: Any) -> Any:
    own = of.config.system
    sizes = {
        "vocabulary": VOCABULARY,
        "embedding": own.embedding_size,
        "hidden": own.hidden_size,
        "layers": own.decoder_layers,
        "encoder_layers": own.encoder_layers,
        "heads": own.heads,
        "attention_layer": own.decoder_layers,
        "attention_head": 0,
        "system": "transformer",
    }
    more = {"gate": True, "spm": True, "int8": False, "kind": "portable"}
    return _runtime.Model(tensors_of(of), **sizes | more | changes)
