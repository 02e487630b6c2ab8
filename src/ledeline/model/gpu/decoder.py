"""The decoder's steps over known words, as a few kernel launches per step.

The definition is `Decoder._advance`; the backward pass is that of `ledeline.model.layers.unroll`.
One thing more is done before the steps: W_s = [W_c, W_z] is applied to the encoder states,
`v_i = W_c h_i`, so that `z_j = tanh(sum_i alpha_j[i] v_i + W_z zv_j)`.

A forward step is one kernel for each layer (product and cell), one for attention, and one for W_z
with the tanh. A backward step is the same in reverse; a kernel is a product and what comes before
it in the forward pass. Gates are interleaved, see `cell`. Buffers have the steps first: (J, B, ...)
is their shape. All sources have one length.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ledeline.model.gpu import dispatch
from ledeline.model.gpu.attention_kernels import attention_backward, attention_forward
from ledeline.model.gpu.cell import (
    BIAS_COLUMNS,
    Tile,
    batch_first,
    deinterleave,
    pack_weights,
    with_bias_columns,
)
from ledeline.model.gpu.decoder_kernels import (
    first_layer_backward,
    layer_backward,
    layer_forward,
    mix_backward,
    mix_forward,
)
from ledeline.model.gpu.triton_language import triton
from ledeline.model.layers.attention import Memory
from ledeline.model.layers.unroll import LayerInputs, WordInputs

LAYER: Final = Tile(64, 16, 64, warps=4, stages=6)
MIX: Final = Tile(64, 16, 128, warps=4, stages=4)
LAYER_BACKWARD: Final = Tile(64, 16, 128, warps=4, stages=4)
FIRST_LAYER_BACKWARD: Final = Tile(64, 32, 128, warps=4, stages=4)


def unroll(
    words: WordInputs,
    layers: Sequence[LayerInputs],
    masks: Sequence[Tensor | None],
    attentional: Tensor,
    mix: Tensor,
    memory: Memory,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """As `ledeline.model.layers.unroll.unroll`, with products in this type."""
    w_c, w_z = mix.to(dtype).chunk(2, -1)
    values = memory.states.to(dtype) @ w_c.t()
    z, scores, logsums = _TritonUnroll.apply(
        tuple(None if one is None else one.contiguous() for one in masks),
        *words,
        *(each.to(dtype).contiguous() for each in (attentional, w_z, memory.keys, values)),
        *(layer.weight for layer in layers),
        *(layer.bias for layer in layers if layer.bias is not None),
        *(layer.hidden.to(dtype) for layer in layers),
        *(layer.cell.float() for layer in layers),
    )
    return z, _weights(scores, logsums).transpose(0, 1)


class _LayerBuffers(NamedTuple):
    """What a layer reads and writes at all steps."""

    inputs: Tensor  # (J + 1, B, 2H): [state of the layer below, or z; own state]
    gates: Tensor  # (J, B, 4H)
    cells: Tensor  # (J + 1, B, H)


class _TritonUnroll(torch.autograd.Function):
    """See `unroll`. Tensors of the layers are single arguments: autograd looks into no tuples."""

    @staticmethod
    def forward(
        ctx: Any,
        masks: Sequence[Tensor | None],
        embedded: Tensor,
        word_weight: Tensor,
        word_bias: Tensor,
        attentional: Tensor,
        w_z: Tensor,
        keys: Tensor,
        values: Tensor,
        *layer_tensors: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All steps, from the first to the last."""
        (batch, steps, _), (_, length, size), dtype = embedded.shape, keys.shape, attentional.dtype
        num = len(masks) + 1
        weights, biases = layer_tensors[:num], layer_tensors[num : 2 * num - 1]
        hidden, cells = layer_tensors[2 * num - 1 : 3 * num - 1], layer_tensors[3 * num - 1 :]
        packed_weights, transposed = pack_weights(weights, [], dtype)
        layers = [_allocate(steps, *each) for each in zip(hidden, cells, strict=True)]
        words = with_bias_columns(embedded, dtype).flatten(0, 1)  # (J B, D + BIAS_COLUMNS)
        packed_words = pack_weights([word_weight], [[word_bias]], dtype)
        weight = packed_words.weights[0]  # (4H, D + BIAS_COLUMNS)
        torch.mm(words, weight.t(), out=layers[0].gates.flatten(0, 1))
        layers[0].inputs[0, :, :size] = attentional
        addends = (None, *(_interleaved(bias, dtype) for bias in biases))
        above = (*(layer.inputs for layer in layers[1:]), None)
        parts = list(zip(layers, packed_weights, addends, above, (*masks, None), strict=True))
        z = attentional.new_empty(batch, steps, size)
        scores = torch.empty(steps, batch, -(-length // 8) * 8, device=z.device)
        logsums, context = scores.new_empty(steps, batch), scores.new_empty(steps, batch, size)
        next_layer = LAYER.launcher(layer_forward, z.dtype, batch, size)
        attend = _attention_launcher(attention_forward, keys)
        next_z = MIX.launcher(mix_forward, z.dtype, batch, size)
        top = layers[-1].inputs
        for j in range(steps):
            for (inputs, gates, cells_of), weight_, *more in parts:
                next_layer(inputs, weight_, gates, cells_of, *more, j, steps, batch, size)
            attend(top, keys, values, scores, logsums, context, j, length, batch, size)
            next_z(top, w_z, context, layers[0].inputs, z, j, steps, batch, size)
        ctx.num, ctx.dtype = num, embedded.dtype
        saved = (words, weight, w_z, keys, values, context, scores, logsums, transposed, *masks)
        ctx.save_for_backward(*saved, *(one for layer in layers for one in layer))
        scores_ = scores[..., :length]
        ctx.mark_non_differentiable(scores_, logsums)
        return z, scores_, logsums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_z: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """All steps, from the last to the first; then the gradients that are sums over steps."""
        words, weight, w_z, keys, values, context, scores, logsums, transposed, *saved = (
            ctx.saved_tensors
        )
        masks, saved = saved[: ctx.num - 1], saved[ctx.num - 1 :]
        layers = [_LayerBuffers(*saved[n : n + 3]) for n in range(0, 3 * ctx.num, 3)]
        steps, (batch, length, size) = len(scores), keys.shape
        d_z, top = d_z.contiguous(), layers[-1]
        d_gates = [torch.empty_like(layer.gates) for layer in layers]
        d_own = [torch.zeros_like(context[0]) for _ in layers]
        d_cells = [torch.zeros_like(context[0]) for _ in layers]
        d_query, d_scores = torch.empty_like(context[0]), torch.empty_like(scores, dtype=d_z.dtype)
        # d_sums[j + 1] is the gradient of z_j before the tanh; d_sums[0] is that of z_0 itself.
        d_sums = d_z.new_empty(steps + 1, batch, size)
        z = layers[0].inputs[-1, :, :size].float()
        d_sums[-1] = d_z[:, -1].float() * (1 - z * z)
        attend_backward = _attention_launcher(
            attention_backward, keys, BLOCK_SIZE=triton.next_power_of_2(size)
        )
        mix_to_top = MIX.launcher(mix_backward, d_z.dtype, batch, size)
        layer_to_below = LAYER_BACKWARD.launcher(layer_backward, d_z.dtype, batch, size, halves=2)
        first_to_z = FIRST_LAYER_BACKWARD.launcher(
            first_layer_backward, d_z.dtype, batch, size, halves=2
        )
        mix_weight, gates_and_cells = w_z.t().contiguous(), [layer[1:] for layer in layers]
        for j in reversed(range(steps)):
            attention_tensors = (d_sums, keys, values, scores, logsums, context)
            attend_backward(*attention_tensors, d_scores, d_query, j, length, batch, size)
            last = (d_own[-1], *gates_and_cells[-1], d_gates[-1], d_cells[-1])
            mix_to_top(d_sums, mix_weight, d_query, *last, j, batch, size)
            for n in reversed(range(1, len(layers))):
                below = (d_own[n - 1], *gates_and_cells[n - 1], d_gates[n - 1], d_cells[n - 1])
                through = (d_gates[n], transposed[n], d_own[n], masks[n - 1])
                layer_to_below(*through, *below, j, steps, batch, size)
            through = (d_gates[0], transposed[0], d_own[0], layers[0].inputs)
            first_to_z(*through, d_z, d_sums, j, steps, batch, size)
        query, d_z_start, d_sums = top.inputs[1:, :, size:], d_sums[0], d_sums[1:]  # (J, B, H)
        alpha = _weights(scores, logsums)[..., :length].to(d_z.dtype)
        d_words = d_gates[0].flatten(0, 1)
        d_embedded = (d_words @ weight[:, :-BIAS_COLUMNS]).view(steps, batch, -1)
        d_weight = dispatch.mm_in_float32(d_words.t(), words)  # (4H, D + BIAS_COLUMNS)
        return (
            None,
            batch_first(d_embedded, ctx.dtype),
            deinterleave(d_weight[:, :-BIAS_COLUMNS]),
            deinterleave(d_weight[:, -BIAS_COLUMNS]),
            d_z_start,
            d_sums.flatten(0, 1).t() @ query.flatten(0, 1),
            torch.bmm(d_scores[..., :length].permute(1, 2, 0), query.transpose(0, 1)),
            torch.bmm(alpha.permute(1, 2, 0), d_sums.transpose(0, 1)),
            *(
                deinterleave(dispatch.mm_in_float32(d.flatten(0, 1).t(), inputs.flatten(0, 1)))
                for d, inputs in zip(d_gates, (one.inputs[:-1] for one in layers), strict=True)
            ),
            *(deinterleave(d.sum((0, 1), dtype=torch.float32)) for d in d_gates[1:]),
            *(d.to(d_z.dtype) for d in d_own),
            *d_cells,
        )


def _attention_launcher(kernel: Any, keys: Tensor, **more: int) -> Callable[..., None]:
    """A kernel with one program per row; it is compiled for a few lengths only."""
    batch, length, _ = keys.shape
    positions = max(32, triton.next_power_of_2(length))
    block_k = min(64, _MAX_TILE // (positions * keys.element_size()))
    stages = min(4, _MAX_IN_FLIGHT // (positions * block_k * keys.element_size()))
    is_float32 = keys.dtype == torch.float32
    sizes = {
        "BLOCK_POSITIONS": positions,
        "BLOCK_K": block_k,
        "FLOAT32": is_float32,
        "num_warps": 4,
        "num_stages": stages,
    }
    return partial(kernel[(batch,)], **sizes, **more)


_MAX_TILE: Final = 2**16  # bytes of a tile of the memory
_MAX_IN_FLIGHT: Final = 2**17  # bytes of all tiles that are being loaded


def _interleaved(bias: Tensor, dtype: torch.dtype) -> Tensor:
    return bias.view(4, -1).t().to(dtype).flatten()


def _weights(scores: Tensor, logsums: Tensor) -> Tensor:
    return torch.exp(scores - logsums.unsqueeze(-1))


def _allocate(steps: int, hidden: Tensor, cell: Tensor) -> _LayerBuffers:
    """Buffers for all steps, with the start state written into them."""
    batch, size = hidden.shape
    inputs = hidden.new_empty(steps + 1, batch, 2 * size)
    inputs[0, :, size:] = hidden
    cells = cell.new_empty(steps + 1, batch, size)
    cells[0] = cell
    return _LayerBuffers(inputs, hidden.new_empty(steps, batch, 4 * size), cells)
