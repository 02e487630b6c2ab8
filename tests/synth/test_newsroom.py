import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from ledeline.synth.clauses import CLAUSES
from ledeline.synth.desks import SCENES
from ledeline.synth.lexicon import WORDS
from ledeline.synth.newsroom import DESKS, MAKERS, Story, generate, write_story

Links = set[tuple[int, int]]

# SHA-256 of the first 200 stories of seed 7. If it changes, numbers measured before are void.
GOLDEN = "377d13ddfa85f0c1bc0e90833bc4536a70eef654b9439ae20e8db6a37acc2ce7"

# Stories of seed 7 whose links were checked by hand.
HAND_CHECKED = {
    3: Story(
        "After gaining 2.3 percent in the previous session, Velstad stocks tumbled 1.7 percent on "
        "Wednesday as fears of a recession unnerved traders, while the Talvunan currency rose 4.8 "
        "percent against the dollar.",
        "Velstad stocks tumble 1.7 pct on recession fears",
        "8-0 9-1 10-2 11-3 12-4 15-5 16-7 19-6",
    ),
    8: Story(
        "At least two dozen people, among them a police commander, were arrested early on Wednesday "
        "in Melnova on charges of bribery, a government spokesman said.",
        "24 arrested in Melnova over bribery",
        "2-0 3-0 11-1 15-2 16-3 19-4 20-5",
    ),
    9: Story(
        "Vostapan Group, the Roskian telecommunications company, opened talks with its lenders "
        "early on Monday about the repayment of debts of $18.3 billion.",
        "Vostapan in talks with lenders on $18.3bn debt",
        "0-0 7-2 8-3 10-4 14-5 18-7 20-6 21-6",
    ),
}

FUNCTION_WORDS = set("a an at by for from in into near not of on out over the to up with".split())


def plain(word: str) -> str:
    """A word in small letters, less its punctuation and its genitive."""
    return word.strip(".,").lower().removesuffix("'s").removesuffix("'")


def links(story: Story) -> Links:
    return {(int(i), int(j)) for i, j in (pair.split("-") for pair in story.alignment.split())}


def parts(story: Story) -> tuple[list[str], list[str], Links]:
    lede, headline = story.lede.split(), story.headline.split()
    return [plain(word) for word in lede], [plain(word) for word in headline], links(story)


def digest(stories: list[Story]) -> str:
    text = "".join("\t".join(story) + "\n" for story in stories)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return list(generate(5000, 1))


def share(stories: list[Story], wanted: Callable[[Story], bool]) -> float:
    return sum(map(wanted, stories)) / len(stories)


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", HAND_CHECKED)
def test_hand_checked_story(number: int) -> None:
    assert write_story(7, number)[1] == HAND_CHECKED[number]


def test_prefix_and_repetition(stories: list[Story]) -> None:
    assert list(generate(100, 1)) == stories[:100]
    assert write_story(1, 77)[1] == stories[77]
    assert list(generate(0, 1)) == []
    assert list(generate(50, 2)) != stories[:50]
    assert len(set(stories)) == len(stories)


def test_golden_digest() -> None:
    assert digest(list(generate(200, 7))) == GOLDEN


def test_another_process_writes_the_same() -> None:
    code = (
        "from ledeline.synth.newsroom import generate\n"
        "for story in generate(200, 7): print(*story, sep='\\t')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONUTF8": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    text = run.stdout.replace(b"\r\n", b"\n")
    assert hashlib.sha256(text).hexdigest() == GOLDEN


def test_pharaoh(stories: list[Story]) -> None:
    for story in stories:
        lede, headline, _ = parts(story)
        pairs = [tuple(map(int, pair.split("-"))) for pair in story.alignment.split(" ")]
        assert pairs == sorted(set(pairs))
        assert all(0 <= i < len(lede) and 0 <= j < len(headline) for i, j in pairs)


def test_lengths(stories: list[Story]) -> None:
    ledes = sorted(len(story.lede.split()) for story in stories)
    headlines = [len(story.headline.split()) for story in stories]
    assert ledes[0] >= 12
    assert ledes[-1] <= 60
    assert 25 <= sum(ledes) / len(ledes) <= 33
    assert ledes[len(ledes) // 10] <= 20
    assert ledes[-len(ledes) // 10] >= 40
    assert min(headlines) >= 4
    assert max(headlines) <= 14
    assert len(set(headlines)) >= 7
    assert all(len(s.headline.split()) < len(s.lede.split()) for s in stories)


def test_every_desk_writes() -> None:
    desks = Counter(write_story(3, number)[0] for number in range(2000))
    assert set(desks) == set(DESKS)
    assert len(DESKS) >= 14
    assert min(desks.values()) > 2000 / len(DESKS) / 2


# -- the language ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        r"  | [,.]|,,|,\.|[{}\[\]()|/=~*;]",  # spacing, and notation that came through
        r"\b(\w+) \1\b",  # a word said twice running
        r"\b(a|an|the) (a|an|the)\b",
        r"\b[Aa] (?=[aeio]|8|11\b|18\b|hour)",
        r"\b[Aa]n (?=[b-df-gj-np-tv-z]|[0-79]\d*\b(?<!11)(?<!18))",
        r"\b(is|was|has) \w+ (were|have)\b",
        r"\$\S+ (million|billion) dollars",
    ],
)
def test_no_fault(stories: list[Story], fault: str) -> None:
    found = [s for s in stories if re.search(fault, s.lede) or re.search(fault, s.headline)]
    assert not found[:3]


def test_capitals_and_full_stops(stories: list[Story]) -> None:
    for lede, headline, _ in stories:
        assert re.fullmatch(r"[A-Z].*[a-z0-9]\.", lede)
        assert lede.count(".") - len(re.findall(r"\d\.\d", lede)) == 1
        assert re.fullmatch(r"[A-Z0-9].*[A-Za-z0-9]", headline)


def test_names_keep_their_capitals(stories: list[Story]) -> None:
    for story in stories:
        lede, headline = story.lede.split(), story.headline.split()
        for i, j in links(story):
            if i and j and plain(lede[i]) == plain(headline[j]):
                assert lede[i][0].isupper() == headline[j][0].isupper()


def test_many_types_few_of_them_common() -> None:
    counts: Counter[str] = Counter()
    for story in generate(20_000, 1):
        lede, headline, _ = parts(story)
        counts.update(lede + headline)
    words = [word for word in counts if word.isalpha()]
    assert len(words) > 5000
    assert len(counts) > 7000
    by_rank = [count for _, count in counts.most_common()]
    assert sum(by_rank[:100]) > 0.4 * sum(by_rank)
    assert sum(count <= 5 for count in by_rank) > 0.3 * len(by_rank)


def test_all_words_of_the_lexicon_are_reachable() -> None:
    """No slot is misspelt and no list is forgotten."""
    texts = [*WORDS.values(), *CLAUSES.values()]
    texts += [text for scene in SCENES for text in (scene.ledes, scene.headlines)]
    used = {name.rstrip("0123456789") for name in re.findall(r"\{(\w+)", " ".join(texts))}
    assert used == {*WORDS, *CLAUSES, *MAKERS}


# -- what makes headlines hard --------------------------------------------------------------------


def test_most_lede_words_are_dropped(stories: list[Story]) -> None:
    words = sum(len(story.lede.split()) for story in stories)
    kept = sum(len({i for i, _ in links(story)}) for story in stories)
    assert 0.7 < 1 - kept / words < 0.82


def test_nearly_every_headline_word_has_a_source(stories: list[Story]) -> None:
    sourceless: Counter[str] = Counter()
    for story in stories:
        _, headline, pairs = parts(story)
        linked = {j for _, j in pairs}
        sourceless.update(word for j, word in enumerate(headline) if j not in linked)
    total = sum(len(story.headline.split()) for story in stories)
    assert sourceless.total() < 0.02 * total
    assert set(sourceless) <= FUNCTION_WORDS


def test_reordering(stories: list[Story]) -> None:
    def crosses(story: Story) -> bool:
        pairs = links(story)
        return any(i > k and j < m for i, j in pairs for k, m in pairs)

    assert 0.7 < share(stories, crosses) < 0.9


def test_kinds_of_link(stories: list[Story]) -> None:
    kinds: Counter[str] = Counter()
    for story in stories:
        lede, headline, pairs = parts(story)
        for i, j in pairs:
            same_start = lede[i][:3] == headline[j][:3]
            equal = lede[i] == headline[j]
            kinds["copy" if equal else "inflection" if same_start else "synonym"] += 1
    assert 0.6 < kinds["copy"] / kinds.total() < 0.75
    assert kinds["inflection"] / kinds.total() > 0.08
    assert kinds["synonym"] / kinds.total() > 0.15


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ({"won"}, "wins"),
        ({"fell"}, "falls"),
        ({"closed"}, "shuts"),
        ({"will"}, "to"),
        ({"arrested"}, "arrested"),
        ({"killed"}, "dead"),
        ({"earthquake"}, "quake"),
        ({"agreement"}, "deal"),
        ({"investigation"}, "probe"),
        ({"approximately"}, "about"),
        ({"prime", "minister"}, "pm"),
        ({"european", "union"}, "eu"),
        ({"cars"}, "car"),
        ({"fourteen"}, "14"),
    ],
)
def test_phenomenon(stories: list[Story], source: set[str], word: str) -> None:
    for story in stories:
        lede, headline, pairs = parts(story)
        if word in headline:
            place = headline.index(word)
            if {lede[i] for i, j in pairs if j == place} == source:
                return
    pytest.fail(f"no {source} -> {word}")


def test_repeated_words(stories: list[Story]) -> None:
    def one_of_several(story: Story) -> bool:
        lede, _, pairs = parts(story)
        linked = Counter(lede[i] for i in {i for i, _ in pairs})
        times = Counter(lede)
        return any(times[word] > count == 1 for word, count in linked.items())

    def twice_in_headline(story: Story) -> bool:
        return max(Counter(parts(story)[1]).values()) > 1

    assert share(stories, one_of_several) > 0.25
    assert share(stories, twice_in_headline) > 0.01


# -- what is too easy must fail -------------------------------------------------------------------


def f1(stories: list[Story], guess: Callable[[int, int], Links]) -> float:
    hits = found = gold = 0
    for story in stories:
        pairs = links(story)
        guessed = guess(len(story.lede.split()), len(story.headline.split()))
        hits, found, gold = hits + len(pairs & guessed), found + len(guessed), gold + len(pairs)
    return 2 * hits / (found + gold)


def test_position_tells_little(stories: list[Story]) -> None:
    def identity(num_lede: int, num_headline: int) -> Links:
        return {(j, j) for j in range(num_headline)}

    def diagonal(num_lede: int, num_headline: int) -> Links:
        slope = num_lede / num_headline
        return {(int((j + 0.5) * slope), j) for j in range(num_headline)}

    assert f1(stories, identity) < 0.1
    assert f1(stories, diagonal) < 0.1


def test_first_words_are_no_headline(stories: list[Story]) -> None:
    shared = total = 0
    for story in stories:
        lede, headline, _ = parts(story)
        shared += (Counter(lede[: len(headline)]) & Counter(headline)).total()
        total += len(headline)
    assert shared / total < 0.33


def test_gold_agrees_with_spelling_where_spelling_is_sure(stories: list[Story]) -> None:
    """A content word that stands once in lede and headline is linked to itself."""
    sure = linked = 0
    for story in stories:
        lede, headline, pairs = parts(story)
        for j, word in enumerate(headline):
            once = lede.count(word) == headline.count(word) == 1
            if once and word not in FUNCTION_WORDS:
                sure += 1
                linked += (lede.index(word), j) in pairs
    assert linked > 0.95 * sure
    assert sure > 2 * len(stories)
