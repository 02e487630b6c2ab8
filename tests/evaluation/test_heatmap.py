"""Heat maps of a pair: what is in them, and how they are drawn."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledeline.core.errors import ScoreError
from ledeline.evaluation import teacher_forcing
from ledeline.evaluation.alignment_json import HeatMap
from ledeline.evaluation.figures import save
from ledeline.evaluation.heatmap import heat_map, shown
from ledeline.evaluation.heatmap_figure import heat_map_figure
from ledeline.inference.traces import PairTrace, teacher_force
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.synth.newsroom import generate
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer

STORY = next(generate(1, 3))


@pytest.fixture(scope="module")
def loaded(make_model: Callable[..., Path]) -> ModelBundle:
    return load_model(make_model())


@pytest.fixture(scope="module")
def bare(make_model: Callable[..., Path]) -> ModelBundle:
    return load_model(make_model(spm=False))


# --- data -----------------------------------------------------------------------------------------


def test_rows_are_what_was_seen(loaded: ModelBundle) -> None:
    found = heat_map(loaded, STORY.lede, STORY.headline)
    one = teacher_forcing.encode_pair(loaded, STORY.lede, STORY.headline)
    (seen,) = teacher_force(loaded.model, [(one.lede.ids, one.ids)], padded=True)
    assert seen.q is not None
    assert found.spm is not None
    assert found.spm_rows is not None
    num_source, num_steps = len(one.lede.ids), len(one.ids) + 1
    assert len(found.source) == len(found.spm_rows) == len(found.spm) == num_source
    assert len(found.attention_rows) == len(found.attention) == num_steps
    assert np.array(found.attention) == pytest.approx(seen.attention[:num_steps])
    for step in range(num_source):
        assert found.spm[step] == pytest.approx([seen.q[step, id_] for id_ in one.lede.ids])
    assert [name.split(" (")[0] for name in found.spm_rows[num_steps:]] == ["<pad>"] * (
        num_source - num_steps
    )
    assert found.spm_rows[num_steps - 1].startswith("<eos> (")


def seen_by_hand(monkeypatch: pytest.MonkeyPatch, attention: Any, q: Any) -> None:
    def by_hand(model: Any, pairs: Any, *, padded: bool) -> Iterator[PairTrace]:
        assert padded
        assert len(list(pairs)) == 1
        yield PairTrace(np.array(attention, np.float32), q)

    monkeypatch.setattr(teacher_forcing, "teacher_force", by_hand)


def test_names_by_hand(loaded: ModelBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(NATURAL, Subwords([("o", "il</w>"), ("i", "l</w>")], "oilup.￭"))
    oil, up, period = (tokenizer.encode_word(word) for word in ("oil", "up", "￭."))
    assert list(map(len, (oil, up, period))) == [1, 2, 2]
    q = np.zeros((5, tokenizer.vocabulary_size), np.float32)
    (end,) = tokenizer.encode_word("l")
    for step, type_ in enumerate([oil[0], up[0], end, period[1], period[0]]):
        q[step, type_] = 0.75
    attention = np.eye(5)[[2, 0, 4, 4, 4]]
    seen_by_hand(monkeypatch, attention, q)
    model = loaded._replace(tokenizer=tokenizer)
    found = heat_map(model, "up oil.", "oil oil")
    assert found.source == ("u·", "p", "oil", "￭·", ".")
    assert found.attention_rows == ("oil (oil)", "oil (u·)", "<eos> (.)")
    assert found.attention == ((0, 0, 1, 0, 0), (1, 0, 0, 0, 0), (0, 0, 0, 0, 1))
    assert found.spm_rows == ("oil (oil)", "oil (u·)", "<eos> (l)", "<pad> (.)", "<pad> (￭·)")
    assert found.spm == (
        (0, 0, 0.75, 0, 0),
        (0.75, 0, 0, 0, 0),
        (0, 0, 0, 0, 0),  # "l" is not in the source
        (0, 0, 0, 0, 0.75),
        (0, 0, 0, 0.75, 0),
    )


def test_places_of_a_type_have_the_same_value(loaded: ModelBundle) -> None:
    found = heat_map(loaded, "the oil and the gas", "oil")
    places = [place for place, name in enumerate(found.source) if name == "the"]
    assert len(places) == 2
    assert found.spm is not None
    assert all(row[places[0]] == row[places[1]] for row in found.spm)
    assert any(row[places[0]] != row[places[1]] for row in found.attention)


def test_sub_words_for_people() -> None:
    tokenizer = Tokenizer(NATURAL, Subwords([("￭", ",</w>"), ("￭", "a")], "a￭,", ["UNK"]))
    names = {name: shown(id_, tokenizer) for id_, name in enumerate(tokenizer.types)}
    specials = ("<pad>", "<unk>", "<bos>", "<eos>")
    assert tuple(names[name] for name in specials) == specials
    assert (names["a"], names["a@@"]) == ("a", "a·")
    assert (names["￭,"], names["￭a@@"]) == (",", "a·")
    assert (names["￭"], names["￭@@"]) == ("￭", "￭·")


def test_a_text_that_ends_like_a_mark() -> None:
    tokenizer = Tokenizer(NATURAL, Subwords([("a", "@"), ("a@", "@</w>")], "a@"))
    (whole,) = tokenizer.encode_word("a@@")
    assert shown(whole, tokenizer) == "a@@"


def test_without_spm(bare: ModelBundle) -> None:
    found = heat_map(bare, STORY.lede, STORY.headline)
    assert found.spm is found.spm_rows is None
    assert len(found.attention_rows) == len(found.attention)
    assert found.attention_rows[-1].startswith("<eos> (")


def test_more_headline_than_source(loaded: ModelBundle) -> None:
    found = heat_map(loaded, "a", "a a a")
    assert found.spm_rows is not None
    assert len(found.spm_rows) == len(found.attention_rows) == 4
    assert not any(name.startswith("<pad>") for name in found.spm_rows)


def test_an_empty_headline(loaded: ModelBundle) -> None:
    found = heat_map(loaded, "a a a", "")
    assert [name.split(" (")[0] for name in found.spm_rows or ()] == ["<eos>", "<pad>", "<pad>"]


@pytest.mark.parametrize("lede", ["", " \n", "日本", "\ud800"])
def test_no_lede(loaded: ModelBundle, lede: str) -> None:
    with pytest.raises(ScoreError, match="needs a lede"):
        heat_map(loaded, lede, "a")


@pytest.mark.parametrize("system", ["loaded", "bare"])
def test_as_json(system: str, request: pytest.FixtureRequest) -> None:
    found = heat_map(request.getfixturevalue(system), STORY.lede, STORY.headline)
    fields = json.loads(json.dumps(found.as_dict()))
    assert fields["source"] == list(found.source)
    assert fields["attention_rows"] == list(found.attention_rows)
    assert np.array(fields["attention"]) == pytest.approx(np.array(found.attention), abs=5e-5)
    if found.spm is None:
        assert fields["spm"] is fields["spm_rows"] is None
    else:
        assert fields["spm_rows"] == list(found.spm_rows or ())
        assert np.array(fields["spm"]) == pytest.approx(np.array(found.spm), abs=5e-5)
    values = [value for row in fields["attention"] for value in row]
    assert values == [round(value, 4) for value in values]
    assert len(set(values)) > 10


# --- figure ---------------------------------------------------------------------------------------


def made(num_source: int, num_headline: int, name: str = "word", *, spm: bool = True) -> HeatMap:
    steps = max(num_source, num_headline + 1)
    rows = np.random.default_rng(0).dirichlet(np.ones(num_source), steps).tolist()
    names = tuple(f"{name}{step} ({name})" for step in range(steps))
    values = tuple(map(tuple, rows))
    return HeatMap(
        tuple(f"{name}{place}" for place in range(num_source)),
        names[: num_headline + 1],
        values[: num_headline + 1],
        names if spm else None,
        values if spm else None,
    )


def maps(figure: Any) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_title(loc="left")]


def test_names_and_values_are_drawn_where_they_belong() -> None:
    heat = made(20, 4)
    attention, spm = maps(heat_map_figure(heat))
    for axes, names, values in (
        (attention, heat.attention_rows, heat.attention),
        (spm, heat.spm_rows, heat.spm),
    ):
        assert tuple(label.get_text() for label in axes.get_xticklabels()) == heat.source
        assert tuple(label.get_text() for label in axes.get_yticklabels()) == names
        assert axes.get_xticks().tolist() == [place + 0.5 for place in range(20)]
        assert axes.get_yticks().tolist() == [step + 0.5 for step in range(len(names))]
        bottom, top = axes.get_ylim()
        assert (bottom, top) == (len(names), 0)  # the first step on top
        (mesh,) = axes.collections
        assert np.array(mesh.get_array()) == pytest.approx(np.array(values))
        assert mesh.get_clim() == (0, 1)
    assert [line.get_ydata()[0] for line in spm.lines] == [5]  # <pad> is below
    assert not attention.lines


def test_a_figure_of_attention_alone() -> None:
    figure = heat_map_figure(made(12, 4, spm=False))
    assert [axes.get_title(loc="left") for axes in maps(figure)] == ["Attention"]


@pytest.mark.parametrize(
    ("num_source", "num_headline"), [(1, 0), (1, 9), (5, 3), (16, 8), (60, 12)]
)
def test_cells_can_be_read(num_source: int, num_headline: int) -> None:
    """Drawn at their size, a name is at most as high as its row and fits the sheet."""
    figure = heat_map_figure(made(num_source, num_headline))
    figure.draw_without_rendering()
    for axes in maps(figure):
        box = axes.get_window_extent()
        labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        height = box.height / len(axes.get_yticks())
        width = box.width / len(axes.get_xticks())
        assert height == pytest.approx(width, rel=0.25)
        for label in labels:
            extent = label.get_window_extent()
            assert min(extent.width, extent.height) <= 1.1 * min(width, height)
            assert extent.x0 >= -1
            assert extent.y0 >= -1
            assert label.get_fontsize() >= 7
    first, *others = [axes.get_window_extent() for axes in maps(figure)]
    assert all(not first.overlaps(other) for other in others)


def test_short_pairs_stand_side_by_side() -> None:
    for num_source, beside in ((5, True), (16, True), (17, False), (60, False)):
        figure = heat_map_figure(made(num_source, 3))
        figure.draw_without_rendering()
        first, second = (axes.get_position() for axes in maps(figure))
        assert (first.x1 < second.x0) == beside
        if beside:
            assert first.y1 == pytest.approx(second.y1)
        else:
            assert second.y1 < first.y0
            assert (first.x0, first.x1) == pytest.approx((second.x0, second.x1))


@pytest.mark.parametrize("name", ["日本", "$\\frac{$", "a_b$_", "😀", "مرحبا", "=" * 90])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_any_letters_are_drawn_as_they_are(name: str, suffix: str, tmp_path: Path) -> None:
    figure = heat_map_figure(made(5, 2, name))
    path = tmp_path / f"map.{suffix}"
    save(figure, path)
    assert path.stat().st_size > 1000
    label = maps(figure)[0].get_xticklabels()[0]
    assert label.get_text() == (f"{name}0" if len(name) < 30 else "=" * 31 + "…")
    assert not label.get_parse_math()


def test_a_long_map_is_no_large_file(tmp_path: Path) -> None:
    save(heat_map_figure(made(60, 12)), tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size < 400_000


def test_names_of_a_very_long_map_shrink_with_its_cells() -> None:
    figure = heat_map_figure(made(400, 5, spm=False))
    (axes,) = maps(figure)
    inches = figure.get_figwidth() / 400
    assert inches < 0.2  # or it would be a sheet of 80 inches
    assert {label.get_fontsize() < 72 * inches for label in axes.get_xticklabels()} == {True}
