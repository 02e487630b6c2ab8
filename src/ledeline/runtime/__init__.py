"""The CPU engine: a system arranged for writing headlines fast, and its loops in C."""
