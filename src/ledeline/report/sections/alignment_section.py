"""Which source word became which headline word: quality, word pairs, heat maps."""

from collections.abc import Iterator
from dataclasses import astuple
from typing import Final

from ledeline.report.alignments import GROUPS, Alignment, HeatMap, HeatMaps, Quality, Words
from ledeline.report.heatmaps import LEAST, heat_map, room_for_rows
from ledeline.report.markup import (
    Html,
    column_heads,
    element,
    joined,
    name_of,
    note,
    percent,
    plural,
    row,
    row_group,
    scrolling,
    table,
    whole,
)
from ledeline.report.study import Study, System

TITLE: Final = "Alignment"
_METHODS: Final = {
    "spm-vocabulary": "SPM, likeliest of the vocabulary",
    "spm-sentence": "SPM, likeliest of the sentence",
    "attention": "Attention",
    "attention-shifted": "Attention, one step later",
    "identity": "Same place, no model",
    "diagonal": "Proportional place, no model",
}
_GROUP_NAMES: Final = {"same": "Same word", "inflection": "Inflection", "other": "Other"}
_MOST_EXAMPLES: Final = 15  # word pairs of a group
_MOST_MAPS: Final = 8  # of a test set, counted in pairs times systems
_NARROW: Final = 36  # source words of which two maps stand side by side


def alignment_section(study: Study) -> Html:
    """For each test set what is known of alignment on it."""
    parts = [_test_set(study, name) for name in study.test_sets]
    return joined(parts)


def _test_set(study: Study, name: str) -> Html:
    aligned = [
        (system, outcome.alignment)
        for system, outcome in study.evaluated(name)
        if outcome.alignment is not None
    ]
    parts = [*_quality(aligned, name), *_words(aligned, name), *_heat_maps(study, aligned, name)]
    return joined([element("h3", name), *parts]) if parts else Html("")


def _method(name: str) -> str:
    return _METHODS.get(name, name)


def _in_order(methods: dict[str, Quality] | dict[str, Words]) -> list[str]:
    known = [name for name in _METHODS if name in methods]
    return known + [name for name in methods if name not in _METHODS]


# --- quality --------------------------------------------------------------------------------------


def _quality(aligned: list[tuple[System, Alignment]], test_set: str) -> list[Html]:
    with_gold = [(system.label, one.quality) for system, one in aligned if one.quality]
    if not with_gold:
        return []
    shared = _shared([quality for _, quality in with_gold])
    bodies = []
    for label, quality in with_gold:
        own = [method for method in _in_order(quality) if method not in shared]
        if own:
            bodies.append(
                [row_group(name_of(label), 6), *(_quality_row(one, quality[one]) for one in own)]
            )
    if shared:
        rows = [_quality_row(one, shared[one]) for one in _in_order(shared)]
        bodies.append([row_group(name_of("All systems alike"), 6), *rows])
    names = ("Method", "Precision", "Recall", "AER", "Dropped found", "… by <pad>")
    head = [column_heads(names)]
    caption = "Links against gold, × 100"
    return [
        table(caption, f"Quality of alignment on {test_set}", head, bodies, "quality"),
        note("AER: alignment error rate, less is better.",
             "Dropped found: recall of the source words that gold drops, as those without a link;",
            "by <pad>, as those that the SPM predicts behind the end of the headline."),
    ]  # fmt: skip


def _shared(all_quality: list[dict[str, Quality]]) -> dict[str, Quality]:
    """What does not depend on the system: the same numbers in all of several."""
    first, *others = all_quality
    if not others:
        return {}
    return {
        method: quality
        for method, quality in first.items()
        if all(other.get(method) == quality for other in others)
    }


def _quality_row(method: str, quality: Quality) -> Html:
    numbers: tuple[float | None, ...] = astuple(quality)
    cells = [_NOTHING if number is None else element("td", percent(number)) for number in numbers]
    return row(element("th", _method(method), scope="row"), *cells)


_NOTHING: Final = Html('<td class="none">–</td>')


# --- word pairs -----------------------------------------------------------------------------------


def _words(aligned: list[tuple[System, Alignment]], test_set: str) -> list[Html]:
    bodies = [
        [
            row_group(name_of(_words_title(system, method, one.words[method])), 4),
            *_word_rows(one.words[method]),
        ]
        for system, one in aligned
        for method in _in_order(one.words)
    ]
    if not bodies:
        return []
    names = ("Type", "Count", "Share", "Aligned pairs: (headline word, source word)")
    head = [column_heads(names)]
    caption = "Aligned word pairs, the most frequent first"
    return [table(caption, f"Word pairs on {test_set}", head, bodies, "words")]


def _words_title(system: System, method: str, words: Words) -> str:
    left_out = f"{whole(words.num_pieces)} left out for being pieces of words"
    counted = f"{plural(words.num_pairs, 'pair')}, {plural(words.num_tokens, 'token')}, {left_out}"
    return f"{system.label}. {_method(method)}: {counted}"


def _word_rows(words: Words) -> Iterator[Html]:
    total = sum(group.count for group in words.groups.values())
    for name in GROUPS:
        group = words.groups[name]
        share = f"{100 * group.count / total:.1f}\u00a0%" if total else ""
        pairs = (
            element(
                "span", f"({headline}, {source})", Html("&nbsp;"), element("small", f"×{count}")
            )
            for headline, source, count in group.examples[:_MOST_EXAMPLES]
        )
        yield row(
            element("th", _GROUP_NAMES[name], scope="row"),
            element("td", whole(group.count)),
            element("td", share),
            element("td", joined(pairs, ", "), dir="auto", class_="prose"),
        )


# --- heat maps ------------------------------------------------------------------------------------


def _heat_maps(study: Study, aligned: list[tuple[System, Alignment]], test_set: str) -> list[Html]:
    drawn = [(system, one.heat_maps) for system, one in aligned if one.heat_maps]
    pairs = list(dict.fromkeys(one.pair for _, maps in drawn for one in maps))
    if not pairs:
        return []
    num_pairs = max(1, _MOST_MAPS // len(drawn))
    figures = [_figure(study, drawn, test_set, pair) for pair in pairs[:num_pairs]]
    explained = note(
        "Across: the lede. Down: the headline as it is written, and in brackets the source word "
        "that each step is aligned with. The stronger the colour, the closer to 1; what is below "
        f"{LEAST} is left blank."
    )
    return [*figures, explained]


def _figure(
    study: Study, drawn: list[tuple[System, tuple[HeatMaps, ...]]], test_set: str, pair: int
) -> Html:
    shown = [(system, one) for system, maps in drawn for one in maps if one.pair == pair]
    left = room_for_rows(view for _, one in shown for view in one.views)
    views = [element("div", *_views(system, one, left), class_="maps") for system, one in shown]
    _, outcome = study.evaluated(test_set)[0]
    gold = element("q", outcome.texts.golds[pair], dir="auto")
    caption = element("figcaption", f"Pair {whole(pair + 1)} of {test_set}: ", gold)
    return element("figure", caption, *views, class_="pair")


def _views(system: System, maps: HeatMaps, left: int) -> Iterator[Html]:
    titles = ("Attention", "Source-side prediction")
    for title, heat in zip(titles, maps.views, strict=False):
        yield _view(f"{title} of {system.label}", heat, left)


def _view(title: str, heat: HeatMap, left: int) -> Html:
    strongest = (
        f"{row} to {heat.source[max(range(len(values)), key=values.__getitem__)]}"
        for row, values in zip(heat.rows, heat.values, strict=True)
        if values
    )
    summary = f"{title}, strongest links: {'; '.join(strongest)}"
    drawing = scrolling(heat_map(heat, summary, left), title)
    narrow = " narrow" if len(heat.source) <= _NARROW else ""
    return element("figure", element("figcaption", title), drawing, class_=f"map{narrow}")
