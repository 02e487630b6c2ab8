"""The decoder's steps over known words: a launch for each part of a step.

The definition is `Decoder._advance`, and the way back that of `ledeline.model.layers.unroll`, with
one thing more taken out of the steps: what W_s = [W_c, W_z] makes of the states is worked out for
every source place before, `v_i = W_c h_i`, so that `z_j = tanh(sum_i alpha_j[i] v_i + W_z zv_j)`.

Forth, a step is: each layer's product with its cell, attention row by row, W_z with tanh. Back: the
same from the end, each product with what follows it. Gates lie interleaved (`cell`), buffers have
the steps first: (J, B, ...). All sources have one length.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ledeline.model.gpu import dispatch
from ledeline.model.gpu.attention_kernels import attend, attend_back
from ledeline.model.gpu.cell import ONES, Tile, by_rows, gate_by_gate, packed, with_ones
from ledeline.model.gpu.decoder_kernels import first_back, layer_back, layer_forward, mix, mix_back
from ledeline.model.gpu.triton_language import triton
from ledeline.model.layers.attention import Memory
from ledeline.model.layers.unroll import Layer, Words

LAYER: Final = Tile(64, 16, 64, warps=4, stages=6)
MIX: Final = Tile(64, 16, 128, warps=4, stages=4)
LAYER_BACK: Final = Tile(64, 16, 128, warps=4, stages=4)
FIRST_BACK: Final = Tile(64, 32, 128, warps=4, stages=4)


def unroll(
    words: Words,
    layers: Sequence[Layer],
    factors: Sequence[Tensor | None],
    attentional: Tensor,
    mix: Tensor,
    memory: Memory,
    low: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """As `recurrence.unroll`, with products in this type."""
    w_c, w_z = mix.to(low).chunk(2, -1)
    values = memory.states.to(low) @ w_c.t()
    z, scores, logsums = _Unroll.apply(
        tuple(None if one is None else one.contiguous() for one in factors),
        *words,
        *(each.to(low).contiguous() for each in (attentional, w_z, memory.keys, values)),
        *(layer.weight for layer in layers),
        *(layer.bias for layer in layers if layer.bias is not None),
        *(layer.hidden.to(low) for layer in layers),
        *(layer.cell.float() for layer in layers),
    )
    return z, _alpha(scores, logsums).transpose(0, 1)


class _Layer(NamedTuple):
    """What a layer needs and leaves behind."""

    inputs: Tensor  # (J + 1, B, 2H): [what comes from below, or z; own state]
    gates: Tensor  # (J, B, 4H)
    cells: Tensor  # (J + 1, B, H)


class _Unroll(torch.autograd.Function):
    """See `unroll`; autograd opens no tuples."""

    @staticmethod
    def forward(
        ctx: Any,
        factors: Sequence[Tensor | None],
        embedded: Tensor,
        word_weight: Tensor,
        word_bias: Tensor,
        attentional: Tensor,
        w_z: Tensor,
        keys: Tensor,
        values: Tensor,
        *of_layers: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Every step, from the first to the last."""
        (batch, steps, _), (_, length, size), low = embedded.shape, keys.shape, attentional.dtype
        num = len(factors) + 1
        weights, biases = of_layers[:num], of_layers[num : 2 * num - 1]
        hidden, cells = of_layers[2 * num - 1 : 3 * num - 1], of_layers[3 * num - 1 :]
        forth, back = packed(weights, [], low)
        layers = [_begin(steps, *each) for each in zip(hidden, cells, strict=True)]
        words = with_ones(embedded, low).flatten(0, 1)  # (J B, D + ONES)
        weight = packed([word_weight], [[word_bias]], low).forth[0]  # (4H, D + ONES)
        torch.mm(words, weight.t(), out=layers[0].gates.flatten(0, 1))
        layers[0].inputs[0, :, :size] = attentional
        brought = (None, *(_interleaved(bias, low) for bias in biases))
        above = (*(layer.inputs for layer in layers[1:]), None)
        parts = list(zip(layers, forth, brought, above, (*factors, None), strict=True))
        z = attentional.new_empty(batch, steps, size)
        scores = torch.empty(steps, batch, -(-length // 8) * 8, device=z.device)
        logsums, context = scores.new_empty(steps, batch), scores.new_empty(steps, batch, size)
        next_layer = LAYER.launcher(layer_forward, z.dtype, batch, size)
        look = _attention(attend, keys)
        next_z = MIX.launcher(mix, z.dtype, batch, size)
        top = layers[-1].inputs
        for j in range(steps):
            for (inputs, gates, cells_of), weight_of, *more in parts:
                next_layer(inputs, weight_of, gates, cells_of, *more, j, steps, batch, size)
            look(top, keys, values, scores, logsums, context, j, length, batch, size)
            next_z(top, w_z, context, layers[0].inputs, z, j, steps, batch, size)
        ctx.num, ctx.dtype = num, embedded.dtype
        kept = (words, weight, w_z, keys, values, context, scores, logsums, back, *factors)
        ctx.save_for_backward(*kept, *(one for layer in layers for one in layer))
        seen = scores[..., :length]
        ctx.mark_non_differentiable(seen, logsums)
        return z, seen, logsums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_z: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """Every step, from the last to the first; then what could wait."""
        words, weight, w_z, keys, values, context, scores, logsums, back, *kept = ctx.saved_tensors
        factors, kept = kept[: ctx.num - 1], kept[ctx.num - 1 :]
        layers = [_Layer(*kept[n : n + 3]) for n in range(0, 3 * ctx.num, 3)]
        steps, (batch, length, size) = len(scores), keys.shape
        d_z, top = d_z.contiguous(), layers[-1]
        d_gates = [torch.empty_like(layer.gates) for layer in layers]
        d_own = [torch.zeros_like(context[0]) for _ in layers]
        d_cells = [torch.zeros_like(context[0]) for _ in layers]
        d_query, d_scores = torch.empty_like(context[0]), torch.empty_like(scores, dtype=d_z.dtype)
        # d_sums[j + 1] is of what z_j is the tanh of; d_sums[0] is of z_0 itself.
        d_sums = d_z.new_empty(steps + 1, batch, size)
        z = layers[0].inputs[-1, :, :size].float()
        d_sums[-1] = d_z[:, -1].float() * (1 - z * z)
        look_back = _attention(attend_back, keys, ACROSS=triton.next_power_of_2(size))
        mix_to_top = MIX.launcher(mix_back, d_z.dtype, batch, size)
        layer_to_below = LAYER_BACK.launcher(layer_back, d_z.dtype, batch, size, halves=2)
        first_to_z = FIRST_BACK.launcher(first_back, d_z.dtype, batch, size, halves=2)
        mix_weight, cells_of = w_z.t().contiguous(), [layer[1:] for layer in layers]
        for j in reversed(range(steps)):
            owed = (d_sums, keys, values, scores, logsums, context)
            look_back(*owed, d_scores, d_query, j, length, batch, size)
            last = (d_own[-1], *cells_of[-1], d_gates[-1], d_cells[-1])
            mix_to_top(d_sums, mix_weight, d_query, *last, j, batch, size)
            for n in reversed(range(1, len(layers))):
                below = (d_own[n - 1], *cells_of[n - 1], d_gates[n - 1], d_cells[n - 1])
                through = (d_gates[n], back[n], d_own[n], factors[n - 1])
                layer_to_below(*through, *below, j, steps, batch, size)
            through = (d_gates[0], back[0], d_own[0], layers[0].inputs)
            first_to_z(*through, d_z, d_sums, j, steps, batch, size)
        query, d_feed, d_sums = top.inputs[1:, :, size:], d_sums[0], d_sums[1:]  # (J, B, H)
        alpha = _alpha(scores, logsums)[..., :length].to(d_z.dtype)
        d_words = d_gates[0].flatten(0, 1)
        d_embedded = (d_words @ weight[:, :-ONES]).view(steps, batch, -1)
        d_weight = dispatch.precise_product(d_words.t(), words)  # (4H, D + ONES)
        return (
            None,
            by_rows(d_embedded, ctx.dtype),
            gate_by_gate(d_weight[:, :-ONES]),
            gate_by_gate(d_weight[:, -ONES]),
            d_feed,
            d_sums.flatten(0, 1).t() @ query.flatten(0, 1),
            torch.bmm(d_scores[..., :length].permute(1, 2, 0), query.transpose(0, 1)),
            torch.bmm(alpha.permute(1, 2, 0), d_sums.transpose(0, 1)),
            *(
                gate_by_gate(dispatch.precise_product(d.flatten(0, 1).t(), inputs.flatten(0, 1)))
                for d, inputs in zip(d_gates, (one.inputs[:-1] for one in layers), strict=True)
            ),
            *(gate_by_gate(d.sum((0, 1), dtype=torch.float32)) for d in d_gates[1:]),
            *(d.to(d_z.dtype) for d in d_own),
            *d_cells,
        )


def _attention(kernel: Any, keys: Tensor, **more: int) -> Callable[..., None]:
    """A kernel that works row by row; it comes in a few sizes for all lengths."""
    batch, length, _ = keys.shape
    places = max(32, triton.next_power_of_2(length))
    deep = min(64, _TILE // (places * keys.element_size()))
    stages = min(4, _ROOM // (places * deep * keys.element_size()))
    exact = keys.dtype == torch.float32
    sizes = {"PLACES": places, "DEEP": deep, "EXACT": exact, "num_warps": 4, "num_stages": stages}
    return partial(kernel[(batch,)], **sizes, **more)


_TILE, _ROOM = 2**16, 2**17  # bytes of a tile of the memory, and of all tiles under way


def _interleaved(bias: Tensor, low: torch.dtype) -> Tensor:
    return bias.view(4, -1).t().to(low).flatten()


def _alpha(scores: Tensor, logsums: Tensor) -> Tensor:
    return torch.exp(scores - logsums.unsqueeze(-1))


def _begin(steps: int, hidden: Tensor, cell: Tensor) -> _Layer:
    """Room for all steps, with the start state in its place."""
    batch, size = hidden.shape
    inputs = hidden.new_empty(steps + 1, batch, 2 * size)
    inputs[0, :, size:] = hidden
    cells = cell.new_empty(steps + 1, batch, size)
    cells[0] = cell
    return _Layer(inputs, hidden.new_empty(steps, batch, 4 * size), cells)
