"""Sub-words: the same merges and pieces as subword-nmt, and a vocabulary that loses nothing."""

import io
import json
import pickle
import random
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from subword_nmt import learn_bpe as peer_learning
from subword_nmt.apply_bpe import BPE

from ledeline.core.errors import DatasetError
from ledeline.text import subwords as module
from ledeline.text.bpe_learning import learn_merges
from ledeline.text.subwords import BOS, EOS, PAD, SPECIALS, UNK, Subwords

NASTY_WORDS = [
    *"👩‍👩‍👧‍👦 👍🏽 🇫🇷🇩🇪 😀😀😀 e\u0301te\u0301 a\u0300\u0301\u0302 Z͑ͫ̓ͪ̂ ﷽ ไทย 漢字 한국 ﬁn 𝔘𝔫𝔦".split(),
    *"שלום مرحبا مرحبا! \u202eabc\u202c \u00ad \u200b \ufeff \x00 \x7f".split(),
    *"@@ a@@ @@a @@@@ a@@b @-@ </w> </w>a <unk> <eos> <pad>x <bos> #version: &quot;".split(),
    *r"\ \\ \n \1 \g<0> .* a+ (b| [c] ^$ {2} ?: %s {} _ ' \"".split(),
    *"## #### ##-##-#### aaaa aaaaa ababab abababa ........ !!!!!!! ----".split(),
]


def plain_lines(num_lines):
    """Lines of words with a few very frequent and many rare ones, as in news."""
    rng = random.Random(1)
    syllables = [
        a + b for a in "bcdfglmnprstvzéñøš" for b in ("a", "e", "i", "ou", "ö", "an", "er")
    ]
    stems = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(4000)]
    words = [stem + rng.choice(["", "", "s", "ed", "ing", "'s"]) for stem in stems]
    words[5:60:7] = ["#", "##", "####", "##,###", "#.#", ".", ",", "``", "-"][: len(words[5:60:7])]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    for _ in range(num_lines):
        yield " ".join(rng.choices(words, weights, k=rng.randint(5, 15)))


def nasty_lines(num_lines):
    """Lines of what goes wrong: other scripts, marks, separators, patterns, runs, long words."""
    rng = random.Random(2)
    characters = sorted(set("".join(NASTY_WORDS)))
    for number in range(num_lines):
        words = rng.choices(NASTY_WORDS, k=rng.randint(0, 8))
        words.append("".join(rng.choices(characters, k=rng.randint(1, 6))))
        words.append(rng.choice(characters) * rng.randint(2, 9))
        if number % 100 == 0:
            words.append("".join(rng.choices(NASTY_WORDS[-30:], k=150)))
        if number % 200 == 0:
            words.append("x".join(["</w>", rng.choice(characters), "</w>", "y"]))
        yield rng.choice([" ", "  "]).join(words)


CORPORA = {"plain": (plain_lines, 20_000, 1500), "nasty": (nasty_lines, 2_000, 800)}


def learn_with_peer(lines, num_merges):
    """Learn with subword-nmt, without its progress bar; return the codes file it writes."""
    codes = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peer_learning, "tqdm", lambda steps: steps)
        patch.setattr(peer_learning.sys, "stderr", io.StringIO())
        text = io.StringIO("".join(line + "\n" for line in lines), newline="\n")
        peer_learning.learn_bpe(text, codes, num_merges)
    return codes


@pytest.fixture(scope="module", params=CORPORA)
def corpus(request):
    """Lines, the codes that subword-nmt learns from them, and our sub-words for the same lines."""
    generate, num_lines, num_merges = CORPORA[request.param]
    lines = list(generate(num_lines))
    codes = learn_with_peer(lines, num_merges)
    counts = Counter(word for line in lines for word in line.split())
    return lines, codes, Subwords.learn(counts, num_merges)


def test_generated_words_have_no_white_space_inside():
    for generate, _, _ in CORPORA.values():
        for line in generate(50):
            assert line.split() == [word for word in line.split(" ") if word]


def test_learns_the_merges_of_subword_nmt(corpus):
    _, codes, subwords = corpus
    pairs = [tuple(line.split(" ")) for line in codes.getvalue().split("\n")[1:-1]]
    assert subwords.merges == tuple(pairs)
    assert len(pairs) in {1500, 800}


def test_segments_as_subword_nmt(corpus):
    lines, codes, subwords = corpus
    peer = BPE(codes)
    words = {word for line in lines for word in line.split()}
    unseen = ["qqq", "Ω", "aΩ", "Ωa", "a</w>", "x</w>y", "日本", "b" * 300]
    pieces = {word: " ".join(subwords.segment(word)) for word in [*words, *unseen]}
    for line in [*lines, " ".join(unseen)]:
        assert " ".join(pieces[word] for word in line.split()) == peer.segment(line)


def test_subword_nmt_reads_our_codes(corpus, tmp_path):
    lines, codes, subwords = corpus
    subwords.save(tmp_path)
    assert (tmp_path / "codes.txt").read_text(encoding="utf-8") == codes.getvalue()
    with (tmp_path / "codes.txt").open(encoding="utf-8") as file:
        peer = BPE(file)
    for line in lines[:500]:
        pieces = [piece for word in line.split() for piece in subwords.segment(word)]
        assert pieces == peer.segment_tokens(line.split())


def test_corpora_survive_encoding(corpus):
    lines, _, subwords = corpus
    for line in lines:
        assert subwords.decode(subwords.encode(line.split())) == line.split()


def slow_merges(counts, num_merges):
    """What is to be learned, in the shortest words: count everything anew for each merge."""
    words = {word: [*word[:-1], word[-1] + "</w>"] for word in counts}
    merges = []
    while len(merges) < num_merges:
        pairs = Counter()
        for word, symbols in words.items():
            for pair in pairwise(symbols):
                pairs[pair] += counts[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        merges.append(best)
        for symbols in words.values():
            place = 0
            while place < len(symbols) - 1:
                if (symbols[place], symbols[place + 1]) == best:
                    symbols[place : place + 2] = ["".join(best)]
                place += 1
    return merges


def test_learns_from_true_counts_even_where_a_word_end_is_spelled_out():
    rng = random.Random(3)
    for units in ["a", "ab", "abc<"] * 60:
        words = ["".join(rng.choices([*units, "</w>"], k=rng.randint(1, 8))) for _ in range(25)]
        counts = {word: rng.randint(0, 9) for word in words[: rng.randint(1, 25)]}
        assert learn_merges(counts, 30) == slow_merges(counts, 30)


def test_equal_counts_merge_the_largest_pair_first():
    assert learn_merges({"ab": 2, "cd": 2, "ba": 2}, 2) == [("c", "d</w>"), ("b", "a</w>")]


def test_overlapping_pairs_are_counted_and_merged_from_the_left():
    # aaab has (a, a) twice, so that it beats (x, y) seen three times.
    assert learn_merges({"aaab": 2, "xyz": 3}, 1) == [("a", "a")]
    assert Subwords([("a", "a")], "a").segment("aaaa") == ("aa@@", "a@@", "a")


def test_learning_ends_when_no_pair_occurs_twice():
    assert learn_merges({"ab": 2, "cd": 1}, 10) == [("a", "b</w>")]
    assert learn_merges({"a": 9, "b": 9}, 10) == []
    assert learn_merges({"ab": 9}, 0) == []


def test_nothing_can_be_learned_from():
    subwords = Subwords.learn({}, 10)
    assert (subwords.merges, subwords.types) == ((), SPECIALS)
    assert subwords.encode(["ab"]) == [UNK, UNK]


@pytest.mark.parametrize("word", ["", " ", "a b", "a\n", "a\u00a0b"])
def test_words_with_white_space_are_refused(word):
    with pytest.raises(ValueError, match="white space"):
        learn_merges({"fine": 1, word: 2}, 5)


def test_progress_is_told():
    calls = []
    counts = Counter({f"{a}{b}{c}": 2 for a in "abcdefg" for b in "hijklmn" for c in "opqrstu"})
    learn_merges(counts, 120, progress=lambda *call: calls.append(call))
    assert calls == [("learn sub-words", done, 120) for done in (50, 100, 120)]


@pytest.fixture
def subwords():
    counts = {"low": 5, "lower": 4, "newest": 6, "<eos>": 3, "UNK": 2, "x": 1}
    return Subwords.learn(counts, 12, unknown_words=["UNK", "<unk>"])


def test_vocabulary_has_specials_then_characters_then_merges():
    subwords = Subwords([("b", "a"), ("b", "a</w>"), ("x", "y"), ("ba", "ba</w>")], "ba")
    assert subwords.types == (*SPECIALS, "a@@", "a", "b@@", "b", "ba@@", "ba", "baba")
    assert len(subwords) == 11
    assert subwords.encode_word("baba") == (10,)
    assert subwords.encode_word("bab") == (8, 7)


def test_merges_that_come_twice_count_once():
    subwords = Subwords([("a", "b"), ("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")], "abc")
    assert subwords.types[10:] == ("ab@@", "bc@@", "abc@@")
    assert subwords.segment("abcx") == ("abc@@", "x")
    assert Subwords(subwords.merges[:3], "abc").segment("abcx") == ("ab@@", "c@@", "x")


def test_a_spelled_out_word_end_is_a_piece_of_its_own():
    subwords = Subwords([("<", "/"), ("w", ">"), ("</", "w>"), ("a", "</w>")], "a</w>")
    assert "</w>@@" in subwords.types
    assert "" not in subwords.types
    assert subwords.encode_word("</w>x")[0] == subwords.types.index("</w>@@")
    # Inside a word the symbol a</w> is text, which only its characters can spell.
    assert subwords.decode(subwords.encode(["a</w>a", "a"])) == ["a</w>a", "a"]
    assert len(subwords.encode_word("a</w>a")) == 6


def test_special_ids():
    assert [SPECIALS[number] for number in (PAD, UNK, BOS, EOS)] == list(SPECIALS)


def test_unseen_characters_become_unknown_one_by_one(subwords):
    ids = subwords.encode(["Ωlow", "lΩΨ", "Ω"])
    assert ids.count(UNK) == 4
    assert subwords.decode(ids) == ["<unk>", "low", "l<unk>", "<unk>", "<unk>"]


def test_rare_characters_stay_unknown_even_where_they_were_merged():
    counts = {"abab": 3, "cdab": 2}
    subwords = Subwords.learn(counts, 10, min_character_count=3)
    assert subwords.alphabet == "ab"
    assert ("c", "dab</w>") in subwords.merges
    assert not any("c" in text or "d" in text for text in subwords.types[len(SPECIALS) :])
    assert subwords.decode(subwords.encode(["cdab", "abc"])) == ["<unk>", "<unk>", "ab", "ab<unk>"]
    assert Subwords.learn(counts, 10, min_character_count=2).alphabet == "abcd"


@pytest.mark.parametrize("word", [*SPECIALS, "@@", "</w>"])
def test_specials_in_the_text_are_text(word):
    subwords = Subwords.learn(dict.fromkeys([*SPECIALS, "@@", "</w>"], 5), 100)
    ids = subwords.encode_word(word)
    assert min(ids) >= len(SPECIALS)
    assert subwords.decode(ids) == [word]


def test_unknown_words_are_one_unknown_id(subwords):
    assert subwords.encode_word("UNK") == (UNK,)
    assert subwords.encode_word("<unk>") == (UNK,)
    assert UNK not in subwords.encode_word("<eos>")
    assert subwords.encode(["low", "UNK"])[-1] == UNK
    assert subwords.decode(subwords.encode(["UNK", "low"])) == ["<unk>", "low"]
    assert "".join(subwords.segment("UNK")).replace("@@", "") == "UNK"


def test_an_empty_word_is_refused(subwords):
    with pytest.raises(ValueError, match="character"):
        subwords.encode([""])


LITERAL_WORDS = "</w> a</w>b b</w>a a@@ @@a ab@@ab <eos>a <unk> aaa aaaa é😀 é😀b".split()
LITERAL_UNITS = [*sorted(set("".join(LITERAL_WORDS))), "@@", "</w>", "<eos>", "aa"]


@cache
def literal_subwords():
    return Subwords.learn(dict.fromkeys(LITERAL_WORDS, 3), 60)


@given(st.lists(st.lists(st.sampled_from(LITERAL_UNITS), min_size=1).map("".join)))
def test_decoding_undoes_encoding(words):
    subwords = literal_subwords()
    ids = subwords.encode(words)
    assert subwords.decode(ids) == words
    assert all(number >= len(SPECIALS) for number in ids)
    assert ids == [number for word in words for number in subwords.encode_word(word)]


def test_pieces_that_print_alike_stay_apart():
    subwords = Subwords([("a", "@"), ("a@", "@</w>")], "a@b")
    assert subwords.types.count("a@@") == 2
    assert subwords.decode(subwords.encode(["a@@", "ab"])) == ["a@@", "ab"]


def test_decoding_of_specials_and_unfinished_words(subwords):
    inner, final = subwords.types.index("l@@"), subwords.types.index("w")
    assert subwords.decode([BOS, inner, PAD, final, EOS, PAD]) == ["lw"]
    assert subwords.decode([inner, UNK, final, inner]) == ["l<unk>", "w", "l"]
    assert subwords.decode(np.array([inner, final], np.uint16)) == ["lw"]
    assert subwords.decode([]) == []


@pytest.mark.parametrize("number", [-1, 10_000])
def test_ids_out_of_range_are_refused(subwords, number):
    with pytest.raises(ValueError, match=str(number)):
        subwords.decode([5, number])
    with pytest.raises(ValueError, match=str(len(subwords))):
        subwords.decode([len(subwords)])


def test_a_text_is_encoded_as_its_words_are(corpus):
    lines, _, subwords = corpus
    for line in ["", *lines[:100], "unseen Ω"]:
        ids, counts = subwords.encode_words(line.split())
        assert ids == subwords.encode(line.split())
        assert counts == [len(subwords.encode_word(word)) for word in line.split()]


def test_lines_are_encoded_as_their_words_are(corpus):
    lines, _, subwords = corpus
    lines = ["", *lines[:300], " \t ", "a\u2003b\tc", "unseen Ω", ""]
    ids, starts = subwords.encode_lines(iter(lines))
    assert (ids.dtype, starts.dtype) == (np.uint16, np.int64)
    assert ids.flags.writeable
    assert len(starts) == len(lines) + 1
    for line, start, end in zip(lines, starts[:-1], starts[1:], strict=True):
        assert ids[start:end].tolist() == subwords.encode(line.split())
    assert [part.tolist() for part in subwords.encode_lines([])] == [[], [0]]


@pytest.mark.parametrize(("num_characters", "expected"), [(32_766, np.uint16), (32_767, np.uint32)])
def test_ids_are_as_narrow_as_the_vocabulary_allows(num_characters, expected):
    alphabet = [chr(0x20000 + number) for number in range(num_characters)]
    subwords = Subwords([], alphabet)
    ids, starts = subwords.encode_lines([alphabet[-1], alphabet[0] + " " + alphabet[-1]])
    assert ids.dtype == expected
    assert (ids.tolist(), starts.tolist()) == ([len(subwords) - 1, 5, len(subwords) - 1], [0, 1, 3])
    assert subwords.decode(ids) == [alphabet[-1], alphabet[0], alphabet[-1]]


def test_the_word_cache_is_bounded(monkeypatch, subwords):
    monkeypatch.setattr(module, "_MAX_CACHED_WORDS", 3)
    subwords = Subwords(subwords.merges, subwords.alphabet)
    words = ["low", "lower", "west", "lowest", "wet"]
    first = [subwords.encode_word(word) for word in words]
    assert len(subwords._cache) == 3
    assert [subwords.encode_word(word) for word in words] == first


def test_saved_subwords_come_back(corpus, tmp_path):
    subwords = Subwords(corpus[2].merges, corpus[2].alphabet, unknown_words=["UNK", "<unk>"])
    subwords.save(tmp_path / "new" / "folder")
    loaded = Subwords.load(tmp_path / "new" / "folder")
    assert (loaded.merges, loaded.types) == (subwords.merges, subwords.types)
    assert loaded.unknown_words == ("UNK", "<unk>")
    words = "banana UNK Ω <eos>".split()
    assert loaded.encode(words) == subwords.encode(words)


def test_subwords_can_be_sent_to_another_process(subwords):
    copy = pickle.loads(pickle.dumps(subwords))
    assert copy.encode(["lowest", "UNK"]) == subwords.encode(["lowest", "UNK"])


def described(**changes):
    return lambda content: json.dumps(json.loads(content) | changes).encode()


DAMAGES = {
    "codes cut off": ("codes.txt", lambda content: content[:-6]),
    "codes cut inside a character": ("codes.txt", lambda content: content[:16]),
    "codes empty": ("codes.txt", lambda _: b""),
    "codes of version 0.1": ("codes.txt", lambda content: content.replace(b"0.2", b"0.1")),
    "codes with one more merge": ("codes.txt", lambda content: content + b"l l\n"),
    "description cut off": ("subwords.json", lambda content: content[:-20]),
    "description empty": ("subwords.json", lambda _: b""),
    "description not an object": ("subwords.json", lambda _: b"[1]"),
    "description not text": ("subwords.json", lambda _: b"\xff"),
    "other version": ("subwords.json", described(version=2)),
    "other alphabet": ("subwords.json", described(alphabet="xyz")),
    "other types": ("subwords.json", described(types=["<pad>"])),
    "no unknown words": ("subwords.json", described(unknown_words=None)),
    "unknown words not in a list": ("subwords.json", described(unknown_words="UNK")),
}


@pytest.fixture
def saved(tmp_path):
    Subwords.learn({"éé": 5, "low": 4, "lower": 3}, 9, unknown_words=["UNK"]).save(tmp_path)
    return tmp_path


def refusal(folder):
    with pytest.raises(DatasetError) as caught:
        Subwords.load(folder)
    assert "prepare the dataset again" in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused(damage, saved):
    name, change = DAMAGES[damage]
    before = (saved / name).read_bytes()
    (saved / name).write_bytes(change(before))
    assert (saved / name).read_bytes() != before
    assert refusal(saved).startswith(str(saved / name))
    assert ("is not of version 1" in refusal(saved)) == (damage == "other version")


@pytest.mark.parametrize("name", ["codes.txt", "subwords.json"])
def test_missing_files_are_refused(name, saved):
    (saved / name).unlink()
    assert refusal(saved).startswith(f"{saved / name} cannot be read")
    assert "codes.txt cannot be read" in refusal(saved / "elsewhere")
