"""From text to tokens: what becomes a space, unknown words, limits in bytes, odd strings."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledeline.core.errors import ConfigError
from ledeline.rouge import Score, Settings, score
from ledeline.rouge.tokens import make_tokenizers, utf8
from slow_rouge import slow_tokens

KELVIN = "\u212a"  # lower-cases to k in Unicode
DOTTED_I = "\u0130"  # lower-cases to i and a mark
PLAIN = Settings(stem=False)
FULL, NOTHING = Score(1.0, 1.0, 1.0), Score(0.0, 0.0, 0.0)

nasty_texts = st.text(
    st.sampled_from(
        f"abkKZ09 --$#.<>'_\t\n\r\f\0\u0085\u2028\ud800\udc80\udcffé{KELVIN}{DOTTED_I}ſ漢٣😀"
    ),
    max_size=30,
)


def tokens(text: str, **settings: object) -> list[str]:
    """Of a reference."""
    return make_tokenizers(Settings(stem=False, **settings))[1](text)  # type: ignore[arg-type]


def candidate_tokens(text: str, **settings: object) -> list[str]:
    return make_tokenizers(Settings(stem=False, **settings))[0](text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t ", ""),
        ("# . , - -- $ '' <> ...", ""),
        ("u.s. stocks", "u s stocks"),
        ("<unk> UNK", "unk unk"),
        ("well-known --x- -5", "well known x 5"),
        ("$3.4bn #1 ##", "3 4bn 1"),
        ("Japan's can't", "japan s can t"),
        ("snake_case", "snake case"),
        (f"300{KELVIN} {KELVIN}elvin {DOTTED_I}x", "300 elvin x"),
        ("café naïve", "caf na ve"),
        ("漢字 ٣ ²", ""),
        ("one\u2028two\u0085three\ffour\rfive\nsix", "one two three four five six"),
        ("a\0b\ud800c\udc80d\udfffe", "a b c d e"),
        ("ABCXYZ[@`{", "abcxyz"),
    ],
)
def test_tokens(text: str, expected: str) -> None:
    assert tokens(text) == candidate_tokens(text) == expected.split()


@given(nasty_texts)
@example(KELVIN)
def test_tokens_as_specified(text: str) -> None:
    assert tokens(text) == slow_tokens(text)
    assert tokens(text, limit_bytes=1000) == slow_tokens(text)


def test_tokens_of_every_byte() -> None:
    for number in range(0x180):
        text = f"x{chr(number)}Y"
        assert tokens(text) == slow_tokens(text)


# -- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc def", 7, "abc def"),
        ("abc def", 6, "abc de"),
        ("abc def", 4, "abc"),
        ("abc def", 1, "a"),
        ("  abc", 3, "a"),  # spaces count
        ("\nabc", 2, "a"),
        ("é ab", 4, "a"),  # two bytes, and a cut may go through them
        ("é ab", 1, ""),
        ("漢ab", 4, "a"),
        ("😀ab", 5, "a"),
        ("\udc80ab", 2, "a"),  # a byte that was no UTF-8
        ("\ud800ab", 4, "a"),  # as long as UTF-8 would make it
        ("\udc00\udd00ab", 7, "a"),
        ("\ud800\udc80ab", 5, "a"),
        ("<unk> abc", 7, "unk a"),
    ],
)
def test_limit_bytes(text: str, limit: int, expected: str) -> None:
    assert tokens(text, limit_bytes=limit) == expected.split()
    assert candidate_tokens(text, limit_bytes=limit) == expected.split()


def test_the_limit_cuts_both_texts() -> None:
    limited = Settings(stem=False, limit_bytes=75)
    beginning = "word " * 15
    assert len(beginning) == 75
    assert score(beginning + "more", beginning + "other words", limited).rouge1 == FULL
    assert score(beginning + "more", beginning + "other words", PLAIN).rouge1 != FULL


@pytest.mark.parametrize("limit", [0, -1, 2.5, True])
def test_limits_that_cannot_be(limit: object) -> None:
    with pytest.raises(ConfigError, match="limit_bytes"):
        Settings(limit_bytes=limit)  # type: ignore[arg-type]


@given(st.text(), st.binary())
def test_utf8(text: str, raw: bytes) -> None:
    assert utf8(text) == text.encode("utf-8")
    assert utf8(raw.decode("utf-8", "surrogateescape")) == raw


@given(
    st.text(st.characters(codec=None)),
    st.text(st.characters(codec=None)),
    st.integers(1, 20) | st.none(),
    st.sampled_from(["keep", "drop", "strict"]),
)
@example("\ud800\udfff \udc80 <unk>", "\udc00", 3, "strict")
def test_nothing_breaks_it(one: str, other: str, limit: int | None, unknown: str) -> None:
    settings = Settings(stem=False, weighted=True, limit_bytes=limit, unknown=unknown)  # type: ignore[arg-type]
    found = score(one, [other, one], settings)
    for measure in (found.rouge1, found.rouge2, found.rouge_l, found.rouge_w):
        assert measure is not None
        assert min(measure.precision, measure.recall, measure.f1) >= 0.0
        assert max(measure.precision, measure.recall, measure.f1) <= 1.0


# -- unknown words --------------------------------------------------------------------------------

MARKS = ["<unk>", "<UNK>", "UNK"]
NO_MARKS = ["unk", "<Unk>", "unk>", "UNK,", "<unk>s", "x<unk>", "UNKNOWN", "<unk><unk>"]


def with_policy(candidate: str, reference: str, unknown: str) -> Score:
    return score(candidate, reference, Settings(stem=False, unknown=unknown)).rouge1  # type: ignore[arg-type]


@pytest.mark.parametrize("mark", MARKS)
def test_keep(mark: str) -> None:
    assert with_policy(f"a {mark} b", "a <unk> b", "keep") == FULL
    assert with_policy(f"a {mark}", "a unk", "keep") == FULL


@pytest.mark.parametrize("mark", MARKS)
def test_drop(mark: str) -> None:
    assert with_policy(f"{mark} a {mark} b {mark}", "a b", "drop") == FULL
    assert with_policy("a b", f"a\t{mark}\u2028b", "drop") == FULL
    assert with_policy(f"{mark}", f"{mark}", "drop") == NOTHING
    dropped = candidate_tokens(f"a {mark} {mark} b", unknown="drop")
    assert dropped == tokens(f"a {mark} {mark} b", unknown="drop") == ["a", "b"]


def test_drop_comes_before_the_limit() -> None:
    settings = Settings(stem=False, unknown="drop", limit_bytes=3)
    for text in ("<unk> a b", "a UNK b", "a b <UNK>", "<unk> <unk> a <unk> b"):
        assert score(text, "a b", settings).rouge1 == score("a b", text, settings).rouge1 == FULL


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("theirs", [*MARKS, "unk", "?", "???"])
def test_strict(mark: str, theirs: str) -> None:
    assert with_policy(mark, theirs, "strict") == NOTHING
    found = with_policy(f"a {mark} {mark}", f"a {theirs} b", "strict")
    assert found.precision == 0.33333  # the marks count
    assert len(tokens(f"a {mark} b", unknown="strict")) == 3  # and those of a reference, too
    assert tokens(mark, unknown="strict") == ["unk"]


def test_strict_leaves_the_rest() -> None:
    assert with_policy("a unk\0b", "a <unk> b", "strict") == FULL
    assert with_policy("a\0<unk>", "a unk", "strict") == FULL  # no word between white space
    assert score("a UNK b", "a b", Settings(stem=False, unknown="strict")).rouge2 == NOTHING
    assert score("a UNK b", "a b", Settings(stem=False, unknown="strict")).rouge_l.recall == 1.0


def test_strict_with_a_limit() -> None:
    """A mark that is cut is as long as before, and still matches nothing."""
    limited = Settings(stem=False, unknown="strict", limit_bytes=5)
    assert score("a <unk> b", "a un", limited).rouge1 == Score(0.5, 0.5, 0.5)
    assert candidate_tokens("a <unk> b", unknown="strict", limit_bytes=3) == ["a"]
    assert len(candidate_tokens("a <unk> b", unknown="strict", limit_bytes=9)) == 3


@pytest.mark.parametrize("word", NO_MARKS)
@pytest.mark.parametrize("unknown", ["drop", "strict"])
def test_no_marks(word: str, unknown: str) -> None:
    kept = tokens(f"a {word} b")
    assert tokens(f"a {word} b", unknown=unknown) == kept
    assert candidate_tokens(f"a {word} b", unknown=unknown) == kept


def test_policies_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="keep, drop, strict"):
        Settings(unknown="guess")  # type: ignore[arg-type]
