"""The weights of the features of ABS+, by which a model is tuned to copy from its source."""

import math
from typing import Annotated, Final

from ledeline.config.section import Limit, above, section

FINITE: Final = Limit(math.isfinite, "must be finite")


@section
class ExtractiveWeights:
    """What a feature adds to the score of a headline, each time that it holds (Rush et al. 2015).

    A word may be in the source; the last two or three words may be neighbours there, in this order;
    or the last two may be there in the other order.
    """

    lm: Annotated[float, "Factor of the log-probability.", above(0), FINITE] = 1.0
    unigram: Annotated[float, "For a word of the source.", FINITE] = 0.0
    bigram: Annotated[float, "For two words that are neighbours in the source.", FINITE] = 0.0
    trigram: Annotated[float, "For three words that are neighbours in the source.", FINITE] = 0.0
    order: Annotated[float, "For two words in another order than in the source.", FINITE] = 0.0
    length: Annotated[float, "For each word.", FINITE] = 0.0
