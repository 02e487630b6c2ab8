"""How weights are stored in a file: in float32, in float16, or in int8 with scales.

In int8 a matrix `X` is stored as levels, whole numbers from -127 to 127, and its scales `X.scale`
in float32: a weight is its level times its scale. Vectors stay in float32.

The CPU engine quantizes weights itself (`ledeline.model.format.int8.quantize`). From stored weights
it gets exactly the stored levels and scales, because both have a scale for the same rows.
`System.int8_layouts` names the weights whose rows are not simply those of the matrix. For EncDec:

| weight (M, K), or (M, K, ...) of a convolution | its scales |
| --- | --- |
| any but these | (M, 1): one for each row |
| `decoder.first.weight`, `decoder.attention.mix.weight` | (M, 2): the engine splits their columns |
| `decoder.attention.bilinear` | (1, K): the engine multiplies by the transpose |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ledeline.core.errors import ModelError
from ledeline.model.format.description import Storage
from ledeline.model.format.int8 import BY_ROWS, Layout, quantize

Weights: TypeAlias = dict[str, Tensor]
Layouts: TypeAlias = Mapping[str, Layout]

_SCALE: Final = ".scale"  # after the name of a matrix


def write_weights(path: Path, weights: Weights, storage: Storage, layouts: Layouts) -> None:
    """Write the weights of a system to a file."""
    stored = as_stored(weights, storage, layouts)
    for name, one in stored.items():
        if one.is_floating_point() and not one.isfinite().all():
            raise ModelError(f"{name} has weights too large for {storage}; store them in float32")
    path.write_bytes(save(stored))


def read_weights(path: Path, like: Weights, storage: Storage, layouts: Layouts) -> Weights:
    """The weights in a file, in float32; names and shapes must be those of `like`."""
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    _refuse_unexpected(path, stored, _expected_types(like, storage, layouts))
    weights = as_float32(stored, storage, layouts)
    for name, one in weights.items():
        if not one.isfinite().all():
            raise ModelError(f"{path} is damaged: {name} has weights that are not finite numbers")
    return weights


# --- between weights and what is stored -----------------------------------------------------------


def as_stored(weights: Weights, storage: Storage, layouts: Layouts) -> Weights:
    """Weights in float32 -> what is stored."""
    if storage != "int8":
        dtype = {"float32": torch.float32, "float16": torch.float16}[storage]
        return {name: one.to(dtype).contiguous() for name, one in weights.items()}
    stored = {}
    for name, one in weights.items():
        stored[name] = one.float().contiguous()
        if one.dim() > 1:
            stored[name], stored[name + _SCALE] = _quantize(one, layouts.get(name, BY_ROWS))
    return stored


def as_float32(stored: Weights, storage: Storage, layouts: Layouts) -> Weights:
    """What is stored -> weights in float32."""
    if storage != "int8":
        return {name: one.float() for name, one in stored.items()}
    return {
        name: _dequantize(one, stored[name + _SCALE], layouts.get(name, BY_ROWS))
        if one.dim() > 1
        else one
        for name, one in stored.items()
        if not name.endswith(_SCALE)
    }


def _quantize(matrix: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """A weight (M, K, ...) -> its levels and their scales (M, parts), or (1, K) if transposed."""
    if layout.transposed:
        levels, scales = quantize(matrix.t())
        return levels.t().contiguous(), scales.unsqueeze(0)
    parts = [quantize(part) for part in _parts(matrix.flatten(1), layout)]
    levels = torch.cat([levels for levels, _ in parts], 1).view(matrix.shape)
    return levels, torch.stack([s for _, s in parts], 1)


def _dequantize(levels: Tensor, scales: Tensor, layout: Layout) -> Tensor:
    """Levels and scales -> the weight (M, K, ...), up to rounding."""
    if layout.transposed:
        return levels * scales
    columns = scales.split(1, 1)  # type: ignore[no-untyped-call]
    pairs = zip(_parts(levels.flatten(1), layout), columns, strict=True)
    return torch.cat([part * column for part, column in pairs], 1).view(levels.shape)


def _parts(matrix: Tensor, layout: Layout) -> list[Tensor]:
    widths = list(layout.widths) or [matrix.shape[1]]
    return list(matrix.split(widths, 1))  # type: ignore[no-untyped-call]


# --- what does not belong in a file ---------------------------------------------------------------


def _expected_types(weights: Weights, storage: Storage, layouts: Layouts) -> dict[str, str]:
    """What `as_stored` would make of weights, in words."""
    expected = {}
    for name, one in weights.items():
        is_matrix = one.dim() > 1
        dtype = "float32" if storage == "int8" and not is_matrix else storage
        expected[name] = _type_and_shape(dtype, one.shape)
        if storage == "int8" and is_matrix:
            layout = layouts.get(name, BY_ROWS)
            scales = (1, one.shape[1]) if layout.transposed else (len(one), len(layout.widths) or 1)
            expected[name + _SCALE] = _type_and_shape("float32", scales)
    return expected


def _refuse_unexpected(path: Path, stored: Weights, expected: dict[str, str]) -> None:
    """Refuse weights that differ in name, type or shape from those expected."""
    actual = {
        name: _type_and_shape(str(one.dtype).removeprefix("torch."), one.shape)
        for name, one in stored.items()
    }
    for name in sorted(actual.keys() | expected.keys()):
        is_, should_be = (one.get(name, "missing") for one in (actual, expected))
        if is_ != should_be:
            raise ModelError(
                f"{path} does not match the other files of the folder: "
                f"{name} is {is_} but should be {should_be}"
            )


def _type_and_shape(dtype: str, shape: Sequence[int]) -> str:
    """A tensor in words: `int8 (4, 3)`."""
    return f"{dtype} {tuple(shape)}"
