"""Example ledes, invented, and what the model makes of the first of them."""

from typing import Any, Final

from ledeline.headliner import Headliner, Options
from ledeline.server.messages import answer

LEDES: Final = (
    "At least 14 people were killed and dozens were missing after a magnitude 6.8 earthquake "
    "struck northern Peru before dawn on Tuesday, officials said, as rescuers dug through "
    "collapsed homes in the dark.",
    "Senators voted 52 to 48 on Wednesday to approve a two-year budget that raises defense "
    "spending and delays a planned cut in housing aid, sending the bill to the president a day "
    "before a government shutdown deadline.",
    "Wall Street's main indexes fell on Friday as chipmakers slid after a weak forecast from a "
    "leading memory supplier and investors weighed the odds of another interest-rate increase "
    "in December.",
    "Maria Keller scored twice in extra time as Norway came from behind to beat Brazil 3-2 on "
    "Sunday and reach the Women's World Cup semi-finals for the first time in almost two "
    "decades.",
    "Astronomers using the James Webb Space Telescope have found water vapor in the atmosphere "
    "of a rocky planet 48 light-years away, according to a study published on Monday.",
)


def worked_example(headliner: Headliner) -> dict[str, Any]:
    """The first lede with its headline, alternatives and reasons, as the API gives them."""
    options = Options(explain=True)
    headline = headliner(LEDES[0], n_best=3, options=options)
    return answer(headline, heat_map=True)
