"""The keys of the search for headlines."""

from typing import Annotated

from ledeline.config.section import BadValue, at_least, section


@section
class SearchConfig:
    """How headlines are looked for."""

    beam: Annotated[int, "Hypotheses side by side, at the start.", at_least(1)] = 20
    n_best: Annotated[int, "Headlines to give, at most as many as the beam.", at_least(1)] = 1
    min_length: Annotated[int, "Least sub-words of a headline.", at_least(1)] = 1
    max_length: Annotated[int | None, "Most sub-words of a headline.", at_least(1)] = None
    block_ngrams: Annotated[
        int | None,
        "No n-gram of this size twice in a headline; 0 allows all, none is for the model to say.",
        at_least(0),
    ] = None
    forbid_unknown: Annotated[bool, "No <unk> in a headline."] = False
    stop_early: Annotated[
        bool, "Stop where no better headline can come; the result is the same."
    ] = False

    def __post_init__(self) -> None:
        if self.n_best > self.beam:
            raise BadValue("n_best", self.n_best, f"must be at most beam, which is {self.beam}")
        if self.max_length is not None and self.max_length < self.min_length:
            raise BadValue(
                "max_length", self.max_length, f"must be at least min_length, {self.min_length}"
            )
