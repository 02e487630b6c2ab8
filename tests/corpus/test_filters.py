import pytest

from ledeline.config import FilterConfig
from ledeline.corpus.filters import NAMAS_BLOCKLIST, DroppedPair, Filter, FilterReport

LEDE = "the central bank raised rates on tuesday and said it would watch prices .".split()
HEADLINE = "central bank raises rates".split()

NAMAS = FilterConfig(
    require_period=True,
    namas_blocklist=True,
    min_lede_words=11,
    max_lede_words=99,
    min_headline_words=4,
    max_headline_words=49,
    min_shared_words=1,
)


def verdict(config: FilterConfig, lede: list[str], headline: list[str]) -> str | None:
    return Filter(config).dropped_by(lede, headline)


def test_without_rules_everything_is_kept() -> None:
    assert verdict(FilterConfig(), [], []) is None


def test_a_good_pair_passes_all_of_namas() -> None:
    assert verdict(NAMAS, LEDE, HEADLINE) is None


@pytest.mark.parametrize(
    ("lede", "headline", "rule"),
    [
        (LEDE[:-1], HEADLINE, "lede without period"),
        (LEDE, "japan raises rates again".split(), "blocked headline"),  # ap, as the original
        (LEDE, "Bank Raises Rates UPDATE".split(), "blocked headline"),
        (LEDE, "will bank raise rates ?".split(), "blocked headline"),
        (LEDE, "bank raises rates by half".split(), "blocked headline"),
        (LEDE, "bank raises rates -lrb- again".split(), "blocked headline"),
        ([*["bank"] * 9, "."], HEADLINE, "lede too short"),
        ([*["bank"] * 99, "."], HEADLINE, "lede too long"),
        (LEDE, "bank raises rates".split(), "headline too short"),
        (LEDE, ["bank"] * 50, "headline too long"),
        (LEDE, "it may be on".split(), "too few shared words"),
        (LEDE, "the and it on".split(), "too few shared words"),  # three characters do not count
    ],
)
def test_each_rule_of_namas_drops(lede: list[str], headline: list[str], rule: str) -> None:
    assert verdict(NAMAS, lede, headline) == rule


@pytest.mark.parametrize(
    ("lede", "headline"),
    [
        ([*["bank"] * 10, "."], HEADLINE),  # 11 words
        ([*["bank"] * 98, "."], HEADLINE),  # 99 words
        (LEDE, ["bank"] * 4),
        (LEDE, ["bank"] * 49),
        (LEDE, "BANK MUST ACT NOW".split()),  # shared without regard to case
        (LEDE, "i saw bank rates".split()),  # ' i ' needs a word before it
    ],
)
def test_the_bounds_belong_to_what_is_kept(lede: list[str], headline: list[str]) -> None:
    assert verdict(NAMAS, lede, headline) is None


def test_whole_word_matching_spares_japan() -> None:
    config = FilterConfig(namas_blocklist=True, blocklist_match="word")
    assert verdict(config, LEDE, "japan raises rates".split()) is None
    assert verdict(config, LEDE, "ap : rates rise".split()) == "blocked headline"
    assert verdict(config, LEDE, "rates rise ?".split()) == "blocked headline"


def test_own_markers() -> None:
    assert verdict(FilterConfig(blocklist=("Live:",)), LEDE, ["LIVE:", "x"]) == "blocked headline"
    assert verdict(FilterConfig(blocklist=("live",)), LEDE, ["gadget"]) is None


def test_the_blocklist_is_the_published_one() -> None:
    assert len(NAMAS_BLOCKLIST) == len(set(NAMAS_BLOCKLIST)) == 38


def test_report_counts_and_keeps_three_examples() -> None:
    report = FilterReport()
    for number in range(5):
        report.count_read("train")
        report.drop("train", "rule", [DroppedPair(f"lede {number}", "headline", "file: line 1")])
    report.drop("train", "other", [], 7)
    report.count_read("train", 10)
    report.move("train", "test", 2)
    report.count_kept("train", 1)
    data = report.as_json()
    assert data["train"]["read"] == 13
    assert data["test"]["read"] == 2
    assert data["train"]["kept"] == 1
    assert data["train"]["dropped"]["rule"]["pairs"] == 5
    examples = data["train"]["dropped"]["rule"]["examples"]
    assert [example["lede"] for example in examples] == ["lede 0", "lede 1", "lede 2"]
    assert data["train"]["dropped"]["other"] == {"pairs": 7, "examples": []}
    assert report.summary("train") == "rule 5, other 7"
