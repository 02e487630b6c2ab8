"""ROUGE-1, ROUGE-2 and ROUGE-L as ROUGE-1.5.5 computes them: statistics, then scores.

One candidate against one reference, each a line of text, without stemming.
"""

from ledeline.rouge.scores import Rouge, Score, mean, score

__all__ = ["Rouge", "Score", "mean", "score"]
