"""What `ledeline align` makes of pairs: choices, links, tables, drawings."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.table import Table

from ledeline.cli.views.alignment import alignment_tables
from ledeline.core.errors import ConfigError, ScoreError
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.evaluation import align as module
from ledeline.evaluation.align import AlignedSet, align_pairs, chosen_method, draw_pair, find_pairs
from ledeline.evaluation.heatmap import heat_map
from ledeline.evaluation.links import AlignmentScore, Links
from ledeline.evaluation.set_alignment import SetLinks, alignment_summary
from ledeline.evaluation.word_pairs import PairingRule, sample, word_pairs
from ledeline.inference.engines import open_model
from ledeline.model.format.model_folder import ModelBundle
from ledeline.synth.newsroom import generate

pytestmark = pytest.mark.usefixtures("one_thread")

STORIES = list(generate(12, 7))
ROOM = EvaluationSet(
    "room",
    ("room.jsonl",),
    [story.lede for story in STORIES],
    [story.headline for story in STORIES],
    [story.alignment for story in STORIES],
    "room.jsonl",
)


@pytest.fixture(scope="module")
def loaded(model_folder: Path) -> ModelBundle:
    return open_model(model_folder, "cpu")


class TestChoices:
    def test_pairs(self) -> None:
        names = {"lede": "lede", "headline": "headline"}
        test_set = find_pairs(["a b", "b"], None, None, **names)
        assert test_set.pairs == [("a b", "b")]
        for pair, given, gold, sentence in [
            ([], None, None, "a lede and its headline, or many pairs"),
            (["a", "b"], "t.csv", None, "a lede and its headline, or many pairs"),
            (["a", "b", "c"], None, None, "one pair is two texts"),
            (["a", "b"], None, "gold.txt", "--gold"),
        ]:
            with pytest.raises(ConfigError, match=sentence):
                find_pairs(pair, given, gold, **names)

    def test_methods(self, loaded: ModelBundle, make_model: Callable[..., Path]) -> None:
        bare = open_model(make_model(spm=False), "cpu")
        assert chosen_method(loaded, None) == "spm-vocabulary"
        assert chosen_method(loaded, "diagonal") == "diagonal"
        assert chosen_method(bare, None) == "attention"
        with pytest.raises(ConfigError, match=r"\(EncDec\+sGate\) has no SPM; use attention, "):
            chosen_method(bare, "spm-sentence")


class TestDrawing:
    def test_the_row_that_is_drawn(
        self, loaded: ModelBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("matplotlib")
        drawn = []

        def watched(model: ModelBundle, lede: str, headline: str) -> object:
            drawn.append((lede, headline))
            return heat_map(model, lede, headline)

        monkeypatch.setattr(module, "heat_map", watched)
        draw_pair(loaded, ROOM, 12, tmp_path / "a.png")
        assert drawn == [ROOM.pairs[11]]
        with pytest.raises(ConfigError, match="--row 13: there are only 12 pairs"):
            draw_pair(loaded, ROOM, 13, tmp_path / "b.png")
        with pytest.raises(ScoreError, match=r"b\.bmp"):
            draw_pair(loaded, ROOM, 1, tmp_path / "b.bmp")


def test_many_pairs(loaded: ModelBundle) -> None:
    aligned = align_pairs(loaded, ROOM, 4, 1)
    fields = aligned.as_dict()
    assert fields["pairs"] == 12
    assert "links" not in fields
    assert fields["words"]["attention"]["pairs"] == 4
    assert len(list(aligned.lines("identity"))) == 12


def test_a_summary(loaded: ModelBundle) -> None:
    long = ROOM._replace(ledes=[f"{ROOM.ledes[0]} {'word ' * 60}", *ROOM.ledes[1:]])
    places = set()
    for seed in range(1, 6):
        found = alignment_summary(loaded, long, num_word_pairs=4, num_heat_maps=3, seed=seed)
        drawn = [one.pair for one in found.heat_maps]
        assert drawn == sorted(set(drawn))
        assert 0 not in drawn  # too long to be read
        places.add(tuple(drawn))
        for one in found.heat_maps:
            assert one.heat_map == heat_map(loaded, *long.pairs[one.pair])
    assert len(places) > 1
    pairs = sample(long.pairs, 4, 5)
    rules: dict[PairingRule, str] = {"vocabulary": "spm-vocabulary", "attention": "attention"}
    assert found.words == {
        method: word_pairs(loaded, pairs, [rule])[rule].table(30, content_only=True)
        for rule, method in rules.items()
    }
    assert found.quality is not None
    assert found.quality["spm-vocabulary"].pad_recall is not None
    assert found.quality["attention"].pad_recall is None


class TestView:
    def aligned(self, links: Links, quality: dict[str, AlignmentScore] | None = None) -> AlignedSet:
        test_set = EvaluationSet("pair", (), ["rain fell in Oslo"], ["Oslo rain"])
        return AlignedSet(test_set, SetLinks({"attention": [links]}, quality), {})

    def rows(self, part: object) -> list[list[str]]:
        console = Console(width=200, force_terminal=True, color_system=None, highlight=False)
        with console.capture() as captured:
            console.print(part)
        return [line.split() for line in captured.get().splitlines()]

    def test_words_stand_beside_those_they_are_linked_to(self) -> None:
        shown = self.rows(alignment_tables(self.aligned(frozenset({(3, 0), (0, 1)}))))
        assert ["Oslo", "Oslo"] in shown
        assert ["rain", "rain"] in shown
        assert ["dropped", "fell", "in"] in shown

    def test_quality(self) -> None:
        quality = {
            "attention": AlignmentScore(0.1, 0.2, 0.3, 5, 5, 1, 0.4, 0.5, 0.6, 0.7),
            "diagonal": AlignmentScore(0.1, 0.2, 0.9, 5, 5, 1, 0.4, 0.5),
        }
        group = alignment_tables(self.aligned(frozenset(), quality))
        assert isinstance(group, Group)
        table = group.renderables[1]
        assert isinstance(table, Table)
        assert ["attention", "0.100", "0.200", "0.300", "0.500", "0.700"] in self.rows(table)
        assert [row.style for row in table.rows] == ["bold", ""]
