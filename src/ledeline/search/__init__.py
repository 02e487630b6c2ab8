"""Search on ids: from sources to the best headlines of a model; knows nothing of text.

The shrinking beam of RNNsearch: each headline that ends leaves the beam, which gets smaller by one;
scores are normalised by length after the search. The headlines of a source do not depend on the
other sources of its batch: candidates are ranked by (cost, slot of the parent, word id) within each
source.

`engine_search` is the search of the engine in C. The others search with a system in PyTorch: `beam`
has the steps, `top_k` the selection of candidates, `hypotheses` reads headlines from the steps at
the end, `step_model` says what search needs of a model. `recombination`, `finished_beam` and
`extractive_features` are for systems that search in other ways.
"""

from typing import TYPE_CHECKING

from ledeline.core.lazy_exports import lazy_exports
from ledeline.search.hypothesis import Hypothesis

if TYPE_CHECKING:
    from ledeline.search.beam import BeamSearch, greedy, search
    from ledeline.search.extractive_features import ExtractiveModel, feature_counts
    from ledeline.search.step_model import Ensemble, StepModel

__all__ = [
    "BeamSearch",
    "Ensemble",
    "ExtractiveModel",
    "Hypothesis",
    "StepModel",
    "feature_counts",
    "greedy",
    "search",
]

__getattr__ = lazy_exports(  # these need torch
    __name__,
    {
        "BeamSearch": "ledeline.search.beam",
        "Ensemble": "ledeline.search.step_model",
        "ExtractiveModel": "ledeline.search.extractive_features",
        "StepModel": "ledeline.search.step_model",
        "feature_counts": "ledeline.search.extractive_features",
        "greedy": "ledeline.search.beam",
        "search": "ledeline.search.beam",
    },
)
