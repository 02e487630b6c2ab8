"""Systems with attention over encoder states: all but their layers, with add-ons at their places.

A subclass gives an encoder and a decoder; `systems/encdec.py` shows how little that is.

Legend: B pairs, I source length, J steps, K hypotheses, H hidden size, V vocabulary.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ledeline.core.errors import ModelError
from ledeline.data.dataset import Ids
from ledeline.model.addons import ADDONS
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.layers.attention import Attention, Memory
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded
from ledeline.model.loss import logit_losses, smoothed, summed, token_losses
from ledeline.model.pairs import Pairs
from ledeline.model.system import Losses, System, Trace

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig

# Under which name a system has an add-on's weights; sGate's is that of version 0.1.0.
WEIGHT_NAMES: Final = {"sgate": "gate"}
LAYERS: Final = ("dropout", "encoder", "decoder", "output")


class AttentionEncoder(Protocol):
    """What an attention system asks of its encoder."""

    def __call__(self, sources: Tensor, lengths: Tensor | None, /) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I."""


class AttentionDecoder(Protocol):
    """What an attention system asks of its decoder; the state has `attentional`, z_j (B, K, H)."""

    @property
    def attention(self) -> Attention:
        """What each step looks at the source with."""

    def start(self, encoded: Encoded, /) -> Any:
        """The state before the first step, K = 1."""

    def step(self, words: Tensor, state: Any, memory: Memory, /) -> tuple[Any, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""

    def unroll(
        self, words: Tensor, state: Any, memory: Memory, /, *, attention_gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> z (B, J, H), alpha (B, J, I)."""


class SearchState(NamedTuple):
    """What a search carries from step to step."""

    decoder: Any
    extras: tuple[Tensor | None, ...]  # of each add-on that changes scores


class SearchMemory(NamedTuple):
    """What every step of a source looks at."""

    memory: Memory
    sources: Tensor  # (B, I)
    mask: Tensor | None  # (B, I)


class Begun(NamedTuple):
    """Sources, ready for the first step."""

    state: Any  # of the decoder
    memory: Memory
    extras: tuple[Tensor | None, ...]
    encoded: Encoded  # as the encoder made it


class AttentionSystem(System):
    """An encoder, a decoder with attention, an output layer, and add-ons."""

    encoder: AttentionEncoder
    decoder: AttentionDecoder
    output: nn.Linear  # W_o, b_o
    addons: dict[str, Addon]
    label_smoothing = 0.0

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.addons = {}

    def assemble(
        self, encoder: nn.Module, decoder: nn.Module, sizes: Sizes, dropout: Dropout
    ) -> None:
        """Put the layers and the add-ons together, in the order of their weights."""
        self.dropout = dropout
        chosen = {name: ADDONS[name] for name in ADDONS if name in self.config.addons}
        _refuse_clashes(chosen)
        self.add_module("encoder", encoder)
        self._add({name: one for name, one in chosen.items() if one.overrides("encoded")}, sizes)
        self.add_module("decoder", decoder)
        self.output = nn.Linear(sizes.hidden, sizes.vocabulary)
        rest = {name: one for name, one in chosen.items() if name not in self.addons}
        self._add(rest, sizes)
        self.addons = {name: self.addons[name] for name in chosen}

    def _add(self, chosen: dict[str, type[Addon]], sizes: Sizes) -> None:
        for name, addon in chosen.items():
            self.addons[name] = addon(self.config.addons[name], sizes)
            self.add_module(WEIGHT_NAMES.get(name, name), self.addons[name])

    @property
    def _scoring(self) -> list[Addon]:
        """The add-ons that change scores."""
        return [addon for addon in self.addons.values() if addon.overrides("scores")]

    @property
    def has_source_predictions(self) -> bool:
        """Whether an add-on predicts source tokens, as the SPM does."""
        return any(addon.overrides("source_predictions") for addon in self.addons.values())

    # --- training and analysis: headlines are known ------------------------------------------

    @property
    def loss_names(self) -> tuple[str, ...]:
        """The names of its losses: "target", then those of the add-ons."""
        own = (addon.loss_name for addon in self.addons.values())
        return ("target", *(name for name in own if name is not None))

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:
        """As many decoder steps as the add-on that needs most. (B,), (B,) -> (B,)."""
        steps = headline_lengths + 1
        for addon in self.addons.values():
            steps = steps.clip(min=addon.num_steps(source_lengths, headline_lengths))
        return steps

    def losses(self, pairs: Pairs) -> Losses:
        """The losses of each pair, whose mean is G_1 or, with the SPM, G_2 (Equation 12)."""
        trains_attention = any(one.needs_attention_gradient for one in self.addons.values())
        begun = self.begin(pairs.sources, pairs.source_lengths, pairs.source_mask)
        states, attention = self.decoder.unroll(
            pairs.previous, begun.state, begun.memory, attention_gradient=trains_attention
        )
        states = self.dropout(states)
        view = View(
            states,
            attention,
            pairs.previous,
            pairs.sources,
            pairs.source_mask,
            has_attention_gradient=trains_attention or not torch.is_grad_enabled(),
            encoded=begun.encoded,
        )
        minimised, losses = self._training_losses(view, begun.extras, pairs.targets)
        named = {"target": summed(minimised, pairs.target_mask)}
        headline = summed(losses.detach(), pairs.headline_mask)
        for addon in self.addons.values():
            if addon.loss_name is not None:
                named[addon.loss_name] = addon.loss(view, pairs)
        return Losses(named, headline)

    def trace(self, pairs: Pairs) -> Trace:
        """Teacher-force known headlines, and say what was seen at each step."""
        begun = self.begin(pairs.sources, pairs.source_lengths, pairs.source_mask)
        states, attention = self.decoder.unroll(pairs.previous, begun.state, begun.memory)
        view = View(states, attention, pairs.previous, pairs.sources, pairs.source_mask)
        logs = -self._token_losses(view, begun.extras, pairs.targets)
        return Trace(logs, attention, self.source_predictions(states), states)

    def source_predictions(self, states: Tensor) -> Tensor | None:
        """q_j, of the add-on that predicts source tokens. z (B, J, H) -> (B, J, V)."""
        found = (addon.source_predictions(states) for addon in self.addons.values())
        return next((one for one in found if one is not None), None)

    def _token_losses(
        self, view: View, extras: tuple[Tensor | None, ...], targets: Tensor
    ) -> Tensor:
        """`-log o_j[y_j]` of each step, (B, J)."""
        if not self._scoring:
            return token_losses(view.states, self.output, targets)
        return logit_losses(self._logits(view, extras), targets)

    def _training_losses(
        self, view: View, extras: tuple[Tensor | None, ...], targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What is minimised at each step, and `-log o_j[y_j]`, (B, J) both.

        They are the same without label smoothing.
        """
        if not (self.training and self.label_smoothing):
            losses = self._token_losses(view, extras, targets)
            return losses, losses
        logits = self._logits(view, extras)
        losses = logit_losses(logits, targets)
        return smoothed(losses, logits, self.label_smoothing), losses

    def _logits(self, view: View, extras: tuple[Tensor | None, ...]) -> Tensor:
        """The logits of all steps, as the add-ons leave them, (B, J, V)."""
        if not self._scoring:
            logits: Tensor = self.output(view.states)
            return logits
        steps = []
        for j in range(view.words.shape[1]):  # an add-on's own state grows from step to step
            step = slice(j, j + 1)
            seen = View(
                view.states[:, step],
                view.detached_attention[:, step],
                view.words[:, step],
                view.sources,
                view.source_mask,
                view.has_attention_gradient,
            )
            scores, extras = self._scores(seen, extras)
            steps.append(scores)
        return torch.cat(steps, 1)

    # --- search: one step after another -------------------------------------------------------

    def encode(
        self, sources: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[SearchState, SearchMemory]:
        """Sources (B, I) -> the state before the first step, and what every step looks at."""
        begun = self.begin(sources, lengths, mask)
        return SearchState(begun.state, begun.extras), SearchMemory(begun.memory, sources, mask)

    def step(
        self, words: Tensor, state: SearchState, memory: SearchMemory
    ) -> tuple[Tensor, SearchState]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), Equation 3, and the state after the step."""
        after, attention = self.decoder.step(words, state.decoder, memory.memory)
        view = View(after.attentional, attention, words, memory.sources, memory.mask)
        scores, extras = self._scores(view, state.extras)
        return scores.log_softmax(-1), SearchState(after, extras)

    def begin(self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None) -> Begun:
        """Sources (B, I) -> all that the first step needs."""
        encoded = self.encoder(sources, lengths)
        state = self.decoder.start(encoded)
        extras = tuple(addon.begin(encoded, sources, mask) for addon in self._scoring)
        changed = encoded
        for addon in self.addons.values():
            changed = addon.encoded(changed)
        memory = self.decoder.attention.memory_of(changed.states, mask)
        return Begun(state, memory, extras, encoded)

    def _scores(
        self, view: View, extras: tuple[Tensor | None, ...]
    ) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """The logits of a step, as the add-ons leave them: `W_o z_j + b_o` (B, K, V)."""
        scores, after = self.output(view.states), []
        for addon, extra in zip(self._scoring, extras, strict=True):
            scores, extra = addon.scores(scores, view, extra)
            after.append(extra)
        return scores, tuple(after)


def _refuse_clashes(chosen: dict[str, type[Addon]]) -> None:
    """Refuse an add-on whose name, or whose loss's name, another part of the system has."""
    losses = ["target", *(one.loss_name for one in chosen.values() if one.loss_name is not None)]
    weights = [*LAYERS, *(WEIGHT_NAMES.get(name, name) for name in chosen)]
    for what, names in (("loss", losses), ("module", weights)):
        for name in names:
            if names.count(name) > 1:
                raise ModelError(
                    f"two parts of the system have a {what} called {name}; rename the add-on's"
                )
