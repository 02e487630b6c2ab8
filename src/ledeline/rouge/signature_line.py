"""A line that says how scores were computed, like that of sacreBLEU."""

import ledeline
from ledeline.rouge.rouge_settings import Settings
from ledeline.rouge.weighted import WEIGHT


def signature(settings: Settings, num_references: int) -> str:
    """Name the metric, its version and all that changes its numbers, as ``key:value|...``.

    ``num_references`` is how many each headline has; 0 says that it varies.
    """
    fields = {
        "metric": "ROUGE-1.5.5",
        "references": str(num_references) if num_references else "varied",
        "stem": "porter+wordnet2.0" if settings.stem else "no",
        "normalise": "ascii-lower,a-z0-9",
        "unknown": settings.unknown,
        "bytes": str(settings.limit_bytes or "all"),
        "w": str(WEIGHT) if settings.weighted else "no",
        "version": f"ledeline-{ledeline.__version__}",
    }
    return "|".join(f"{key}:{value}" for key, value in fields.items())
