"""What the paper printed: Table "Full length ROUGE F1 evaluation results", F1 in percent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Figures: TypeAlias = tuple[float, float, float]  # ROUGE-1, ROUGE-2, ROUGE-L

CITATION: Final = (
    "Shun Kiyono, Sho Takase, Jun Suzuki, Naoaki Okazaki, Kentaro Inui, Masaaki Nagata: "
    "Source-side Prediction for Neural Headline Generation"
)

# Name -> number of pairs.
SETS: Final = {"Ours": 10_000, "Rush": 1_951, "Zhou": 2_000}


@dataclass(frozen=True)
class Row:
    """A system of the table."""

    system: str
    source: str | None  # whose it is; None for the paper's own
    figures: Mapping[str, Figures]  # by name of the set


OWN_ROWS: Final = (
    Row(
        "EncDec",
        None,
        {
            "Ours": (45.74, 23.80, 42.95),
            "Rush": (34.52, 16.77, 32.19),
            "Zhou": (45.62, 24.26, 42.87),
        },
    ),
    Row(
        "EncDec+sGate",
        None,
        {
            "Ours": (45.98, 24.17, 43.16),
            "Rush": (35.00, 17.24, 32.72),
            "Zhou": (45.96, 24.63, 43.18),
        },
    ),
    Row(
        "EncDec+SPM",
        None,
        {
            "Ours": (46.18, 24.34, 43.35),
            "Rush": (35.17, 17.07, 32.75),
            "Zhou": (46.21, 24.78, 43.27),
        },
    ),
    Row(
        "EncDec+sGate+SPM",
        None,
        {
            "Ours": (46.41, 24.58, 43.59),
            "Rush": (35.79, 17.84, 33.34),
            "Zhou": (46.34, 24.85, 43.49),
        },
    ),
)

EARLIER_ROWS: Final = (
    Row(
        "ABS",
        "Rush et al. 2015",
        {"Rush": (29.55, 11.32, 26.42), "Zhou": (37.41, 15.87, 34.70)},
    ),
    Row(
        "SEASS",
        "Zhou et al. 2017",
        {"Rush": (36.15, 17.54, 33.63), "Zhou": (46.86, 24.58, 43.53)},
    ),
    Row("DRGD", "Li et al. 2017", {"Rush": (36.27, 17.57, 33.62)}),
    Row("WFE", "Suzuki and Nagata 2017", {"Rush": (36.30, 17.31, 33.88)}),
    Row("conv-s2s", "Gehring et al. 2017", {"Rush": (35.88, 17.48, 33.29)}),
)


def published_set(name: str, num_pairs: int) -> str | None:
    """The published test set that an evaluated one is, by its name and its number of pairs.

    "Ours" says nothing in a name: everybody's own set is ours.
    """
    folded = name.casefold()
    for known in ("Rush", "Zhou"):
        if known.casefold() in folded and num_pairs == SETS[known]:
            return known
    return None
