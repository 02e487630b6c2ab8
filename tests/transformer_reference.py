"""The Transformer once more, slowly: one pair at a time, loops over steps, heads and words, float64.

Written from the equations, in NumPy, for the tests to compare with. `weights` maps names to arrays,
as `model_reference.weights_of` reads them off a model. `masks` are those of dropout, by place; at a
place that it does not name, nothing is dropped.

| place, of the side "encoder" or "decoder" | mask |
| --- | --- |
| (side, "kept") | (I, 1): 0 where a word is read as 0 |
| (side, "words") | (I, d): at words with their places |
| (side, layer, part) | (I, d): of what a part adds: "attention", "source" or "feed_forward" |
| (side, layer, "attention weights" or "source weights") | (h, J, I) |
| (side, layer, "activation") | (I, hidden size) |
| "output" | (J, d) |
"""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from conv_s2s_reference import gated
from model_reference import BOS, EOS, PAD, below, distribution, softmax, source_loss

Array: TypeAlias = npt.NDArray[np.float64]
Weights: TypeAlias = Mapping[str, Array]
Masks: TypeAlias = Mapping[Any, Any]
NOTHING: Masks = {}


# --- the parts of a layer -------------------------------------------------------------------------


def linear(weights: Weights, name: str, value: Array) -> Array:
    """`W x + b`."""
    matrix, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return np.array([row @ value + one for row, one in zip(matrix, bias, strict=True)])


def normalised(weights: Weights, name: str, value: Array) -> Array:
    """With mean 0 and variance 1, then a gain and a bias for each unit."""
    centred = value - sum(value) / len(value)
    variance = sum(one**2 for one in centred) / len(value)
    scaled: Array = centred / np.sqrt(variance + 1e-5)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def place_vector(place: int, size: int) -> Array:
    """`sin(w_k i)` for all k, then `cos(w_k i)`; from w = 1 down to w = 1 / 10000."""
    half = size // 2
    vector = np.zeros(size)
    for k in range(half):
        frequency = 10000.0 ** (-k / (half - 1)) if half > 1 else 1.0
        vector[k], vector[half + k] = np.sin(place * frequency), np.cos(place * frequency)
    return vector


def embedded(table: Array, words: Sequence[int], kept: Any) -> Array:
    """`sqrt(d) E x_i + p_i`."""
    size = table.shape[1]
    kept = np.broadcast_to(kept, (len(words), 1))
    return np.array(
        [
            np.sqrt(size) * table[word] * kept[i] + place_vector(i, size)
            for i, word in enumerate(words)
        ]
    )


def attend(
    queries: Array, keys: Array, values: Array, heads: int, factors: Any, *, causal: bool = False
) -> tuple[Array, Array]:
    """(J, d), (I, d), (I, d) -> contexts (J, d), alpha (h, J, I); the factors drop weights."""
    size = queries.shape[1] // heads
    contexts, alphas = np.zeros_like(queries), np.zeros((heads, len(queries), len(keys)))
    factors = np.broadcast_to(factors, alphas.shape)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for j, query in enumerate(queries):
            seen = j + 1 if causal else len(keys)
            scores = [query[part] @ key[part] / np.sqrt(size) for key in keys[:seen]]
            alphas[head, j, :seen] = softmax(scores)
            for i in range(seen):
                weight = alphas[head, j, i] * factors[head, j, i]
                contexts[j, part] += weight * values[i, part]
    return contexts, alphas


def self_attention(
    weights: Weights, states: Array, heads: int, factors: Any, *, causal: bool
) -> Array:
    """What self-attention adds. (I, d) -> (I, d)."""
    read = np.array([normalised(weights, "attention_norm", state) for state in states])
    made = np.array([linear(weights, "attention.of_state", one) for one in read])
    size = states.shape[1]
    queries, keys, values = made[:, :size], made[:, size : 2 * size], made[:, 2 * size :]
    contexts, _ = attend(queries, keys, values, heads, factors, causal=causal)
    return np.array([linear(weights, "attention.mix", one) for one in contexts])


def source_attention(
    weights: Weights, states: Array, source: Array, heads: int, factors: Any
) -> tuple[Array, Array]:
    """What attention to the source adds. (J, d), (I, d) -> (J, d), alpha (h, J, I)."""
    read = [normalised(weights, "source_norm", state) for state in states]
    queries = np.array([linear(weights, "source_attention.of_state", one) for one in read])
    made = np.array([linear(weights, "source_attention.of_source", one) for one in source])
    size = states.shape[1]
    contexts, alphas = attend(queries, made[:, :size], made[:, size:], heads, factors)
    return np.array([linear(weights, "source_attention.mix", one) for one in contexts]), alphas


def feed_forward(weights: Weights, states: Array, factors: Any) -> Array:
    """What the feed-forward network adds. (I, d) -> (I, d)."""
    read = [normalised(weights, "feed_forward_norm", state) for state in states]
    hidden = np.array([linear(weights, "feed_forward.inward", one) for one in read])
    for row in hidden:
        for unit, value in enumerate(row):
            row[unit] = max(0.0, value)
    return np.array([linear(weights, "feed_forward.outward", one) for one in hidden * factors])


# --- encoder and decoder --------------------------------------------------------------------------


def num_layers(weights: Weights) -> int:
    return 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))


def encode(weights: Weights, source: Sequence[int], heads: int, masks: Masks = NOTHING) -> Array:
    """h_1 ... h_I. (I, d)."""
    x = embedded(weights["words.table.weight"], source, masks.get(("encoder", "kept"), 1.0))
    x = x * masks.get(("encoder", "words"), 1.0)
    for layer in range(num_layers(weights)):
        own = below(weights, f"layers.{layer}.")
        mask = {part: masks.get(("encoder", layer, part), 1.0) for part in PARTS}
        added = self_attention(own, x, heads, mask["attention weights"], causal=False)
        x = x + added * mask["attention"]
        x = x + feed_forward(own, x, mask["activation"]) * mask["feed_forward"]
    return np.array([normalised(weights, "norm", one) for one in x])


def decode(
    weights: Weights,
    table: Array,
    words: Sequence[int],
    states: Array,
    heads: int,
    masks: Masks = NOTHING,
) -> tuple[Array, Array]:
    """y_0 ... y_{J-1}, states of the source (I, d) -> z (J, d), alpha (L, h, J, I)."""
    x = embedded(table, words, masks.get(("decoder", "kept"), 1.0))
    x = x * masks.get(("decoder", "words"), 1.0)
    alphas = []
    for layer in range(num_layers(weights)):
        own = below(weights, f"layers.{layer}.")
        mask = {part: masks.get(("decoder", layer, part), 1.0) for part in PARTS}
        added = self_attention(own, x, heads, mask["attention weights"], causal=True)
        x = x + added * mask["attention"]
        added, alpha = source_attention(own, x, states, heads, mask["source weights"])
        x = x + added * mask["source"]
        x = x + feed_forward(own, x, mask["activation"]) * mask["feed_forward"]
        alphas.append(alpha)
    return np.array([normalised(weights, "norm", one) for one in x]), np.array(alphas)


PARTS = (
    "attention weights",
    "attention",
    "source weights",
    "source",
    "activation",
    "feed_forward",
)


# --- the whole system -----------------------------------------------------------------------------


@dataclass
class Seen:
    """One pair as the system sees it."""

    encoded: Array  # (I, d): of the encoder
    gated: Array  # (I, d): what attention sees
    states: Array  # (J, d): z_j
    alphas: Array  # (L, h, J, I): of every layer and head
    distributions: Array  # (J, V): o_j
    predictions: Array | None  # (J, V): q_j; None without SPM
    target: float
    headline: float
    source: float | None  # None without SPM


def see(
    weights: Weights,
    source: Sequence[int],
    headline: Sequence[int],
    heads: int,
    *,
    c: float = 10.0,
    masks: Masks = NOTHING,
    read: Mapping[str, Sequence[int]] | None = None,
) -> Seen:
    """A pair through the whole system; `gate.` and `spm.` among the weights say which one.

    With `read`, encoder and decoder read other words than those of the pair, as in training.
    """
    has_gate = any(name.startswith("gate.") for name in weights)
    has_spm = any(name.startswith("spm.") for name in weights)
    targets = [*headline, EOS]
    targets += [PAD] * (len(source) - len(targets)) if has_spm else []
    words = {"encoder": source, "decoder": [BOS, *targets[:-1]]} | dict(read or {})
    encoded = encode(below(weights, "encoder."), words["encoder"], heads, masks)
    mixed = gated(below(weights, "gate."), encoded) if has_gate else encoded
    table = weights["encoder.words.table.weight"]
    states, alphas = decode(
        below(weights, "decoder."), table, words["decoder"], mixed, heads, masks
    )
    dropped = states * masks.get("output", 1.0)
    output = {"weight": table, "bias": weights["output.bias"]}
    found = [distribution(output, one) for one in dropped]
    logs = [np.log(o[word]) for o, word in zip(found, targets, strict=True)]
    spm = below(weights, "spm.output.")
    return Seen(
        encoded=encoded,
        gated=mixed,
        states=states,
        alphas=alphas,
        distributions=np.array(found),
        predictions=np.array([distribution(spm, one) for one in dropped]) if has_spm else None,
        target=-sum(logs),
        headline=-sum(logs[: len(headline) + 1]),
        source=source_loss(spm, dropped, source, c) if has_spm else None,
    )
