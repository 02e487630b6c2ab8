"""Sample ledes for demonstrations: disaster, politics, markets, sport and science, all invented."""

from typing import Final

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
