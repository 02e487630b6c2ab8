"""What the model makes of an example, for the page to show at first."""

from typing import Any

from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.sample_ledes import LEDES
from ledeline.server.schemas import answer


def worked_example(headliner: Headliner) -> dict[str, Any]:
    """The first of the ledes with its headline, alternatives and reasons, as the API gives them."""
    options = Options(explain=True)
    headline = headliner(LEDES[0], n_best=3, options=options)
    return answer(headline, heat_map=True)
