"""Training: the explicit loop, what it saves, how it runs on many processes."""
