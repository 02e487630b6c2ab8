"""Systems, their layers and add-ons: one idea per file.

Legend of all shapes: B pairs of a batch, I source length, J decoder steps, K hypotheses of
a source (1 in training), D embedding size, H hidden size, V vocabulary. A `_mask` is True where
valid.
"""
