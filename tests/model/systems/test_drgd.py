"""DRGD against a slow reference, and each of its promises. Numbers are those of a test list:
1 KL, 2 noise only in training, 3 gradients and no latent part, 4 causality, 5 padding,
6 fresh noise, 7 beta and the beam's state, 8 the limits of the variance."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import drgd_reference
from ledeline.config import DataConfig, SearchConfig
from ledeline.config.section import BadValue
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import Batch, padded
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.initialization import XavierInit
from ledeline.model.layers.dropout import WHOLE_BATCH, Noise, Share, seed
from ledeline.model.layers.latent import Gaussian
from ledeline.model.pairs import Pairs, Sources
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.drgd import Drgd, DrgdConfig
from ledeline.search import search
from ledeline.search.beam import greedy
from ledeline.search.step_limit import max_steps
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import BOS, EOS, PAD, Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.optimizers import AdadeltaConfig
from ledeline.train.schedules import ConstantSchedule
from ledeline.train.train_config import TrainConfig
from model_reference import weights_of
from systems import random_system

PAIRS = [([4, 5, 6, 7, 5], [4, 6, 9]), ([8, 9, 4], [9]), ([10, 4], [6, 7]), ([5, 5, 8], [10])]
SMALL = DrgdConfig(
    embedding_size=3, hidden_size=4, latent_size=5, attention_size=6, beta=0.7, dropout=0.0
)
FORMS = [
    replace(SMALL, decoder=decoder, fusion=fusion, deep_output=deep)
    for decoder in ("two", "one")
    for fusion in ("gated", "sum")
    for deep in (False, True)
]
every_form = pytest.mark.parametrize(
    "config", FORMS, ids=lambda one: f"{one.decoder}-{one.fusion}{'-deep' * one.deep_output}"
)
one_of_each = pytest.mark.parametrize(
    "config",
    [SMALL, replace(SMALL, decoder="one", fusion="sum", deep_output=True)],
    ids=["two", "one"],
)


class Fixed(Noise):
    """The same noise each time; longer headlines only see more of it."""

    def __init__(self, noise: Tensor) -> None:
        super().__init__()
        self.noise = noise  # (B, J, Z)

    def forward(self, like: Tensor) -> Tensor:
        return self.noise[: like.shape[0], : like.shape[1]]


class Recording(Noise):
    """Noise that is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[Tensor] = []

    def forward(self, like: Tensor) -> Tensor:
        self.drawn.append(super().forward(like))
        return self.drawn[-1]


def made(config: DrgdConfig = SMALL, *addons: str) -> Any:
    """With random weights, in float64, for evaluation."""
    return random_system(*addons, system=config).double()


def fixed(num_pairs: int = 4, num_steps: int = 9) -> Tensor:
    numbers = torch.Generator().manual_seed(8)
    shape = num_pairs, num_steps, SMALL.latent_size
    return torch.randn(shape, generator=numbers, dtype=torch.float64)


def followed(model: Any, pairs: Pairs) -> Any:
    """All steps of the decoder."""
    begun = model.begin(pairs.sources, pairs.source_lengths, pairs.source_mask)
    return model.decoder.follow(pairs.previous, begun.state, begun.memory)


# --- the slow reference ---------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("training", [False, True])
def test_losses_and_traces_are_those_of_the_equations(config: DrgdConfig, training: bool) -> None:
    model, noise = made(config).train(training), fixed()
    if training:
        model.decoder.noise = Fixed(noise)
    pairs = model.pairs(Batch.of(PAIRS))
    losses, trace = model(pairs), model.trace(pairs)
    for row, (source, headline) in enumerate(PAIRS):
        drawn = noise[row].numpy() if training else None
        seen = drgd_reference.see(weights_of(model), config, source, headline, drawn)
        steps = len(headline) + 1
        found = {name: loss[row].item() for name, loss in losses.named.items()}
        assert found == pytest.approx({"target": seen.target, "kl": 0.7 * seen.kl}, abs=1e-10)
        assert losses.headline[row].item() == pytest.approx(seen.target, abs=1e-10)
        logs = seen.logs[range(steps), [*headline, EOS]]
        for tensor, expected in (
            (trace.log_probabilities[row, :steps], logs),
            (trace.attention[row, :steps, : len(source)], seen.alphas),
            (trace.states[row, :steps], seen.states),
        ):
            np.testing.assert_allclose(tensor.detach().numpy(), expected, rtol=0, atol=1e-10)


@every_form
@pytest.mark.parametrize("training", [False, True])
def test_steps_of_a_search_are_those_of_the_equations(config: DrgdConfig, training: bool) -> None:
    """Also of a model in training: a search takes the mean."""
    model = made(config).train(training)
    sources = Sources.of(*padded([source for source, _ in PAIRS]))
    state, memory = model.encode(*sources)
    expected = [
        drgd_reference.see(weights_of(model), config, source, [5, 7]) for source, _ in PAIRS
    ]
    for j, word in enumerate([BOS, 5, 7]):
        logs, state = model.step(torch.full((len(PAIRS), 1), word), state, memory)
        for row, seen in enumerate(expected):
            for tensor, values in (
                (logs, seen.logs),
                (state.decoder.latent, seen.latents),
                (state.decoder.attentional, seen.states),
            ):
                np.testing.assert_allclose(
                    tensor[row, 0].detach().numpy(), values[j], rtol=0, atol=1e-10
                )


# --- 1: the divergence ----------------------------------------------------------------------------


class TestDivergence:
    def test_it_is_0_for_the_prior_alone(self) -> None:
        zeros = torch.zeros(3, 5, dtype=torch.float64)
        assert torch.equal(Gaussian(zeros, zeros).divergence(), torch.zeros(3).double())
        numbers = torch.Generator().manual_seed(2)
        for which in range(2):
            for _ in range(50):
                parts = [torch.zeros(5, dtype=torch.float64) for _ in range(2)]
                unit = torch.randint(5, (), generator=numbers)
                parts[which][unit] = torch.randn((), generator=numbers, dtype=torch.float64)
                assert Gaussian(*parts).divergence() > 0

    def test_it_is_what_draws_say(self) -> None:
        """`E_q[log q(z) - log p(z)]`, of 1e5 draws."""
        own = Gaussian(
            torch.tensor([0.5, -1.0, 2.0]).double(), torch.tensor([0.3, -2.0, 1.0]).double()
        )
        numbers = torch.Generator().manual_seed(3)
        draws = own.at(torch.randn(100_000, 3, generator=numbers, dtype=torch.float64))
        posterior, prior = (
            torch.distributions.Normal(*given).log_prob(draws).sum(-1)
            for given in ((own.mean, (own.log_variance / 2).exp()), (0.0, 1.0))
        )
        estimate = (posterior - prior).mean().item()
        assert own.divergence().item() == pytest.approx(estimate, rel=0.01)

    def test_low_precision_is_summed_in_float32(self) -> None:
        low = Gaussian(torch.full((500,), 0.1).bfloat16(), torch.zeros(500).bfloat16())
        assert low.divergence().dtype == torch.float32


# --- 2 and 6: noise -------------------------------------------------------------------------------


class TestNoise:
    def test_none_outside_training(self) -> None:
        model = made()
        pairs = model.pairs(Batch.of(PAIRS))
        outputs = []
        for number in (1, 2):
            seed(number, 1)
            outputs.append((model(pairs).total(), model.trace(pairs).log_probabilities))
        assert all(torch.equal(one, other) for one, other in zip(*outputs, strict=True))

    def test_another_seed_is_another_loss_in_training(self) -> None:
        model = made().train()
        pairs, losses = model.pairs(Batch.of(PAIRS)), []
        for number in (1, 2, 1):
            seed(number, 1)
            losses.append(model(pairs).total())
        assert (losses[0] != losses[1]).all()
        assert torch.equal(losses[0], losses[2])

    def test_with_noise_of_0_training_is_evaluation(self) -> None:
        model = made()
        pairs = model.pairs(Batch.of(PAIRS))
        expected = model(pairs).total()
        model.train().decoder.noise = Fixed(torch.zeros_like(fixed()))
        assert torch.equal(model(pairs).total(), expected)

    def test_it_is_fresh_at_every_step_and_update(self) -> None:
        model = made().train()
        model.decoder.noise = noise = Recording().train()
        pairs = model.pairs(Batch.of(PAIRS))
        latents = []
        for update in range(3):
            seed(1, update)
            latents.append(followed(model, pairs).latents)
        drawn = torch.stack(noise.drawn)  # (updates, B, J, Z)
        assert drawn.shape == (3, 4, 4, 5)
        assert len(set(drawn.flatten().tolist())) == drawn.numel(), "no number comes twice"
        assert (latents[0] != latents[1]).all()

    def test_it_is_standard_normal(self) -> None:
        model = made(replace(SMALL, latent_size=500)).train()
        model.decoder.noise = noise = Recording().train()
        seed(4, 4)
        followed(model, model.pairs(Batch.of(PAIRS * 10)))
        values = noise.drawn[0].flatten()
        assert len(values) == 80_000
        assert values.mean().abs() < 0.02
        assert (values.std() - 1).abs() < 0.02

    @pytest.mark.parametrize("world_size", [2, 3])
    def test_processes_that_share_a_batch_learn_what_one_would(self, world_size: int) -> None:
        model = made(replace(SMALL, dropout=0.3)).train()

        def trained(rank: int, world_size: int) -> tuple[Tensor, list[Tensor]]:
            share = Share(rank, world_size, len(PAIRS)) if world_size > 1 else WHOLE_BATCH
            model.share_batches(share)
            seed(1, 9)
            model.zero_grad()
            whole = model.pairs(Batch.of(PAIRS))
            rows = slice(rank, None, world_size)
            own = Pairs(
                *(
                    None if (one := getattr(whole, name)) is None else one[rows]
                    for name in whole.__dataclass_fields__
                )
            )
            losses = model(own).total()
            losses.sum().backward()
            return losses.detach(), [one.grad.clone() for one in model.parameters()]

        losses, gradients = trained(0, 1)
        results = [trained(rank, world_size) for rank in range(world_size)]
        for rank, (mine, _) in enumerate(results):
            torch.testing.assert_close(mine, losses[rank::world_size], rtol=0, atol=1e-11)
        for expected, *own in zip(gradients, *(one for _, one in results), strict=True):
            torch.testing.assert_close(sum(own), expected, rtol=0, atol=1e-11)


# --- 3: gradients, and the decoder without a latent part ------------------------------------------


@one_of_each
def test_the_gradient_goes_through_the_draw(config: DrgdConfig) -> None:
    """Of the words' loss alone, and as differences say."""
    model = made(config).train()
    model.decoder.noise = Fixed(fixed())
    pairs = model.pairs(Batch.of(PAIRS))
    for layer in (model.decoder.posterior.mean, model.decoder.posterior.log_variance):
        loss = model(pairs).named["target"].sum()
        (gradient,) = torch.autograd.grad(loss, layer.weight)
        assert gradient.abs().min() > 0
        step, sides = 1e-6, []
        with torch.no_grad():
            for change in (step, -2 * step, step):
                layer.weight[1, 2] += change
                sides.append(model(pairs).named["target"].sum().item())
        slope = (sides[0] - sides[1]) / (2 * step)
        assert gradient[1, 2].item() == pytest.approx(slope, rel=1e-4)


@every_form
def test_shut_off_it_is_the_decoder_without_a_latent_part(config: DrgdConfig) -> None:
    model = made(config).train()
    fusion = model.decoder.fusion
    with torch.no_grad():
        if config.fusion == "sum":
            fusion.of_latent.weight.zero_()
        else:  # u = 1
            fusion.gate_of_hidden.weight.zero_()
            fusion.gate_of_latent.weight.zero_()
            fusion.gate_of_latent.bias.fill_(1000.0)
    trace = model.trace(model.pairs(Batch.of(PAIRS)))  # with noise
    for row, (source, headline) in enumerate(PAIRS):
        weights = weights_of(model)
        seen = drgd_reference.see(weights, config, source, headline, has_latent=False)
        logs = seen.logs[range(len(headline) + 1), [*headline, EOS]]
        found = trace.log_probabilities[row, : len(logs)].detach().numpy()
        np.testing.assert_allclose(found, logs, rtol=0, atol=1e-10)


# --- 4: causality ---------------------------------------------------------------------------------


@one_of_each
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_word_changes_the_latents_behind_it_and_no_other(config: DrgdConfig, place: int) -> None:
    """y_t, at place t from 0: z up to step t stays; z of step t + 1 reads it."""
    model = made(config).train()
    model.decoder.noise = Fixed(fixed())
    source, headline = PAIRS[0]
    other = [*headline[:place], 8, *headline[place + 1 :]]
    one, changed = (
        followed(model, model.pairs(Batch.of([(source, words)]))) for words in (headline, other)
    )
    for before, after in (
        (one.latents, changed.latents),
        (one.posterior.mean, changed.posterior.mean),
        (one.posterior.log_variance, changed.posterior.log_variance),
    ):
        assert torch.equal(before[:, : place + 1], after[:, : place + 1])
        assert (before[:, place + 1 :] != after[:, place + 1 :]).all()


def test_the_two_forms_read_the_state_before_or_after_the_word() -> None:
    """With W_y = 0 the first z of the paper's form does not see the first word; the code's does."""
    for form, sees in (("two", False), ("one", True)):
        model = made(replace(SMALL, decoder=form))
        nn.init.zeros_(model.decoder.posterior.of_word.weight)
        state, memory = model.encode(torch.tensor([[4, 5, 6]]))
        latents = [
            model.step(torch.tensor([[word]]), state, memory)[1].decoder.latent for word in (5, 6)
        ]
        assert torch.equal(*latents) != sees


# --- 5: padding -----------------------------------------------------------------------------------


@one_of_each
@pytest.mark.parametrize("training", [False, True])
def test_steps_that_do_not_count_cost_nothing(config: DrgdConfig, training: bool) -> None:
    model = made(config).train(training)
    model.decoder.noise = Fixed(fixed()).train(training)
    batch = Batch.of(PAIRS)
    plain = model.pairs(batch)
    steps = model.num_steps(batch.source_lengths, batch.headline_lengths)
    wider = Pairs.of(batch, steps, plain.targets.shape[1] + 3)
    assert wider.targets.shape[1] == plain.targets.shape[1] + 3
    for name, loss in model(plain).named.items():
        torch.testing.assert_close(model(wider).named[name], loss, rtol=0, atol=1e-12)


def test_with_the_spm_its_steps_count_too() -> None:
    model = made(SMALL, "spm")
    pairs = model.pairs(Batch.of(PAIRS))
    steps = followed(model, pairs)
    expected = 0.7 * (steps.posterior.divergence() * pairs.target_mask).sum(1)
    torch.testing.assert_close(model(pairs).named["kl"], expected)
    assert pairs.target_mask[0].sum() == len(PAIRS[0][0])


# --- 7: beta, and what a beam carries -------------------------------------------------------------


def test_with_beta_0_the_loss_is_that_of_the_words() -> None:
    model, weighted = (made(replace(SMALL, beta=beta)) for beta in (0.0, 2.5))
    pairs = model.pairs(Batch.of(PAIRS))
    losses, others = model(pairs), weighted(pairs)
    assert torch.equal(losses.total(), losses.named["target"])
    assert torch.equal(losses.total(), losses.headline)
    assert torch.equal(losses.named["target"], others.named["target"])
    expected = 2.5 * (followed(model, pairs).posterior.divergence() * pairs.headline_mask).sum(1)
    torch.testing.assert_close(others.named["kl"], expected)
    assert (expected > 0).all()


@every_form
def test_a_beam_of_one_is_greedy(config: DrgdConfig) -> None:
    """The likeliest word after each prefix, all of it forced again, and so z from its start."""
    model = made(config)
    sources = [source for source, _ in PAIRS]
    limits = [max_steps(len(one), SearchConfig(beam=1)) for one in sources]
    for source, limit, found in zip(sources, limits, greedy(model, *padded(sources)), strict=True):
        written: list[int] = []
        while len(written) < limit:
            batch = model.pairs(Batch.of([(source, written)]))
            states = followed(model, batch).states[0, -1]
            logits = model.output(states)
            logits[[PAD, BOS]] = -math.inf  # what no search writes
            if not written:
                logits[EOS] = -math.inf  # nor nothing at all
            if (word := int(logits.argmax())) == EOS:
                break
            written.append(word)
        assert written[: len(found)] == found
        assert len(found) >= min(len(written), limit - 1)


def test_each_hypothesis_carries_its_own_z() -> None:
    model = made()
    state, memory = model.encode(torch.tensor([[4, 5, 6]]))
    assert state.decoder.latent.shape == (1, 1, 5)
    assert not state.decoder.latent.any()
    _, state = model.step(torch.tensor([[BOS]]), state, memory)
    wide = state._replace(
        decoder=state.decoder._replace(
            hidden=tuple(one.expand(-1, 2, -1) for one in state.decoder.hidden),
            latent=torch.cat([state.decoder.latent, torch.zeros(1, 1, 5).double()], 1),
            attentional=state.decoder.attentional.expand(-1, 2, -1),
        )
    )
    logs, after = model.step(torch.tensor([[5, 5]]), wide, memory)
    assert after.decoder.latent.shape == (1, 2, 5)
    assert (logs[0, 0] != logs[0, 1]).all()
    alone, _ = model.step(torch.tensor([[5]]), state, memory)
    torch.testing.assert_close(logs[:, :1], alone)
    for best, *_ in search(model, *padded([source for source, _ in PAIRS])):
        assert best.ids


# --- 8: the limits of the variance ----------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_variance_has_limits(sign: int) -> None:
    model = random_system(system=SMALL).train()  # float32, where exp(1000) overflows
    nn.init.constant_(model.decoder.posterior.log_variance.bias, sign * 1000.0)
    pairs = model.pairs(Batch.of(PAIRS))
    log_variance = followed(model, pairs).posterior.log_variance
    assert torch.equal(log_variance, torch.full_like(log_variance, sign * 10.0))
    loss = model(pairs).total()
    loss.sum().backward()
    assert loss.isfinite().all()
    assert all(one.grad.isfinite().all() for one in model.parameters())


# --- the rest -------------------------------------------------------------------------------------


class Following:
    """Follows attention: each step looks away from where the steps before looked."""

    def __init__(self, size: int) -> None:
        self.seen: list[Tensor] = []
        self.size = size

    def key_change(self) -> Tensor:
        if not self.seen:
            return torch.zeros(())
        return -3 * torch.stack(self.seen).sum(0).unsqueeze(-1).expand(-1, -1, -1, self.size)

    def attended(self, queries: Tensor, weights: Tensor) -> None:
        assert queries.shape == (*weights.shape[:2], SMALL.hidden_size)
        self.seen.append(weights)


@one_of_each
def test_attention_can_be_followed(config: DrgdConfig) -> None:
    model = made(config)
    begun = model.begin(torch.tensor([[4, 5, 6]]), None, None)
    words = torch.tensor([[BOS, 5, 7]])
    unrolling, stepping = (Following(config.attention_size) for _ in range(2))
    plain = model.decoder.follow(words, begun.state, begun.memory)
    steps = model.decoder.follow(words, begun.state, begun.memory, unrolling)
    state, attention = begun.state, []
    for j in range(3):
        state, weights = model.decoder.step(words[:, j : j + 1], state, begun.memory, stepping)
        attention.append(weights)
    torch.testing.assert_close(steps.attention, torch.cat(attention, 1))
    assert torch.equal(steps.attention[:, 0], plain.attention[:, 0])
    assert (steps.attention[:, 1:] != plain.attention[:, 1:]).all()
    states, alphas = model.decoder.unroll(words, begun.state, begun.memory)
    assert torch.equal(states, plain.states)
    assert torch.equal(alphas, plain.attention)


@one_of_each
def test_first_values_are_the_published_ones(config: DrgdConfig) -> None:
    own = replace(config, embedding_size=50, hidden_size=40, latent_size=30)
    model = build(SystemConfig.of(own), 400, seed=5, init=XavierInit())
    weights = dict(model.named_parameters())
    recurrent = [name for name in weights if ".weight_hh" in name]
    assert len(recurrent) == 4
    for name in recurrent:
        for block in weights[name].chunk(3):
            torch.testing.assert_close(block @ block.T, torch.eye(40), rtol=0, atol=1e-5)
    for name in ("encoder.embedding.weight", "decoder.embedding.weight"):
        assert weights[name].std().item() == pytest.approx(0.01, rel=0.05)
    for name in (one for one in weights if ".weight_ih" in one):
        expected = math.sqrt(2 / (40 + weights[name].shape[1]))
        assert weights[name].std().item() == pytest.approx(expected, rel=0.1)
    mean = weights["decoder.posterior.mean.weight"]
    assert mean.std().item() == pytest.approx(math.sqrt(2 / 70), rel=0.1)
    assert not any(value.any() for name, value in weights.items() if "bias" in name)
    again = build(SystemConfig.of(own), 400, seed=5, init=XavierInit())
    assert all(torch.equal(one, weights[name]) for name, one in again.named_parameters())
    other = build(SystemConfig.of(own), 400, seed=6, init=XavierInit())
    assert not any(
        torch.equal(dict(other.named_parameters())[name], weights[name]) for name in recurrent
    )


def test_the_recipe_is_the_published_one() -> None:
    config = TrainConfig(data=DataConfig(dataset=Path("d")), system=DrgdConfig())
    assert config.optimizer == AdadeltaConfig(learning_rate=1.0, rho=0.95, epsilon=1e-6)
    assert config.schedule == ConstantSchedule()
    assert config.init == XavierInit()


@pytest.mark.parametrize(
    ("key", "value"),
    [("beta", -0.1), ("latent_size", 0), ("decoder", "three"), ("fusion", "max"), ("dropout", 1.0)],
)
def test_bad_values_are_refused(key: str, value: Any) -> None:
    with pytest.raises((BadValue, ConfigError), match=key):
        DrgdConfig(**{key: value})


def test_it_learns_to_say_what_it_was_told() -> None:
    """With fresh noise at each update, the sum of both losses falls."""
    model = build(SystemConfig.of(replace(SMALL, hidden_size=16)), 11, init=XavierInit()).train()
    pairs = model.pairs(Batch.of(PAIRS))
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    losses = []
    for step in range(50):
        seed(1, step)
        loss = model(pairs).total().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert np.mean(losses[-10:]) < 0.5 * losses[0]


@one_of_each
def test_a_folder_brings_it_back_bit_for_bit(config: DrgdConfig, tmp_path: Path) -> None:
    tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys("abcdefgh", 1), 0))
    system = SystemConfig.of(config)
    write_description(tmp_path, system, tokenizer)
    model = build(system, tokenizer.vocabulary_size, seed=4).eval()
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    loaded = load_model(tmp_path).model
    assert isinstance(loaded, Drgd)
    assert loaded.config == system
    pairs = model.pairs(Batch.of([([4, 5, 6], [5])]))
    expected, found = model(pairs), loaded.eval()(pairs)
    assert all(torch.equal(found.named[name], loss) for name, loss in expected.named.items())
