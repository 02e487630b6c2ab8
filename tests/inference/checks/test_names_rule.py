"""Which words are names by themselves."""

import pytest

from ledeline.inference.checks import names_rule
from ledeline.inference.checks.common_words import is_both
from ledeline.inference.checks.names_rule import reads_as_name
from ledeline.inference.checks.pair_words import Lede, PairWords
from ledeline.inference.checks.place_names import is_place

WORDS = """
    London Paris American Trump Biden Merkel Smith Brown Mark House Apple Monday March May President
    Three Million The He Rain Shares Live Tokyo York Éire Łódź Straße NATO Us London's rain x X
    Zelenskyy Mice Oxen Harry Hope Texas Georgia Turkey Jordan Chad Police Senator Dr News
""".split()


@pytest.mark.parametrize("word", [word for word in WORDS if word.isalpha()])
def test_a_word_reads_as_name_as_in_a_sentence_without_a_lede(word: str) -> None:
    pair = PairWords(Lede(""), f"He saw {word} again")
    found = pair.words[2]
    doubted = names_rule._is_unknown_name(found, pair)
    assert reads_as_name(word) == (doubted and (is_place(found.low) or not is_both(found.stem)))


def test_names_and_words_are_told_apart() -> None:
    assert all(map(reads_as_name, ["London", "Merkel", "Tokyo"]))
    assert not any(map(reads_as_name, ["Rain", "Monday", "Three", "london", "The"]))
