import errno
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from ledeline.core.errors import CheckpointError
from ledeline.core.manifest import with_checksum
from ledeline.train import checkpoint as checkpoint_module
from ledeline.train.checkpoint import Checkpoint, Checkpoints

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64, 1: torch.uint8}


def tensors(value: float = 1.0) -> dict[str, dict[str, Tensor]]:
    return {
        "model": {"weight": torch.full((3, 4), value), "bias": torch.arange(3)},
        "optimizer": {"step": torch.tensor(value)},
    }


def note_file(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "note.txt").write_text("read me")


def bits(tensor: Tensor) -> list[int]:
    whole: list[int] = tensor.reshape(-1).view(BITS[tensor.element_size()]).tolist()
    return whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fits(_: Checkpoint) -> None:
    return None


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "run" / "checkpoints")


@pytest.fixture
def saved(checkpoints: Checkpoints) -> Path:
    return checkpoints.save(1200, tensors(), {"loss": 0.1}, note_file)


def edit_manifest(folder: Path, **changes: Any) -> None:
    """Change the manifest as its writer might have: with a right checksum; None removes a key."""
    path = folder / "checkpoint.json"
    manifest = json.loads(path.read_text()) | changes
    manifest = {key: value for key, value in manifest.items() if value is not None}
    path.write_text(json.dumps(with_checksum(manifest)))


class TestRoundTrip:
    def test_tensors_come_back_bit_for_bit(self, checkpoints: Checkpoints) -> None:
        generator = torch.Generator().manual_seed(1)
        group = {
            "float32": torch.randn(5, 7, generator=generator),
            "bfloat16": torch.randn(5, 7, generator=generator).bfloat16(),
            "float64": torch.randn(3, generator=generator, dtype=torch.float64),
            "int64": torch.tensor([-(2**63), 2**63 - 1]),
            "uint8": torch.arange(256).to(torch.uint8),
            "bool": torch.tensor([True, False]),
            "scalar": torch.tensor(2**40),
            "empty": torch.empty(0, 3),
            "odd": torch.tensor([math.nan, math.inf, -0.0, 1e-45]),
        }
        checkpoints.save(1, {"group": group, "nothing": {}}, {})
        found = checkpoints.open(1)
        assert found.tensors("nothing") == {}
        again = found.tensors("group")
        assert again.keys() == group.keys()
        for name, tensor in group.items():
            assert again[name].dtype == tensor.dtype
            assert again[name].shape == tensor.shape
            assert bits(again[name]) == bits(tensor)

    def test_views_and_parameters_are_saved_as_they_look(self, checkpoints: Checkpoints) -> None:
        base = torch.arange(12.0).reshape(3, 4)
        group = {
            "base": base,
            "same": base,
            "turned": base.t(),
            "column": base[:, 1],
            "spread": torch.tensor([7.0]).expand(2, 3),
            "parameter": torch.nn.Parameter(base),
        }
        checkpoints.save(1, {"group": group}, {})
        again = checkpoints.open(1).tensors("group")
        for name, tensor in group.items():
            assert torch.equal(again[name], tensor)
            assert not again[name].requires_grad

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    def test_tensors_of_a_gpu(self, checkpoints: Checkpoints) -> None:
        tensor = torch.arange(4.0, device="cuda")
        checkpoints.save(1, {"group": {"tensor": tensor}}, {})
        assert torch.equal(checkpoints.open(1).tensors("group")["tensor"], tensor.cpu())

    def test_state_comes_back_bit_for_bit(self, checkpoints: Checkpoints) -> None:
        generator = random.Random(1)
        floats = [generator.gauss(0, 1) * 10.0 ** generator.randint(-300, 300) for _ in range(500)]
        floats += [0.1, -0.0, 5e-324, sys.float_info.max, 1e22, 1 / 3]
        state = {
            "floats": floats,
            "whole": [2**64, -1],
            "text": "Zürich \ud800 \n",
            "nested": {"a": [None, True, {}]},
        }
        checkpoints.save(1, {}, state)
        again = checkpoints.open(1).state
        assert again == state
        assert [one.hex() for one in again["floats"]] == [one.hex() for one in floats]

    def test_keys_that_are_numbers_do_not_damage_it(self, checkpoints: Checkpoints) -> None:
        checkpoints.save(1, {}, {"groups": {2: "b", 10: "a"}, "position": (3, 4)})
        assert checkpoints.open(1).state == {"groups": {"2": "b", "10": "a"}, "position": [3, 4]}

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_state_that_is_no_number(self, checkpoints: Checkpoints, value: float) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            checkpoints.save(1, tensors(), {"deep": [value]})
        assert checkpoints.steps() == []

    def test_further_files_are_part_of_it(self, saved: Path) -> None:
        assert (saved / "more" / "note.txt").read_text() == "read me"
        assert json.loads((saved / "checkpoint.json").read_text())["files"].keys() == {
            "model.safetensors",
            "optimizer.safetensors",
            "more/note.txt",
        }

    def test_the_manifest_is_as_documented(self, saved: Path) -> None:
        manifest = json.loads((saved / "checkpoint.json").read_text())
        assert manifest.keys() == {"format", "version", "step", "state", "files", "checksum"}
        assert manifest["format"] == "ledeline-checkpoint"
        assert manifest["version"] == 2
        assert manifest["step"] == 1200
        assert manifest["files"]["more/note.txt"] == {"bytes": 7, "crc32": zlib.crc32(b"read me")}

    def test_files_may_be_read_by_whom_the_folder_may(self, saved: Path) -> None:
        modes = {path.stat().st_mode & 0o777 for path in saved.glob("*.*")}
        assert modes == {saved.stat().st_mode & 0o666}

    def test_loaded_tensors_do_not_hang_on_the_file(
        self, checkpoints: Checkpoints, saved: Path
    ) -> None:
        again = checkpoints.open(1200).tensors("model")
        path = saved / "model.safetensors"
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
        assert torch.equal(again["weight"], tensors()["model"]["weight"])

    def test_one_file_is_copied_at_a_time(
        self, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        alive: list[weakref.ref[Tensor]] = []

        def spy(copies: dict[str, Tensor], path: Path) -> None:
            assert not any(one() is not None for one in alive)
            alive.extend(weakref.ref(tensor) for tensor in copies.values())
            save_file(copies, path)

        monkeypatch.setattr(checkpoint_module, "save_file", spy)
        checkpoints.save(1, tensors(), {})
        assert len(alive) == 3

    def test_tensors_that_were_not_saved(self, checkpoints: Checkpoints, saved: Path) -> None:
        shutil.copy(saved / "model.safetensors", saved / "foreign.safetensors")
        found = checkpoints.open(1200)  # a file that is not ours does no harm, and is not read
        with pytest.raises(CheckpointError, match=r"00001200 has no foreign\.safetensors"):
            found.tensors("foreign")

    def test_a_file_that_went_away_since(self, checkpoints: Checkpoints, saved: Path) -> None:
        found = checkpoints.open(1200)
        (saved / "model.safetensors").unlink()
        with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read: "):
            found.tensors("model")


class TestRefusal:
    FILES = ("model.safetensors", "optimizer.safetensors", "more/note.txt", "checkpoint.json")

    @pytest.mark.parametrize("name", FILES)
    def test_a_truncated_file(self, checkpoints: Checkpoints, saved: Path, name: str) -> None:
        data = (saved / name).read_bytes()
        for size in {0, 1, len(data) // 2, len(data) - 1}:
            (saved / name).write_bytes(data[:size])
            sentence = rf"{name} has {size} bytes instead of {len(data)}; "
            if name == "checkpoint.json":
                sentence = r"00001200 cannot be used: checkpoint\.json is damaged; "
            with pytest.raises(CheckpointError, match=sentence):
                checkpoints.open(1200)

    @pytest.mark.parametrize("name", FILES[:-1])
    def test_a_flipped_bit(self, checkpoints: Checkpoints, saved: Path, name: str) -> None:
        data = (saved / name).read_bytes()
        for place in range(len(data)):
            flipped = bytearray(data)
            flipped[place] ^= 1 << place % 8
            (saved / name).write_bytes(flipped)
            with pytest.raises(CheckpointError, match=f"{name} was changed after it was written"):
                checkpoints.open(1200)

    def test_a_flipped_bit_before_the_last_block(
        self, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(checkpoint_module, "_BLOCK_SIZE", 16)
        path = checkpoints.save(1, tensors(), {}) / "model.safetensors"
        data = bytearray(path.read_bytes())
        data[0] ^= 1
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=r"model\.safetensors was changed"):
            checkpoints.open(1)

    def test_a_flipped_bit_of_the_manifest(self, checkpoints: Checkpoints, saved: Path) -> None:
        data = (saved / "checkpoint.json").read_bytes()
        for place in range(len(data)):
            flipped = bytearray(data)
            flipped[place] ^= 1 << place % 5  # not the bit between e and E, which mean the same
            (saved / "checkpoint.json").write_bytes(flipped)
            with pytest.raises(CheckpointError, match="00001200 cannot be used: "):
                checkpoints.open(1200)

    def test_a_longer_file(self, checkpoints: Checkpoints, saved: Path) -> None:
        with (saved / "model.safetensors").open("ab") as file:
            file.write(b"x")
        with pytest.raises(CheckpointError, match=r"model\.safetensors has \d+ bytes instead of"):
            checkpoints.open(1200)

    @pytest.mark.parametrize("name", FILES[:-1])
    def test_a_missing_file(self, checkpoints: Checkpoints, saved: Path, name: str) -> None:
        (saved / name).unlink()
        with pytest.raises(CheckpointError, match=f"00001200 cannot be used: {name}: No such file"):
            checkpoints.open(1200)

    def test_no_manifest(self, checkpoints: Checkpoints, saved: Path) -> None:
        (saved / "checkpoint.json").unlink()
        with pytest.raises(CheckpointError, match=r"it has no checkpoint\.json, so it is not a"):
            checkpoints.open(1200)

    def test_a_manifest_that_cannot_be_read(self, checkpoints: Checkpoints, saved: Path) -> None:
        (saved / "checkpoint.json").unlink()
        (saved / "checkpoint.json").mkdir()
        with pytest.raises(CheckpointError, match=r"checkpoint\.json: Is a directory"):
            checkpoints.open(1200)

    @pytest.mark.parametrize("text", ['{"format": "ledeline-dataset"}', "[]", "1", "{}"])
    def test_a_foreign_manifest(self, checkpoints: Checkpoints, saved: Path, text: str) -> None:
        (saved / "checkpoint.json").write_text(text)
        with pytest.raises(CheckpointError, match="does not describe a checkpoint of ledeline"):
            checkpoints.open(1200)

    @pytest.mark.parametrize(
        ("version", "sentence"),
        [
            (
                0,
                "by an older ledeline, in format version 0, and this ledeline reads versions 1 to 2",
            ),
            (None, "by an older ledeline, in format version 0"),
            (
                3,
                "by a newer ledeline, in format version 3, and this ledeline reads versions 1 to 2",
            ),
            ("1", r"checkpoint\.json was changed"),
            (True, r"checkpoint\.json was changed"),
        ],
    )
    def test_another_version(
        self, checkpoints: Checkpoints, saved: Path, version: Any, sentence: str
    ) -> None:
        edit_manifest(saved, version=version)
        with pytest.raises(CheckpointError, match=sentence):
            checkpoints.open(1200)

    def test_a_checkpoint_under_another_name(self, checkpoints: Checkpoints, saved: Path) -> None:
        saved.rename(saved.with_name("00001300"))
        with pytest.raises(CheckpointError, match=r"00001300 .* of step 1200 under another name"):
            checkpoints.open(1300)

    def test_a_step_that_is_not_there(self, checkpoints: Checkpoints) -> None:
        with pytest.raises(CheckpointError, match=r"00000007 is not there; .* steps: none"):
            checkpoints.open(7)
        checkpoints.save(5, {}, {})
        checkpoints.save(6, {}, {})
        with pytest.raises(CheckpointError, match=r"00000007 is not there; .* steps: 5, 6"):
            checkpoints.open(7)

    def test_each_refusal_is_one_sentence(self, checkpoints: Checkpoints, saved: Path) -> None:
        edit_manifest(saved, version=3)
        with pytest.raises(CheckpointError) as caught:
            checkpoints.open(1200)
        assert str(caught.value) == (
            f"{saved} cannot be used: it was written by a newer ledeline, in format version 3, and "
            "this ledeline reads versions 1 to 2; name another checkpoint"
        )


class TestSteps:
    def test_only_folders_named_after_a_step_count(self, checkpoints: Checkpoints) -> None:
        assert checkpoints.steps() == []
        for step in (123_456_789, 20, 0, 99_999_999, 3):
            folder = checkpoints.save(step, {}, {})
        for name in ("notes", "12", "0000000a", "000000030", ".00000009.partial", "٠٠٠٠٠٠٠٤"):
            (folder.parent / name).mkdir()
        (folder.parent / "00000007").write_text("a file")
        assert checkpoints.steps() == [0, 3, 20, 99_999_999, 123_456_789]
        for step in checkpoints.steps():
            assert checkpoints.open(step).step == step

    def test_impossible_steps(self, checkpoints: Checkpoints) -> None:
        with pytest.raises(ValueError, match="step -1"):
            checkpoints.save(-1, {}, {})

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_folder_that_may_not_be_read(self, checkpoints: Checkpoints, saved: Path) -> None:
        saved.parent.chmod(0)
        with pytest.raises(CheckpointError, match="checkpoints cannot be read: Permission denied"):
            checkpoints.steps()
        saved.parent.chmod(0o755)


class TestKeep:
    def test_all_others_are_removed_the_oldest_first(
        self, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for step in range(1, 7):
            folder = checkpoints.save(step, tensors(step), {})
        renamed = spy_on(monkeypatch, "rename")
        checkpoints.keep([5, 2, 100])
        assert checkpoints.steps() == [2, 5]
        assert names(folder.parent) == ["00000002", "00000005"]
        assert names(folder.parent.parent) == ["checkpoints"]
        assert [Path(source).name for source, _ in renamed] == [
            "00000001",
            "00000003",
            "00000004",
            "00000006",
        ]

    def test_damaged_ones_are_removed_as_well(self, checkpoints: Checkpoints, saved: Path) -> None:
        (saved / "checkpoint.json").unlink()
        checkpoints.keep([])
        assert names(saved.parent) == []

    def test_nothing_to_remove(self, checkpoints: Checkpoints, tmp_path: Path) -> None:
        checkpoints.keep([1])
        assert names(tmp_path) == []

    def test_a_failure_is_said(
        self, checkpoints: Checkpoints, saved: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "rename", failing(OSError(errno.EACCES, "Permission denied")))
        with pytest.raises(CheckpointError, match="checkpoints cannot be cleared: Permission"):
            checkpoints.keep([])
        assert checkpoints.open(1200)


class TestReplacing:
    def test_a_sound_one(self, checkpoints: Checkpoints, saved: Path) -> None:
        checkpoints.save(1200, tensors(2.0), {"loss": 0.2})
        again = checkpoints.open(1200)
        assert again.state == {"loss": 0.2}
        assert again.tensors("optimizer")["step"] == 2.0
        assert again.files == {"model.safetensors", "optimizer.safetensors"}
        assert names(saved.parent) == ["00001200"]

    def test_a_foreign_one(self, checkpoints: Checkpoints, saved: Path) -> None:
        shutil.rmtree(saved)
        saved.mkdir()
        (saved / "foreign").write_text("x")
        checkpoints.save(1200, {}, {})
        assert names(saved) == ["checkpoint.json"]

    def test_a_file_of_that_name(self, checkpoints: Checkpoints, saved: Path) -> None:
        shutil.rmtree(saved)
        saved.write_text("x")
        checkpoints.save(1200, {}, {})
        assert checkpoints.open(1200).state == {}

    def test_a_kill_between_the_renames_loses_nothing(
        self, checkpoints: Checkpoints, saved: Path
    ) -> None:
        saved.rename(saved.with_name(".00001200.old"))
        assert checkpoints.steps() == [1200]
        assert checkpoints.open(1200).state == {"loss": 0.1}
        assert checkpoints.newest(fits, failing(AssertionError())) is not None
        assert names(saved.parent) == [".00001200.old"]  # who reads changes nothing
        checkpoints.save(1300, {}, {})
        assert names(saved.parent) == ["00001200", "00001300"]
        assert checkpoints.open(1200).state == {"loss": 0.1}

    def test_what_was_replaced_does_not_come_back(
        self, checkpoints: Checkpoints, saved: Path
    ) -> None:
        shutil.copytree(saved, saved.with_name(".00001200.old"))
        checkpoints.keep([])
        assert names(saved.parent) == []

    def test_what_killed_runs_left_is_cleared(self, checkpoints: Checkpoints, saved: Path) -> None:
        for name in (".00000900.partial", ".00000300.removed", ".00001200.old"):
            (saved.parent / name).mkdir()
            (saved.parent / name / "half").write_text("x")
        (saved.parent / ".mine").mkdir()
        checkpoints.save(1300, {}, {})
        assert names(saved.parent) == [".mine", "00001200", "00001300"]
        assert checkpoints.open(1200).state == {"loss": 0.1}


class TestNewest:
    def test_none_at_all(self, checkpoints: Checkpoints) -> None:
        assert checkpoints.newest(fits, failing(AssertionError())) is None

    def test_the_newest_that_is_sound_and_fits(self, checkpoints: Checkpoints) -> None:
        folders = [checkpoints.save(step, tensors(), {"step": step}) for step in (1, 2, 3, 4)]
        (folders[3] / "model.safetensors").write_bytes(b"")
        (folders[1] / "checkpoint.json").unlink()  # is not looked at
        notes: list[str] = []
        found = checkpoints.newest(
            lambda one: "it is of another run" if one.step == 3 else None, notes.append
        )
        assert found is not None
        assert found.state == {"step": 1}
        size = json.loads((folders[3] / "checkpoint.json").read_text())["files"]
        assert notes == [
            f"{folders[3]} is not used: model.safetensors has 0 bytes instead of "
            f"{size['model.safetensors']['bytes']}",
            f"{folders[2]} is not used: it is of another run",
            f"{folders[1]} is not used: it has no checkpoint.json, so it is not a checkpoint of "
            "ledeline",
        ]

    def test_none_that_can_be_used(self, checkpoints: Checkpoints, saved: Path) -> None:
        checkpoints.save(1300, {}, {})
        (saved / "checkpoint.json").write_text("{")
        notes: list[str] = []
        with pytest.raises(CheckpointError) as caught:
            checkpoints.newest(lambda _: "it is of another run", notes.append)
        assert str(caught.value) == (
            f"{saved.parent} has checkpoints, but none of them can be used; name another run "
            "folder, or remove its checkpoints to start from the beginning"
        )
        assert len(notes) == 2


# --- failures of the disk ---------------------------------------------------------------------


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


class TestDisk:
    FULL = "00001300: the disk is full; make room and continue with --resume"
    OTHER = r"00001300 cannot be saved: Input/output error; mend that and continue with --resume"

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (OSError(errno.ENOSPC, "No space left on device"), FULL),
            (OSError(errno.EDQUOT, "Disk quota exceeded"), FULL),
            (SafetensorError("I/O error: No space left on device (os error 28)"), FULL),
            (SafetensorError("IoError(Os { code: 122, kind: FilesystemQuota })"), FULL),
            (OSError(errno.EIO, "Input/output error"), OTHER),
            (SafetensorError("I/O error: Input/output error (os error 5)"), OTHER),
            (SafetensorError("no number"), "00001300 cannot be saved: no number; mend that"),
            (FileNotFoundError(2, "No such file", "/x/y"), r"saved: No such file \(/x/y\); mend"),
        ],
    )
    @pytest.mark.parametrize("place", ["save_file", "fsync", "also"])
    def test_a_failure_is_one_sentence_and_leaves_nothing(
        self,
        checkpoints: Checkpoints,
        saved: Path,
        monkeypatch: pytest.MonkeyPatch,
        place: str,
        error: Exception,
        sentence: str,
    ) -> None:
        also = failing(error) if place == "also" else note_file
        if place == "save_file":
            monkeypatch.setattr(checkpoint_module, "save_file", failing(error))
        if place == "fsync":
            monkeypatch.setattr(os, "fsync", failing(error))
        with pytest.raises(CheckpointError, match=sentence):
            checkpoints.save(1300, tensors(), {}, also)
        assert names(saved.parent) == ["00001200"]
        assert checkpoints.open(1200).state == {"loss": 0.1}

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        folder = tmp_path / "small"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
        if os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("only root can mount a small disk")
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no small disk can be mounted here")
        yield folder
        subprocess.run(["umount", str(folder)], check=True)

    @pytest.mark.parametrize("by", ["tensors", "also", "state"])
    def test_a_disk_that_is_really_full(self, small_disk: Path, by: str) -> None:
        checkpoints = Checkpoints(small_disk / "checkpoints")
        checkpoints.save(1200, tensors(), {"loss": 0.1})
        sizes = dict.fromkeys(("tensors", "also", "state"), 1) | {by: 500_000}

        def also(folder: Path) -> None:
            (folder / "more").write_bytes(bytes(sizes["also"]))

        large = {"tensor": torch.zeros(sizes["tensors"])}
        with pytest.raises(CheckpointError, match=self.FULL):
            checkpoints.save(1300, {"large": large}, {"text": "x" * sizes["state"]}, also)
        assert names(small_disk / "checkpoints") == ["00001200"]
        assert checkpoints.open(1200).state == {"loss": 0.1}
        checkpoints.save(1300, tensors(), {})  # once there is room

    def test_a_file_in_the_place_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "checkpoints").write_text("x")
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        assert checkpoints.steps() == []
        with pytest.raises(CheckpointError, match="00000001 cannot be saved: File exists"):
            checkpoints.save(1, {}, {})

    def test_a_manifest_among_the_further_files(self, checkpoints: Checkpoints) -> None:
        with pytest.raises(CheckpointError, match=r"File exists \(.*checkpoint\.json\)"):
            checkpoints.save(1, {}, {}, lambda folder: (folder / "checkpoint.json").touch())

    def test_two_runs_at_once_are_refused(self, checkpoints: Checkpoints, saved: Path) -> None:
        def meanwhile(_: Path) -> None:
            with pytest.raises(CheckpointError, match=r"another run is writing .*checkpoints;"):
                checkpoints.save(1400, {}, {})
            with pytest.raises(CheckpointError, match="another run is writing"):
                checkpoints.keep([])

        checkpoints.save(1300, {}, {}, meanwhile)
        assert checkpoints.steps() == [1200, 1300]


# --- killed at any moment ---------------------------------------------------------------------


def spy_on(monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[str, ...]]:
    """Record the calls of a function of `os`; an open file is recorded by its path."""
    calls: list[tuple[str, ...]] = []
    original = getattr(os, name)

    def spy(*arguments: Any, **rest: Any) -> Any:
        calls.append(
            tuple(
                str(Path(f"/proc/self/fd/{one}").readlink()) if isinstance(one, int) else str(one)
                for one in arguments
            )
        )
        return original(*arguments, **rest)

    monkeypatch.setattr(os, name, spy)
    return calls


class TestOrder:
    def test_everything_is_flushed_before_it_has_its_name(
        self, checkpoints: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed = spy_on(monkeypatch, "fsync")
        at_rename: list[set[str]] = []
        original = os.rename

        def rename(source: Path, target: Path) -> None:
            at_rename.append({path for (path,) in flushed})
            original(source, target)

        monkeypatch.setattr(os, "rename", rename)
        folder = checkpoints.save(7, tensors(), {}, note_file)
        partial = folder.with_name(".00000007.partial")
        written = [partial / path.relative_to(folder) for path in folder.rglob("*")]
        above = [tmp_path, tmp_path / "run"]  # which hold the names of the new folders
        assert at_rename == [{str(path) for path in [*written, partial, *above]}]
        assert flushed[-1] == (str(folder.parent),)

    def test_a_name_is_gone_for_good_before_the_files_are(
        self, checkpoints: Checkpoints, saved: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed = spy_on(monkeypatch, "fsync")
        original = shutil.rmtree

        def rmtree(path: Path) -> None:
            assert path.name == ".00001200.removed"
            assert not saved.exists()
            assert flushed == [(str(saved.parent),)]
            original(path)

        monkeypatch.setattr(shutil, "rmtree", rmtree)
        checkpoints.keep([])
        assert names(saved.parent) == []


class TestKilled:
    """Runs this file as a program, which forks a child for each kill: see the end of the file."""

    def run(self, tmp_path: Path, how: str) -> dict[str, int]:
        command = [sys.executable, __file__, how, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        told: dict[str, int] = json.loads(done.stdout)
        return told

    def test_before_each_change_of_the_disk(self, tmp_path: Path) -> None:
        told = self.run(tmp_path, "each")
        assert told["kills"] > 50
        assert told["hidden"] > 0  # some came between the two renames

    def test_at_random_moments(self, tmp_path: Path) -> None:
        told = self.run(tmp_path, "random")
        assert told["kills"] == 20
        assert told["partial"] > 0  # some came while a folder was half written


CHANGES = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod")


def work(folder: Path, tell: Callable[[str], None]) -> None:
    """Save, replace and remove, and tell what is done."""
    checkpoints = Checkpoints(folder)
    for step, value in [(1, 1.0), (2, 2.0), (2, 2.5)]:
        checkpoints.save(step, tensors(value), {"value": value})
        tell(str(step))
    checkpoints.keep([2])
    tell("kept")
    checkpoints.save(3, tensors(3.0), {"value": 3.0})
    tell("3")


def forked(folder: Path, body: Callable[[Callable[[str], None]], None], delay: float | None) -> str:
    """Run `body` in a child until it is killed, by itself or after a delay; what it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            body(lambda text: void(os.write(writing, f"{text} ".encode())))
        finally:
            os._exit(0)
    os.close(writing)
    if delay is not None:
        signal.sigtimedwait([], delay)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def void(_: object) -> None:
    """Give nothing."""


def check(folder: Path, told: str) -> dict[str, int]:
    """All that has a step's name is sound, and what was done is there to stay."""
    checkpoints = Checkpoints(folder)
    there = names(folder) if folder.is_dir() else []
    steps = checkpoints.steps()
    for step in steps:
        found = checkpoints.open(step)
        assert found.tensors("optimizer")["step"].item() == found.state["value"]
        assert int(found.state["value"]) == step
    done = {int(one) for one in told.split() if one.isdigit()}
    assert done - {1} <= set(steps), (told, steps)
    assert (1 in steps) == (1 in done) or told.count("2") == 2 or told == "", (told, steps)
    assert "kept" not in told or 1 not in steps, (told, steps)
    checkpoints.save(9, tensors(9.0), {"value": 9.0})
    assert names(folder) == [f"{step:08d}" for step in sorted({*steps, 9})]
    assert names(folder.parent) == [folder.name]
    return {
        "kills": 1,
        "hidden": sum(name.endswith(".old") and name[1:9] not in there for name in there),
        "partial": sum(name.endswith(".partial") for name in there),
    }


def kill_before_each_change(folder: Path) -> Iterator[dict[str, int]]:
    for number in range(1, 1000):

        def body(tell: Callable[[str], None], left: int = number) -> None:
            def count(event: str, _: object) -> None:
                nonlocal left
                left -= event in CHANGES
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
            work(folder, tell)

        told = forked(folder, body, None)
        yield check(folder, told)
        shutil.rmtree(folder)
        if told.endswith("3 "):
            return


def kill_at_random(folder: Path) -> Iterator[dict[str, int]]:
    generator = random.Random(1)
    for _ in range(20):

        def body(tell: Callable[[str], None]) -> None:
            while True:
                work(folder, void)

        forked(folder, body, generator.uniform(0.01, 0.12))
        yield check(folder, "")


def main(how: str, place: str) -> None:
    kills = {"each": kill_before_each_change, "random": kill_at_random}[how]
    told = list(kills(Path(place) / "checkpoints"))
    sys.stdout.write(json.dumps({key: sum(one[key] for one in told) for key in told[0]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
