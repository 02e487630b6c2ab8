"""Text as markup: escaped, and without the characters that no page may hold."""

import html
import re
from typing import Final

from markupsafe import Markup

# Control characters, halves of characters, and what Unicode calls no character.
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape(value: object) -> Markup:
    """Text as markup; what is markup already stays as it is."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(value))))
