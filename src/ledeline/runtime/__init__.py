"""The engine that writes headlines on a CPU. What it computes is in C, in `native/`."""
