"""ledeline: from the lede, a headline, with its reasons."""

__version__ = "0.1.0"

__all__ = ["__version__"]
