"""EncDec with add-ons, slowly: what each add-on sees of one pair, in NumPy loops and float64."""

from dataclasses import dataclass

import numpy as np

from model_reference import BOS, EOS, PAD, below, decode, distribution, encode, gated

PAIRS = [([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4], [9, 9, 4]), ([10, 4, 7, 7], [6, 7, 6, 10, 6])]


@dataclass
class Steps:
    targets: list  # headline, <eos>, with SPM also <pad>
    words: list  # y_{j-1}
    states: np.ndarray  # h, as the encoder made them: (I, H)
    sentence: np.ndarray  # s: (H,)
    values: np.ndarray  # what attention mixes: (I, H)
    z: np.ndarray  # (J, H)
    alphas: np.ndarray  # (J, I)
    base: list  # o_j, as the output layer says: J times (V,)


def steps_of(weights, source, headline):
    """A pair through EncDec; `gate.` and `spm.` among the weights say what it has more."""
    targets = [*headline, EOS]
    if any(name.startswith("spm.") for name in weights):
        targets += [PAD] * (len(source) - len(targets))
    words = [BOS, *targets[:-1]]
    encoded = encode(below(weights, "encoder."), source)
    has_gate = any(name.startswith("gate.") for name in weights)
    values = gated(below(weights, "gate."), encoded) if has_gate else encoded.states
    z, alphas = decode(below(weights, "decoder."), words, encoded.ends, values)
    base = [distribution(below(weights, "output."), one) for one in z]
    return Steps(targets, words, encoded.states, encoded.ends[-1][0], values, z, alphas, base)
