"""The decoder's steps over known words as one function, with a gradient written by hand.

`Decoder._advance`, step after step, is the definition; `unroll` gives the same values and the same
gradients up to rounding, and is there for training. Autograd would add to the gradients of all
weights and of the whole attention memory at every step. In the backward pass here, each step
computes only what the step before it needs; the rest is one product over all steps at the end.

Buffers have the steps first, (J, B, ...), so that each step is contiguous. `d_x` is the gradient of
the loss with respect to x.
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


class WordInputs(NamedTuple):
    """The part of layer 1's input that is known before the first step, with its weights."""

    embedded: Tensor  # (B, J, D): E_t y_{j-1}
    weight: Tensor  # (4H, D)
    bias: Tensor  # (4H,)


class LayerInputs(NamedTuple):
    """The weights of a decoder layer, and its state before the first step."""

    weight: Tensor  # (4H, 2H), over [state of the layer below, or z_{j-1}; own state]
    bias: Tensor | None  # (4H,); None in layer 1, where `WordInputs` has it
    hidden: Tensor  # (B, H)
    cell: Tensor  # (B, H)


def unroll(
    words: WordInputs,
    layers: Sequence[LayerInputs],
    masks: Sequence[Tensor | None],
    attentional: Tensor,
    mix: Tensor,
    memory: Memory,
) -> tuple[Tensor, Tensor]:
    """All steps -> z (B, J, H) and alpha (B, J, I).

    `masks` are the dropout masks at the input of each layer but the first, (B, J, H) or None;
    `attentional` is z_0 (B, H), `mix` is W_s (H, 2H). All inputs but the masks get a gradient.
    alpha is marked as not differentiable: no gradient comes back through it.

    Under autocast the operands of all products have its type, and so have the gates, the hidden
    states and z. The cells, which accumulate over the steps, and their gradients stay in float32.
    """
    device = words.embedded.device.type
    dtype = dispatch.product_dtype(words.embedded)
    cell_dtype = torch.float32 if torch.is_autocast_enabled(device) else dtype
    with torch.autocast(device, enabled=False):
        if dispatch.use_triton_unroll(words.embedded, memory):
            from ledeline.model.gpu import decoder

            return decoder.unroll(words, layers, masks, attentional, mix, memory, dtype)
        z, alpha = _Unroll.apply(  # type: ignore[no-untyped-call]
            (None, *masks),
            memory.mask,
            *(each.to(dtype) for each in (*words, attentional, mix, memory.keys, memory.states)),
            *(layer.weight.to(dtype) for layer in layers),
            *(None if layer.bias is None else layer.bias.to(dtype) for layer in layers),
            *(layer.hidden.to(dtype) for layer in layers),
            *(layer.cell.to(cell_dtype) for layer in layers),
        )
    return z, alpha


class _Unroll(torch.autograd.Function):
    """See `unroll`. Tensors of the layers are single arguments: autograd looks into no tuples."""

    @staticmethod
    def forward(
        ctx: Any,
        masks: Sequence[Tensor | None],
        source_mask: Tensor | None,
        embedded: Tensor,
        word_weight: Tensor,
        word_bias: Tensor,
        attentional: Tensor,
        mix: Tensor,
        keys: Tensor,
        states: Tensor,
        *layer_tensors: Any,
    ) -> tuple[Tensor, Tensor]:
        """All steps, from the first to the last."""
        (batch, num_steps, _), num = embedded.shape, len(masks)
        weights, biases, hidden, cells = (
            layer_tensors[n : n + num] for n in range(0, 4 * num, num)
        )
        starts = zip(weights, hidden, cells, strict=True)
        layers = [_LayerForward.allocate(num_steps, *start) for start in starts]
        attention = _AttentionForward.allocate(num_steps, mix, keys, states, source_mask)
        by_step = embedded.transpose(0, 1).flatten(0, 1)  # (B, J, D) -> (J B, D)
        torch.addmm(word_bias, by_step, word_weight.t(), out=layers[0].gates.view(len(by_step), -1))
        z_before, _ = _halves(layers[0].inputs)
        z_before[0] = attentional
        z = attentional.new_empty(batch, num_steps, attentional.shape[-1])
        for j in range(num_steps):
            h = layers[0].step(j, None)
            for layer, bias, mask in zip(layers[1:], biases[1:], masks[1:], strict=True):
                _scale(h, mask, j, out=_halves(layer.inputs[j])[0])
                h = layer.step(j, bias)
            z[:, j] = attention.step(j, h, out=z_before[j + 1])
        alpha = attention.alpha.transpose(0, 1)  # (J, B, I) -> (B, J, I)
        ctx.mark_non_differentiable(alpha)
        ctx.masks = masks
        saved = (*attention[:-1], *(each for layer in layers for each in layer))
        ctx.save_for_backward(word_weight, by_step, *saved)
        return z, alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_z: Tensor, _d_alpha: Tensor) -> tuple[Tensor | None, ...]:
        """All steps, from the last to the first; then the gradients that are sums over steps."""
        word_weight, by_step, mix, keys, states, mixed, alpha, *saved = ctx.saved_tensors
        attention = _AttentionBackward.allocate(
            _AttentionForward(mix, keys, states, mixed, alpha, None)
        )
        forward = [_LayerForward(*saved[n : n + 5]) for n in range(0, len(saved), 5)]
        layers = [_LayerBackward.allocate(layer) for layer in forward]
        z, _ = _halves(layers[0].forward.inputs[1:])
        d_z_before, _ = _halves(layers[0].d_inputs)
        d_hidden = torch.empty_like(layers[0].d_cell)
        for j in reversed(range(len(z))):
            attention.backward_step(j, d_z_before.add_(d_z[:, j]), z[j], out=d_hidden)
            for n in reversed(range(len(layers))):
                d_below = layers[n].backward_step(j, d_hidden)
                if n:
                    _scale(d_below, ctx.masks[n], j, out=d_hidden)
        d_sums = layers[0].d_gates  # (J, B, 4H)
        return (
            None,
            None,
            (d_sums @ word_weight).transpose(0, 1),  # (J, B, D) -> (B, J, D)
            d_sums.flatten(0, 1).t() @ by_step,  # (4H, J B) (J B, D)
            d_sums.sum((0, 1)),
            d_z_before,
            *attention.d_inputs(),
            *(layer.d_weight() for layer in layers),
            *(layer.d_gates.sum((0, 1)) if n else None for n, layer in enumerate(layers)),
            *(_halves(layer.d_inputs)[1] for layer in layers),
            *(layer.d_cell for layer in layers),
        )


# --- a layer ----------------------------------------------------------------------------------


class _LayerForward(NamedTuple):
    """A layer in the forward pass: what each step reads, and what the backward pass needs."""

    weight: Tensor  # (4H, 2H)
    inputs: Tensor  # (J + 1, B, 2H): [state of the layer below; own state] of each step
    gates: Tensor  # (J, B, 4H): input, forget, candidate, output, after sigmoid and tanh
    cells: Tensor  # (J + 1, B, H): before each step, and after the last
    tanh_cells: Tensor  # (J, B, H): tanh of the cells after each step

    @classmethod
    def allocate(cls, num_steps: int, weight: Tensor, hidden: Tensor, cell: Tensor) -> Self:
        """Buffers for all steps, with the start state written into them."""
        batch, size = hidden.shape
        inputs = hidden.new_empty(num_steps + 1, batch, 2 * size)
        gates = hidden.new_empty(num_steps, batch, 4 * size)
        cells = cell.new_empty(num_steps + 1, batch, size)
        _halves(inputs[0])[1].copy_(hidden)
        cells[0] = cell
        return cls(weight, inputs, gates, cells, torch.empty_like(cells[1:]))

    def step(self, j: int, bias: Tensor | None) -> Tensor:
        """The state after step j, (B, H). Without a bias, `gates` already has the words' part."""
        gates = self.gates[j]
        sums = gates if bias is None else bias
        torch.addmm(sums, self.inputs[j], self.weight.t(), out=gates)
        in_gate, forget, candidate, out_gate = gates.chunk(4, -1)
        _halves(gates)[0].sigmoid_()  # input and forget gates
        candidate.tanh_()
        out_gate.sigmoid_()
        cell = torch.mul(forget, self.cells[j], out=self.cells[j + 1]).addcmul_(in_gate, candidate)
        tanh_cells = torch.tanh(cell, out=self.tanh_cells[j])
        return torch.mul(out_gate, tanh_cells, out=_halves(self.inputs[j + 1])[1])


class _LayerBackward(NamedTuple):
    """A layer in the backward pass."""

    forward: _LayerForward
    d_gates: Tensor  # (J, B, 4H): of the gates before sigmoid and tanh
    d_inputs: Tensor  # (B, 2H): of the step that was done last
    d_cell: Tensor  # (B, H): of the cell before that step

    @classmethod
    def allocate(cls, forward: _LayerForward) -> Self:
        """Buffers, with zero gradients after the last step."""
        d_inputs, d_cell = torch.zeros_like(forward.inputs[0]), torch.zeros_like(forward.cells[0])
        return cls(forward, torch.empty_like(forward.gates), d_inputs, d_cell)

    def backward_step(self, j: int, d_hidden: Tensor) -> Tensor:
        """Gradient of the state (B, H), which is overwritten -> of the input from below, (B, H)."""
        d_below, d_own = _halves(self.d_inputs)
        self._cell_backward(j, d_hidden.add_(d_own))
        torch.mm(self.d_gates[j], self.forward.weight, out=self.d_inputs)
        return d_below

    def _cell_backward(self, j: int, d_hidden: Tensor) -> None:
        in_gate, forget, candidate, out_gate = self.forward.gates[j].chunk(4, -1)
        d_in_gate, d_forget, d_candidate, d_out_gate = self.d_gates[j].chunk(4, -1)
        cell, tanh_cells, d_cell = self.forward.cells[j], self.forward.tanh_cells[j], self.d_cell
        torch.mul(d_hidden, tanh_cells, out=d_out_gate)
        _sigmoid_backward(d_out_gate, out_gate, grad_input=d_out_gate)
        d_hidden.mul_(out_gate)
        d_cell.add_(_tanh_backward(d_hidden, tanh_cells, grad_input=d_hidden))
        torch.mul(d_cell, candidate, out=d_in_gate)
        _sigmoid_backward(d_in_gate, in_gate, grad_input=d_in_gate)
        torch.mul(d_cell, cell, out=d_forget)
        _sigmoid_backward(d_forget, forget, grad_input=d_forget)
        torch.mul(d_cell, in_gate, out=d_candidate)
        _tanh_backward(d_candidate, candidate, grad_input=d_candidate)
        d_cell.mul_(forget)

    def d_weight(self) -> Tensor:
        """(4H, J B) (J B, 2H) -> (4H, 2H)."""
        return self.d_gates.flatten(0, 1).t() @ self.forward.inputs[:-1].flatten(0, 1)


# --- attention --------------------------------------------------------------------------------


class _AttentionForward(NamedTuple):
    """Attention in the forward pass: its inputs, and what the backward pass needs."""

    mix: Tensor  # (H, 2H): W_s
    keys: Tensor  # (B, I, H)
    states: Tensor  # (B, I, H)
    mixed: Tensor  # (J, B, 2H): [c_j; zv_j]
    alpha: Tensor  # (J, B, I)
    invalid: Tensor | None  # (B, I): True at padding

    @classmethod
    def allocate(
        cls, num_steps: int, mix: Tensor, keys: Tensor, states: Tensor, mask: Tensor | None
    ) -> Self:
        """Buffers for all steps."""
        batch, length, size = states.shape
        mixed = states.new_empty(num_steps, batch, 2 * size)
        alpha = states.new_empty(num_steps, batch, length)
        return cls(mix, keys, states, mixed, alpha, None if mask is None else ~mask)

    def step(self, j: int, query: Tensor, *, out: Tensor) -> Tensor:
        """zv_j (B, H) -> z_j (B, H)."""
        scores = torch.bmm(query.unsqueeze(1), self.keys.transpose(1, 2)).squeeze(1)  # (B, I)
        if self.invalid is not None:
            scores.masked_fill_(self.invalid, float("-inf"))
        alpha = torch.softmax(scores, -1, out=self.alpha[j])
        context, own = _halves(self.mixed[j])
        context.copy_(torch.bmm(alpha.unsqueeze(1), self.states).squeeze(1))
        own.copy_(query)
        return torch.mm(self.mixed[j], self.mix.t(), out=out).tanh_()


class _AttentionBackward(NamedTuple):
    """Attention in the backward pass."""

    forward: _AttentionForward
    d_sums: Tensor  # (J, B, H): of W_s [c_j; zv_j]
    d_mixed: Tensor  # (J, B, 2H)
    d_scores: Tensor  # (J, B, I)

    @classmethod
    def allocate(cls, forward: _AttentionForward) -> Self:
        """Buffers for all steps."""
        d_mixed, d_scores = torch.empty_like(forward.mixed), torch.empty_like(forward.alpha)
        size = len(forward.mix)
        return cls(forward, d_mixed.new_empty(*d_mixed.shape[:-1], size), d_mixed, d_scores)

    def backward_step(self, j: int, d_z: Tensor, z: Tensor, *, out: Tensor) -> None:
        """Gradient of z_j, (B, H) -> gradient of zv_j, (B, H)."""
        alpha = self.forward.alpha[j]
        d_sums = _tanh_backward(d_z, z, grad_input=self.d_sums[j])
        d_context, d_own = _halves(torch.mm(d_sums, self.forward.mix, out=self.d_mixed[j]))
        d_alpha = torch.bmm(d_context.unsqueeze(1), self.forward.states.transpose(1, 2)).squeeze(1)
        d_alpha.sub_((d_alpha * alpha).sum(-1, keepdim=True))
        d_scores = torch.mul(d_alpha, alpha, out=self.d_scores[j])
        torch.add(d_own, torch.bmm(d_scores.unsqueeze(1), self.forward.keys).squeeze(1), out=out)

    def d_inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of W_s, the keys and the states."""
        d_context, query = _halves(self.d_mixed)[0], _halves(self.forward.mixed)[1]
        return (
            self.d_sums.flatten(0, 1).t() @ self.forward.mixed.flatten(0, 1),
            torch.bmm(self.d_scores.permute(1, 2, 0), query.transpose(0, 1)),  # (B, I, J) (B, J, H)
            torch.bmm(self.forward.alpha.permute(1, 2, 0), d_context.transpose(0, 1)),
        )


def _halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """(..., 2H) -> (..., H) twice."""
    first, second = values.chunk(2, -1)
    return first, second


def _scale(values: Tensor, masks: Tensor | None, j: int, *, out: Tensor) -> None:
    """Values (B, H) times the dropout mask (B, J, H) of step j, if there is one."""
    if masks is None:
        out.copy_(values)
    else:
        torch.mul(values, masks[:, j], out=out)
