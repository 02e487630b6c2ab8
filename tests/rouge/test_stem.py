"""Stems: Porter's rules in the variant of the Perl script, and WordNet's exceptions."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledeline.rouge import Score, Settings, score
from ledeline.rouge import stem as module
from ledeline.rouge.stem import irregular_forms, porter, stem

words = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
endings = st.sampled_from("s ed ing y ational bli logi ness ement ment ent ion e ll".split())

PORTER = {
    "step 1a": "caresses caress ponies poni caress caress cats cat ties ti 1990s 1990",
    "step 1b": "feed feed agreed agre plastered plaster bled bled motoring motor sing sing",
    "step 1b, then": "conflated conflat troubled troubl sized size hopping hop falling fall "
    "hissing hiss fizzed fizz failing fail filing file snowing snow boxing box x99ing x99ing "
    "ao77ing ao7 yying yy yaying yai",
    "step 1c": "happy happi enjoy enjoi toys toi yyyy yyyi",
    "step 2": "relational relat conditional condit rational ration valenci valenc hesitanci hesit "
    "digitizer digit conformabli conform radicalli radic differentli differ vileli vile "
    "analogousli analog vietnamization vietnam predication predic operator oper feudalism feudal "
    "decisiveness decis hopefulness hope callousness callous formaliti formal sensitiviti sensit "
    "sensibiliti sensibl technologi technolog analogi analog possibli possibl logi logi",
    "step 3": "triplicate triplic formative form formalize formal electriciti electr electrical "
    "electr hopeful hope goodness good",
    "step 4": "revival reviv allowance allow inference infer airliner airlin gyroscopic gyroscop "
    "adjustable adjust defensible defens irritant irrit replacement replac adjustment adjust "
    "dependent depend adoption adopt decision decis homologous homolog communism commun activate "
    "activ angulariti angular effective effect bowdlerize bowdler cement cement comment comment "
    "onion onion opinion opinion",
    "step 4, one after another": "governmental govern departmental depart fundamentally fundam",
    "step 5": "probate probat rate rate cease ceas controll control roll roll fate fate",
    "y": "yellow yellow yells yell yes ye syzygy syzygi saying sai yearly yearli",
}


def rows(table: str) -> Iterator[tuple[str, str]]:
    both = table.split()
    return zip(both[::2], both[1::2], strict=True)


@pytest.mark.parametrize("step", PORTER)
def test_porter(step: str) -> None:
    for word, expected in rows(PORTER[step]):
        assert porter(word) == expected, word


@given(words, endings)
def test_porter_shortens(word: str, ending: str) -> None:
    found = porter(word + ending)
    assert 0 < len(found) <= len(word + ending)
    assert found[0] == (word + ending)[0]


class TestExceptions:
    def test_number(self) -> None:
        assert len(irregular_forms()) == 5930

    @pytest.mark.parametrize(
        ("word", "lemma"),
        [
            ("mice", "mouse"),
            ("went", "go"),
            ("axes", "ax"),  # the first lemma of its line
            ("better", "well"),  # the adverb after the adjective
            ("best", "well"),
            ("further", "far"),
            ("lay", "lay"),  # lay lie is an exception, but too short
            ("ate", "ate"),
            ("men", "men"),
            ("women", "women"),  # WordNet 2.0 does not have it
            ("oxen", "ox"),
            ("offer", "offer"),  # adj.exc says off, and two lines later offer
            ("testes", "testes"),  # the verb after the noun testis
            ("running", "run"),
            ("mouse", "mous"),  # so that it does not match mice
        ],
    )
    def test_stem(self, word: str, lemma: str) -> None:
        assert stem(word) == lemma

    def test_a_later_list_overwrites(self) -> None:
        assert irregular_forms()["better"] == "well"  # adj.exc says good
        assert irregular_forms()["is"] == "be"  # noun.exc says is

    def test_short_words_stay(self) -> None:
        for word in "a as is was his ies ing bed 90s".split():
            assert stem(word) == word

    def test_scores_use_stems(self) -> None:
        full = Score(1.0, 1.0, 1.0)
        assert score("Police killing oxen", "police KILLED ox").rouge_l == full
        assert score("police killing", "police killed", Settings(stem=False)).rouge1.f1 == 0.5
        assert score("mice", "mouse").rouge1.f1 == 0.0

    def test_the_lists_are_those_of_wordnet(self) -> None:
        """Checksums of the lists that ROUGE-1.5.5 carries, beside their licence."""
        folder = Path(module.__file__).parent / "wordnet"
        sums = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.glob("*.exc")
        }
        assert sums == {
            "adj.exc": "8824cc24bbedd797b9702316b27f07cd4c2b76b629539f0a1276f03926758016",
            "adv.exc": "e7291461b629abfe63301bbe1998cee09fd575ed7107abd7ea9763adb05bf0a8",
            "noun.exc": "d265534245c0f0e04d9ab0e637c0441cbb648594528acb5be95400f5b565e654",
            "verb.exc": "144dd8d21fab0b68839d1516ca4dbd1720f0d6ca58d04e7c35a5a6b8f8969991",
        }
        assert (
            "WordNet 2.0 Copyright 2003 by Princeton University" in (folder / "LICENSE").read_text()
        )
