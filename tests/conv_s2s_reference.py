"""conv-s2s once more, slowly: one pair at a time, loops over places and units, float64.

Written from the equations, in NumPy, for the tests to compare with. `weights` maps names to arrays
and `masks` are those of dropout, as in `model_reference`.
"""

from dataclasses import dataclass

import numpy as np

from model_reference import BOS, EOS, PAD, below, distribution, sigmoid, softmax, source_loss

HALF = np.sqrt(0.5)


def plain(weights):
    """The layer without weight normalisation: rows `g v / ||v||`, and the bias."""
    rows = [
        gain * direction / np.sqrt(sum(value**2 for value in direction))
        for gain, direction in zip(weights["gain"], weights["direction"], strict=True)
    ]
    return np.array(rows), weights["bias"]


def linear(weights, name, value):
    matrix, bias = plain(below(weights, f"{name}."))
    return np.array([row @ value + one for row, one in zip(matrix, bias, strict=True)])


def embedded(weights, words):
    """Word and place; places after the last of the table share its vector."""
    table, places = weights["words.weight"], weights["positions.table.weight"]
    return np.array([table[word] + places[min(i, len(places) - 1)] for i, word in enumerate(words)])


def gated_convolution(weights, inputs, first):
    """GLU(conv(inputs)); the window of place t begins at t + first, with zeros beyond the ends."""
    matrix, bias = plain(below(weights, "linear."))
    size = inputs.shape[1]
    kernel = matrix.shape[1] // size
    outputs = np.zeros_like(inputs)
    for t in range(len(inputs)):
        both = bias.copy()
        for offset in range(kernel):
            place = t + first + offset
            if 0 <= place < len(inputs):
                both = both + matrix[:, offset * size : (offset + 1) * size] @ inputs[place]
        for unit in range(size):
            outputs[t, unit] = both[unit] * sigmoid(both[size + unit])
    return outputs


def num_layers(weights):
    return 1 + max(int(n.split(".")[1]) for n in weights if n.startswith("convolutions."))


def kernel_of(weights, size):
    return weights["convolutions.0.linear.direction"].shape[1] // size


def encode(weights, source, masks):
    """z (I, f), e (I, f)."""
    e = embedded(below(weights, "embedding."), source) * masks.get(("encoder", 0), 1.0)
    x = np.array([linear(weights, "inward", value) for value in e])
    first = -(kernel_of(weights, x.shape[1]) // 2)
    for layer in range(num_layers(weights)):
        inputs = x * masks.get(("encoder", layer + 1), 1.0)
        own = below(weights, f"convolutions.{layer}.")
        x = (gated_convolution(own, inputs, first) + x) * HALF
    return np.array([linear(weights, "outward", value) for value in x]), e


def attend(weights, hidden, g, z, e):
    """One layer and step: h (d,), g (f,) -> h with attention (d,), alpha (I,)."""
    query = (linear(weights, "of_state", hidden) + g) * HALF
    alpha = softmax([query @ key for key in z])
    context = np.zeros_like(g)
    for weight, key, value in zip(alpha, z, e, strict=True):
        context = context + weight * (key + value) * HALF
    context = context * len(z) * np.sqrt(1 / len(z))
    return (linear(weights, "of_context", context) + hidden) * HALF, alpha


def decode(weights, words, z, e, masks):
    """y_0 ... y_{J-1} -> z (J, f), and alpha of each layer (L, J, I)."""
    g = embedded(below(weights, "placed."), words) * masks.get(("decoder", 0), 1.0)
    x = np.array([linear(weights, "inward", value) for value in g])
    first = 1 - kernel_of(weights, x.shape[1])
    alphas = []
    for layer in range(num_layers(weights)):
        inputs = x * masks.get(("decoder", layer + 1), 1.0)
        hidden = gated_convolution(below(weights, f"convolutions.{layer}."), inputs, first)
        own = below(weights, f"attentions.{layer}.")
        seen = [attend(own, one, word, z, e) for one, word in zip(hidden, g, strict=True)]
        x = np.array([(one + before) * HALF for (one, _), before in zip(seen, x, strict=True)])
        alphas.append([alpha for _, alpha in seen])
    return np.array([linear(weights, "outward", value) for value in x]), np.array(alphas)


def gated(weights, z):
    """SGate; the sentence is the mean of the encoder's outputs."""
    sentence = sum(z) / len(z)
    states = []
    for state in z:
        scores = weights["of_state.weight"] @ state + weights["of_sentence.weight"] @ sentence
        states.append(state * sigmoid(scores + weights["of_sentence.bias"]))
    return np.array(states)


@dataclass
class Seen:
    """One pair as the system sees it."""

    states: np.ndarray  # (J, f)
    alphas: np.ndarray  # (L, J, I)
    distributions: np.ndarray  # (J, V)
    target: float
    headline: float
    source: float | None  # None without SPM


def see(weights, source, headline, c=10.0, masks=None):
    """A pair through the whole system; `gate.` and `spm.` among the weights say which one."""
    masks = masks or {}
    has_gate = any(name.startswith("gate.") for name in weights)
    has_spm = any(name.startswith("spm.") for name in weights)
    targets = [*headline, EOS]
    targets += [PAD] * (len(source) - len(targets)) if has_spm else []
    z, e = encode(below(weights, "encoder."), source, masks)
    z = gated(below(weights, "gate."), z) if has_gate else z
    words = [BOS, *targets[:-1]]
    states, alphas = decode(below(weights, "decoder."), words, z, e, masks)
    dropped = states * masks.get("output", 1.0)
    matrix, bias = plain(below(weights, "output."))
    found = [distribution({"weight": matrix, "bias": bias}, one) for one in dropped]
    logs = [np.log(o[word]) for o, word in zip(found, targets, strict=True)]
    return Seen(
        states=states,
        alphas=alphas,
        distributions=np.array(found),
        target=-sum(logs),
        headline=-sum(logs[: len(headline) + 1]),
        source=source_loss(below(weights, "spm.output."), dropped, source, c) if has_spm else None,
    )
