"""The engine's verifier judges as the one in PyTorch does, and each headline as if it were alone."""

from array import array
from typing import Any

import numpy as np
import pytest
import torch

from ledeline.core.errors import ModelError
from ledeline.core.shipped import SHIPPED
from ledeline.core.steps import run_steps
from ledeline.inference.checks.checker import VERIFIER, bundled_generator
from ledeline.inference.checks.followed import AskedIds, follow
from ledeline.inference.checks.verifier_folder import read_verifier
from ledeline.model.verifier import Judgement, PairView, Verifier, VerifierBatch, VerifierShape
from ledeline.runtime.cpu import kinds
from ledeline.runtime.tensor_file import StoredTensor, Tensors
from ledeline.runtime.verifier_engine import GeneratorView, VerifierEngine, VerifierSays
from ledeline.synth.newsroom import generate
from ledeline.text.subwords import PAD
from ledeline.text.tokenizer import Tokenizer
from verifiers import verifier_in_torch

SHAPES = [
    VerifierShape(vocabulary=30, size=16, heads=2, layers=2, embedding_size=8, generator_size=6),
    VerifierShape(vocabulary=30, size=21, heads=3, layers=1, embedding_size=7, generator_size=13),
    VerifierShape(vocabulary=30, size=48, heads=4, layers=3, embedding_size=33, generator_size=50),
    VerifierShape(vocabulary=30, size=7, heads=7, layers=2, embedding_size=1, generator_size=1),
]
PRECISIONS = ["float32", "int8"]
# Of a lede and its headlines: mixed, a single sub-word, a headline longer than its lede.
LENGTHS = [(17, (4, 9, 1, 6)), (1, (3,)), (5, (12, 2)), (60, (8, 8))]

pytestmark = pytest.mark.usefixtures("one_thread")


def random_verifier(shape: VerifierShape, seed: int = 0) -> Verifier:
    """One with classes: sub-words 5 to 9 match themselves, and 10 to 14 match them, too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        verifier = Verifier(shape).eval()
        with torch.no_grad():
            for one in verifier.parameters():
                one += torch.randn_like(one) * 0.3
    verifier.classes[5:10] = verifier.classes[10:15] = torch.arange(1.0, 6.0)
    return verifier


def random_views(shape: VerifierShape, seed: int = 0) -> list[GeneratorView]:
    rng = np.random.default_rng(seed)

    def floats(*sizes: int) -> bytes:
        return rng.uniform(-1, 1, sizes).astype(np.float32).tobytes()

    views = []
    for length, headlines in LENGTHS:
        steps = max(headlines) + 1
        logs = [
            [*(-rng.exponential(3, number + 1)).tolist(), *[0.0] * (steps - number - 1)]
            for number in headlines
        ]
        views.append(
            GeneratorView(
                rng.integers(4, 17, length).tolist(),
                floats(length, shape.generator_size),
                [rng.integers(4, 17, number).tolist() for number in headlines],
                floats(len(headlines), steps, shape.generator_size),
                logs,
            )
        )
    return views


def as_pair_view(view: GeneratorView) -> PairView:
    """The same as tensors."""
    width = max(map(len, view.headlines))
    headlines = [[*one, *[PAD] * (width - len(one))] for one in view.headlines]

    def floats(values: Any) -> torch.Tensor:
        return torch.frombuffer(bytearray(values), dtype=torch.float32)

    return PairView(
        torch.tensor(view.source),
        floats(view.values).view(len(view.source), -1),
        torch.tensor(headlines),
        floats(view.states).view(len(headlines), width + 1, -1),
        torch.tensor(view.logs),
    )


@torch.inference_mode()
def judged(verifier: Verifier, view: GeneratorView) -> Judgement:
    found: Judgement = verifier(VerifierBatch.of([as_pair_view(view)]))
    return found


def tensors_of(verifier: Verifier) -> Tensors:
    return {
        name: StoredTensor("F32", tuple(one.shape), one.numpy().tobytes())
        for name, one in verifier.state_dict().items()
    }


def engine_of(verifier: Verifier, precision: Any, **options: Any) -> VerifierEngine:
    return VerifierEngine(verifier.shape._asdict(), tensors_of(verifier), precision, **options)


def flat(says: VerifierSays | Judgement, view: GeneratorView) -> np.ndarray[Any, Any]:
    """All that is said of some headlines, in one row."""
    parts = [np.asarray(says.labels).ravel(), np.asarray(says.kinds).ravel()]
    for doubts, headline in zip(says.doubts, view.headlines, strict=True):
        parts.append(np.asarray(doubts[: len(headline)]))
    return np.concatenate(parts)


def assert_close(found: VerifierSays, expected: Judgement, view: GeneratorView) -> None:
    assert len(found.labels) == len(found.doubts) == len(found.kinds) == len(view.headlines)
    assert [len(one) for one in found.doubts] == [len(one) for one in view.headlines]
    np.testing.assert_allclose(flat(found, view), flat(expected, view), atol=2e-4, rtol=1e-4)


# --- beside PyTorch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"size {shape.size}")
@pytest.mark.parametrize("seed", range(3))
def test_float32_is_the_verifier(shape: VerifierShape, seed: int) -> None:
    verifier, views = random_verifier(shape, seed), random_views(shape, seed)
    engine = engine_of(verifier, "float32")
    for view in views:
        assert_close(engine.judge(view), judged(verifier, view), view)


@pytest.mark.parametrize("shape", SHAPES[:3], ids=lambda shape: f"size {shape.size}")
def test_int8_is_near_the_verifier(shape: VerifierShape) -> None:
    verifier, views = random_verifier(shape), random_views(shape)
    engine = engine_of(verifier, "int8")
    found = np.concatenate([flat(engine.judge(view), view) for view in views])
    expected = np.concatenate([flat(judged(verifier, view), view) for view in views])
    assert np.abs(found - expected).mean() < 0.05 * expected.std()
    assert np.corrcoef(found, expected)[0, 1] > 0.995
    assert not np.allclose(found, expected, atol=1e-4)


@pytest.fixture(scope="module")
def bundled_views() -> list[GeneratorView]:
    """What the bundled model makes of stories, each with its headline and another one's."""
    tokenizer = Tokenizer.load(SHIPPED)
    stories = list(generate(6, 20))

    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(tokenizer.words(text)))

    asked = [
        AskedIds(ids(one.lede), [ids(one.headline), ids(other.headline), ids("Rain falls")])
        for one, other in zip(stories, stories[1:] + stories[:1], strict=True)
    ]
    return run_steps(follow(bundled_generator().engine, asked))


def test_the_bundled_one_is_that_of_pytorch(bundled_views: list[GeneratorView]) -> None:
    verifier = verifier_in_torch(VERIFIER)
    exact, fast = (read_verifier(VERIFIER, one).verifier for one in PRECISIONS)  # type: ignore[arg-type]
    found, expected = [], []
    for view in bundled_views:
        judgement = judged(verifier, view)
        assert_close(exact.judge(view), judgement, view)
        found.append(flat(fast.judge(view), view))
        expected.append(flat(judgement, view))
    assert np.abs(np.concatenate(found) - np.concatenate(expected)).mean() < 0.1
    assert np.corrcoef(np.concatenate(found), np.concatenate(expected))[0, 1] > 0.999


# --- the same bits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_headline_is_judged_as_if_it_were_alone(precision: Any) -> None:
    verifier, views = random_verifier(SHAPES[2]), random_views(SHAPES[2])
    engine = engine_of(verifier, precision)
    for view in views:
        together = engine.judge(view)
        for number in range(len(view.headlines)):
            alone = engine.judge(view.rows(number, number + 1))
            assert alone == tuple(one[number : number + 1] for one in together)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_kind_of_cpu_says_the_same(precision: Any) -> None:
    verifier, views = random_verifier(SHAPES[1]), random_views(SHAPES[1])
    engines = [engine_of(verifier, precision, kind=kind) for kind in kinds()]
    for view in views:
        first, *others = [engine.judge(view) for engine in engines]
        assert all(one == first for one in others)


def test_rows_are_those_of_the_view() -> None:
    (view, *_) = random_views(SHAPES[0])
    one, other = as_pair_view(view), as_pair_view(view.rows(2, 4))
    assert torch.equal(other.source, one.source)
    assert torch.equal(other.values, one.values)
    assert torch.equal(other.headlines, one.headlines[2:4, :6])
    assert torch.equal(other.states, one.states[2:4, :7])
    assert torch.equal(other.logs, one.logs[2:4, :7])


# --- damage -----------------------------------------------------------------------------------------


def test_what_is_wrong_with_weights_is_said_with_their_file(tmp_path: Any) -> None:
    verifier = random_verifier(SHAPES[0])
    shape = SHAPES[0]._asdict()
    path = tmp_path / "model.safetensors"
    tensors = tensors_of(verifier)
    tensors["norm.bias"] = StoredTensor("F32", (16,), array("f", [float("nan")] * 16).tobytes())
    with pytest.raises(ModelError, match=rf"^{path} is damaged: norm\.bias"):
        VerifierEngine(shape, tensors, path=path)
    for name in ("norm.bias", "layers.1.up.weight", "classes", "scalars.weight"):
        some = {key: one for key, one in tensors_of(verifier).items() if key != name}
        with pytest.raises(ModelError, match=f"the verifier is damaged: {name} is missing"):
            VerifierEngine(shape, some)
    more = tensors_of(verifier) | {"norm.more": tensors_of(verifier)["norm.bias"]}
    with pytest.raises(ModelError, match=r"norm\.more belongs to no layer of the verifier"):
        VerifierEngine(shape, more)


def test_a_view_that_does_not_go_together_is_refused() -> None:
    """The caller is ours, but what it passes is memory that is read in C."""
    verifier, (view, *_) = random_verifier(SHAPES[0]), random_views(SHAPES[0])
    engine = engine_of(verifier, "float32")
    for wrong in (
        {"values": view.values[:-4]},
        {"states": view.states[:-4]},
        {"logs": [row[:-1] for row in view.logs]},
        {"source": [*view.source, 5]},
        {"source": [*view.source[:-1], 30]},
        {"headlines": [*view.headlines[:-1], [5, 30]]},
        {"headlines": [*view.headlines[:-1], [5] * 99]},
        {"headlines": [*view.headlines, [5]]},
    ):
        with pytest.raises(ValueError, match=r"\w"):
            engine.judge(view._replace(**wrong))  # type: ignore[arg-type]
