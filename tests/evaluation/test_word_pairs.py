"""Which words a model takes for which."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress
from ledeline.evaluation import teacher_forcing
from ledeline.evaluation.word_pairs import (
    STAGE,
    PairingRule,
    WordGroup,
    WordPairs,
    group_of,
    sample,
    word_pairs,
)
from ledeline.inference.traces import PairTrace
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.synth.newsroom import generate
from ledeline.text.profiles import NATURAL, PAPER
from ledeline.text.subwords import EOS, PAD, UNK, Subwords
from ledeline.text.tokenizer import Tokenizer

# --- groups ---------------------------------------------------------------------------------------


def paired(
    loaded: ModelBundle,
    pairs: list[tuple[str, str]],
    *,
    rule: PairingRule = "vocabulary",
    progress: Progress = no_progress,
) -> WordPairs:
    return word_pairs(loaded, pairs, [rule], progress)[rule]


@pytest.mark.parametrize(
    ("headline_word", "source_word", "group"),
    [
        ("tokyo", "tokyo", "same"),
        ("Tokyo", "TOKYO", "same"),
        ("##", "##", "same"),
        ("calls", "called", "inflection"),  # these six are the paper's
        ("release", "released", "inflection"),
        ("win", "won", "inflection"),
        ("condemns", "condemned", "inflection"),
        ("rejects", "rejected", "inflection"),
        ("warns", "Warned", "inflection"),
        ("says", "said", "inflection"),
        ("say", "says", "inflection"),
        ("wins", "won", "inflection"),
        ("go", "went", "inflection"),
        ("men", "man", "inflection"),
        ("nation", "national", "inflection"),  # a limit of the rule
        ("die", "dies", "other"),  # another
        ("rules", "agreement", "other"),  # and the paper's paraphrases
        ("quake", "earthquake", "other"),
        ("eu", "european", "other"),
        ("dead", "died", "other"),
        ("us", "u.s.", "other"),
        ("to", ".", "other"),
        ("a", "as", "other"),
    ],
)
def test_groups(headline_word: str, source_word: str, group: WordGroup) -> None:
    assert group_of(headline_word, source_word) == group
    assert group_of(source_word, headline_word) == group


# --- one pair by hand -----------------------------------------------------------------------------

LEDE = "oil firms fell flat ."
HEADLINE = "oil firm falls flat"
WHOLE = [
    "oil",
    "firms",
    "firm",
    "fell",
    ".",
]  # the others are cut: f@@ l@@ a@@ t, f@@ a@@ l@@ l@@ s


@pytest.fixture(scope="module")
def loaded(make_model: Callable[..., Path]) -> ModelBundle:
    """The words of WHOLE are one sub-word each; all others are letters."""
    merges = [
        pair
        for word in WHOLE
        for pair in (
            (word[:end], word[end] + "</w>" * (end + 1 == len(word))) for end in range(1, len(word))
        )
    ]
    subwords = Subwords(merges, "oilfrmseaft.", PAPER.unknown_words)
    model = load_model(make_model("paper"))
    return model._replace(tokenizer=Tokenizer(PAPER, subwords))


def one_hot(rows: list[int], width: int) -> Any:
    found = np.full((len(rows), width), 0.01, np.float32)
    found[np.arange(len(rows)), rows] = 0.9
    return found


@pytest.fixture
def seen(loaded: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Decides what is seen at each token of HEADLINE: types by the SPM, places by attention."""

    def decide(types: list[int], places: list[int]) -> None:
        q = one_hot([*types, EOS], loaded.tokenizer.vocabulary_size)

        def teacher_force(model: Any, pairs: Any, *, padded: bool) -> Iterator[PairTrace]:
            for source, headline in pairs:
                assert len(headline) == len(types)
                assert not padded
                yield PairTrace(one_hot([*places, 0], len(source)), q)

        monkeypatch.setattr(teacher_forcing, "teacher_force", teacher_force)

    return decide


def test_the_model_cuts_words_as_meant(loaded: ModelBundle) -> None:
    assert [len(loaded.tokenizer.encode_word(word)) for word in WHOLE] == [1] * 5
    one = teacher_forcing.encode_pair(loaded, LEDE, HEADLINE)
    assert (len(one.lede.ids), len(one.ids)) == (8, 11)  # oil firms fell f l a t . / 1 1 5 4


def test_pairs_by_hand(loaded: ModelBundle, seen: Callable[..., None]) -> None:
    def id_of(word: str) -> int:
        return loaded.tokenizer.encode_word(word)[0]

    letter = loaded.tokenizer.encode_word("falls")[0]
    seen([id_of("fell"), id_of("firms"), *[id_of("oil")] * 9], [0, 7, *[0] * 9])
    found = paired(loaded, [(LEDE, HEADLINE)] * 2)
    assert found.counts == {
        "same": Counter(),
        "inflection": Counter({("firm", "firms"): 2}),
        "other": Counter({("oil", "fell"): 2}),
    }
    assert (found.num_pieces, found.num_pairs, found.num_tokens) == (18, 2, 22)
    attended = paired(loaded, [(LEDE, HEADLINE)], rule="attention")
    assert attended.counts["same"] == Counter({("oil", "oil"): 1})
    assert attended.counts["other"] == Counter({("firm", "."): 1})

    seen([letter, *[id_of("oil")] * 10], [3, *[0] * 10])  # a piece of "flat", for "oil"
    for rule in ("vocabulary", "sentence", "attention"):
        found = paired(loaded, [(LEDE, HEADLINE)], rule=rule)
        assert found.counts["other"] == Counter({("firm", "oil"): 1}), rule
        assert found.num_pieces == 10


def test_words_that_the_lede_does_not_have(loaded: ModelBundle, seen: Callable[..., None]) -> None:
    """By the paper's rule they count; a piece, or a special symbol, never does."""
    subwords = loaded.tokenizer.subwords
    (firm,), (t,) = subwords.encode_word("firm"), subwords.encode_word("t")
    seen([firm, t, *[PAD] * 9], [0] * 11)
    found = paired(loaded, [(LEDE, HEADLINE)])
    assert found.counts["other"] == Counter({("oil", "firm"): 1})  # and "t" ends "flat" there
    for type_ in (PAD, UNK, EOS, subwords.encode_word("sa")[0]):
        seen([type_, *[PAD] * 10], [0] * 11)
        assert paired(loaded, [(LEDE, HEADLINE)]).num_pieces == 11
    seen([t, *[PAD] * 10], [0] * 11)  # where the lede has no "t" at all, it may be a word
    found = paired(loaded, [("oil fell", HEADLINE)])
    assert found.counts["other"] == Counter({("oil", "t"): 1})


def test_unknown_words_are_left_out(loaded: ModelBundle, seen: Callable[..., None]) -> None:
    seen([UNK, UNK], [0, 1])
    for rule in ("vocabulary", "sentence", "attention"):
        found = paired(loaded, [("UNK oil", "oil UNK")], rule=rule)
        assert found.num_pieces == 2
        assert found.num_tokens == 2


def test_words_are_counted_in_lower_case_without_marks(
    loaded: ModelBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    subwords = Subwords([("O", "i"), ("Oi", "l</w>"), ("￭", ",</w>")], "Oil￭,")
    model = loaded._replace(tokenizer=Tokenizer(NATURAL, subwords))
    attention = np.eye(3, dtype=np.float32)[[0, 1, 0]]
    monkeypatch.setattr(
        teacher_forcing, "teacher_force", lambda *_, **__: iter([PairTrace(attention, None)])
    )
    found = paired(model, [("Oil, Oil", "Oil,")], rule="attention")
    assert found.counts["same"] == Counter({("oil", "oil"): 1, (",", ","): 1})


# --- many pairs -----------------------------------------------------------------------------------

PAIRS = [(story.lede, story.headline) for story in generate(20, 3)]


@pytest.mark.parametrize("rule", ["vocabulary", "sentence", "attention"])
def test_every_token_is_counted_once(make_model: Callable[..., Path], rule: Any) -> None:
    model = load_model(make_model(merges=2000))
    told: list[Any] = []
    found = paired(model, PAIRS, rule=rule, progress=lambda *said: told.append(said))
    encoded = [teacher_forcing.encode_pair(model, *pair) for pair in PAIRS]
    assert found.num_tokens == sum(len(one.ids) for one in encoded)
    assert 0 < found.num_pieces < found.num_tokens
    assert told == [(STAGE, 20, 20)]
    if rule != "vocabulary":
        source = {word.lower() for lede, _ in PAIRS for word in NATURAL.plain(NATURAL.words(lede))}
        assert {word for pairs in found.counts.values() for _, word in pairs} <= source


def test_empty_ledes_are_passed_over(loaded: ModelBundle) -> None:
    found = paired(loaded, [("", "oil"), ("oil", "")])
    assert (found.num_tokens, found.num_pairs) == (0, 2)


def test_rules_need_what_they_read(make_model: Callable[..., Path]) -> None:
    bare = load_model(make_model(spm=False))
    assert paired(bare, PAIRS[:2], rule="attention").num_tokens
    for rule in ("vocabulary", "sentence"):
        with pytest.raises(ScoreError, match=f"{rule} needs a system with SPM"):
            paired(bare, PAIRS, rule=rule)
    with pytest.raises(ValueError, match="'word'"):
        paired(bare, PAIRS, rule="word")  # type: ignore[arg-type]


def test_a_sample_is_drawn_by_its_seed() -> None:
    items = list(range(1000))
    drawn = sample(items, 500, 1)
    assert drawn == sample(items, 500, 1) == sorted(set(drawn))
    assert len(drawn) == 500
    assert drawn != sample(items, 500, 2)
    assert 200 < sum(one < 500 for one in drawn) < 300
    assert sample(items[:3], 500, 1) == [0, 1, 2]
    assert sample(items, 0, 1) == sample([], 5, 1) == []


# --- as others see it -----------------------------------------------------------------------------

TABLE = WordPairs(
    {
        "same": Counter({("oil", "oil"): 2, ("to", "to"): 5, ("gas", "gas"): 2}),
        "inflection": Counter({("calls", "called"): 1200}),
        "other": Counter(),
    },
    num_pieces=7,
    num_pairs=500,
)


def test_table_as_data() -> None:
    fields = TABLE.table(2).as_dict()
    assert fields == json.loads(json.dumps(fields))
    assert fields == {
        "pairs": 500,
        "tokens": 1216,
        "pieces": 7,
        "groups": {
            "same": {"count": 9, "examples": [["to", "to", 5], ["gas", "gas", 2]]},
            "inflection": {"count": 1200, "examples": [["calls", "called", 1200]]},
            "other": {"count": 0, "examples": []},
        },
    }
    content = TABLE.table(2, content_only=True).as_dict()["groups"]["same"]
    assert content == {"count": 9, "examples": [["gas", "gas", 2], ["oil", "oil", 2]]}


def test_table_as_text() -> None:
    assert TABLE.text(1).splitlines() == [
        "500 pairs, 1,216 headline tokens, of which 7 left out: no whole word on both sides",
        "same             9  (to, to) 5",
        "inflection   1,200  (calls, called) 1,200",
        "other            0",
    ]
    assert "(gas, gas) 2" in TABLE.text(1, content_only=True)


def test_all_rules_are_read_from_one_look(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model(model_folder)
    rules: list[PairingRule] = ["attention", "vocabulary", "sentence"]
    alone = {rule: paired(loaded, PAIRS, rule=rule) for rule in rules}
    looks = []
    real = teacher_forcing.teacher_force
    monkeypatch.setattr(
        teacher_forcing, "teacher_force", lambda *a, **k: looks.append(1) or real(*a, **k)
    )
    assert word_pairs(loaded, PAIRS, rules) == alone
    assert len(looks) == 1
    assert word_pairs(loaded, PAIRS, []) == {}
