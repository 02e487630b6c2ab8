"""What was seen of a headline, put together to words."""

import numpy as np
import pytest

from ledeline.inference.attribution import attribution_weights, spm_weights, word_weights


def test_the_spm_weight_of_a_type_is_at_its_most_attended_place():
    source = [2, 1, 2, 3]
    q = [[0.6, 0.1, 0.6, 0.3], [0.0, 0.5, 0.0, 0.0]]  # of the type at each place
    attention = [[0.1, 0.2, 0.6, 0.1], [0.4, 0.1, 0.4, 0.1]]
    expected = [[0.0, 0.1, 0.6, 0.3], [0.0, 0.5, 0.0, 0.0]]
    assert spm_weights(q, source, attention) == expected
    tied = spm_weights([[1.0, 0.0, 1.0, 0.0]], source, attention[1:])
    assert tied == [[1.0, 0.0, 0.0, 0.0]]  # of equal places the first
    assert q[0] == [0.6, 0.1, 0.6, 0.3]  # as it was


def test_the_weights_of_a_system_with_spm_are_its_predictions():
    attention, q = [[0.7, 0.3]], [[0.2, 0.8]]
    assert attribution_weights(attention, q, [5, 6]).best == q
    assert attribution_weights(attention, q, [5, 6]).attention == attention
    assert attribution_weights(attention, None, [5, 6]) == (attention, None)
    assert attribution_weights(attention, None, [5, 6]).best == attention


def test_sub_words_are_put_together_to_words():
    weights = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]]
    found = word_weights(weights, [0, 0, 1], [0, 1, 1])
    assert found[0] == pytest.approx([0.2, 0.8])
    assert found[1] == pytest.approx([1.0, 0.0])


def test_shares_stay_shares():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(6), 5)
    found = word_weights(weights.tolist(), [0, 1, 1, 2, 2], [0, 0, 1, 2, 2, 2])
    assert [len(row) for row in found] == [3, 3, 3]
    assert [sum(row) for row in found] == pytest.approx([1.0] * 3)
