"""What was seen of a headline, put together to words."""

import numpy as np
import pytest

from ledeline.inference.attribution import spm_weights, word_weights


def test_the_spm_weight_of_a_type_is_at_its_most_attended_place():
    q = np.array([[0.0, 0.1, 0.6, 0.3], [0.5, 0.5, 0.0, 0.0]])
    source = [2, 1, 2, 3]
    attention = np.array([[0.1, 0.2, 0.6, 0.1], [0.4, 0.1, 0.4, 0.1]])
    expected = [[0.0, 0.1, 0.6, 0.3], [0.0, 0.5, 0.0, 0.0]]
    assert spm_weights(q[:, source], source, attention).tolist() == expected
    tied = spm_weights(np.array([[1.0, 0.0, 1.0, 0.0]]), source, attention[1:])
    assert tied.tolist() == [[1.0, 0.0, 0.0, 0.0]]  # of equal places the first


def test_sub_words_are_put_together_to_words():
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]])
    found = word_weights(weights, [0, 0, 1], [0, 1, 1])
    assert found == pytest.approx(np.array([[0.2, 0.8], [1.0, 0.0]]))


def test_shares_stay_shares():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(6), 5)
    found = word_weights(weights, [0, 1, 1, 2, 2], [0, 0, 1, 2, 2, 2])
    assert found.shape == (3, 3)
    assert found.sum(1) == pytest.approx(np.ones(3))
