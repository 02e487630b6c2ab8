"""Numbers as they are printed."""


def whole(number: int) -> str:
    """A count: 12,345."""
    return f"{number:,}"


def percent(share: float) -> str:
    """A score from 0 to 1 as papers print it: 45.74."""
    return f"{100 * share:.2f}"


def signed(share: float) -> str:
    """A difference of scores: +0.44 or −0.12, with a minus as wide as the plus."""
    return f"{100 * share:+.2f}".replace("-", "−")


def plural(number: int, noun: str) -> str:
    """Such as 1 pair, 2,000 pairs."""
    return f"{whole(number)} {noun}{'' if number == 1 else 's'}"
