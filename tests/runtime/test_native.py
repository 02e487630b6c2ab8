"""The engine in C beside the system in PyTorch, and the same bits on every kind of processor."""

import struct
from typing import Any

import numpy as np
import pytest

from ledeline.config import SearchConfig
from ledeline.core.shipped import SHIPPED
from ledeline.data.dataset import padded
from ledeline.model.format.model_folder import load_model
from ledeline.model.system import System
from ledeline.runtime.engine import Engine, EnginePrecision
from ledeline.runtime.tensor_file import read_tensors
from ledeline.search import search
from ledeline.text.tokenizer import Tokenizer
from native_models import begun, extreme_tensors, found, large_system, large_tensors, model

_runtime = pytest.importorskip("ledeline.runtime._runtime")

LEDES = (
    "Health ministers from 12 countries said on Monday that a ban on disposable vapes will come in January.",
    "A man was rescued from a river in Leeds after his car left the road during heavy rain, police said.",
    "Shares fell.",
    "The mayor of Springfield resigned on Friday amid an inquiry into how contracts for a new bridge were awarded, "
    "and her deputy said that he would not stand for election.",
)
CHOICES = (
    {},
    {"beam": 1},
    {"beam": 7, "n_best": 7, "min_length": 9, "max_length": 12},
    {"beam": 5, "n_best": 2, "stop_early": True},
    {"beam": 6, "n_best": 3, "keep_finished": True},
    {"beam": 8, "n_best": 4, "recombine": 2, "block_ngrams": 1},
    {"beam": 4, "forbid_unknown": True, "max_length": 3},
)


@pytest.fixture(scope="module")
def sources() -> list[list[int]]:
    tokenizer = Tokenizer.load(SHIPPED)
    return [list(tokenizer.encode(tokenizer.words(lede))) for lede in LEDES]


@pytest.fixture(scope="module")
def fastest() -> str:
    return str(_runtime.kinds()[-1])


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_in_float32_it_finds_what_the_system_finds(
    choice: dict[str, Any], sources: list[list[int]], fastest: str
) -> None:
    assert_the_same(model(fastest, int8=False), large_system(), sources, choice)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_in_float32_the_bundled_model_finds_what_its_system_finds(
    choice: dict[str, Any], sources: list[list[int]], fastest: str
) -> None:
    assert_the_same(bundled(fastest, int8=False), load_model(SHIPPED).model, sources, choice)


def bundled(kind: str, *, int8: bool) -> Any:
    bundle = load_model(SHIPPED)
    tensors = read_tensors(SHIPPED / "model.safetensors")
    precision: EnginePrecision = "int8" if int8 else "float32"
    config, vocabulary = bundle.model.config, bundle.tokenizer.vocabulary_size
    return Engine(config, vocabulary, tensors, precision, kind=kind).native


def assert_the_same(
    of: Any, system: System, sources: list[list[int]], choice: dict[str, Any]
) -> None:
    config = SearchConfig(**{"n_best": 1, "block_ngrams": 0, "recombine": 0} | choice)
    expected = search(system, *padded(sources), config)
    for own, lists in zip(found(of, sources, config), expected, strict=True):
        assert [one[0] for one in own] == [one.ids for one in lists]
        assert [one[2] for one in own] == [one.truncated for one in lists]
        assert [one[1] for one in own] == pytest.approx([one.cost for one in lists], rel=1e-4)


@pytest.mark.parametrize("int8", [True, False], ids=["int8", "float32"])
def test_every_kind_of_processor_has_the_same_bits(
    sources: list[list[int]], fastest: str, int8: bool
) -> None:
    config = SearchConfig(beam=3, n_best=3, max_length=8)
    for make in (model, bundled):
        expected = found(make(fastest, int8=int8), sources, config)
        for kind in _runtime.kinds():
            assert found(make(kind, int8=int8), sources, config) == expected


@pytest.mark.parametrize(("d", "h"), [(8, 16), (5, 7), (40, 64), (13, 51)], ids=str)
def test_weights_as_large_as_they_get_have_the_same_bits(d: int, h: int) -> None:
    """Where products are added in 16 bits nothing may be cut off; rows fill blocks in all ways."""
    sizes = {
        "vocabulary": 40,
        "embedding": d,
        "hidden": h,
        "layers": 1,
        "gate": False,
        "spm": False,
    }
    texts = [[5 + (7 * n + i) % 35 for i in range(1 + n)] for n in range(13)]
    config = SearchConfig(beam=7, n_best=7, max_length=5)
    told = []
    for kind in _runtime.kinds():
        of = model(kind, int8=True, tensors=extreme_tensors(40, d, h), **sizes)
        follow = _runtime.Follow(of, texts, [(n, [6, 5 + n]) for n in range(13)], False)
        while follow.running:
            follow.step()
        states = [bytes(part) for n in range(13) for part in follow.headline(n) if part is not None]
        told.append((found(of, texts, config), states))
    assert all(one == told[0] for one in told)
    assert any(value not in (0.0, 1.0, -1.0) for value in np.frombuffer(told[0][1][1], np.float32))


def test_a_source_alone_has_the_bits_that_it_has_among_others(
    sources: list[list[int]], fastest: str
) -> None:
    config, of = SearchConfig(n_best=5), model(fastest, int8=True)
    together = found(of, sources, config)
    assert [found(of, [one], config)[0] for one in sources] == together
    assert found(of, sources[::-1], config) == together[::-1]


def test_a_source_that_is_given_up_changes_no_other(sources: list[list[int]], fastest: str) -> None:
    config, of = SearchConfig(), model(fastest, int8=True)
    running = begun(of, sources, config)
    running.step()
    running.give_up([1, 3])
    while running.running:
        running.step()
    expected = found(of, sources, config)
    assert [running.hypotheses()[n] for n in (0, 2)] == [expected[n] for n in (0, 2)]
    assert running.hypotheses()[1] == []


def test_forbidden_words_are_not_written(sources: list[list[int]], fastest: str) -> None:
    config, of = SearchConfig(n_best=5), model(fastest, int8=True)
    never = [
        sorted({word for one in own for word in one[0]})[:3] for own in found(of, sources, config)
    ]
    running = begun(of, sources, config, forbidden=never)
    while running.running:
        running.step()
    for own, words in zip(running.hypotheses(), never, strict=True):
        assert not any(set(one[0]) & set(words) for one in own)


def test_following_a_headline_again_sees_what_the_search_saw(
    sources: list[list[int]], fastest: str
) -> None:
    of, config = model(fastest, int8=True), SearchConfig(n_best=2)
    running = begun(of, sources, config, keep_states=True)
    while running.running:
        running.step()
    lists = running.hypotheses()
    pairs = [(row, one[0]) for row, own in enumerate(lists) for one in own]
    follow = _runtime.Follow(of, sources, pairs, True)
    while follow.running:
        follow.step()
    for number, (row, one) in enumerate((row, one) for row, own in enumerate(lists) for one in own):
        _, _, _, slots, logs = one
        seen_logs, states, attention, predictions = follow.headline(number)
        assert struct.unpack(f"{len(logs)}f", seen_logs) == pytest.approx(logs, abs=1e-5)
        assert running.states(row, [slots], len(slots)) == states
        assert running.values(row) == follow.values(row)
        steps = struct.iter_unpack(f"{len(sources[row])}f", attention)
        assert [sum(step) for step in steps] == pytest.approx([1.0] * len(slots), abs=1e-5)
        assert all(0 <= value <= 1 for (value,) in struct.iter_unpack("f", predictions))


class TestDamage:
    def test_a_tensor_that_is_missing_is_named(self, fastest: str) -> None:
        tensors = large_tensors()
        del tensors["gate.of_state.weight"]
        with pytest.raises(ValueError, match=r"gate\.of_state\.weight is missing"):
            model(fastest, int8=True, tensors=tensors)

    def test_another_shape_is_refused(self, fastest: str) -> None:
        with pytest.raises(
            ValueError, match=r"encoder\.embedding\.weight is \(8052, 256\) but should be"
        ):
            model(fastest, int8=True, embedding=200)

    def test_numbers_that_are_not_finite_are_refused(self, fastest: str) -> None:
        tensors = large_tensors()
        kind, shape, _ = tensors["output.bias"]
        tensors["output.bias"] = kind, shape, struct.pack("f", float("nan")) * shape[0]
        with pytest.raises(ValueError, match=r"output\.bias has weights that are not finite"):
            model(fastest, int8=True, tensors=tensors)

    def test_fewer_bytes_than_the_shape_needs_are_refused(self, fastest: str) -> None:
        tensors = large_tensors()
        kind, shape, values = tensors["output.weight"]
        tensors["output.weight"] = kind, shape, values[:-1]
        with pytest.raises(ValueError, match=r"output\.weight has \d+ bytes"):
            model(fastest, int8=True, tensors=tensors)

    @pytest.mark.parametrize("word", [-1, 8052, 2**40])
    def test_an_id_that_is_no_word_is_refused(self, fastest: str, word: int) -> None:
        with pytest.raises(ValueError, match="is not an id of the vocabulary"):
            begun(model(fastest, int8=True), [[5, word]], SearchConfig())

    def test_a_list_that_says_it_is_endless_is_refused(self, fastest: str) -> None:
        with pytest.raises(MemoryError):
            begun(model(fastest, int8=True), [range(2**63 - 1)], SearchConfig())

    @pytest.mark.parametrize("length", [80, 119, 120, 121, 300_000])
    def test_a_long_name_is_told_in_part(self, fastest: str, length: int) -> None:
        tensors = large_tensors()
        for values in (b"1234", b"123"):
            tensors["a" + "é" * length] = "F32", (1,), values
            with pytest.raises(ValueError, match=r"^a.* (belongs to|has 3 bytes)") as error:
                model(fastest, int8=True, tensors=tensors)
            assert len(str(error.value)) < 250

    @pytest.mark.parametrize("int8", [True, False], ids=["int8", "float32"])
    @pytest.mark.parametrize("name", ["output.weight", "decoder.embedding.weight"])
    @pytest.mark.parametrize("scale", [3e36, -3e38, float("inf"), float("nan")])
    def test_scales_that_make_infinite_weights_are_refused(
        self, fastest: str, int8: bool, name: str, scale: float
    ) -> None:
        tensors = extreme_tensors(40, 8, 16)
        kind, shape, values = tensors[f"{name}.scale"]
        tensors[f"{name}.scale"] = kind, shape, values[:-4] + struct.pack("f", scale)
        sizes = {"vocabulary": 40, "embedding": 8, "hidden": 16, "layers": 1}
        with pytest.raises(ValueError, match=f"{name} has weights that are not finite numbers"):
            model(fastest, int8=int8, tensors=tensors, **sizes, gate=False, spm=False)

    def test_an_unknown_kind_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no kernels of the kind abacus"):
            model("abacus", int8=True)
