"""The paper's four systems: one idea a file, put together in `seq2seq`.

Legend of all shapes: B pairs of a batch, I source length, J decoder steps, K hypotheses side by
side (1 in training), D embedding size, H hidden size, V vocabulary. A `_mask` is True where valid.
"""
