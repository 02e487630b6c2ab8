"""The options of the search for headlines, and what it runs on.

This is their one definition: Python, the command line (`ledeline.cli.options`) and the server
(`ledeline.server.schemas`) take names, types, defaults, limits and sentences from here.
"""

from typing import Annotated, Final, Literal, TypeAlias

from ledeline.config.section import BadValue, at_least, section

Precision: TypeAlias = Literal["auto", "float32", "float16", "int8"]
PRECISION_DOC: Final = (
    "Numeric precision: float16 needs a GPU, int8 a CPU; auto uses the fastest that the device has."
)
Device: TypeAlias = Literal["auto", "cpu", "cuda"]
DEVICE_DOC: Final = "Device to run on; auto uses a GPU if there is one."

PAPER_BEAM: Final = 20  # of a model without a setting of its own


@section
class SearchConfig:
    """How headlines are searched for."""

    beam: Annotated[
        int | None,
        "Beam size: how many hypotheses are kept at each step. The model's own setting if not "
        "given, and at least n_best.",
        at_least(1),
    ] = None
    n_best: Annotated[
        int, "How many headlines to return for each text, at most the beam size.", at_least(1)
    ] = 1
    min_length: Annotated[int, "Fewest sub-words in a headline.", at_least(1)] = 1
    max_length: Annotated[int | None, "Most sub-words in a headline.", at_least(1)] = None
    block_ngrams: Annotated[
        int | None,
        "Never repeat an n-gram of this many sub-words; 0 allows repeats. The model's own setting "
        "if not given.",
        at_least(0),
    ] = None
    recombine: Annotated[
        int | None,
        "Of hypotheses with the same last words, so many, keep only the best; 0: keep all. The "
        "model's own setting if not given.",
        at_least(0),
    ] = None
    keep_finished: Annotated[
        bool,
        "Finished headlines keep their places in the beam, and compete with unfinished ones by "
        "score, as in SEASS.",
    ] = False
    forbid_unknown: Annotated[bool, "Never write <unk>."] = False
    stop_early: Annotated[
        bool, "Stop as soon as no better headline is possible; the result is the same."
    ] = False

    def __post_init__(self) -> None:
        if self.beam is not None and self.n_best > self.beam:
            raise BadValue("n_best", self.n_best, f"must be at most beam, which is {self.beam}")
        if self.max_length is not None and self.max_length < self.min_length:
            raise BadValue(
                "max_length", self.max_length, f"must be at least min_length, {self.min_length}"
            )
        if self.stop_early and self.keep_finished:
            raise BadValue("stop_early", self.stop_early, "does not go with keep_finished")

    @property
    def beam_size(self) -> int:
        """The beam; where none is given, the paper's."""
        return max(PAPER_BEAM, self.n_best) if self.beam is None else self.beam
