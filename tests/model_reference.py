"""The systems once more, slowly: one pair at a time, loops over steps and units, float64.

Written from the equations, in NumPy, for the tests to compare with. A pair has no batch here, so
nothing is padded but the headline of the SPM, up to I, and nothing needs a mask.

`weights` maps names to arrays, as `weights_of` reads them off a model. `masks` are those of
dropout, by place; at a place that it does not name, nothing is dropped.
"""

from dataclasses import dataclass

import numpy as np

PAD, BOS, EOS = 0, 2, 3


def weights_of(module):
    return {name: value.detach().double().numpy() for name, value in module.state_dict().items()}


def below(weights, prefix):
    """The weights of a part of the model, with the part's own names."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def softmax(scores):
    shifted = [np.exp(score - max(scores)) for score in scores]
    return np.array([value / sum(shifted) for value in shifted])


# --- the LSTM -------------------------------------------------------------------------------


def lstm_step(matrix, bias, value, hidden, cell):
    """One step, unit by unit; rows of the matrix: all input gates, forget, candidates, output."""
    size = len(hidden)
    seen = np.concatenate([value, hidden])
    new_hidden, new_cell = np.zeros(size), np.zeros(size)
    for unit in range(size):
        in_gate, forget, candidate, out_gate = (
            matrix[gate * size + unit] @ seen + bias[gate * size + unit] for gate in range(4)
        )
        new_cell[unit] = sigmoid(forget) * cell[unit] + sigmoid(in_gate) * np.tanh(candidate)
        new_hidden[unit] = sigmoid(out_gate) * np.tanh(new_cell[unit])
    return new_hidden, new_cell


def lstm_states(matrix, bias, values):
    """All states of one direction in the order of `values`, and the last cell."""
    hidden = cell = np.zeros(len(bias) // 4)
    states = []
    for value in values:
        hidden, cell = lstm_step(matrix, bias, value, hidden, cell)
        states.append(hidden)
    return states, cell


# --- the encoder (Appendix A) -----------------------------------------------------------------


@dataclass
class Encoded:
    states: np.ndarray  # (I, H)
    ends: list  # of each layer, fwd_I + bwd_1: hidden (H,), cell (H,)


def encode(weights, source, masks=None):
    masks = masks or {}
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    values = [weights["embedding.weight"][word] for word in source]
    ends = []
    for layer in range(layers):
        mask = masks.get(("encoder", layer), np.ones((len(source), len(values[0]))))
        values = [value * factor for value, factor in zip(values, mask, strict=True)]
        forward, forward_cell = lstm_states(*direction(weights, layer, ""), values)
        backward, backward_cell = lstm_states(*direction(weights, layer, "_reverse"), values[::-1])
        ends.append((forward[-1] + backward[-1], forward_cell + backward_cell))
        values = [one + other for one, other in zip(forward, backward[::-1], strict=True)]
    return Encoded(np.array(values), ends)


def direction(weights, layer, suffix):
    """One direction's matrix over [input; own state] and its two biases as one."""
    w_ih, w_hh, b_ih, b_hh = (
        weights[f"layers.{layer}.{kind}_l0{suffix}"]
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    return np.concatenate([w_ih, w_hh], 1), b_ih + b_hh


# --- the gate (SEASS) -------------------------------------------------------------------------


def gated(weights, encoded):
    sentence = encoded.ends[-1][0]
    states = np.zeros_like(encoded.states)
    for i, state in enumerate(encoded.states):
        scores = weights["of_state.weight"] @ state + weights["of_sentence.weight"] @ sentence
        states[i] = state * sigmoid(scores + weights["of_sentence.bias"])
    return states


# --- attention (Appendix C) -------------------------------------------------------------------


def attend(weights, query, states):
    """zv_j (H,), h (I, H) -> z_j (H,), alpha_j (I,)."""
    alpha = softmax([state @ weights["bilinear"] @ query for state in states])
    context = np.zeros_like(query)
    for weight, state in zip(alpha, states, strict=True):
        context = context + weight * state
    return np.tanh(weights["mix.weight"] @ np.concatenate([context, query])), alpha


# --- the decoder (Appendix B) -----------------------------------------------------------------


def decode(weights, words, ends, states, masks=None):
    """y_0 ... y_{J-1} -> z (J, H) and alpha (J, I)."""
    masks = masks or {}
    layers = [("first.weight", "first.bias")]
    while f"upper.{len(layers) - 1}.weight" in weights:
        layers.append((f"upper.{len(layers) - 1}.weight", f"upper.{len(layers) - 1}.bias"))
    hidden, cell = [list(part) for part in zip(*ends, strict=True)]
    z = np.zeros_like(hidden[0])
    attentional, alphas = [], []
    for j, word in enumerate(words):
        embedded = weights["embedding.weight"][word]
        embedded = embedded * masks.get(("decoder", 0), np.ones((len(words), len(embedded))))[j]
        value = np.concatenate([embedded, z])
        for layer, (matrix, bias) in enumerate(layers):
            if layer:
                mask = masks.get(("decoder", layer), np.ones((len(words), len(z))))
                value = hidden[layer - 1] * mask[j]
            hidden[layer], cell[layer] = lstm_step(
                weights[matrix], weights[bias], value, hidden[layer], cell[layer]
            )
        z, alpha = attend(below(weights, "attention."), hidden[-1], states)
        attentional.append(z)
        alphas.append(alpha)
    return np.array(attentional), np.array(alphas)


# --- the output layers and their losses -------------------------------------------------------


def distribution(weights, z):
    """softmax(W z_j + b), of the words and of the source types alike."""
    return softmax(weights["weight"] @ z + weights["bias"])


def source_loss(weights, attentional, source, c):
    """`||q~ - x~||^2 / C`."""
    predicted, there = np.zeros(len(weights["bias"])), np.zeros(len(weights["bias"]))
    for z in attentional:
        predicted = predicted + distribution(weights, z)
    for word in source:
        there[word] += 1
    return sum((q - x) ** 2 for q, x in zip(predicted, there, strict=True)) / c


@dataclass
class Seen:
    """One pair as a system sees it."""

    attentional: np.ndarray  # (J, H)
    alphas: np.ndarray  # (J, I)
    log_probabilities: list  # of each target
    target: float
    headline: float
    source: float | None  # None without SPM

    @property
    def total(self):
        return self.target + (self.source or 0.0)


def see(weights, source, headline, c, masks=None):
    """A pair through the whole system; `gate.` and `spm.` among the weights say which one."""
    masks = masks or {}
    has_gate = any(name.startswith("gate.") for name in weights)
    has_spm = any(name.startswith("spm.") for name in weights)
    targets = [*headline, EOS]
    if has_spm:
        targets += [PAD] * (len(source) - len(targets))
    encoded = encode(below(weights, "encoder."), source, masks)
    states = gated(below(weights, "gate."), encoded) if has_gate else encoded.states
    words = [BOS, *targets[:-1]]
    attentional, alphas = decode(below(weights, "decoder."), words, encoded.ends, states, masks)
    dropped = attentional * masks.get("output", np.ones_like(attentional))
    logs = [
        np.log(distribution(below(weights, "output."), z)[word])
        for z, word in zip(dropped, targets, strict=True)
    ]
    return Seen(
        attentional=attentional,
        alphas=alphas,
        log_probabilities=logs,
        target=-sum(logs),
        headline=-sum(logs[: len(headline) + 1]),
        source=source_loss(below(weights, "spm.output."), dropped, source, c) if has_spm else None,
    )
