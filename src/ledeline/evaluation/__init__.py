"""How good headlines are: ROUGE with significance tests, odd generation, and alignment.

`evaluate` does all of it for a model on test sets, and writes a folder that the report reads. The
parts work alone, on the files of any system: `scoring`, `audit` and `align`.
"""
