"""Function words and content words."""

from typing import Final

# "us" is not here: in headlines it is mostly the country.
FUNCTION_WORDS: Final = frozenset(
    """
    a an the this that these those each every either neither some any no all both such
    i me my we our you your he him his she her it its they them their who whom whose which what
    about above across after against along among around as at before behind below between by
    despite down during for from in into near of off on onto out over per since through to toward
    towards under until up upon via with within without
    and or but nor so yet if unless because although though while than whether when where why how
    am is are was were be been being do does did have has had having
    will would shall should can could may might must not
    there here also too
    's 're 've 'll 'd 'm n't aren't can't cannot couldn't didn't don't doesn't hasn't haven't isn't
    wasn't weren't won't wouldn't
    -lrb- -rrb- -lsb- -rsb- -lcb- -rcb-
    """.split()
)


def is_content(word: str) -> bool:
    """Whether a word has a letter or a digit (unlike ``##``) and is not a function word."""
    plain = word.casefold().replace("’", "'")
    return plain not in FUNCTION_WORDS and any(map(str.isalnum, plain))
