"""The decoder's steps over known words as one function, with a gradient written by hand.

`Decoder._advance`, step after step, is the definition; `unroll` gives the same values and the same
gradients up to rounding, and is there for training. Autograd would add to the gradients of all
weights and of the whole attention memory at every step. Here the way back does at each step only
what the step before waits for, and everything else as one product over all steps at the end.

Buffers have the steps first, so that what belongs to a step lies together: (J, B, ...). `d_x` is
the gradient of x.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ledeline.model.gpu import dispatch
from ledeline.model.layers.attention import Memory

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input  # (d_y, y) -> d_x
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Words(NamedTuple):
    """What layer 1 reads that is known before the first step."""

    embedded: Tensor  # (B, J, D): E_t y_{j-1}
    weight: Tensor  # (4H, D)
    bias: Tensor  # (4H,)


class Layer(NamedTuple):
    """A layer of the decoder before its first step."""

    weight: Tensor  # (4H, 2H), over [what comes from below, or z_{j-1}; own state]
    bias: Tensor | None  # (4H,); None in layer 1, where the words bring it
    hidden: Tensor  # (B, H)
    cell: Tensor  # (B, H)


def unroll(
    words: Words,
    layers: Sequence[Layer],
    factors: Sequence[Tensor | None],
    attentional: Tensor,
    mix: Tensor,
    memory: Memory,
) -> tuple[Tensor, Tensor]:
    """All steps -> z (B, J, H) and alpha (B, J, I).

    `factors` are those of the dropout below each layer but the first, (B, J, H) or None;
    `attentional` is z_0 (B, H), `mix` is W_s (H, 2H). All but the factors and the mask get a
    gradient. None comes back through alpha: it is marked as not differentiable, since nothing is
    trained on it.

    Under autocast the operands of all products have its type, and with them the gates, the hidden
    states and z; the cells, which add up over the steps, and their gradients stay in float32.
    """
    device = words.embedded.device.type
    low = dispatch.product_type(words.embedded)
    exact = torch.float32 if torch.is_autocast_enabled(device) else low
    with torch.autocast(device, enabled=False):
        if dispatch.unrolls_in_triton(words.embedded, memory):
            from ledeline.model.gpu import decoder

            return decoder.unroll(words, layers, factors, attentional, mix, memory, low)
        z, alpha = _Unroll.apply(  # type: ignore[no-untyped-call]
            (None, *factors),
            memory.mask,
            *(each.to(low) for each in (*words, attentional, mix, memory.keys, memory.states)),
            *(layer.weight.to(low) for layer in layers),
            *(None if layer.bias is None else layer.bias.to(low) for layer in layers),
            *(layer.hidden.to(low) for layer in layers),
            *(layer.cell.to(exact) for layer in layers),
        )
    return z, alpha


class _Unroll(torch.autograd.Function):
    """See `unroll`. What the layers have comes one by one, for autograd opens no tuples."""

    @staticmethod
    def forward(
        ctx: Any,
        factors: Sequence[Tensor | None],
        mask: Tensor | None,
        embedded: Tensor,
        word_weight: Tensor,
        word_bias: Tensor,
        attentional: Tensor,
        mix: Tensor,
        keys: Tensor,
        states: Tensor,
        *of_layers: Any,
    ) -> tuple[Tensor, Tensor]:
        """Every step, from the first to the last."""
        (batch, num_steps, _), num = embedded.shape, len(factors)
        weights, biases, hidden, cells = (of_layers[n : n + num] for n in range(0, 4 * num, num))
        starts = zip(weights, hidden, cells, strict=True)
        layers = [_LayerSteps.before(num_steps, *start) for start in starts]
        attention = _AttentionSteps.before(num_steps, mix, keys, states, mask)
        by_step = embedded.transpose(0, 1).flatten(0, 1)  # (B, J, D) -> (J B, D)
        torch.addmm(word_bias, by_step, word_weight.t(), out=layers[0].gates.view(len(by_step), -1))
        z_before, _ = _halves(layers[0].inputs)
        z_before[0] = attentional
        z = attentional.new_empty(batch, num_steps, attentional.shape[-1])
        for j in range(num_steps):
            h = layers[0].advance(j, None)
            for layer, bias, factor in zip(layers[1:], biases[1:], factors[1:], strict=True):
                _scale(h, factor, j, out=_halves(layer.inputs[j])[0])
                h = layer.advance(j, bias)
            z[:, j] = attention.advance(j, h, out=z_before[j + 1])
        alpha = attention.alpha.transpose(0, 1)  # (J, B, I) -> (B, J, I)
        ctx.mark_non_differentiable(alpha)
        ctx.factors = factors
        kept = (*attention[:-1], *(each for layer in layers for each in layer))
        ctx.save_for_backward(word_weight, by_step, *kept)
        return z, alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_z: Tensor, _d_alpha: Tensor) -> tuple[Tensor | None, ...]:
        """Every step, from the last to the first; then what could wait."""
        word_weight, by_step, mix, keys, states, mixed, alpha, *kept = ctx.saved_tensors
        attention = _AttentionBack.behind(_AttentionSteps(mix, keys, states, mixed, alpha, None))
        layers = [_LayerBack.behind(_LayerSteps(*kept[n : n + 5])) for n in range(0, len(kept), 5)]
        z, _ = _halves(layers[0].steps.inputs[1:])
        d_feed, _ = _halves(layers[0].d_inputs)
        d_hidden = torch.empty_like(layers[0].d_cell)
        for j in reversed(range(len(z))):
            attention.go_back(j, d_feed.add_(d_z[:, j]), z[j], out=d_hidden)
            for n in reversed(range(len(layers))):
                d_below = layers[n].go_back(j, d_hidden)
                if n:
                    _scale(d_below, ctx.factors[n], j, out=d_hidden)
        d_sums = layers[0].d_gates  # (J, B, 4H)
        return (
            None,
            None,
            (d_sums @ word_weight).transpose(0, 1),  # (J, B, D) -> (B, J, D)
            d_sums.flatten(0, 1).t() @ by_step,  # (4H, J B) (J B, D)
            d_sums.sum((0, 1)),
            d_feed,
            *attention.d_rest(),
            *(layer.d_weight() for layer in layers),
            *(layer.d_gates.sum((0, 1)) if n else None for n, layer in enumerate(layers)),
            *(_halves(layer.d_inputs)[1] for layer in layers),
            *(layer.d_cell for layer in layers),
        )


# --- a layer ----------------------------------------------------------------------------------


class _LayerSteps(NamedTuple):
    """What the steps of a layer need and leave behind."""

    weight: Tensor  # (4H, 2H)
    inputs: Tensor  # (J + 1, B, 2H): [what comes from below; own state] at each step
    gates: Tensor  # (J, B, 4H): input, forget, candidate, output, after sigmoid and tanh
    cells: Tensor  # (J + 1, B, H): before each step, and behind the last
    squashed: Tensor  # (J, B, H): tanh of the cells behind each step

    @classmethod
    def before(cls, num_steps: int, weight: Tensor, hidden: Tensor, cell: Tensor) -> Self:
        """Room for all steps, with the start state in its place."""
        batch, size = hidden.shape
        inputs = hidden.new_empty(num_steps + 1, batch, 2 * size)
        gates = hidden.new_empty(num_steps, batch, 4 * size)
        cells = cell.new_empty(num_steps + 1, batch, size)
        _halves(inputs[0])[1].copy_(hidden)
        cells[0] = cell
        return cls(weight, inputs, gates, cells, torch.empty_like(cells[1:]))

    def advance(self, j: int, bias: Tensor | None) -> Tensor:
        """The state behind step j, (B, H). Without a bias, `gates` has its part of the sums."""
        gates = self.gates[j]
        sums = gates if bias is None else bias
        torch.addmm(sums, self.inputs[j], self.weight.t(), out=gates)
        enter, forget, candidate, leave = gates.chunk(4, -1)
        _halves(gates)[0].sigmoid_()  # enter and forget
        candidate.tanh_()
        leave.sigmoid_()
        cell = torch.mul(forget, self.cells[j], out=self.cells[j + 1]).addcmul_(enter, candidate)
        squashed = torch.tanh(cell, out=self.squashed[j])
        return torch.mul(leave, squashed, out=_halves(self.inputs[j + 1])[1])


class _LayerBack(NamedTuple):
    """What the way back through a layer gathers."""

    steps: _LayerSteps
    d_gates: Tensor  # (J, B, 4H): of the gates' sums, before sigmoid and tanh
    d_inputs: Tensor  # (B, 2H): of the step last gone back
    d_cell: Tensor  # (B, H): of the cell before it

    @classmethod
    def behind(cls, steps: _LayerSteps) -> Self:
        """Behind the last step, where nothing is owed."""
        d_inputs, d_cell = torch.zeros_like(steps.inputs[0]), torch.zeros_like(steps.cells[0])
        return cls(steps, torch.empty_like(steps.gates), d_inputs, d_cell)

    def go_back(self, j: int, d_hidden: Tensor) -> Tensor:
        """What comes from above, (B, H) and used up here -> what goes below, (B, H)."""
        d_below, d_own = _halves(self.d_inputs)
        self._through_cell(j, d_hidden.add_(d_own))
        torch.mm(self.d_gates[j], self.steps.weight, out=self.d_inputs)
        return d_below

    def _through_cell(self, j: int, d_hidden: Tensor) -> None:
        enter, forget, candidate, leave = self.steps.gates[j].chunk(4, -1)
        d_enter, d_forget, d_candidate, d_leave = self.d_gates[j].chunk(4, -1)
        cell, squashed, d_cell = self.steps.cells[j], self.steps.squashed[j], self.d_cell
        torch.mul(d_hidden, squashed, out=d_leave)
        _sigmoid_backward(d_leave, leave, grad_input=d_leave)
        d_hidden.mul_(leave)
        d_cell.add_(_tanh_backward(d_hidden, squashed, grad_input=d_hidden))
        torch.mul(d_cell, candidate, out=d_enter)
        _sigmoid_backward(d_enter, enter, grad_input=d_enter)
        torch.mul(d_cell, cell, out=d_forget)
        _sigmoid_backward(d_forget, forget, grad_input=d_forget)
        torch.mul(d_cell, enter, out=d_candidate)
        _tanh_backward(d_candidate, candidate, grad_input=d_candidate)
        d_cell.mul_(forget)

    def d_weight(self) -> Tensor:
        """(4H, J B) (J B, 2H) -> (4H, 2H)."""
        return self.d_gates.flatten(0, 1).t() @ self.steps.inputs[:-1].flatten(0, 1)


# --- attention --------------------------------------------------------------------------------


class _AttentionSteps(NamedTuple):
    """What attention needs and leaves behind."""

    mix: Tensor  # (H, 2H): W_s
    keys: Tensor  # (B, I, H)
    states: Tensor  # (B, I, H)
    mixed: Tensor  # (J, B, 2H): [c_j; zv_j]
    alpha: Tensor  # (J, B, I)
    closed: Tensor | None  # (B, I): where it must not look

    @classmethod
    def before(
        cls, num_steps: int, mix: Tensor, keys: Tensor, states: Tensor, mask: Tensor | None
    ) -> Self:
        """Room for all steps."""
        batch, length, size = states.shape
        mixed = states.new_empty(num_steps, batch, 2 * size)
        alpha = states.new_empty(num_steps, batch, length)
        return cls(mix, keys, states, mixed, alpha, None if mask is None else ~mask)

    def advance(self, j: int, query: Tensor, *, out: Tensor) -> Tensor:
        """zv_j (B, H) -> z_j (B, H)."""
        scores = torch.bmm(query.unsqueeze(1), self.keys.transpose(1, 2)).squeeze(1)  # (B, I)
        if self.closed is not None:
            scores.masked_fill_(self.closed, float("-inf"))
        alpha = torch.softmax(scores, -1, out=self.alpha[j])
        context, own = _halves(self.mixed[j])
        context.copy_(torch.bmm(alpha.unsqueeze(1), self.states).squeeze(1))
        own.copy_(query)
        return torch.mm(self.mixed[j], self.mix.t(), out=out).tanh_()


class _AttentionBack(NamedTuple):
    """What the way back through attention gathers."""

    steps: _AttentionSteps
    d_sums: Tensor  # (J, B, H): of W_s [c_j; zv_j]
    d_mixed: Tensor  # (J, B, 2H)
    d_scores: Tensor  # (J, B, I)

    @classmethod
    def behind(cls, steps: _AttentionSteps) -> Self:
        """Behind the last step."""
        d_mixed, d_scores = torch.empty_like(steps.mixed), torch.empty_like(steps.alpha)
        size = len(steps.mix)
        return cls(steps, d_mixed.new_empty(*d_mixed.shape[:-1], size), d_mixed, d_scores)

    def go_back(self, j: int, d_z: Tensor, z: Tensor, *, out: Tensor) -> None:
        """What z_j is owed, (B, H) -> what zv_j is owed, (B, H)."""
        alpha = self.steps.alpha[j]
        d_sums = _tanh_backward(d_z, z, grad_input=self.d_sums[j])
        d_context, d_own = _halves(torch.mm(d_sums, self.steps.mix, out=self.d_mixed[j]))
        d_alpha = torch.bmm(d_context.unsqueeze(1), self.steps.states.transpose(1, 2)).squeeze(1)
        d_alpha.sub_((d_alpha * alpha).sum(-1, keepdim=True))
        d_scores = torch.mul(d_alpha, alpha, out=self.d_scores[j])
        torch.add(d_own, torch.bmm(d_scores.unsqueeze(1), self.steps.keys).squeeze(1), out=out)

    def d_rest(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of W_s, the keys and the states."""
        d_context, query = _halves(self.d_mixed)[0], _halves(self.steps.mixed)[1]
        return (
            self.d_sums.flatten(0, 1).t() @ self.steps.mixed.flatten(0, 1),
            torch.bmm(self.d_scores.permute(1, 2, 0), query.transpose(0, 1)),  # (B, I, J) (B, J, H)
            torch.bmm(self.steps.alpha.permute(1, 2, 0), d_context.transpose(0, 1)),
        )


def _halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """The two things that lie side by side. (..., 2H) -> (..., H) twice."""
    first, second = values.chunk(2, -1)
    return first, second


def _scale(values: Tensor, factors: Tensor | None, j: int, *, out: Tensor) -> None:
    """Values (B, H) times those factors (B, J, H) that belong to step j, if there are any."""
    if factors is None:
        out.copy_(values)
    else:
        torch.mul(values, factors[:, j], out=out)
