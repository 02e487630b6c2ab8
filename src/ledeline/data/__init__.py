"""From pairs to batches: prepare a corpus, read a dataset, draw batches."""
