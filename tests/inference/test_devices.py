"""Which device is meant; torch is only imported where a GPU may be, for it takes seconds."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline.core.errors import ConfigError, DeviceWarning, ModelError
from ledeline.core.extras import MissingExtraError
from ledeline.inference import devices
from ledeline.inference.devices import chosen_device


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was imported, torch among it."""
    names: list[str] = []
    plain = builtins.__import__

    def noted(name: str, *arguments: Any) -> Any:
        names.append(name)
        return plain(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", noted)
    return names


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the driver of a GPU is looked for; it is there."""
    path = tmp_path / "nvidiactl"
    path.touch()
    monkeypatch.setattr(devices, "_DRIVERS", (str(tmp_path / "other"), str(path)))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return path


@pytest.fixture(params=[True, False], ids=["with GPU", "without"])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether torch finds a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param)
    return bool(request.param)


@pytest.mark.usefixtures("gpu", "driver")
def test_a_cpu_is_never_asked_for(imported: list[str]) -> None:
    assert chosen_device("cpu") == "cpu"
    assert "torch" not in imported


@pytest.mark.usefixtures("gpu")
def test_without_a_driver_torch_is_not_asked(driver: Path, imported: list[str]) -> None:
    driver.unlink()
    assert chosen_device("auto") == "cpu"
    assert "torch" not in imported


@pytest.mark.usefixtures("gpu", "driver")
@pytest.mark.parametrize("hidden", ["", "-1"])
def test_a_gpu_that_is_hidden_is_none(
    hidden: str, monkeypatch: pytest.MonkeyPatch, imported: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert chosen_device("auto") == "cpu"
    assert "torch" not in imported


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("visible", [None, "0", "1,2"])
def test_with_a_driver_torch_is_asked(
    gpu: bool, visible: str | None, monkeypatch: pytest.MonkeyPatch, imported: list[str]
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert chosen_device("auto") == ("cuda" if gpu else "cpu")
    assert "torch" in imported


@pytest.mark.parametrize("there", [True, False])
def test_on_windows_the_driver_is_a_library(
    there: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    (tmp_path / "System32").mkdir()
    if there:
        (tmp_path / "System32" / "nvcuda.dll").touch()
    assert chosen_device("auto") == ("cuda" if there else "cpu")


def test_a_gpu_that_is_asked_for_must_be_there(driver: Path, gpu: bool) -> None:
    driver.unlink()  # torch knows better
    if gpu:
        assert chosen_device("cuda") == "cuda"
        return
    with pytest.raises(ModelError, match="device cuda needs a GPU, and torch finds none; use cpu"):
        chosen_device("cuda")


@pytest.mark.usefixtures("driver")
def test_without_torch_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert chosen_device("auto") == "cpu"
    said = r"device cuda needs torch, which is not installed; .*'ledeline\[train\]'"
    with pytest.raises(MissingExtraError, match=said):
        chosen_device("cuda")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    "error",
    [
        ImportError("libcudart.so.13: no such file\nmore about it"),
        OSError("libcudart.so.13: no such file"),
        ModuleNotFoundError("libcudart.so.13: no such file", name="numpy"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_torch_that_cannot_be_imported(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "torch":
                raise error

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "meta_path", [Broken()])
    said = r"torch cannot be imported \(libcudart.so.13: no such file\), so no GPU is used"
    with pytest.warns(DeviceWarning, match=said):
        assert chosen_device("auto") == "cpu"
    with pytest.raises(ModelError, match=r"cuda needs torch, which cannot be .*no such file.*cpu"):
        chosen_device("cuda")


def test_another_device_is_refused() -> None:
    with pytest.raises(ConfigError, match='device = "gpu": must be one of auto, cpu, cuda'):
        chosen_device("gpu")  # type: ignore[arg-type]
