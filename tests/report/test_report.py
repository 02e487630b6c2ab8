import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from html_page import Elements
from ledeline.core.errors import ScoreError
from ledeline.evaluation.audit import binned
from ledeline.evaluation.significance import compare
from ledeline.report import report_page, write_report
from ledeline.report.bar_chart_svg import Series, bar_chart
from ledeline.report.chosen_examples import choose_examples
from ledeline.report.escaping import escape
from ledeline.report.marking import marked
from ledeline.report.published import EARLIER_ROWS, OWN_ROWS, SETS, published_set
from ledeline.report.study import read_study
from ledeline.report.svg import element
from report_folders import Pair, TestSet, newsroom, write_evaluation

SYSTEMS = {"EncDec": 0.6, "EncDec+sGate": 0.55, "EncDec+SPM": 0.3, "EncDec+sGate+SPM": 0.2}


class Page(Elements):
    """A page of the report."""

    def all(self, tag: str, **wanted: str) -> list[str]:
        """The text of each such element."""
        return [
            "".join(text)
            for name, about, text in self.elements
            if name == tag and all(about.get(key.strip("_")) == wanted[key] for key in wanted)
        ]

    def tables(self) -> dict[str, list[list[str]]]:
        """Caption -> rows of cells."""
        found: dict[str, list[list[str]]] = {}
        for tag, _, parts in self.elements:
            if tag == "caption":
                rows = found.setdefault("".join(parts), [])
            elif tag == "tr":
                rows.append([])
            elif tag in ("th", "td"):
                rows[-1].append("".join(parts))
        return found

    def table(self, beginning: str) -> list[list[str]]:
        return next(rows for name, rows in self.tables().items() if name.startswith(beginning))


Folders = Callable[..., list[Path]]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Makes folders of systems on sets of 60 pairs: (system names, set names) -> folders."""

    def make(systems: list[str], sets: list[str], **about: bool) -> list[Path]:
        return [
            write_evaluation(
                tmp_path / f"system-{number}",
                system,
                {
                    name: TestSet(newsroom(60, seed, SYSTEMS.get(system, 0.4)), **about)  # type: ignore[arg-type]
                    for seed, name in enumerate(sets)
                },
            )
            for number, system in enumerate(systems)
        ]

    return make


@pytest.fixture(scope="module", autouse=True)
def small_sets() -> Iterator[None]:
    """A set of 80 pairs can be Rush's."""
    assert SETS["Rush"] == 1951
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETS, "Rush", 80)
        yield


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four systems on two sets, one of them Rush's."""
    base = tmp_path_factory.mktemp("four")
    return [
        write_evaluation(
            base / system,
            system,
            {
                "news": TestSet(newsroom(80, 1, oddness), with_spm="SPM" in system),
                "Gigaword-RUSH": TestSet(
                    newsroom(80, 2, oddness), with_spm="SPM" in system, with_gold=False
                ),
            },
        )
        for system, oddness in SYSTEMS.items()
    ]


@pytest.fixture(scope="module")
def html(four: list[Path]) -> str:
    return report_page(four, title="Four & more")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def summary(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    sets: dict[str, dict[str, dict[str, float]]]
    sets = json.loads((folder / "evaluation.json").read_text())["sets"]
    return sets


class TestPage:
    def test_it_is_one_document_with_headings_in_order(self, html: str, page: Page) -> None:
        assert html.startswith('<!doctype html>\n<html lang="en">')
        assert [page.all("title")[0]] == page.all("h1") == ["Four & more"]
        levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))

    def test_its_header_says_what_was_compared(self, page: Page) -> None:
        assert page.all("p", class_="lead") == [
            "4 systems on 2 test sets (news, Gigaword-RUSH): EncDec, EncDec+sGate, EncDec+SPM, "
            "EncDec+sGate+SPM; the baseline is EncDec."
        ]

    def test_ids_are_unique_and_links_lead_to_them(self, page: Page) -> None:
        ids = [about["id"] for _, about, _ in page.elements if "id" in about]
        links = [about["href"] for _, about, _ in page.elements if "href" in about]
        assert len(ids) == len(set(ids))
        assert links == [f"#{one}" for one in ids]
        assert page.all("h2") == page.all("a")

    def test_it_loads_nothing_and_runs_nothing(self, html: str, page: Page) -> None:
        tags = {tag for tag, _, _ in page.elements}
        assert not tags & {"script", "link", "img", "iframe", "object", "embed", "image", "use"}
        names = {name for _, about, _ in page.elements for name in about}
        assert not {name for name in names if name.startswith("on")} | (names & {"src", "style"})
        assert "://" not in html
        assert "url(" not in html
        assert "@import" not in html

    def test_its_policy_allows_its_own_style_sheet_alone(self, page: Page) -> None:
        (policy,) = (about["content"] for _, about, _ in page.elements if "http-equiv" in about)
        assert policy is not None
        assert re.fullmatch(
            r"default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; "
            r"form-action 'none'",
            policy,
        )

    def test_tables_and_drawings_are_named(self, page: Page) -> None:
        tags = [tag for tag, _, _ in page.elements]
        assert tags.count("table") == tags.count("caption") == tags.count("thead")
        assert all("scope" in about for tag, about, _ in page.elements if tag == "th")
        for tag, about, _ in page.elements:
            if tag == "svg" and "aria-hidden" not in about:
                assert about["role"] == "img"
                assert about["aria-label"]
            if about.get("class") == "scroll":
                assert about["tabindex"] == "0"
                assert about["aria-label"]

    def test_rows_of_a_table_have_the_same_number_of_columns(self, page: Page) -> None:
        tables: list[list[int]] = []
        from_above = 0
        for tag, about, _ in page.elements:
            if tag == "table":
                tables.append([])
            elif tag == "tr":
                tables[-1].append(from_above)
                from_above = 0
            elif tag in ("th", "td"):
                tables[-1][-1] += int(about.get("colspan") or 1)
                from_above += int(about.get("rowspan") or 1) - 1
        assert tables
        assert all(len(set(widths)) == 1 for widths in tables)

    def test_the_same_folders_are_the_same_bytes(self, four: list[Path], html: str) -> None:
        assert report_page(four, title="Four & more") == html

    def test_no_clock_is_read(self, html: str) -> None:
        assert set(re.findall(r"\b20[2-9]\d-\d\d-\d\d", html)) == {"2026-01-02"}


class TestResults:
    def test_scores_are_those_of_the_folders(self, four: list[Path], page: Page) -> None:
        rows = page.table("ROUGE F1")
        for folder, row in zip(four, rows[2:6], strict=True):
            wanted = [
                f"{100 * one[measure]['f1']:.2f}"
                + "|"
                + f"{100 * one[measure]['low']:.2f}–{100 * one[measure]['high']:.2f}"
                for one in summary(folder).values()
                for measure in ("rouge1", "rouge2", "rougeL")
            ]
            found = [re.sub(r"^(\d+\.\d\d)\**", r"\1|", cell) for cell in row[1:]]
            assert found == wanted
        assert rows[2][0] == "EncDec baseline"

    def test_the_best_are_bold(self, page: Page) -> None:
        rows = page.table("ROUGE F1")[2:6]
        best = [max(row[column][:5] for row in rows) for column in range(1, 7)]
        bold = page.all("b")
        assert all(one in bold for one in best)

    def test_marks_are_those_of_the_test(self, four: list[Path], page: Page) -> None:
        def pairs(folder: Path, name: str) -> list[list[float]]:
            lines = (folder / name / "pairs.tsv").read_text().splitlines()[1:]
            return [[float(cell) for cell in line.split("\t")[:3]] for line in lines]

        rows = page.table("ROUGE F1")[2:6]
        assert all("*" not in cell for cell in rows[0])
        num_marks = 0
        for folder, row in zip(four[1:], rows[1:], strict=True):
            for place, name in enumerate(("news", "Gigaword-RUSH")):
                tested = compare(np.array(pairs(four[0], name)), np.array(pairs(folder, name)))
                for number, one in enumerate(tested):
                    marks = re.sub(r"[^*]", "", row[1 + 3 * place + number])
                    p = one.randomisation_p
                    assert marks == ("**" if p < 0.01 else "*" if p < 0.05 else "")
                    num_marks += len(marks)
        assert num_marks

    def test_differences_have_intervals_and_both_p(self, page: Page) -> None:
        rows = page.table("Difference of F1")
        assert [row[0] for row in rows[2:]] == [
            *("news", *list(SYSTEMS)[1:]),
            *("Gigaword-RUSH", *list(SYSTEMS)[1:]),
        ]
        for row in rows:
            if len(row) == 10 and row[0] in SYSTEMS:
                number = r"[+−]\d+\.\d\d"
                assert re.fullmatch(rf"{number}{number}\xa0to {number}", row[1])
                assert re.fullmatch(r"<\xa00\.001|[01]\.\d{3}", row[2])
                assert re.fullmatch(r"(?:<\xa00\.001|[01]\.\d{3})\*{0,2}", row[3])

    def test_another_baseline_can_be_named(self, four: list[Path]) -> None:
        page = Page(report_page(four, baseline="EncDec+SPM"))
        rows = page.table("ROUGE F1")
        assert rows[4][0] == "EncDec+SPM baseline"
        assert "Differences from EncDec+SPM" in page.all("h3")

    def test_other_references_are_not_compared(self, folders: Folders) -> None:
        ours, theirs = folders(["ours", "theirs"], ["news", "wire"])
        path = theirs / "news" / "reference.txt"
        path.write_text(path.read_text().replace("a", "b"))
        page = Page(report_page([ours, theirs]))
        assert "On news, theirs is not comparable with ours: the references differ." in " ".join(
            page.all("p", class_="note")
        )
        assert [row[0] for row in page.table("Difference of F1")[2:]] == ["wire", "theirs"]
        assert all("*" not in cell for cell in page.table("ROUGE F1")[3][1:4])

    def test_a_set_that_a_system_lacks_is_a_dash(self, folders: Folders, tmp_path: Path) -> None:
        (ours,) = folders(["ours"], ["news", "wire"])
        sets = {"news": TestSet(newsroom(60, 0, 0.5))}
        theirs = write_evaluation(tmp_path / "theirs", "theirs", sets)
        page = Page(report_page([theirs, ours]))
        assert page.table("ROUGE F1")[2][4:] == ["–", "–", "–"]
        assert page.table("Odd words")[2][4:] == ["–", "–", "–"]
        assert "wire" in page.all("h3")  # with examples of the one that has it

    def test_two_of_one_name_are_told_apart_by_their_folders(self, tmp_path: Path) -> None:
        sets = {"news": TestSet(newsroom(20, 0, 0.5))}
        made = [write_evaluation(tmp_path / name, "EncDec", sets) for name in ("a/x", "b/x", "c/y")]
        page = Page(report_page(made, baseline="EncDec (y)"))
        assert [row[0] for row in page.table("ROUGE F1")[2:5]] == [
            "EncDec (a/x)",
            "EncDec (b/x)",
            "EncDec (y) baseline",
        ]


class TestComparability:
    def test_scores_made_in_another_way_are_not_compared(self, tmp_path: Path) -> None:
        one = write_evaluation(tmp_path / "a", "a", {"news": TestSet(newsroom(20, 1, 0.5))})
        two = write_evaluation(tmp_path / "b", "b", {"news": TestSet(newsroom(20, 1, 0.1))})
        assert len(read_study([one, two]).comparisons) == 1
        path = two / "evaluation.json"
        path.write_text(path.read_text().replace("|stem:no", "|stem:porter"))
        assert read_study([one, two]).comparisons == {}
        notes = " ".join(Page(report_page([one, two])).all("p", class_="note"))
        assert "b is not comparable with a: scores were made in another way" in notes

    def test_only_a_system_that_is_not_comparable_knows_what_is_irrelevant(
        self, tmp_path: Path
    ) -> None:
        pairs = newsroom(20, 1, 0.5)
        first = TestSet(pairs, with_sources=False)
        other = TestSet([Pair(one.lede, "another", one.headline) for one in pairs])
        folders = [
            write_evaluation(tmp_path / "a", "a", {"news": first}),
            write_evaluation(tmp_path / "b", "b", {"news": other}),
        ]
        rows = Page(report_page(folders)).table("Odd words")
        assert rows[2][3] == "–"
        assert rows[3][3] != "–"

    def test_a_summary_that_its_pairs_contradict(self, tmp_path: Path) -> None:
        folder = write_evaluation(tmp_path / "a", "a", {"news": TestSet(newsroom(20, 1, 0.5))})
        path = folder / "evaluation.json"
        about = json.loads(path.read_text())
        about["sets"]["news"]["rouge2"]["f1"] -= 0.001
        path.write_text(json.dumps(about))
        with pytest.raises(ScoreError, match=r"pairs\.tsv: the mean of rouge2 is"):
            report_page([folder])

    def test_a_page_is_html_by_its_name(self, four: list[Path], tmp_path: Path) -> None:
        before = (four[0] / "evaluation.json").read_bytes()
        with pytest.raises(ScoreError, match=r"ends in \.html"):
            write_report(four, four[0] / "evaluation.json")
        assert (four[0] / "evaluation.json").read_bytes() == before


class TestPublished:
    def test_rush_is_shown_in_its_column(self, page: Page) -> None:
        rows = page.table("ROUGE F1")
        assert ["EncDec+sGate+SPM", "", "", "", "35.79", "17.84", "33.34"] in rows
        assert ["WFE Suzuki and Nagata 2017", "", "", "", "36.30", "17.31", "33.88"] in rows
        assert "Published results" not in page.all("h3")
        assert "Kiyono" in " ".join(page.all("p", class_="note"))

    def test_without_rush_there_is_a_table_of_its_own(self, folders: Folders) -> None:
        page = Page(report_page(folders(["EncDec"], ["news"])))
        rows = page.table("Published ROUGE F1")
        assert len(rows) == 2 + 1 + 4 + 1 + 5
        assert rows[3] == [
            "EncDec",
            *"45.74 23.80 42.95 34.52 16.77 32.19 45.62 24.26 42.87".split(),
        ]
        assert rows[8] == [
            "ABS Rush et al. 2015", *"– – – 29.55 11.32 26.42 37.41 15.87 34.70".split(),
        ]  # fmt: skip
        assert len(page.table("ROUGE F1")) == 3

    def test_a_set_is_known_by_its_name(self) -> None:
        assert published_set("gigaword-RUSH.1951", 80) == "Rush"
        assert published_set("zhou2017", 2000) == "Zhou"
        assert published_set("ours", 10_000) is None
        assert published_set("rush", 60) is None  # a part of it, or another set of that name

    def test_figures_are_the_papers(self) -> None:
        figures = [number for row in OWN_ROWS for one in row.figures.values() for number in one]
        assert len(figures) == 36
        assert round(sum(figures), 2) == 1250.11
        others = [number for row in EARLIER_ROWS for one in row.figures.values() for number in one]
        assert len(others) == 21
        assert round(sum(others), 2) == 619.16


class TestOdd:
    def test_sums_and_rates_are_those_of_the_folders(self, four: list[Path], page: Page) -> None:
        for folder, row in zip(four, page.table("Odd words")[2:], strict=True):
            sums = [
                one["odd"][kind]
                for one in summary(folder).values()
                for kind in ("repeating", "lacking", "irrelevant")
            ]
            assert row[1:] == [f"{number}{1000 * number / 80:.1f}" for number in sums]

    def test_bars_are_the_counts_of_pairs(self, four: list[Path], page: Page) -> None:
        lines = (four[2] / "news" / "pairs.tsv").read_text().splitlines()[1:]
        lacking = [int(line.split("\t")[4]) for line in lines]
        wanted = {f"EncDec+SPM, {n}: {lacking.count(n)}" for n in set(lacking) if 0 < n < 10}
        assert wanted <= set(page.all("title"))
        (summary,) = (
            about["aria-label"]
            for tag, about, _ in page.elements
            if tag == "svg" and (about.get("aria-label") or "").startswith("Lacking words on news")
        )
        assert summary is not None
        assert f"EncDec+SPM: 1: {lacking.count(1)}, 2: {lacking.count(2)}," in summary

    @given(st.lists(st.integers(0, 30), max_size=25))
    def test_bins_hold_all_but_the_headlines_without(self, counts: list[int]) -> None:
        bins = binned(counts, 10)[1:]
        assert len(bins) == 10
        assert sum(bins) == sum(counts[1:])
        assert list(bins[:9]) == [*counts[1:10], *[0] * 9][:9]

    @pytest.mark.parametrize("number", [1, 8, 20])
    def test_any_number_of_systems_fits(self, number: int) -> None:
        series = [Series(place, f"s{place}", (5, 0, 7)) for place in range(number)]
        page = Page(bar_chart(("1", "2", "3"), series, "x", "all"))
        bars = [about for tag, about, _ in page.elements if tag == "rect"]
        assert len(bars) == 2 * number
        ends = [(float(bar["x"] or 0), float(bar["width"] or 0)) for bar in bars]
        for (x, width), (after, _) in pairwise(ends):
            assert x + width <= after + 0.02
        assert ends[-1][0] + ends[-1][1] <= 368
        assert len({bar["class"] for bar in bars}) == min(number, 16)


class TestAlignment:
    def test_quality_is_that_of_the_folders(self, page: Page) -> None:
        rows = page.table("Links against gold")
        assert [
            "SPM, likeliest of the vocabulary",
            "90.00",
            "88.77",
            "10.00",
            "45.00",
            "30.00",
        ] in rows
        assert rows[-3:] == [
            ["All systems alike"],
            ["Same place, no model", "11.00", "9.77", "89.00", "5.50", "–"],
            ["Proportional place, no model", "11.00", "9.77", "89.00", "5.50", "–"],
        ]

    def test_word_pairs_are_those_of_the_folders(self, page: Page) -> None:
        rows = page.table("Aligned word pairs")
        assert [
            "Inflection", "510", "24.5\xa0%",
            "(calls, called)\xa0×25, (warns, warned)\xa0×19, (win, won)\xa0×7",
        ] in rows  # fmt: skip

    def test_heat_maps_have_rows_columns_and_values(self, four: list[Path], page: Page) -> None:
        aligned = json.loads((four[2] / "news" / "alignment.json").read_text())
        heat = aligned["heatmaps"][0]
        titles = page.all("title")
        for kind in ("attention", "spm"):
            for label, values in zip(heat[f"{kind}_rows"], heat[kind], strict=True):
                for word, value in zip(heat["source"], values, strict=True):
                    if value >= 0.005:
                        assert f"{label} ← {word}: {value:.2f}" in titles
        texts = page.all("text")
        pad = next(row for row in heat["spm_rows"] if row.startswith("<pad>") and len(row) < 24)
        assert pad in texts
        assert "Source-side prediction of EncDec+SPM" in page.all("figcaption")
        assert "Source-side prediction of EncDec" not in page.all("figcaption")


class TestExamples:
    def test_groups_come_as_in_the_paper(self, page: Page) -> None:
        titles = [
            "(1) Repeating phrases",
            "(2) Lack of important phrases",
            "(3) Irrelevant phrases",
            "Drawn at random",
        ]
        assert page.all("h4") == titles * 2

    def test_each_shows_lede_gold_and_all_headlines(self, four: list[Path], page: Page) -> None:
        lines = (four[0] / "news" / "headlines.jsonl").read_text().splitlines()
        answers = [json.loads(line) for line in lines]
        pair = int(page.all("p", class_="number")[0].removeprefix("Pair ")) - 1
        first = page.all("article")[0]
        assert answers[pair]["source"] in first
        assert answers[pair]["headline"] in first
        assert page.all("dt")[:6] == ["Lede", "Gold", *SYSTEMS]

    def test_gold_is_shown_as_it_was_given(self, tmp_path: Path) -> None:
        sets = {"news": TestSet([Pair("Oil fell to $82.", "Oil-price drop: $82!", "oil falls")])}
        folder = write_evaluation(tmp_path / "e", "s", sets)
        assert "Oil-price drop: $82!" in Page(report_page([folder])).all("dd")

    def test_the_worst_come_first_and_none_twice(self, four: list[Path]) -> None:
        study = read_study(four)
        choices = choose_examples(study, "news")
        used = [pair for choice in choices for pair in choice.pairs]
        assert len(used) == len(set(used))
        ours = four[0] / "news" / "pairs.tsv"
        counts = [line.split("\t")[3] for line in ours.read_text().splitlines()[1:]]
        repeating = [int(counts[pair]) for pair in choices[0].pairs]
        assert repeating == sorted(repeating, reverse=True)
        assert repeating[0] > 1
        assert [choice.kind for choice in choices] == ["repeating", "lacking", "irrelevant", None]

    def test_odd_words_are_marked(self, tmp_path: Path) -> None:
        sets = [
            {"news": TestSet([Pair("Duran Duran are back.", "Duran Duran back", text)])}
            for text in ("Duran, Duran, Duran Elvis", "Duran Duran")
        ]
        made = [write_evaluation(tmp_path / f"{n}", f"s{n}", one) for n, one in enumerate(sets)]
        page = Page(report_page(made))
        assert page.all("mark") == ["Duran"]
        assert "Duran, Duran, Duran Elvis 1 repeating" in page.all("dd")
        assert page.all("h3")[-3] == "(1) Repeating phrases"

    @given(st.lists(st.sampled_from(["a", "b", "rise", "ri", "'s"]), max_size=8), st.data())
    def test_marking_keeps_the_headline(self, words: list[str], data: st.DataObject) -> None:
        places = data.draw(st.sets(st.sampled_from(range(len(words))))) if words else set()
        headline = ", ".join(words).replace(", 's", "'s")
        cuts = marked(headline, words, places)
        assert "".join(cut for cut, _ in cuts) == headline
        assert sum(odd for _, odd in cuts) == len(places)

    def test_a_word_inside_another_is_not_marked(self) -> None:
        words = ["cats", "at", "the", "mat", "at"]
        cuts = marked("Cats at the mat at", words, {1, 4})
        assert cuts == [("cats ", False), ("at", True), (" the mat ", False), ("at", True)]

    def test_a_headline_written_otherwise_shows_its_words(self) -> None:
        assert marked("Rise!", ["rise", "up"], {1}) == [("rise ", False), ("up", True)]


class TestMissingParts:
    def test_one_system_is_compared_with_nothing(self, folders: Folders) -> None:
        page = Page(report_page(folders(["EncDec"], ["news"])))
        assert page.all("p", class_="lead") == ["1 system on 1 test set (news): EncDec."]
        assert not any("ifferences" in heading for heading in page.all("h3"))
        assert not page.all("b")
        assert not page.all("sup")

    def test_without_alignment_it_is_not_spoken_of(self, folders: Folders) -> None:
        page = Page(report_page(folders(["a", "b"], ["news"], with_alignment=False)))
        assert page.all("h2") == ["Results", "Odd generation", "Examples", "How it was made"]

    def test_an_alignment_that_was_left_out_has_its_reason(self, folders: Folders) -> None:
        first, second = folders(["a", "b"], ["news"])
        path = second / "news" / "alignment.json"
        path.write_text(json.dumps({"words": {}, "left_out": "alignment needs <torch>"}))
        reason = "b was not aligned: alignment needs <torch>."
        assert reason in Page(report_page([first, second])).all("p", class_="note")
        alone = Page(report_page([second]))
        assert "Alignment" in alone.all("h2")
        assert reason in alone.all("p", class_="note")

    def test_without_sources_irrelevant_is_not_spoken_of(self, folders: Folders) -> None:
        page = Page(report_page(folders(["a", "b"], ["news"], with_sources=False)))
        assert page.table("Odd words")[1] == ["Repeating", "Lacking"]
        assert not any("rrelevant" in one for one in page.all("figcaption"))
        assert "(3) Irrelevant phrases" not in page.all("h3")

    def test_no_heading_is_followed_by_nothing(self, folders: Folders) -> None:
        for about in ({}, {"with_alignment": False}, {"with_gold": False}, {"with_spm": False}):
            page = Page(report_page(folders(["a", "b"], ["news"], **about)))
            tags = [tag for tag, _, _ in page.elements]
            for before, after in pairwise(tags):
                if re.fullmatch("h[2-4]", before):
                    assert not re.fullmatch(rf"h[1-{before[1]}]|section", after)

    def test_details_say_how_it_was_made(self, four: list[Path], page: Page) -> None:
        made = json.loads((four[1] / "evaluation.json").read_text())
        assert made["command"] in page.all("code")
        facts = page.all("dd")
        assert made["commit"] in facts
        assert "beam: 20, min_length: 1, max_length: null" in facts
        rows = page.table("Test sets")
        assert rows[1][:6] == ["news", "80", "12.5", "6.4", "3", "0"]
        assert rows[1][6:] == [made["sets"]["news"]["signature"], "news.jsonl"]

    def test_work_that_was_gone_on_with_has_no_speed(self, tmp_path: Path) -> None:
        one = TestSet(newsroom(5, 0, 0.5), changes={"seconds": None})
        page = Page(report_page([write_evaluation(tmp_path / "a", "a", {"n": one}, date=None)]))
        assert page.table("Test sets")[1][2:4] == ["–", "–"]
        assert "Ended" not in page.all("dt")


NASTY = [
    "<script>alert(1)</script>",
    "\"quotes\" & 'more' </title></style>",
    "\u202eright to left\u202c \u05d0\u05d1 \u2067",
    "x" * 10_000,
    "\x00\x1b\ud800 \ufffe \u2028 &amp; &#x3c;b&gt;",
]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> str:
    base = tmp_path_factory.mktemp("nasty")
    made = []
    for number in (1, 2):
        pairs = [_encodable(Pair(one, f"{one} gold", one * number)) for one in NASTY]
        sets = {"<b>set<b>": TestSet(pairs)}
        name = NASTY[-number]
        made.append(write_evaluation(base / str(number), name, sets, command=NASTY[0], device=name))
    return report_page(made, title=NASTY[0])


class TestEscaping:
    def test_no_text_is_markup(self, nasty: str, page: Page) -> None:
        found = Page(nasty)
        known = {tag for tag, _, _ in page.elements} | {"i"}
        assert {tag for tag, _, _ in found.elements} <= known
        assert found.all("title")[0] == NASTY[0]
        assert "<script" not in nasty
        assert NASTY[0] in found.all("code")

    def test_what_no_page_may_hold_is_replaced(self, nasty: str) -> None:
        nasty.encode()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe]", nasty)
        assert "\ufffd" in nasty

    @given(st.text())
    def test_text_comes_out_as_it_went_in(self, value: str) -> None:
        found = Page(element("p", value, title=value))
        clean = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", value)
        assert found.elements == [("p", {"title": clean}, [clean] if clean else [])]

    def test_markup_is_not_escaped_twice(self) -> None:
        assert element("text", element("b", "a & b"), "<") == "<text><b>a &amp; b</b>&lt;</text>"
        assert escape(Markup("<b>")) == "<b>"


def _encodable(pair: Pair) -> Pair:
    """Lone surrogates cannot be in text files; JSON holds them."""

    def parts() -> Iterator[str]:
        for one in (pair.lede, pair.gold, pair.headline):
            yield one.replace("\ud800", "").replace("\u2028", " ")

    return Pair(*parts())


class TestWriting:
    def test_the_file_is_the_page(self, four: list[Path], html: str, tmp_path: Path) -> None:
        output = tmp_path / "new" / "report.html"
        write_report(four, output, title="Four & more")
        assert output.read_bytes() == html.encode()
        assert [path.name for path in output.parent.iterdir()] == ["report.html"]

    def test_what_is_there_stays_when_it_fails(self, four: list[Path], tmp_path: Path) -> None:
        output = tmp_path / "report.html"
        output.write_text("old")
        with pytest.raises(Exception, match="no system 'X'"):
            write_report(four, output, baseline="X")
        assert output.read_text() == "old"
