"""What the verifier says of a headline, in the words of readers; torch is not needed."""

from typing import Final

LABELS: Final = ("ok", "clumsy", "added", "false")  # what readers call a headline
KINDS: Final = (  # of errors, as readers name them
    "number", "name", "role", "relation", "modality", "negation", "time", "place", "event", "added",
)  # fmt: skip
