"""Lets ``python -m ledeline`` do what the command ``ledeline`` does."""

from ledeline.cli import main

if __name__ == "__main__":
    main()
