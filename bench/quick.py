"""--quick, which every program here has: all that it does, in tiny sizes, to see that it runs.

Nothing but Python itself is needed here, for bench/peers.py runs where ledeline is not installed.
"""

import argparse
from typing import Any

HELP = "tiny sizes, on what it makes itself, to see that it runs"


def offer(parser: argparse.ArgumentParser, **tiny: Any) -> bool:
    """Add the flag; where it is given, these values stand for options that are not.

    A value that is a function is made by calling it. Says whether the flag is given.
    """
    alone = argparse.ArgumentParser(add_help=False)
    for one in (alone, parser):
        one.add_argument("--quick", action="store_true", help=HELP)
    if not alone.parse_known_args()[0].quick:
        return False
    for action in parser._actions:  # what is made need not be given
        action.required = action.required and action.dest not in tiny
    made = {name: value() if callable(value) else value for name, value in tiny.items()}
    parser.set_defaults(**made)
    return True
