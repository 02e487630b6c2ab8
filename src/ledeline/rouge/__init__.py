"""The numbers of ROUGE-1.5.5 ``-n 2 -m -w 1.2``: statistics, then scores, then a signature.

A headline is one line of text; it is scored against one reference or several.
"""

from ledeline.rouge.rouge_settings import Settings
from ledeline.rouge.scores import Rouge, Score, mean, score, score_all
from ledeline.rouge.signature import signature

__all__ = ["Rouge", "Score", "Settings", "mean", "score", "score_all", "signature"]
