"""ROUGE next to the Perl script: every number of every pair is the same, to five decimals."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import nasty_pairs
from ledeline.rouge import Rouge, Settings, score_all
from ledeline.rouge.stem import irregular_forms, stem
from perl_rouge import MEASURES, Pair, PerlRouge, Scores, lacking

LACKING = lacking()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(LACKING is not None, reason=f"no comparison with ROUGE-1.5.5: {LACKING}"),
]

NUM_PAIRS = 6_000


@pytest.fixture(scope="module")
def perl() -> Iterator[PerlRouge]:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own would keep thousands of files
        yield PerlRouge(Path(folder))


def ours(pairs: list[Pair], settings: Settings) -> list[Scores]:
    candidates, references = zip(*pairs, strict=True)
    return [as_numbers(rouge) for rouge in score_all(candidates, references, settings)]


def as_numbers(rouge: Rouge) -> Scores:
    measures = {"rouge1": rouge.rouge1, "rouge2": rouge.rouge2, "rouge_l": rouge.rouge_l}
    if rouge.rouge_w is not None:
        measures["rouge_w"] = rouge.rouge_w
    return {name: (one.precision, one.recall, one.f1) for name, one in measures.items()}


def assert_same(pairs: list[Pair], theirs: list[Scores], settings: Settings) -> None:
    found = zip(pairs, ours(pairs, settings), theirs, strict=True)
    different = [(pair, our, their) for pair, our, their in found if our != their]
    assert not different, f"{len(different)} of {len(pairs)} differ, as {different[0]}"


def test_the_database_is_whole(perl: PerlRouge) -> None:
    assert perl.ask_database() == f"{len(irregular_forms())} well"


def test_stems(perl: PerlRouge) -> None:
    words = nasty_pairs.words(60_000, 1, irregular_forms())
    theirs = perl.stems(words)
    found = zip(words, map(stem, words), theirs, strict=True)
    different = [each for each in found if each[1] != each[2]]
    assert not different


def test_one_reference(perl: PerlRouge) -> None:
    pairs = nasty_pairs.pairs(NUM_PAIRS, 2, irregular_forms())
    pairs += nasty_pairs.headlines(NUM_PAIRS // 5, 3)
    settings = Settings(weighted=True)
    assert_same(pairs, perl.scores(pairs, "-m", "-w", "1.2"), settings)


def test_long_lines(perl: PerlRouge) -> None:
    rng = nasty_pairs.RandomWords(4, irregular_forms())
    pairs = [nasty_pairs.long(rng) for _ in range(10)]
    pairs += [nasty_pairs.long(rng, 150) for _ in range(20)]
    thousand = " ".join(rng.word() for _ in range(1000))
    pairs += [Pair(thousand, (thousand,)), Pair(thousand, (" ".join(thousand.split()[::-1]),))]
    assert_same(pairs, perl.scores(pairs, "-m", "-w", "1.2"), Settings(weighted=True))


def test_several_references(perl: PerlRouge) -> None:
    pairs = nasty_pairs.several(1500, 5, irregular_forms())
    assert {len(pair.references) for pair in pairs} == {2, 3, 4}
    assert_same(pairs, perl.scores(pairs, "-m", "-w", "1.2"), Settings(weighted=True))


@pytest.mark.parametrize("limit", [75, 20, 1])
def test_bytes(perl: PerlRouge, limit: int) -> None:
    """Without ROUGE-W, for the script dies where the first bytes of a reference have no word."""
    pairs = nasty_pairs.pairs(700, 6, irregular_forms()) + nasty_pairs.several(
        300, 7, irregular_forms()
    )
    theirs = perl.scores(pairs, "-m", "-b", str(limit))
    assert_same(pairs, theirs, Settings(limit_bytes=limit))


def test_bytes_of_weighted(perl: PerlRouge) -> None:
    pairs = nasty_pairs.headlines(500, 8)
    assert_same(
        pairs,
        perl.scores(pairs, "-m", "-w", "1.2", "-b", "75"),
        Settings(weighted=True, limit_bytes=75),
    )


def test_without_stemming(perl: PerlRouge) -> None:
    pairs = nasty_pairs.pairs(1000, 9, irregular_forms())
    theirs = perl.scores(pairs, "-w", "1.2")
    assert_same(pairs, theirs, Settings(stem=False, weighted=True))


def test_references_without_words(perl: PerlRouge) -> None:
    rng = nasty_pairs.RandomWords(10, irregular_forms())
    empty = [nasty_pairs.without_words(rng) for _ in range(200)]
    pairs = [Pair(pair.references[0], (pair.candidate,)) for pair in empty]  # turned round
    pairs += [Pair(pair.candidate, (pair.candidate,)) for pair in empty]
    pairs += [Pair(pair.references[0], (pair.candidate, *pair.references)) for pair in empty]
    assert_same(pairs, perl.scores(pairs, "-m"), Settings())


def test_references_without_words_and_weighted(perl: PerlRouge) -> None:
    """Here the script has no number, and we say 0."""
    pairs = [Pair("some words", ("# -- ...",)), Pair("some words", ("",))]
    for pair in pairs:
        with pytest.raises(RuntimeError, match="division by zero"):
            perl.scores([pair], "-m", "-w", "1.2")
    assert ours(pairs, Settings(weighted=True)) == [dict.fromkeys(MEASURES.values(), (0, 0, 0))] * 2
