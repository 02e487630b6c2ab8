"""Which words are common ones, in news of any kind, and which may be names.

``common_stems.txt`` has the stems that some half a million ledes of news write in lower case at
least nine times of ten when no sentence begins with them. A question mark marks those that are
often names, too: mark?, brown?, house?.
"""

from functools import cache
from pathlib import Path
from typing import Final

from ledeline.text.function_words import FUNCTION_WORDS

# First names that are also words. In Title Case the next word decides.
FIRST_NAMES: Final = frozenset(
    """
    amber angel april art august bill bob brook buck carter chase christian chuck cliff crystal
    dawn dean dick drew duke earl faith frank gene grace grant guy harry hope hunter iris ivy jack
    jade jean joy june lance lily mark mason max may melody miles nick pat pearl penny pierce ray
    rich rob robin rocky rose ruby rusty sandy scarlet sky stone sue summer tiger tony trinity
    victor violet wade ward wayne will
    """.split()
)


@cache
def _stems() -> tuple[frozenset[str], frozenset[str]]:
    lines = Path(__file__).with_name("common_stems.txt").read_text(encoding="ascii").split()
    both = frozenset(line[:-1] for line in lines if line.endswith("?"))
    return frozenset(lines), both


def is_common(low: str, stem: str) -> bool:
    """Whether it is a word of the language that is hardly ever a name."""
    return stem in _stems()[0] or low in FUNCTION_WORDS


def is_both(stem: str) -> bool:
    """Whether it is a word of the language that is often a name or a part of one."""
    return stem in _stems()[1]
