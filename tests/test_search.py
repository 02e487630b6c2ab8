from types import SimpleNamespace

import numpy as np
import torch

from ledeline.config import ModelConfig, SystemConfig
from ledeline.model.seq2seq import Seq2Seq
from ledeline.search import greedy
from ledeline.subword import BOS, EOS, PAD

V = 9


class Scripted:
    """A model whose scores are given: at step n, row b, by `scores[b][n]`."""

    def __init__(self, scores: list[list[dict[int, float]]]) -> None:
        self.output = SimpleNamespace(weight=torch.zeros(1))
        self._scores = scores

    def encode(self, sources, lengths=None, mask=None):
        return 0, None

    def step(self, words, state, memory):
        table = torch.full((len(self._scores), 1, V), -100.0)
        for row, steps in enumerate(self._scores):
            for word, score in steps[min(state, len(steps) - 1)].items():
                table[row, 0, word] = score
        return table, state + 1


def written(scores, lengths):
    sources = np.full((len(lengths), max(lengths)), 5)
    return greedy(Scripted(scores), sources, np.array(lengths))


def test_the_likeliest_word_is_taken_until_the_end() -> None:
    one = [{5: -1, 6: -2}, {7: -1}, {EOS: -1, 8: -3}]
    other = [{8: -1}, {EOS: -1}, {5: 0}, {5: 0}]
    assert written([one, other], [4, 4]) == [[5, 7], [8]]


def test_pad_and_bos_are_impossible() -> None:
    assert written([[{PAD: 0, BOS: 0, 6: -9}, {PAD: 0, EOS: -9}]], [3]) == [[6]]


def test_no_headline_is_empty() -> None:
    assert written([[{EOS: 0, 6: -9}, {EOS: 0}]], [3]) == [[6]]


def test_a_headline_without_end_is_cut_at_two_steps_a_source_token() -> None:
    assert written([[{6: 0}], [{7: 0}]], [2, 3]) == [[6] * 4, [7] * 6]


def test_a_batch_of_mixed_lengths_is_its_sources_one_by_one() -> None:
    torch.manual_seed(3)
    model = Seq2Seq(SystemConfig(model=ModelConfig(embedding_size=5, hidden_size=6)), 30).double()
    for parameter in model.parameters():
        parameter.data.mul_(9)  # far from uniform, so that headlines differ
    model.eval()
    rows = [torch.randint(4, 30, (length,)).tolist() for length in (3, 8, 5, 8, 1)]
    lengths = np.array([len(row) for row in rows])
    sources = np.array([row + [PAD] * (8 - len(row)) for row in rows])
    together = greedy(model, sources, lengths)
    alone = [greedy(model, np.array([row]), np.array([len(row)]))[0] for row in rows]
    assert together == alone
    assert len({tuple(one) for one in together}) > 1
