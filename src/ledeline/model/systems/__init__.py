"""The systems, one file each."""
