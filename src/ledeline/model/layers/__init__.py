"""The layers that systems are made of, one idea a file."""
