"""The table of attentions."""

from rich.console import Console

from ledeline.cli.views.heads import heads_view
from ledeline.evaluation.attention_heads import AttentionReading, HalfScores, MeasuredHeads
from ledeline.evaluation.links import AlignmentScore


def shown(measured: MeasuredHeads) -> list[str]:
    console = Console(width=80, force_terminal=True, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(heads_view(measured), soft_wrap=True)
    return [line.strip() for line in captured.get().splitlines()]


def measured(method: str, usable: str) -> MeasuredHeads:
    """30 attentions by a method, and after them one more."""
    scores = HalfScores(AlignmentScore(0.1, 0.2, 0.3), AlignmentScore(0.4, 0.5, 0.6))
    readings = [AttentionReading(1, head, method) for head in range(30)]
    last = AttentionReading(12, 0, usable)
    return MeasuredHeads(5, 1200, dict.fromkeys([*readings, last], scores), {"attention": scores})


def test_the_best_are_shown_in_80_columns() -> None:
    lines = shown(measured("attention", "attention"))
    rows = [line.split() for line in lines if line.startswith("layer")]
    assert len(rows) == 20
    assert rows[0] == "layer 1, mean of heads same 0.300 0.600 0.100 0.400 0.200 0.500".split()
    assert lines[0] == "alignment error rate: 5 pairs choose (1st half), 1,200 check (2nd)"
    assert "20 of 31 are shown, the best on the first half first; --json prints all." in lines
    assert not any("…" in line for line in lines)


def test_the_choice_is_shown_wherever_it_stands() -> None:
    lines = shown(measured("attention-shifted", "attention"))
    rows = [line for line in lines if line.startswith("layer")]
    assert len(rows) == 21
    assert rows[-1].split()[:6] == "layer 12, mean of heads same".split()
    assert rows[0].split()[5] == "next"
    assert (
        "word: layer 12, mean of heads, with an error rate of 0.300 on the first half" in lines[-1]
    )
