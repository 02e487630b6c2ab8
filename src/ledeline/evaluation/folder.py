"""What the files of an evaluation are called; docs/evaluation.md says what they hold."""

from typing import Final

FORMAT: Final = 1
SUMMARY: Final = "evaluation.json"
# In the folder of a test set:
SOURCE: Final = "source.txt"
REFERENCE: Final = "reference.txt"
OUTPUT: Final = "output.txt"
GOLD: Final = "gold.txt"
HEADLINES: Final = "headlines.jsonl"
PAIRS: Final = "pairs.tsv"
ALIGNMENT: Final = "alignment.json"
