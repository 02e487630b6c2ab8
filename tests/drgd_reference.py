"""DRGD once more, slowly: one pair at a time, loops over steps and units, float64.

Written from the equations of Li et al. 2017 and of the code that they released, in NumPy. A pair
has no batch here, so nothing is padded. Without `noise` the latent variable is its mean.
"""

from dataclasses import dataclass

import numpy as np

from model_reference import BOS, EOS, below, sigmoid, softmax


def gru_step(weights, suffix, value, hidden):
    """One step, unit by unit; rows of the matrices: all reset gates, update gates, candidates."""
    size, new = len(hidden), np.zeros(len(hidden))
    for unit in range(size):
        inputs, recurrent = (
            [
                weights[f"weight_{kind}{suffix}"][gate * size + unit] @ seen
                + weights[f"bias_{kind}{suffix}"][gate * size + unit]
                for gate in range(3)
            ]
            for kind, seen in (("ih", value), ("hh", hidden))
        )
        reset, update = (sigmoid(inputs[gate] + recurrent[gate]) for gate in range(2))
        candidate = np.tanh(inputs[2] + reset * recurrent[2])
        new[unit] = (1 - update) * candidate + update * hidden[unit]
    return new


def direction(weights, suffix, values):
    hidden, states = np.zeros(weights["weight_hh_l0"].shape[1]), []
    for value in values:
        hidden = gru_step(weights, suffix, value, hidden)
        states.append(hidden)
    return states


def encode(weights, source):
    """h (I, 2H)."""
    values = [weights["embedding.weight"][word] for word in source]
    layer = below(weights, "layer.")
    forward = direction(layer, "_l0", values)
    backward = direction(layer, "_l0_reverse", values[::-1])[::-1]
    return np.array([np.concatenate(both) for both in zip(forward, backward, strict=True)])


def attend(weights, query, states):
    """h1_j (H,), h (I, 2H) -> c_j (2H,), alpha_j (I,)."""
    scores = []
    for state in states:
        seen = weights["of_query.weight"] @ query + weights["of_state.weight"] @ state
        scores.append(weights["energy.weight"][0] @ np.tanh(seen + weights["of_state.bias"]))
    alpha = softmax(scores)
    return sum(weight * state for weight, state in zip(alpha, states, strict=True)), alpha


def linear(weights, name, value):
    result = weights[f"{name}.weight"] @ value
    return result + weights[f"{name}.bias"] if f"{name}.bias" in weights else result


def posterior(weights, word, latent, hidden):
    """mu_j and log var_j."""
    seen = sigmoid(
        linear(weights, "of_word", word)
        + linear(weights, "of_latent", latent)
        + linear(weights, "of_hidden", hidden)
    )
    return linear(weights, "mean", seen), np.clip(linear(weights, "log_variance", seen), -10, 10)


def fuse(weights, fusion, hidden, latent):
    """None for `latent`: the decoder without a latent part, which Li et al. call StanD."""
    if fusion == "sum":
        added = 0 if latent is None else linear(weights, "of_latent", latent)
        return np.tanh(linear(weights, "of_hidden", hidden) + added)
    if latent is None:
        return hidden
    projected, fused = np.tanh(linear(weights, "of_latent", latent)), np.zeros(len(hidden))
    for unit in range(len(hidden)):
        gate = sigmoid(
            weights["gate_of_hidden.weight"][unit] @ hidden
            + weights["gate_of_latent.weight"][unit] @ projected
            + weights["gate_of_latent.bias"][unit]
        )
        fused[unit] = gate * hidden[unit] + (1 - gate) * projected[unit]
    return fused


@dataclass
class Seen:
    """One pair as DRGD sees it."""

    logs: np.ndarray  # (J, V)
    alphas: np.ndarray  # (J, I)
    states: np.ndarray  # what the output layer reads
    latents: np.ndarray  # (J, Z)
    target: float
    kl: float  # not weighted


def divergence(mean, log_variance):
    """KL to N(0, I), dimension by dimension."""
    return sum(
        0.5 * (mu**2 + np.exp(log) - log - 1) for mu, log in zip(mean, log_variance, strict=True)
    )


def recur(weights, form, word, carried, states):
    """A step of either form -> what is carried, the h of the posterior, h2_j, c_j, alpha_j."""
    first_gru, second_gru = below(weights, "cell.first."), below(weights, "cell.second.")
    attention = below(weights, "cell.attention.")
    if form == "two":
        first = gru_step(first_gru, "", word, carried[0])
        context, alpha = attend(attention, first, states)
        second = gru_step(second_gru, "", np.concatenate([word, context]), carried[1])
        return (first, second), carried[0], second, context, alpha
    first = gru_step(first_gru, "", word, carried[0])
    context, alpha = attend(attention, first, states)
    second = gru_step(second_gru, "", context, first)
    return (second,), first, second, context, alpha


def see(weights, config, source, headline, noise=None, *, has_latent=True):
    """A pair through the whole system; noise (J, Z)."""
    decoder, targets = below(weights, "decoder."), [*headline, EOS]
    states = encode(below(weights, "encoder."), source)
    start = np.tanh(linear(decoder, "initial", sum(states) / len(states)))
    carried, latent, kl, steps = (start, start), np.zeros(config.latent_size), 0.0, []
    for j, last in enumerate([BOS, *headline]):
        word = decoder["embedding.weight"][last]
        carried, asked, hidden, context, alpha = recur(
            decoder, config.decoder, word, carried, states
        )
        mean, log_variance = posterior(below(decoder, "posterior."), word, latent, asked)
        latent = mean if noise is None else mean + np.sqrt(np.exp(log_variance)) * noise[j]
        kl += divergence(mean, log_variance)
        given = latent if has_latent else None
        fused = fuse(below(decoder, "fusion."), config.fusion, hidden, given)
        if config.deep_output:
            fused = np.tanh(
                linear(decoder, "deep_output.of_fused", fused)
                + linear(decoder, "deep_output.of_word", word)
                + linear(decoder, "deep_output.of_context", context)
            )
        logs = np.log(softmax(linear(weights, "output", fused)))
        steps.append((logs, alpha, fused, latent))
    logs, alphas, fused, latents = (np.array(part) for part in zip(*steps, strict=True))
    target = -sum(step[word] for step, word in zip(logs, targets, strict=True))
    return Seen(logs, alphas, fused, latents, target, kl)
