"""Regular expressions that are compiled when they are first used."""

import re
from typing import Any, cast


def lazy_pattern(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Like `re.compile`, which takes up to milliseconds, but only once the pattern is needed.

    It has the attributes of a pattern, as fast as there after their first use; the functions of
    `re` do not take it.
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """An attribute of the pattern; called only for those that were not asked for before."""
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value
