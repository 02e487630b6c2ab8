"""Search on ids: from sources to the headlines a model thinks best; knows nothing of text.

The shrinking beam of RNNsearch: each headline that ends leaves the beam and takes its place with
it; lengths are made up for after the search. What is written for a source does not depend on what
else is in its batch: candidates are ranked by (cost, place of the parent, word id), and no source
sees another.

`beam` has the steps, `top_k` the ranking of candidates, `hypotheses` what is read from the steps at
the end, `step_model` what is asked of a model.
"""

from ledeline.search.beam import STEPS_PER_SOURCE_TOKEN, greedy, search
from ledeline.search.hypotheses import Hypothesis
from ledeline.search.step_model import Ensemble, StepModel
from ledeline.search.top_k import top_k

__all__ = [
    "STEPS_PER_SOURCE_TOKEN",
    "Ensemble",
    "Hypothesis",
    "StepModel",
    "greedy",
    "search",
    "top_k",
]
