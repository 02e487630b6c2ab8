"""`<unk>` in a headline becomes the source word it stands for."""

import random

import pytest

from ledeline.inference.detokenize import headline_words, replace_unknown_words
from ledeline.inference.source_text import read_source_text
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import UNK, Subwords
from ledeline.text.tokenizer import Tokenizer

TOKENIZER = Tokenizer(NATURAL, Subwords([("a", "b"), ("c", "d</w>")], "abcdex"))


def lede_of(text):
    return read_source_text(text, 1, TOKENIZER, 100)


def weights_to(lede, headline, word):
    """All weight of each sub-word of the headline on one word of the source."""
    return [[float(own == word) for own in lede.word_ids] for _ in headline]


def replaced(text, headline, word=0):
    lede = lede_of(text)
    return replace_unknown_words(headline, TOKENIZER, lede, weights_to(lede, headline, word))


ids = TOKENIZER.encode


def test_words_as_they_were_written():
    found = headline_words([*ids(["abcd"]), UNK, *ids(["x"])], TOKENIZER)
    assert found.words == ("abcd", "<unk>", "x")
    assert found.word_ids == (0, 0, 1, 2)
    assert found.has_unknown


def test_an_unknown_word_is_the_best_aligned_one_that_is_not_known():
    headline = [*ids(["x"]), UNK]
    assert replaced("ö ü abcd", headline, word=1).words == ("x", "ü")
    assert replaced("ö ü abcd", headline, word=0).words == ("x", "ö")
    # The best aligned word is known: the best of the others stands in.
    assert replaced("abcd ö", headline, word=0).words == ("x", "ö")


def test_each_unknown_word_has_its_own():
    lede = lede_of("ö ü x")
    weights = [[0.2, 0.8, 0.0], [0.9, 0.1, 0.0]]
    found = replace_unknown_words([UNK, UNK], TOKENIZER, lede, weights)
    assert found.words == ("ü", "ö")
    assert found.word_ids == (0, 1)


def test_a_word_has_the_weights_of_all_its_sub_words():
    lede = lede_of("aö üb x")
    assert lede.word_ids == (0, 0, 1, 1, 2)
    for weights, word in (([0.3, 0.3, 0.4, 0.0, 0.0], "aö"), ([0.4, 0.0, 0.3, 0.3, 0.0], "üb")):
        assert replace_unknown_words([UNK], TOKENIZER, lede, [weights]).words == (word,)


def test_a_word_copied_piece_by_piece_is_one_word():
    copied = ids(["aböcd"])
    assert copied.count(UNK) == 1
    headline = [*ids(["x"]), *copied, *ids(["e"])]
    assert headline_words(headline, TOKENIZER).words == ("x", "ab<unk>", "cd", "e")
    found = replaced("x aböcd", headline)
    assert found.words == ("x", "aböcd", "e")
    assert found.word_ids == (0, *[1] * len(copied), 2)
    assert not found.has_unknown


def test_a_copy_with_several_unknown_pieces():
    found = replaced("öaü e", ids(["öaü", "x"]))
    assert found.words == ("öaü", "x")


def test_part_of_a_word_makes_the_whole_of_it():
    found = replaced("aböcd", [*ids(["ab"])[:-1], UNK])
    assert found.words[-1] == "aböcd"


def test_without_an_unknown_word_in_the_source_it_stays():
    found = replaced("abcd x", [UNK, *ids(["x"])])
    assert found.words == ("<unk>", "x")
    assert found.has_unknown


@pytest.mark.parametrize("text", ["öaü ab ö cdü", "ö ö ö a"])
def test_every_sub_word_has_an_owner(text):
    lede = lede_of(text)
    rng = random.Random(0)
    alphabet = sorted(set(lede.ids))
    for _ in range(200):
        headline = rng.choices(alphabet, k=rng.randint(1, 7))
        weights = [[rng.random() for _ in lede.ids] for _ in headline]
        found = replace_unknown_words(headline, TOKENIZER, lede, weights)
        assert len(found.word_ids) == len(headline)
        assert sorted(set(found.word_ids)) == list(range(len(found.words)))
        assert list(found.word_ids) == sorted(found.word_ids)
        assert not found.has_unknown
