"""How weights lie in a file: in float32, in float16, or in int8 with scales.

In int8 a matrix `X` is whole numbers from -127 to 127, its levels, and `X.scale` in float32 says
what a level is worth: a weight is one times the other. Vectors stay in float32.

The CPU engine makes levels of its own (`ledeline.model.format.int8.quantised`). From these weights
it comes to the very levels and scales that are stored, for there is a scale for every row that it
gives one to. `System.int8_layouts` says which those are, where they are not simply the rows. For
EncDec:

| weight (M, K), or (M, K, ...) of a convolution | its scales |
| --- | --- |
| any but these | (M, 1): one for each row |
| `decoder.first.weight`, `decoder.attention.mix.weight` | (M, 2): it takes their columns apart |
| `decoder.attention.bilinear` | (1, K): it multiplies by the transpose |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ledeline.core.errors import ModelError
from ledeline.model.format.int8 import WHOLE, Layout, quantised

Storage: TypeAlias = Literal["float32", "float16", "int8"]
Weights: TypeAlias = dict[str, Tensor]
Layouts: TypeAlias = Mapping[str, Layout]

_SCALE: Final = ".scale"  # behind the name of a matrix


def write_weights(path: Path, weights: Weights, storage: Storage, layouts: Layouts) -> None:
    """Write the weights of a system to a file."""
    stored = as_stored(weights, storage, layouts)
    for name, one in stored.items():
        if one.is_floating_point() and not one.isfinite().all():
            raise ModelError(f"{name} has weights too large for {storage}; store them in float32")
    path.write_bytes(save(stored))


def read_weights(path: Path, like: Weights, storage: Storage, layouts: Layouts) -> Weights:
    """The weights in a file, in float32; one that does not hold weights like these is refused."""
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    _refuse_others(path, stored, _forms(like, storage, layouts))
    weights = as_float32(stored, storage, layouts)
    for name, one in weights.items():
        if not one.isfinite().all():
            raise ModelError(f"{path} is damaged: {name} has weights that are not finite numbers")
    return weights


# --- from weights to what is stored, and back -----------------------------------------------------


def as_stored(weights: Weights, storage: Storage, layouts: Layouts) -> Weights:
    """Weights in float32, as a file has them."""
    if storage != "int8":
        of_type = {"float32": torch.float32, "float16": torch.float16}[storage]
        return {name: one.to(of_type).contiguous() for name, one in weights.items()}
    stored = {}
    for name, one in weights.items():
        stored[name] = one.float().contiguous()
        if one.dim() > 1:
            stored[name], stored[name + _SCALE] = _as_levels(one, layouts.get(name, WHOLE))
    return stored


def as_float32(stored: Weights, storage: Storage, layouts: Layouts) -> Weights:
    """Weights as a file has them, in float32 again."""
    if storage != "int8":
        return {name: one.float() for name, one in stored.items()}
    return {
        name: _worth(one, stored[name + _SCALE], layouts.get(name, WHOLE)) if one.dim() > 1 else one
        for name, one in stored.items()
        if not name.endswith(_SCALE)
    }


def _as_levels(matrix: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """A weight (M, K, ...) -> its levels and their scales (M, parts), or (1, K) if transposed."""
    if layout.transposed:
        levels, scales = quantised(matrix.t())
        return levels.t().contiguous(), scales.unsqueeze(0)
    parts = [quantised(part) for part in _parts(matrix.flatten(1), layout)]
    levels = torch.cat([levels for levels, _ in parts], 1).view(matrix.shape)
    return levels, torch.stack([s for _, s in parts], 1)


def _worth(levels: Tensor, scales: Tensor, layout: Layout) -> Tensor:
    """What `_as_levels` made of a weight -> the weight (M, K, ...), to the nearest level."""
    if layout.transposed:
        return levels * scales
    columns = scales.split(1, 1)  # type: ignore[no-untyped-call]
    pairs = zip(_parts(levels.flatten(1), layout), columns, strict=True)
    return torch.cat([part * column for part, column in pairs], 1).view(levels.shape)


def _parts(matrix: Tensor, layout: Layout) -> list[Tensor]:
    widths = list(layout.widths) or [matrix.shape[1]]
    return list(matrix.split(widths, 1))  # type: ignore[no-untyped-call]


# --- what does not belong in a file ---------------------------------------------------------------


def _forms(weights: Weights, storage: Storage, layouts: Layouts) -> dict[str, str]:
    """What `as_stored` would make of weights, in words."""
    forms = {}
    for name, one in weights.items():
        is_matrix = one.dim() > 1
        kind = "float32" if storage == "int8" and not is_matrix else storage
        forms[name] = _form(kind, one.shape)
        if storage == "int8" and is_matrix:
            layout = layouts.get(name, WHOLE)
            scales = (1, one.shape[1]) if layout.transposed else (len(one), len(layout.widths) or 1)
            forms[name + _SCALE] = _form("float32", scales)
    return forms


def _refuse_others(path: Path, stored: Weights, forms: dict[str, str]) -> None:
    """Refuse weights that differ in name, type or shape from those that are described."""
    found = {
        name: _form(str(one.dtype).removeprefix("torch."), one.shape)
        for name, one in stored.items()
    }
    for name in sorted(found.keys() | forms.keys()):
        there, wanted = (one.get(name, "missing") for one in (found, forms))
        if there != wanted:
            raise ModelError(
                f"{path} does not match the other files of the folder: "
                f"{name} is {there} but should be {wanted}"
            )


def _form(kind: str, shape: Sequence[int]) -> str:
    """A tensor in words: `int8 (4, 3)`."""
    return f"{kind} {tuple(shape)}"
