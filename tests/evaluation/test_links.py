"""Alignments: links as text, from sub-words to words, from models, and their score."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledeline.core.errors import CorpusError
from ledeline.evaluation.links import (
    AlignmentScore,
    Links,
    alignment_score,
    attention_links,
    diagonal_links,
    format_pharaoh,
    identity_links,
    num_words,
    pad_places,
    parse_pharaoh,
    read_gold_links,
    score_methods,
    spm_links,
    to_words,
    whitespace_word_ids,
)
from ledeline.synth.newsroom import Story, generate
from ledeline.text.profiles import NATURAL, PAPER, Profile, clean
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer

link_sets = st.frozensets(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12)


def links(*pairs: tuple[int, int]) -> Links:
    return frozenset(pairs)


# -- links as text --------------------------------------------------------------------------------


def test_parse() -> None:
    assert parse_pharaoh("0-1 2-3") == links((0, 1), (2, 3))
    assert parse_pharaoh(" 10-2\t0-0 \n") == links((10, 2), (0, 0))
    assert parse_pharaoh("1-1 1-1") == links((1, 1))
    assert parse_pharaoh("") == links()


def test_pharaoh_sorts_numbers_not_texts() -> None:
    assert format_pharaoh(links((10, 0), (2, 11), (2, 3), (0, 9))) == "0-9 2-3 2-11 10-0"
    assert format_pharaoh(links()) == ""


@given(link_sets)
def test_text_of_links(given_links: Links) -> None:
    assert parse_pharaoh(format_pharaoh(given_links)) == given_links


def test_text_of_newsroom_links() -> None:
    for story in generate(50, 1):
        assert format_pharaoh(parse_pharaoh(story.alignment)) == story.alignment


@pytest.mark.parametrize(
    "item",
    ["1", "1-", "-1", "1-2-3", "1--2", "a-b", "1:2", "1-2,", "+1-2", "١-٢", "1-" + "9" * 5000],
)
def test_malformed_links(item: str) -> None:
    with pytest.raises(CorpusError) as caught:
        parse_pharaoh(f"0-0 {item} 1-1")
    assert repr(item) in str(caught.value)


GOLD_PAIRS = [("Oil prices  rise.", "Oil up"), ("a\u200b \u200b b", ""), ("x", "y z")]


def test_gold_of_pairs() -> None:
    lines = ["0-0 2-1\n", "", " 0-1 "]
    expected = [links((0, 0), (2, 1)), links(), links((0, 1))]
    assert read_gold_links(lines, "gold.txt") == expected
    assert read_gold_links(iter(lines), "gold.txt", iter(GOLD_PAIRS)) == expected
    assert read_gold_links([], "gold.txt", []) == []


def test_gold_of_the_newsroom() -> None:
    stories = list(generate(50, 1))
    pairs = [(story.lede, story.headline) for story in stories]
    found = read_gold_links((story.alignment for story in stories), "newsroom", pairs)
    assert list(map(format_pharaoh, found)) == [story.alignment for story in stories]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", "0-0", "0-0 0:1"], "gold.txt, line 3: '0:1' is not a link"),
        (["3-0", "", ""], "gold.txt, line 1: the link 3-0 .* 3 words in the lede and 2 in the"),
        (["0-0 2-2", "", ""], "gold.txt, line 1: the link 2-2 "),
        (["0-0", "1-0", ""], "gold.txt, line 2: the link 1-0 .* 2 words in the lede and 0 in the"),
        (["0-0", ""], "gold.txt has 2 lines of links for 3 pairs"),
        (["0-0", "", "", ""], "gold.txt has 4 lines of links for 3 pairs"),
    ],
)
def test_wrong_gold_is_refused_by_line(lines: list[str], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read_gold_links(lines, "gold.txt", GOLD_PAIRS)


# -- sub-words -> words ---------------------------------------------------------------------------


def learn(texts: list[str], profile: Profile, num_merges: int = 300) -> Tokenizer:
    counts = Counter(word for text in texts for word in profile.words(text))
    subwords = Subwords.learn(counts, num_merges, unknown_words=profile.unknown_words)
    return Tokenizer(profile, subwords)


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return list(generate(300, 5))


def pieces_by_owner(
    text: str, tokenizer: Tokenizer, *, headline: bool = False
) -> dict[int, list[str]]:
    """The words of each chunk, told by the owners of the sub-words of the whole text."""
    words = tokenizer.headline_words(text) if headline else tokenizer.words(text)
    ids = tokenizer.encode(words)
    numbers = whitespace_word_ids(text, tokenizer, headline=headline)
    assert len(numbers) == len(ids)
    assert numbers == sorted(numbers)
    by_owner = groupby(zip(numbers, ids, strict=True), key=lambda pair: pair[0])
    return {number: tokenizer.decode_words(i for _, i in group) for number, group in by_owner}


def paper_text(chunk: str) -> str:
    return "".join("#" if character.isdigit() else character for character in chunk.lower())


def test_owners_in_the_natural_profile(stories: list[Story]) -> None:
    texts = [text for story in stories for text in (story.lede, story.headline)]
    tokenizer = learn(texts, NATURAL)
    for text in texts:
        for headline in (False, True):
            pieces = pieces_by_owner(text, tokenizer, headline=headline)
            assert [NATURAL.join(pieces[number]) for number in sorted(pieces)] == text.split()


def test_owners_in_the_paper_profile(stories: list[Story]) -> None:
    texts = [text for story in stories for text in (story.lede, story.headline)]
    tokenizer = learn(texts, PAPER)
    for text in texts:
        pieces = pieces_by_owner(text, tokenizer)
        chunks = [paper_text(chunk) for chunk in text.split()]
        assert ["".join(pieces[number]) for number in range(len(chunks))] == chunks


def test_owners_of_paper_headlines(stories: list[Story]) -> None:
    tokenizer = learn([story.lede for story in stories], PAPER)
    for story in stories:  # ledes have the punctuation that headlines lose
        pieces = pieces_by_owner(story.lede, tokenizer, headline=True)
        chunks = [paper_text(chunk).rstrip(",.") for chunk in story.lede.split()]
        found = ["".join(pieces.get(number, [])) for number in range(len(chunks))]
        assert [word.removesuffix("'") for word in found] == [w.removesuffix("'") for w in chunks]


BY_HAND = [
    # Text, then its paper tokens, each with the number of its chunk.
    ("Oil, gas rise.", "oil/0 ,/0 gas/1 rise/2 ./2"),
    ("The U.S. and U.S.", "the/0 u.s./1 and/2 u.s./3 ./3"),  # only the last ends the sentence
    ("The No. 2 said No.", "the/0 no./1 #/2 said/3 no/4 ./4"),
    ("Inc. (Corp.) fell", "inc./0 -lrb-/1 corp./1 -rrb-/1 fell/2"),
    ("oil rose # percent in the u.s.", "oil/0 rose/1 #/2 percent/3 in/4 the/5 u.s./6"),  # tokenised
    ("acme corp rose . it 's up .", "acme/0 corp/1 rose/2 ./3 it/4 's/5 up/6 ./7"),
    ("weird. periods inside , kept", "weird./0 periods/1 inside/2 ,/3 kept/4"),
    ("weird. periods inside , split.", "weird/0 ./0 periods/1 inside/2 ,/3 split/4 ./4"),
    ("UNK Can't", "UNK/0 ca/1 n't/1"),
    ("  Oil\u2028\u200bgas ", "oil/0 gas/1"),
    ("U.S.", "u.s./0 ./0"),
    ("", ""),
    ("\u200b \n", ""),
]


@pytest.mark.parametrize(("text", "expected"), BY_HAND)
def test_owners_by_hand(text: str, expected: str) -> None:
    tokenizer = learn([text, "x"], PAPER)
    pieces = pieces_by_owner(text, tokenizer).items()
    found = " ".join(f"{word}/{number}" for number, words in pieces for word in words)
    assert found.replace("<unk>", "UNK") == expected


def test_owners_of_a_paper_headline_by_hand() -> None:
    text = "- Oil, -- gas 'up' , again !"
    tokenizer = Tokenizer(
        PAPER, Subwords([], "abcdefghijklmnopqrstuvwxyz")
    )  # a sub-word for each letter
    expected = [1, 1, 1, 3, 3, 3, 4, 4, 6, 6, 6, 6, 6]
    assert whitespace_word_ids(text, tokenizer, headline=True) == expected
    assert whitespace_word_ids(", .", tokenizer, headline=True) == []
    assert whitespace_word_ids(", .", tokenizer) == [0, 1]


awkward = st.lists(
    st.sampled_from(
        "oil Oil U.S. u.s. No. no. inc. Inc.) ('x' \"Hi,\" can't 1,000.5 $5m a.m. UNK unk ... … - -- "
        "— a—b a–b a…b — — e\u0301 \u0301 İ K ﬁ ﾭ \u200b \ud800 ￭ ￭a’s 'n' ol' O'Neill's. ``a'' [x]. `. '' ''. "
        "weird. q Q Q.".split()
    )
    | st.text(max_size=4),
    max_size=6,
)


@pytest.mark.parametrize("profile", [PAPER, NATURAL], ids=["paper", "natural"])
@given(awkward, st.sampled_from([" ", "  ", "\u2028"]))
@example(["U.S."], " ")
def test_owners_of_any_text(profile: Profile, chunks: list[str], space: str) -> None:
    text = space.join(chunks)
    tokenizer = Tokenizer(profile, Subwords([], ""))  # a sub-word <unk> for each character
    numbers = whitespace_word_ids(text, tokenizer)
    words, num_chunks = profile.words(text), len(clean(text).split())
    assert len(numbers) == len(tokenizer.encode(words))
    assert list(dict.fromkeys(numbers)) == list(range(num_chunks))  # none is without a sub-word
    kept = whitespace_word_ids(text, tokenizer, headline=True)
    assert len(kept) == len(tokenizer.encode(profile.target_words(words)))
    assert not Counter(kept) - Counter(numbers)


@pytest.mark.parametrize("profile", [PAPER, NATURAL], ids=["paper", "natural"])
@given(awkward)
def test_chunks_inside_raw_text_keep_their_words(profile: Profile, chunks: list[str]) -> None:
    tokenizer = Tokenizer(profile, Subwords([], ""))
    text = clean(" ".join(["The", *chunks, "End"]))
    expected = [
        number
        for number, chunk in enumerate(text.split())
        for word in profile.words(f"Before {chunk} After")[1:-1]
        for _ in tokenizer.encode_word(word)
    ]
    assert whitespace_word_ids(text, tokenizer) == expected


def test_words_are_counted_as_they_are_owned() -> None:
    assert [num_words(lede) for lede, _ in GOLD_PAIRS] == [3, 2, 1]
    assert num_words("") == num_words("\u200b \n") == 0


def test_to_words() -> None:
    source_owners, headline_owners = [0, 0, 1, 2, 2], [0, 1, 1]
    found = to_words(links((0, 0), (1, 0), (2, 1), (4, 2)), source_owners, headline_owners)
    assert found == links((0, 0), (1, 1), (2, 1))
    assert to_words(links(), source_owners, headline_owners) == links()
    with pytest.raises(IndexError):
        to_words(links((0, 3)), source_owners, headline_owners)


def test_gold_links_survive_sub_words(stories: list[Story]) -> None:
    """Each sub-word linked as its words are, then back to words: the gold links again."""
    texts = [text for story in stories for text in (story.lede, story.headline)]
    tokenizer = learn(texts, NATURAL)
    for story in stories:
        gold = parse_pharaoh(story.alignment)
        source, headline = (whitespace_word_ids(text, tokenizer) for text in story[:2])
        fine = {
            (i, j) for i, a in enumerate(source) for j, b in enumerate(headline) if (a, b) in gold
        }
        assert len(fine) > len(gold)
        assert to_words(fine, source, headline) == gold


# -- links from models ----------------------------------------------------------------------------

# Source: types 5 7 5 6; a headline of three sub-words, a vocabulary of eight types.
SOURCE = [5, 7, 5, 6]
Q = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.1, 0.6, 0.1, 0.2],  # type 5, which is there twice
        [0.0, 0.5, 0.0, 0.0, 0.0, 0.1, 0.1, 0.3],  # type 1, which is not there; then type 7
        [0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.7, 0.1],  # type 6
    ]
)
ATTENTION = np.array([[0.2, 0.5, 0.3, 0.0], [0.1, 0.0, 0.2, 0.7], [0.4, 0.3, 0.2, 0.1]])


def test_spm_links_by_hand() -> None:
    found = spm_links(Q, SOURCE, rule="vocabulary", attention=ATTENTION)
    assert found == links((2, 0), (3, 2))
    found = spm_links(Q, SOURCE, rule="sentence", attention=ATTENTION)
    assert found == links((2, 0), (1, 1), (3, 2))


def test_links_are_of_plain_integers() -> None:
    for found in (
        spm_links(Q, SOURCE, rule="sentence", attention=ATTENTION),
        attention_links(ATTENTION, 3),
    ):
        assert all(type(place) is int for link in found for place in link)


def test_attention_of_nothing_still_links_the_right_type() -> None:
    attention = np.zeros((3, 4))
    found = spm_links(Q, SOURCE, rule="sentence", attention=attention)
    assert found == links((0, 0), (1, 1), (3, 2))


def slow_spm_links(
    q: list[list[float]], source: list[int], rule: str, attention: list[list[float]]
) -> set[tuple[int, int]]:
    found = set()
    for j, row in enumerate(q):
        allowed = range(len(row)) if rule == "vocabulary" else source
        best = max(allowed, key=lambda number: row[number])
        places = [i for i, number in enumerate(source) if number == best]
        if places:
            found.add((max(places, key=lambda i: attention[j][i]), j))
    return found


@pytest.mark.parametrize("rule", ["vocabulary", "sentence"])
@given(st.data())
def test_spm_links(rule: str, data: st.DataObject) -> None:
    num_types = 6
    source = data.draw(st.lists(st.integers(0, num_types - 1), min_size=1, max_size=6))
    num_headline = data.draw(st.integers(0, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    q = rng.random((num_headline, num_types), np.float32)
    attention = rng.random((num_headline, len(source)), np.float32)
    found = spm_links(q, source, rule=rule, attention=attention)  # type: ignore[arg-type]
    assert found == slow_spm_links(q.tolist(), source, rule, attention.tolist())


@pytest.mark.parametrize("rule", ["vocabulary", "sentence"])
def test_spm_links_of_nothing(rule: str) -> None:
    def link(q_shape: tuple[int, int], source: list[int]) -> Links:
        attention = np.zeros((q_shape[0], len(source)))
        return spm_links(np.ones(q_shape), source, rule=rule, attention=attention)  # type: ignore[arg-type]

    assert link((0, 8), SOURCE) == links()
    assert link((3, 8), []) == links()
    assert link((0, 8), []) == links()


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (3, 3), (2, 4)])
def test_attention_of_another_pair_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="attention is"):
        spm_links(Q, SOURCE, rule="vocabulary", attention=np.zeros(shape))


def test_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="'word'"):
        spm_links(Q, SOURCE, rule="word", attention=ATTENTION)  # type: ignore[arg-type]


def test_what_is_left_to_padding() -> None:
    """A headline of one sub-word, so the steps behind its <eos> are the third and the fourth."""
    q = np.zeros((4, 8))
    q[[0, 1, 2, 3], [6, 7, 5, 4]] = 1  # the last predicts what the source does not have
    attention = np.full((4, 4), 0.1)
    attention[2, 2] = 0.7  # of the two places of type 5
    assert pad_places(q, SOURCE, 1, attention=attention) == {2}
    assert pad_places(q, SOURCE, 0, attention=attention) == {1, 2}
    assert pad_places(q, SOURCE, 3, attention=attention) == frozenset()
    assert pad_places(q[:2], SOURCE, 1, attention=attention[:2]) == frozenset()  # no room for any


def test_attention_links() -> None:
    assert attention_links(ATTENTION, 3) == links((1, 0), (3, 1), (0, 2))
    assert attention_links(ATTENTION, 2) == links((1, 0), (3, 1))
    assert attention_links(ATTENTION, 2, shift=1) == links((3, 0), (0, 1))
    assert attention_links(ATTENTION, 1, shift=2) == links((0, 0))
    assert attention_links(ATTENTION, 0) == attention_links(np.zeros((2, 0)), 2) == links()


@pytest.mark.parametrize(("num_headline", "shift"), [(4, 0), (3, 1), (1, 3), (3, -1), (2, -3)])
def test_attention_must_have_the_rows(num_headline: int, shift: int) -> None:
    with pytest.raises(ValueError, match="3 rows of attention"):
        attention_links(ATTENTION, num_headline, shift)


def test_identity_links() -> None:
    assert identity_links(3, 2) == links((0, 0), (1, 1))
    assert identity_links(2, 3) == links((0, 0), (1, 1))
    assert identity_links(0, 3) == identity_links(3, 0) == links()


def test_diagonal_links() -> None:
    assert diagonal_links(4, 2) == links((1, 0), (3, 1))
    assert diagonal_links(9, 3) == links((1, 0), (4, 1), (7, 2))
    assert diagonal_links(2, 4) == links((0, 0), (0, 1), (1, 2), (1, 3))
    assert diagonal_links(5, 5) == identity_links(5, 5)
    assert diagonal_links(0, 3) == diagonal_links(3, 0) == links()


@given(st.integers(1, 60), st.integers(1, 60))
def test_diagonal_links_stay_inside(num_source: int, num_headline: int) -> None:
    found = sorted(diagonal_links(num_source, num_headline), key=lambda link: link[1])
    assert [j for _, j in found] == list(range(num_headline))
    places = [i for i, _ in found]
    assert places == sorted(places)
    assert 0 <= places[0] <= places[-1] < num_source
    from_the_end = [num_source - 1 - i for i in reversed(places)]
    assert all(abs(a - b) <= 1 for a, b in zip(places, from_the_end, strict=True))


# -- score ----------------------------------------------------------------------------------------


def test_score_by_hand() -> None:
    predicted = [links((0, 0), (1, 1), (2, 2)), links((0, 0))]
    gold = [links((0, 0), (1, 2)), links((0, 0), (1, 1), (2, 1))]
    found = alignment_score(iter(predicted), iter(gold))
    assert found == AlignmentScore(0.5, 0.4, pytest.approx(1 - 4 / 9), 4, 5)


def test_score_is_over_all_links_together() -> None:
    """Not the mean over pairs, which would be one half."""
    many = frozenset((i, i) for i in range(9))
    found = alignment_score([many, links((0, 1))], [many, links((1, 0))])
    assert (found.precision, found.recall) == (0.9, 0.9)
    assert found.error_rate == pytest.approx(0.1)


def test_score_keeps_pairs_apart() -> None:
    found = alignment_score([links((0, 0)), links()], [links(), links((0, 0))])
    assert found == AlignmentScore(0.0, 0.0, 1.0, 1, 1)


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ([], [], AlignmentScore(1.0, 1.0, 0.0, 0, 0)),
        ([links()], [links()], AlignmentScore(1.0, 1.0, 0.0, 0, 0)),
        ([links((0, 0))], [links()], AlignmentScore(0.0, 0.0, 1.0, 1, 0)),
        ([links()], [links((0, 0))], AlignmentScore(0.0, 0.0, 1.0, 0, 1)),
        ([links((3, 4))], [links((3, 4))], AlignmentScore(1.0, 1.0, 0.0, 1, 1)),
        ([links((3, 4))], [links((4, 3))], AlignmentScore(0.0, 0.0, 1.0, 1, 1)),
    ],
)
def test_extremes(predicted: list[Links], gold: list[Links], expected: AlignmentScore) -> None:
    assert alignment_score(predicted, gold) == expected


@pytest.mark.parametrize(("predicted", "gold"), [([links()], []), ([], [links()])])
def test_pairs_must_be_as_many(predicted: list[Links], gold: list[Links]) -> None:
    with pytest.raises(ValueError, match="zip"):
        alignment_score(predicted, gold)


@given(st.lists(st.tuples(link_sets, link_sets), max_size=4))
def test_error_rate_is_one_less_f1(pairs: list[tuple[Links, Links]]) -> None:
    found = alignment_score([a for a, _ in pairs], [s for _, s in pairs])
    p, r = found.precision, found.recall
    assert found.error_rate == pytest.approx(1 - (2 * p * r / (p + r) if p + r else 0.0))
    swapped = alignment_score([s for _, s in pairs], [a for a, _ in pairs])
    assert (swapped.precision, swapped.recall) == (r, p)
    assert swapped.error_rate == found.error_rate


# -- dropped words --------------------------------------------------------------------------------

# Two pairs with ledes of four and three words; gold drops words 1 and 3, and word 0.
DROPPED_GOLD = [links((0, 0), (2, 1)), links((1, 0), (2, 0))]
DROPPED_FOUND = [links((0, 0), (1, 1), (2, 1)), links((2, 0))]  # drops 3, and 0 and 1


def test_dropped_words_by_hand() -> None:
    found = alignment_score(DROPPED_FOUND, DROPPED_GOLD, iter([4, 3]))
    assert found.num_dropped == 3
    assert found.dropped_recall == 2 / 3
    assert found.dropped_precision == 2 / 3
    longer = alignment_score(DROPPED_FOUND, DROPPED_GOLD, [6, 3])  # two more that both drop
    assert (longer.num_dropped, longer.dropped_recall) == (5, 4 / 5)
    assert (found.pad_recall, found.pad_precision) == (None, None)


def test_what_is_left_to_padding_is_dropped() -> None:
    left = [frozenset({3, 2, 0}), frozenset({0})]
    found = alignment_score(DROPPED_FOUND, DROPPED_GOLD, [4, 3], left)
    assert (found.pad_recall, found.pad_precision) == (2 / 3, 1 / 2)
    assert found.dropped_recall == 2 / 3


def test_dropped_words_need_the_number_of_words() -> None:
    found = alignment_score(DROPPED_FOUND, DROPPED_GOLD, None, [frozenset(), frozenset()])
    assert found.num_dropped is found.dropped_recall is found.dropped_precision is None
    assert found.pad_recall is found.pad_precision is None


@pytest.mark.parametrize(
    ("predicted", "gold", "precision", "recall"),
    [
        (links((0, 0)), links((0, 0)), 1.0, 1.0),  # nothing to drop, nothing dropped
        (links(), links((0, 0)), 0.0, 0.0),
        (links((0, 0)), links(), 0.0, 0.0),
        (links(), links(), 1.0, 1.0),
    ],
)
def test_extremes_of_dropping(
    predicted: Links, gold: Links, precision: float, recall: float
) -> None:
    found = alignment_score([predicted], [gold], [1])
    assert (found.dropped_precision, found.dropped_recall) == (precision, recall)


@pytest.mark.parametrize("sizes", [[4], [4, 3, 2]])
def test_numbers_of_words_must_be_as_many(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="zip"):
        alignment_score(DROPPED_FOUND, DROPPED_GOLD, sizes)


def test_quality_of_methods() -> None:
    found = {"spm-sentence": DROPPED_FOUND, "attention": DROPPED_FOUND, "identity": DROPPED_GOLD}
    left = [frozenset({3}), frozenset[int]()]
    scores = score_methods(found, DROPPED_GOLD, [4, 3], left)
    assert list(scores) == list(found)
    assert scores["spm-sentence"] == alignment_score(DROPPED_FOUND, DROPPED_GOLD, [4, 3], left)
    assert scores["spm-sentence"].pad_recall == 1 / 3
    assert scores["attention"] == alignment_score(DROPPED_FOUND, DROPPED_GOLD, [4, 3])
    assert scores["identity"].error_rate == 0
    assert score_methods(found, DROPPED_GOLD)["attention"].dropped_recall is None


def test_score_for_json() -> None:
    fields = alignment_score(DROPPED_FOUND, DROPPED_GOLD, [4, 3]).as_dict()
    assert fields["num_gold"] == 4
    assert fields["dropped_recall"] == 2 / 3
    assert fields["pad_recall"] is None
