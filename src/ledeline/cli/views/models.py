"""What `ledeline models` shows: a few lines for each model."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from ledeline.model.format.model_summary import ModelSummary, NamedModel


def model_list(models: Sequence[NamedModel]) -> Text:
    """Each model: name and version, what it is, its description, and where it lies."""
    return Text("\n\n").join(map(_lines, models))


def _lines(model: NamedModel) -> Text:
    lines = [Text(model.name, style="bold").append(f" {model.version}", style="not bold")]
    if model.summary is None:
        lines.append(Text(f"  {model.problem}", style="red"))
    else:
        lines.append(Text(f"  {_facts(model.summary)}"))
        if model.summary.description:
            lines.append(Text(f"  {model.summary.description}"))
    lines.append(Text(f"  {model.folder}", style="dim"))
    return Text("\n").join(lines)


def _facts(summary: ModelSummary) -> str:
    size = f"{summary.num_bytes / 1e6:,.1f} MB in {summary.weights}"
    return (
        f"{summary.system}, {summary.num_parameters:,} parameters, {size}, profile "
        f"{summary.profile}"
    )


def models_as_dicts(models: Sequence[NamedModel]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [_as_dict(model) for model in models]


def _as_dict(model: NamedModel) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": model.name,
        "version": model.version,
        "package": model.package,
        "folder": str(model.folder),
    }
    if model.summary is None:
        return found | {"error": model.problem}
    one = model.summary
    return found | {
        "system": one.system,
        "parameters": one.num_parameters,
        "bytes": one.num_bytes,
        "weights": one.weights,
        "profile": one.profile,
        "description": one.description,
    }
