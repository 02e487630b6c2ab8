"""ledeline: from the lede, a headline, with its reasons."""

import typing

if typing.TYPE_CHECKING:
    from ledeline.headline import Headline
    from ledeline.headliner import Headliner, Options

__version__ = "0.1.0"

__all__ = ["Headline", "Headliner", "Options", "__version__"]


def __getattr__(name: str) -> typing.Any:
    """Import a public name when it is first asked for: torch takes its time."""
    if name == "Headline":
        from ledeline.headline import Headline

        return Headline
    if name in __all__:
        from ledeline import headliner

        return getattr(headliner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
