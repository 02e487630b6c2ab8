"""Systems with attention over encoder states: all but their layers, with add-ons at their places.

A subclass gives an encoder and a decoder; `systems/encdec.py` shows how little that is.

Legend: B pairs, I source length, J steps, K hypotheses, H hidden size, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from ledeline.core.errors import ModelError
from ledeline.data.dataset import Ids
from ledeline.model.addons import ADDONS
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.addons.follower import AddonFollower
from ledeline.model.layers.attention import AttentionFollower
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded
from ledeline.model.loss import logit_losses, smoothed, smoothed_token_losses, summed, token_losses
from ledeline.model.pairs import Pairs
from ledeline.model.system import Losses, System, Trace

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig

# Under which name a system has an add-on's weights; sGate's is that of version 0.1.0.
WEIGHT_NAMES: Final = {"sgate": "gate"}
LAYERS: Final = ("dropout", "encoder", "decoder", "output")
Extras: TypeAlias = tuple[Any, ...]  # of each add-on that may keep a state of its own


class AttentionEncoder(Protocol):
    """What an attention system asks of its encoder."""

    def __call__(self, sources: Tensor, lengths: Tensor | None, /) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I."""


class AttentionDecoder(Protocol):
    """What an attention system asks of its decoder; the state has `attentional`, z_j (B, K, H).

    A follower is for its attention; it is None unless an add-on such as coverage changes attention.
    """

    embedding: nn.Embedding  # E_t

    def memory(self, encoded: Encoded, mask: Tensor | None, /) -> Any:
        """What every step attends to; its field `states` is what attention mixes, (B, I, ...)."""

    def start(self, encoded: Encoded, /) -> Any:
        """The state before the first step, K = 1."""

    def step(
        self, words: Tensor, state: Any, memory: Any, follower: AttentionFollower | None = None, /
    ) -> tuple[Any, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""

    def unroll(
        self,
        words: Tensor,
        state: Any,
        memory: Any,
        /,
        *,
        attention_gradient: bool = False,
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> z (B, J, H), alpha (B, J, I)."""


class SearchState(NamedTuple):
    """What a search carries from step to step."""

    decoder: Any
    extras: Extras


class SearchMemory(NamedTuple):
    """What every step of a source looks at."""

    memory: Any  # of the decoder
    sources: Tensor  # (B, I)
    mask: Tensor | None  # (B, I)


class Begun(NamedTuple):
    """Sources, ready for the first step."""

    state: Any  # of the decoder
    memory: Any  # of the decoder
    extras: Extras
    encoded: Encoded  # as the encoder made it


class Unrolled(NamedTuple):
    """The decoder's steps with known words."""

    states: Tensor  # z: (B, J, H)
    attention: Tensor  # alpha: (B, J, I)
    costs: Mapping[str, Tensor] = {}  # more to be minimised, by `cost_names`: (B, J) each


class AttentionSystem(System):
    """An encoder, a decoder with attention, an output layer, and add-ons."""

    encoder: AttentionEncoder
    decoder: AttentionDecoder
    output: nn.Linear  # W_o, b_o
    addons: dict[str, Addon]
    cost_names: ClassVar[tuple[str, ...]] = ()  # losses of its own, as `unroll` gives them
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
        _refuse_clashes(chosen, self.cost_names)
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
    def _stateful(self) -> dict[str, Addon]:
        """The add-ons that change attention or scores, and may keep a state of their own."""
        places = ("attention_keys", "scores", "search_scores")
        return {
            name: addon
            for name, addon in self.addons.items()
            if any(addon.overrides(place) for place in places)
        }

    @property
    def has_source_predictions(self) -> bool:
        """Whether an add-on predicts source tokens, as the SPM does."""
        return any(addon.overrides("source_predictions") for addon in self.addons.values())

    # --- training and analysis: headlines are known ------------------------------------------

    @property
    def loss_names(self) -> tuple[str, ...]:
        """The names of its losses: "target", then its own, then those of the add-ons."""
        own = (addon.loss_name for addon in self.addons.values())
        return ("target", *self.cost_names, *(name for name in own if name is not None))

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:
        """As many decoder steps as the add-on that needs most. (B,), (B,) -> (B,)."""
        steps = headline_lengths + 1
        for addon in self.addons.values():
            steps = steps.clip(min=addon.num_steps(source_lengths, headline_lengths))
        return steps

    def losses(self, pairs: Pairs) -> Losses:
        """The losses of each pair, whose mean is G_1 or, with the SPM, G_2 (Equation 12)."""
        trains_attention = any(one.needs_attention_gradient for one in self.addons.values())
        begun, unrolled = self._follow(pairs, attention_gradient=trains_attention, in_search=False)
        has_gradient = trains_attention or not torch.is_grad_enabled()
        view = self._view(pairs, begun, unrolled, has_gradient)
        view = replace(view, states=self.dropout(view.states))
        minimised, losses = self._training_losses(view, begun.extras, pairs.targets)
        named = {"target": summed(minimised, pairs.target_mask)}
        for name in self.cost_names:
            named[name] = summed(unrolled.costs[name], pairs.target_mask)
        headline = summed(losses.detach(), pairs.headline_mask)
        for addon in self.addons.values():
            if addon.loss_name is not None:
                named[addon.loss_name] = addon.loss(view, pairs)
        return Losses(named, headline)

    def trace(self, pairs: Pairs) -> Trace:
        """Teacher-force known headlines, and say what was seen at each step."""
        begun, unrolled = self._follow(pairs)
        view = self._view(pairs, begun, unrolled)
        logs = self._trace_logs(view, begun.extras, pairs.targets)
        states = unrolled.states
        return Trace(logs, unrolled.attention, self.source_predictions(states), states)

    @property
    def rescores(self) -> bool:
        """Whether an add-on ranks hypotheses once more, as reconstruction does."""
        return any(addon.rescores for addon in self.addons.values())

    def rescore(self, pairs: Pairs) -> Tensor:
        """What the add-ons add to the mean log-probability of each headline. (B,)."""
        begun, unrolled = self._follow(pairs)
        view = self._view(pairs, begun, unrolled)
        added = [one.rescore(view, pairs) for one in self.addons.values() if one.rescores]
        return torch.stack(added).sum(0)

    def _follow(
        self, pairs: Pairs, *, attention_gradient: bool = False, in_search: bool = True
    ) -> tuple[Begun, Unrolled]:
        """All steps of known headlines, without the output layer."""
        given = pairs.sources, pairs.source_lengths, pairs.source_mask
        begun = self.begin(*given, in_search=in_search)
        return begun, self.unroll(pairs.previous, begun, attention_gradient=attention_gradient)

    def unroll(self, words: Tensor, begun: Begun, *, attention_gradient: bool = False) -> Unrolled:
        """The decoder's steps with known words (B, J); a system with own costs overrides it."""
        follower = self._follower(begun.memory, begun.extras)
        states, attention = self.decoder.unroll(
            words,
            begun.state,
            begun.memory,
            attention_gradient=attention_gradient,
            follower=follower,
        )
        return Unrolled(states, attention)

    def _view(
        self, pairs: Pairs, begun: Begun, unrolled: Unrolled, has_attention_gradient: bool = True
    ) -> View:
        return View(
            unrolled.states,
            unrolled.attention,
            pairs.previous,
            pairs.sources,
            pairs.source_mask,
            has_attention_gradient=has_attention_gradient,
            encoded=begun.encoded,
            values=begun.memory.states,
            embedding=self.decoder.embedding.weight,
            source_embedding=self._source_embedding,
        )

    @property
    def _source_embedding(self) -> Tensor | None:
        """E_s, of an encoder that has it as `embedding`."""
        table = getattr(self.encoder, "embedding", None)
        return table.weight if isinstance(table, nn.Embedding) else None

    def source_predictions(self, states: Tensor) -> Tensor | None:
        """q_j, of the add-on that predicts source tokens. z (B, J, H) -> (B, J, V)."""
        found = (addon.source_predictions(states) for addon in self.addons.values())
        return next((one for one in found if one is not None), None)

    def _token_losses(self, view: View, extras: Extras, targets: Tensor) -> Tensor:
        """`-log o_j[y_j]` of each step, (B, J)."""
        if not self._acting("scores"):
            return token_losses(view.states, self.output, targets)
        return logit_losses(self._logits(view, extras), targets)

    def _training_losses(
        self, view: View, extras: Extras, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What is minimised at each step, and `-log o_j[y_j]`, (B, J) both.

        They are the same without label smoothing.
        """
        if not (self.training and self.label_smoothing):
            losses = self._token_losses(view, extras, targets)
            return losses, losses
        if not self._acting("scores"):
            return smoothed_token_losses(view.states, self.output, targets, self.label_smoothing)
        logits = self._logits(view, extras)
        losses = logit_losses(logits, targets)
        return smoothed(losses, logits, self.label_smoothing), losses

    def _trace_logs(self, view: View, extras: Extras, targets: Tensor) -> Tensor:
        """What search would have added up for each step, (B, J)."""
        if not self._acting("search_scores"):
            return -self._token_losses(view, extras, targets)
        steps = []
        for j in range(view.words.shape[1]):
            logs, extras = self._search_logs(view.step(j), extras)
            steps.append(logs.gather(-1, targets[:, j : j + 1].unsqueeze(-1)).squeeze(-1))
        return torch.cat(steps, 1)

    def _logits(self, view: View, extras: Extras) -> Tensor:
        """The logits of all steps, as the add-ons leave them, (B, J, V)."""
        acting = self._acting("scores")
        if not any(self.addons[name].overrides("begin") for name in acting):
            return self._scores(view, extras)[0]
        steps = []
        for j in range(view.words.shape[1]):  # an add-on's own state grows from step to step
            scores, extras = self._scores(view.step(j), extras)
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
        follower, extras = self._follower(memory.memory, state.extras), state.extras
        after, attention = self.decoder.step(words, state.decoder, memory.memory, follower)
        view = View(
            after.attentional,
            attention,
            words,
            memory.sources,
            memory.mask,
            values=memory.memory.states,
            embedding=self.decoder.embedding.weight,
        )
        logs, extras = self._search_logs(view, extras if follower is None else follower.extras)
        return logs, SearchState(after, extras)

    def begin(
        self,
        sources: Tensor,
        lengths: Tensor | None,
        mask: Tensor | None,
        *,
        in_search: bool = True,
    ) -> Begun:
        """Sources (B, I) -> all that the first step needs; less where nothing is searched for."""
        encoded = self.encoder(sources, lengths)
        state = self.decoder.start(encoded)
        places = ("attention_keys", "scores", *(["search_scores"] if in_search else []))
        extras = tuple(
            addon.begin(encoded, sources, mask) if any(map(addon.overrides, places)) else None
            for addon in self._stateful.values()
        )
        changed = encoded
        for addon in self.addons.values():
            changed = addon.encoded(changed)
        return Begun(state, self.decoder.memory(changed, mask), extras, encoded)

    def _acting(self, place: str) -> list[str]:
        """The add-ons that act at a place."""
        return [name for name, addon in self.addons.items() if addon.overrides(place)]

    def _follower(self, memory: Any, extras: Extras) -> AddonFollower | None:
        """What lets an add-on change attention, if there is one that does."""
        if not (names := self._acting("attention_keys")):
            return None
        return AddonFollower(
            self.addons[names[0]], list(self._stateful).index(names[0]), memory, extras
        )

    def _search_logs(self, view: View, extras: Extras) -> tuple[Tensor, Extras]:
        """The log-probabilities of a step as search adds them up. (B, K, V)."""
        scores, extras = self._scores(view, extras)
        return self._pass("search_scores", scores.log_softmax(-1), view, extras)

    def _scores(self, view: View, extras: Extras) -> tuple[Tensor, Extras]:
        """The logits of a step, as the add-ons leave them: `W_o z_j + b_o` (B, K, V)."""
        return self._pass("scores", self.output(view.states), view, extras)

    def _pass(
        self, place: str, scores: Tensor, view: View, extras: Extras
    ) -> tuple[Tensor, Extras]:
        """Scores (B, K, V) after all add-ons that act at a place, and the add-ons' states."""
        after = list(extras)
        for number, addon in enumerate(self._stateful.values()):
            if addon.overrides(place):
                scores, after[number] = getattr(addon, place)(scores, view, extras[number])
        return scores, tuple(after)


def _refuse_clashes(chosen: dict[str, type[Addon]], own: tuple[str, ...]) -> None:
    """Refuse an add-on whose name, or whose loss's name, another part of the system has.

    Only one may change attention, and it may not change scores too: in training, attention is
    followed before scores are computed.
    """
    following = [one for one in chosen.values() if one.overrides("attention_keys")]
    if len(following) > 1 or any(
        one.overrides(place) for one in following for place in ("scores", "search_scores")
    ):
        raise ModelError("only one add-on may change attention, and it may not change scores")
    losses = [
        "target",
        *own,
        *(one.loss_name for one in chosen.values() if one.loss_name is not None),
    ]
    weights = [*LAYERS, *(WEIGHT_NAMES.get(name, name) for name in chosen)]
    for what, names in (("loss", losses), ("module", weights)):
        for name in names:
            if names.count(name) > 1:
                raise ModelError(
                    f"two parts of the system have a {what} called {name}; rename the add-on's"
                )
