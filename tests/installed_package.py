"""Packages as pip leaves them in a folder, with an entry point that names a model."""

import shutil
from pathlib import Path

FORBIDDEN = "raise AssertionError('the code of a package was run')\n"


def install(
    folder: Path,
    name: str = "trial-desk",
    *,
    model: Path | None = None,
    distribution: str = "ledeline-trial-desk",
    version: str = "0.2.0",
    value: str = "ledeline_trial_desk",
) -> Path:
    """Put a package into a folder -> its model folder, a copy of the given one, if any."""
    metadata = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    (metadata / "entry_points.txt").write_text(f"[ledeline_models]\n{name} = {value}\n")
    package = folder.joinpath(*value.split("."))
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(FORBIDDEN)
    if model is not None:
        shutil.copytree(model, package / "model")
    return package / "model"
