"""The seam: what a system or an add-on that nobody has thought of yet can rely on."""

import warnings
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from ledeline.config.section import above, fields, section
from ledeline.core.errors import EngineWarning, ModelError
from ledeline.data.dataset import Batch, padded
from ledeline.inference.engine_model import EngineModel
from ledeline.inference.engine_weights import engine_of
from ledeline.inference.engine_weights import refusal as engine_refusal
from ledeline.inference.engines import choose_model
from ledeline.inference.headline_model import HeadlineModel
from ledeline.inference.torch_model import TorchModel
from ledeline.model import addons as known_addons
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.build import refusal
from ledeline.model.format.model_folder import ModelBundle
from ledeline.model.format.weights import as_stored, read_weights, write_weights
from ledeline.model.layers.encoder import Encoded
from ledeline.model.pairs import Pairs
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
from ledeline.model.systems import SYSTEMS
from ledeline.model.systems.encdec import EncDec
from ledeline.model.systems.gru import GruConfig
from ledeline.search import Hypothesis, search
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from systems import encdec, random_system, small_config

PAIRS = [([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4], [9]), ([10, 4, 7], [6, 7])]
VOCABULARY = 11


# --- add-ons that nobody has thought of yet -------------------------------------------------------


@section
class CoverageConfig:
    """A loss on attention alone, as See et al. 2017 have it."""

    title: ClassVar[str] = "coverage"
    free: ClassVar[tuple[str, ...]] = ("weight",)

    weight: Annotated[float, "What the loss is multiplied with.", above(0)] = 1.0


class Coverage(Addon):
    """`sum_j sum_i min(alpha_j[i], sum_{k<j} alpha_k[i])`: looking twice at a place costs."""

    Config = CoverageConfig
    loss_name = "coverage"
    needs_attention_gradient = True

    def __init__(self, config: CoverageConfig, sizes: Sizes) -> None:
        super().__init__()
        self.weight = config.weight

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        before = view.attention.cumsum(1) - view.attention
        twice = torch.minimum(view.attention, before) * pairs.headline_mask.unsqueeze(-1)
        return self.weight * twice.sum((1, 2))


class Forgetful(Coverage):
    """The same, whose author forgot that attention has a gradient only where one asks for it."""

    needs_attention_gradient = False


@section
class CountingConfig:
    """Lowers the score of words that were written before."""

    title: ClassVar[str] = "counting"
    free: ClassVar[tuple[str, ...]] = ()

    price: Annotated[float, "For each time.", above(0)] = 2.0


class Counting(Addon):
    """State of its own: how often each type was written. It changes what a search writes.

    Types that attention looks at get more, as if they were copied.
    """

    Config = CountingConfig
    needs_attention_gradient = True

    def __init__(self, config: CountingConfig, sizes: Sizes) -> None:
        super().__init__()
        self.price, self.vocabulary = config.price, sizes.vocabulary

    def begin(self, encoded: Encoded, sources: Tensor, mask: Tensor | None) -> Tensor:
        return encoded.states.new_zeros(len(sources), 1, self.vocabulary)

    def scores(self, scores: Tensor, view: View, extra: Tensor | None) -> tuple[Tensor, Tensor]:
        assert extra is not None
        counts = extra.scatter_add(-1, view.words.unsqueeze(-1), torch.ones_like(extra[..., :1]))
        places = view.sources.unsqueeze(1).expand(-1, scores.shape[1], -1)  # (B, K, I)
        copied = torch.zeros_like(scores).scatter_add(-1, places, view.attention)
        return scores + copied - self.price * counts, counts


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The add-ons of this file, as one file each in `model/addons` would bring them."""
    for name, addon in {"coverage": Coverage, "forgetful": Forgetful, "counting": Counting}.items():
        monkeypatch.setitem(known_addons.ADDONS, name, addon)  # type: ignore[arg-type]
        monkeypatch.setitem(ADDON_CONFIGS, name, addon.Config)


def forced_score(model: Any, source: list[int], best: Hypothesis) -> float:
    """The log-probability of a hypothesis, teacher-forced."""
    pairs = model.pairs(Batch.of([(source, list(best.ids))]))
    steps = len(best.ids) + (not best.truncated)
    return model.trace(pairs).log_probabilities[0, :steps].sum().item()  # type: ignore[no-any-return]


GRU = GruConfig(embedding_size=3, hidden_size=4, dropout=0.0)


@pytest.fixture(params=["encdec", "gru"])
def system(request: pytest.FixtureRequest) -> Any:
    return GRU if request.param == "gru" else None


# --- traps, each open in version 0.1.0 ------------------------------------------------------------


@pytest.mark.usefixtures("offered")
class TestAttentionGradient:
    def test_a_loss_on_attention_trains(self, system: Any) -> None:
        """The loss falls, and the gradient is that of its definition in float64."""
        model = random_system("coverage", system=system).double()
        pairs = model.pairs(Batch.of(PAIRS))
        loss = model(pairs).named["coverage"].sum()
        weights = model.decoder.attention.bilinear
        (gradient,) = torch.autograd.grad(loss, weights)
        assert gradient.abs().max() > 1e-4
        step = 1e-6
        with torch.no_grad():
            weights[1, 2] += step
            more = model(pairs).named["coverage"].sum()
            weights[1, 2] -= 2 * step
            less = model(pairs).named["coverage"].sum()
        assert gradient[1, 2].item() == pytest.approx(((more - less) / (2 * step)).item(), rel=1e-4)

    def test_forgotten_it_is_refused_instead_of_training_nothing(self) -> None:
        model = random_system("forgetful")
        with pytest.raises(ModelError, match="needs_attention_gradient = True"):
            model(model.pairs(Batch.of(PAIRS)))

    def test_without_a_gradient_anybody_may_look(self) -> None:
        model = random_system("forgetful")
        with torch.no_grad():
            assert (model(model.pairs(Batch.of(PAIRS))).named["coverage"] > 0).all()

    def test_other_losses_are_the_same_with_it(self) -> None:
        plain, with_it = random_system("spm"), random_system("spm", "coverage")
        with_it.load_state_dict(plain.state_dict())
        pairs = plain.pairs(Batch.of(PAIRS))
        for name in ("target", "source"):
            torch.testing.assert_close(with_it(pairs).named[name], plain(pairs).named[name])


def test_the_gain_of_a_layer_norm_starts_at_one() -> None:
    class Normed(EncDec):
        def __init__(self, config: SystemConfig, vocabulary: int) -> None:
            super().__init__(config, vocabulary)
            self.norm = nn.LayerNorm(4)

    config = encdec(embedding_size=3, hidden_size=4)
    model = Normed(config, VOCABULARY)
    from ledeline.model.initialization import UniformInit, initialize

    initialize(model, 1, UniformInit())
    assert torch.equal(model.norm.weight, torch.ones(4))
    assert torch.equal(model.norm.bias, torch.zeros(4))


def test_convolutions_survive_int8(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    weights = {"conv.weight": torch.randn(5, 3, 4, generator=generator), "bias": torch.randn(5)}
    path = tmp_path / "model.safetensors"
    write_weights(path, weights, "int8", {})
    found = read_weights(path, weights, "int8", {})
    assert as_stored(weights, "int8", {})["conv.weight.scale"].shape == (5, 1)
    scales = weights["conv.weight"].flatten(1).abs().amax(1) / 127
    assert (
        (found["conv.weight"] - weights["conv.weight"]).abs() <= 0.501 * scales[:, None, None]
    ).all()
    assert torch.equal(found["bias"], weights["bias"])


def chosen_for(model: Any, precision: Any) -> HeadlineModel:
    """What runs a system that was made here; no words are needed."""
    return choose_model([ModelBundle(model, Tokenizer(NATURAL, Subwords([], "")))], precision)


class TestEngines:
    """What an engine does not know it refuses; it never leaves anything out in silence."""

    def test_the_papers_four_are_known(self) -> None:
        for names in ((), ("sgate",), ("spm",), ("sgate", "spm")):
            assert engine_refusal(random_system(*names)) is None

    @pytest.mark.usefixtures("offered")
    def test_an_add_on_that_changes_what_is_written(self) -> None:
        model = random_system("counting")
        with pytest.raises(ModelError, match="it does not know the add-on counting"):
            engine_of(model, "float32")
        with pytest.raises(
            ModelError, match="precision int8 needs the CPU engine: it does not know the add-on"
        ):
            chosen_for(model, "int8")
        with pytest.warns(EngineWarning, match="written by the system itself.* add-on counting"):
            chosen = chosen_for(model, "auto")
        assert isinstance(chosen, TorchModel)
        assert chosen.step_model is model
        assert chosen.precision == "float32"

    @pytest.mark.usefixtures("offered")
    def test_an_add_on_that_only_trains(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chosen = chosen_for(random_system("coverage"), "float32")
        assert isinstance(chosen, EngineModel)
        assert chosen.precision == "float32"

    @pytest.mark.usefixtures("offered")
    def test_weights_that_only_train(self) -> None:
        model = random_system("word_prediction", "spm")
        assert any(name.startswith("word_prediction.") for name in model.state_dict())
        engine_of(model, "float32")

    def test_a_system_in_another_type_becomes_float32(self) -> None:
        model = random_system("sgate")
        engine_of(model.double(), "float32")

    def test_another_system(self) -> None:
        with pytest.warns(EngineWarning, match="does not know the system GRU-EncDec"):
            assert chosen_for(random_system(system=GRU), "auto").precision == "float32"

    def test_a_layer_more(self) -> None:
        model = random_system()
        model.adapter = nn.Linear(4, 4)
        with pytest.raises(ModelError, match="it does not know the layer adapter"):
            engine_of(model, "int8")

    def test_a_subclass(self) -> None:
        class Other(EncDec):
            """Writes otherwise, with the same layers."""

        with pytest.raises(ModelError, match="it does not know the system EncDec"):
            engine_of(Other(encdec(embedding_size=3, hidden_size=4), VOCABULARY), "int8")


# --- an add-on with state of its own, in training and in search -----------------------------------


class TestClashes:
    """A name that is taken is refused, instead of replacing what has it."""

    @pytest.mark.parametrize(
        ("name", "loss", "sentence"),
        [
            ("own", "target", "two parts of the system have a loss called target"),
            ("output", None, "two parts of the system have a module called output"),
            ("gate", None, None),
        ],
    )
    def test_names(
        self, monkeypatch: pytest.MonkeyPatch, name: str, loss: str | None, sentence: str | None
    ) -> None:
        class Named(Coverage):
            loss_name = loss

        monkeypatch.setitem(known_addons.ADDONS, name, Named)  # type: ignore[arg-type]
        monkeypatch.setitem(ADDON_CONFIGS, name, CoverageConfig)
        if sentence is None:
            assert name in random_system(name).addons
        else:
            with pytest.raises(ModelError, match=sentence):
                random_system(name)

    def test_the_section_of_an_add_on_is_no_other_section(self) -> None:
        from ledeline.train.train_config import TrainConfig

        assert not known_addons.ADDONS.keys() & {one.name for one in fields(TrainConfig)}


def test_a_loss_sees_what_the_encoder_made(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[View] = []

    class Looking(Coverage):
        def loss(self, view: View, pairs: Pairs) -> Tensor:
            seen.append(view)
            return view.states.sum((1, 2))

    monkeypatch.setitem(known_addons.ADDONS, "looking", Looking)  # type: ignore[arg-type]
    monkeypatch.setitem(ADDON_CONFIGS, "looking", CoverageConfig)
    model = random_system("sgate", "looking")
    pairs = model.pairs(Batch.of(PAIRS))
    model(pairs)
    expected = model.encoder(pairs.sources, pairs.source_lengths)
    assert seen[0].encoded is not None
    assert torch.equal(seen[0].encoded.states, expected.states)  # not gated


@pytest.mark.usefixtures("offered")
class TestScores:
    def test_search_and_training_see_the_same(self, system: Any) -> None:
        """The score of a hypothesis is the forced score: the add-on's state follows the beam."""
        model = random_system("counting", "spm", system=system).double()
        sources = [source for source, _ in PAIRS]
        found = search(model, *padded(sources))
        for source, (best, *_) in zip(sources, found, strict=True):
            assert -best.cost == pytest.approx(forced_score(model, source, best), abs=1e-9)

    def test_it_does_what_it_says(self) -> None:
        plain, counting = random_system(), random_system("counting")
        counting.load_state_dict(plain.state_dict())
        sources = padded([source for source, _ in PAIRS])
        repeats = [
            sum(len(best.ids) - len(set(best.ids)) for best, *_ in search(model, *sources))
            for model in (plain, counting)
        ]
        assert repeats[1] < repeats[0]

    def test_it_trains(self) -> None:
        model = random_system("counting")
        losses = model(model.pairs(Batch.of(PAIRS)))
        losses.total().sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


# --- every system keeps these promises ------------------------------------------------------------


def combinations() -> list[Any]:
    """Every system alone, with each add-on, and with sGate and SPM; less what it refuses."""
    some = [(), *((name,) for name in known_addons.ADDONS), ("sgate", "spm")]
    return [
        pytest.param(name, names, id="+".join([name, *names]))
        for name, system in SYSTEMS.items()
        for names in some
        if not any(refusal(system, one) for one in names)
    ]


@pytest.mark.parametrize(("name", "names"), combinations())
class TestEverySystem:
    @pytest.fixture
    def model(self, name: str, names: tuple[str, ...]) -> Any:
        return random_system(*names, system=small_config(name)).double()

    def test_a_pair_is_the_same_in_any_batch(self, model: Any) -> None:
        together = model(model.pairs(Batch.of(PAIRS)))
        for row, pair in enumerate(PAIRS):
            alone = model(model.pairs(Batch.of([pair])))
            for loss in together.named:
                torch.testing.assert_close(together.named[loss][row], alone.named[loss][0])

    def test_the_search_score_is_the_forced_score(self, model: Any) -> None:
        found = search(model, *padded([source for source, _ in PAIRS]))
        for (source, _), (best, *_) in zip(PAIRS, found, strict=True):
            assert -best.cost == pytest.approx(forced_score(model, source, best), abs=1e-9)

    def test_causality(self, model: Any) -> None:
        """A later word changes no earlier step."""
        source, headline = PAIRS[0]
        one, other = (
            model.trace(model.pairs(Batch.of([(source, words)])))
            for words in (headline, [headline[0], 9])
        )
        if one.attention is not None:
            assert torch.equal(one.attention[0, :2], other.attention[0, :2])
        assert one.log_probabilities[0, 0] == other.log_probabilities[0, 0]

    def test_a_trace_says_what_there_is(self, model: Any, names: tuple[str, ...]) -> None:
        seen = model.trace(model.pairs(Batch.of(PAIRS)))
        if seen.attention is not None:
            sums = seen.attention.sum(-1)
            torch.testing.assert_close(sums, torch.ones_like(sums))
        assert (seen.source_predictions is not None) == model.has_source_predictions
        assert model.has_source_predictions == ("spm" in names)

    def test_all_losses_are_named_and_summed(self, model: Any, names: tuple[str, ...]) -> None:
        losses = model(model.pairs(Batch.of(PAIRS)))
        assert tuple(losses.named) == model.loss_names
        own = getattr(model, "cost_names", ())
        added = [known_addons.ADDONS[one].loss_name for one in names]
        assert model.loss_names == ("target", *own, *(one for one in added if one))
        torch.testing.assert_close(losses.total(), sum(losses.named.values()))

    def test_every_parameter_learns(self, model: Any) -> None:
        model(model.pairs(Batch.of(PAIRS))).total().sum().backward()
        for parameter_name, parameter in model.named_parameters():
            assert parameter.grad.abs().max() > 0, parameter_name
