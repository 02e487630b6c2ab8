"""What a text may cost, known before any work begins.

A unit is about the work of extending one hypothesis by one sub-word, or of reading one sub-word;
the bundled model takes some 120 microseconds of a core for it (docs/serve.md has a table).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ledeline.config.search import SearchConfig
from ledeline.config.section import BadValue
from ledeline.inference.checks.followed import MAX_HEADLINE
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.search.step_limit import max_steps

_READ: Final = 1.5  # a sub-word that is read
_ATTENTION: Final = 512  # sub-words of a text that double the cost of a hypothesis
_RECOMBINED: Final = 0.5  # comparing a hypothesis with others that end alike
_STEP: Final = 3.0  # a step costs so much beside its hypotheses,
_STEP_OF_LONG: Final = 64  # and a unit more for so many sub-words: fewer texts share the step
# A second pass finds where words came from: of each candidate with a word that the model does not
# know, which is replaced, and of a headline that is explained.
_TRACED_STEP: Final = 3
_TRACED_ATTENTION: Final = 512
_EXPLAINED_STEP: Final = 8
_HEAT_MAP_CELL: Final = 0.1  # mostly for the memory of the answer
_USUAL_STEPS: Final = 32  # most searches have ended by then
# What a check costs: of each headline, of each of its sub-words, and of each of its lede.
_CHECKED_HEADLINE: Final = 3
_CHECKED_SUBWORD: Final = 0.45
_CHECKED_LEDE: Final = 0.7
# A model that ranks hypotheses once more reads text and headline again for each of them, and with
# reconstruction writes the text: so much for each of its sub-words.
_RESCORED_READ: Final = 4.5


class Price(NamedTuple):
    """The price of a text or of a request, in units."""

    most: float  # if the search goes on as long as it may
    expected: float  # for the reckoning of waiting times


def text_price(
    num_subwords: int,
    search: SearchConfig,
    *,
    explain: bool = False,
    heat_map: bool = False,
    num_checked: int = 0,
    followed: bool = False,
    num_rescored: int = 0,
) -> Price:
    """The price of a text with so many sub-words, and of the check of so many of its headlines.

    So many hypotheses are ranked once more by the model.
    """
    if not num_subwords:
        return Price(1.0, 1.0)
    most = max_steps(num_subwords, search)
    usual = min(most, max(search.min_length + 1, _USUAL_STEPS))
    of_step = search.beam_size * (1 + num_subwords / _ATTENTION)
    of_step += _TRACED_STEP * search.n_best * (1 + num_subwords / _TRACED_ATTENTION)
    of_step += _RECOMBINED * search.beam_size if search.recombine else 0
    of_step += _STEP + num_subwords / _STEP_OF_LONG
    once = (_READ + _RESCORED_READ * num_rescored) * num_subwords
    of_step += num_rescored * (1 + num_subwords / _ATTENTION)
    if explain or heat_map:
        of_step += _EXPLAINED_STEP
        once += _READ * num_subwords  # it is read a second time
    if heat_map:
        of_step += _HEAT_MAP_CELL * num_subwords
    checks = [
        _check_price(num_subwords, steps, num_checked, followed=followed) for steps in (most, usual)
    ]
    return Price(once + most * of_step + checks[0], once + usual * of_step + checks[1])


def text_prices(
    sources: Sequence[SourceText],
    options: Options,
    *,
    heat_map: bool,
    followed: bool,
    rescored: bool = False,
) -> list[Price]:
    """The price of each text of a request; `options` has the defaults of the model.

    `followed` if the checker must follow each headline, for it does not know the model's states;
    `rescored` if the model ranks hypotheses once more.
    """
    search = options.search
    candidates = search.beam_size if options.rank == "support" else search.n_best
    return [
        text_price(
            len(one.ids),
            search,
            explain=options.explain,
            heat_map=heat_map,
            num_checked=candidates if options.check else 0,
            followed=followed,
            num_rescored=search.beam_size if rescored else 0,
        )
        for one in sources
    ]


def pair_price(num_subwords: int, num_headline_subwords: int) -> Price:
    """The price of a check, by the sub-words of the lede and of the headline."""
    if not num_subwords or not num_headline_subwords:
        return Price(1.0, 1.0)
    price = _check_price(num_subwords, num_headline_subwords, 1, followed=True)
    return Price(price, price)


def _check_price(num_subwords: int, steps: int, num_checked: int, *, followed: bool) -> float:
    """The price of checking some headlines of a lede, each with so many sub-words."""
    if not num_checked:
        return 0.0
    steps, of_hypothesis = min(steps, MAX_HEADLINE), 1 + num_subwords / _ATTENTION
    price = num_checked * (_CHECKED_HEADLINE + _CHECKED_SUBWORD * steps * of_hypothesis)
    price += _CHECKED_LEDE * num_subwords
    if followed:
        of_step = num_checked * of_hypothesis + _STEP + num_subwords / _STEP_OF_LONG
        price += _READ * num_subwords + (steps + 1) * of_step
    return price


def check_min_length(sources: Sequence[SourceText], search: SearchConfig) -> None:
    """Refuse a smallest length that a text cannot honestly need."""
    for number, source in enumerate(sources, start=1):
        if source.ids and search.min_length > len(source.ids):
            raise BadValue(
                "min_length",
                search.min_length,
                f"must be at most {len(source.ids)}, the number of sub-words of text {number}",
            )


FEWER_TEXTS: Final = "send fewer or shorter texts, or a smaller beam or max_length"
FEWER_PAIRS: Final = "send fewer or shorter pairs"


def check_price(price: float, limit: int, advice: str = FEWER_TEXTS) -> None:
    """Refuse a request that costs too much."""
    if price > limit:
        raise TooDear(price, limit, advice)


class TooDear(Exception):
    """The request could cost more than the limit."""

    def __init__(self, price: float, limit: int, advice: str) -> None:
        super().__init__(f"the request costs {price:.0f}, and {limit} is the limit; {advice}")
