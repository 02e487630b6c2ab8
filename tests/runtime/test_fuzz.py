"""Damaged and hostile model folders, for some seconds; bench/fuzz_model.py has no such limit."""

import sys
from pathlib import Path

import pytest

from ledeline.core.errors import ModelError
from ledeline.runtime.tensor_file import read_tensors
from pages import ROOT

pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import fuzz_model

OF_WEIGHTS = ("tiny model", "header of the bundled model", "system.toml", "verifier.json")


def test_every_case_gets_a_sentence_or_works() -> None:
    counts = fuzz_model.fuzz(seconds=8, cases=1500, seed=1)
    seen = {(kind, found) for kind, found in counts if kind in OF_WEIGHTS}
    assert not [found for _, found in seen if found.startswith("FINDING")]
    assert {found for kind, found in seen if kind == "tiny model"} == {"a sentence", "works"}


@pytest.mark.parametrize("storage", ["F32", "F16", "I8"])
def test_what_is_damaged_is_a_model_before(storage: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(fuzz_model.tiny_file(storage))
    for precision in ("int8", "float32"):
        fuzz_model.Engine(fuzz_model.System, fuzz_model.VOCABULARY, read_tensors(path), precision)  # type: ignore[arg-type]


def header(text: str, values: bytes = b"") -> bytes:
    return fuzz_model.as_file(text.encode(), values)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "it is empty"),
        (b"1234567", "too short"),
        (header('{"a": 1, "a": 1}'), "a name twice"),
        (
            header(
                '{"a": {"dtype": "F32", "shape": [' + "1, " * 99 + '1], "data_offsets": [0, 4]}}',
                b"1234",
            ),
            "has the shape",
        ),
        (
            header(
                '{"a": {"dtype": "' + "F" * 999 + '", "shape": [], "data_offsets": [0, 4]}}',
                b"1234",
            ),
            "FFF\\.\\.\\. *,",
        ),
        (header('{"\\n": 1}'), r"\\n' has no type"),
        (
            header(
                '{"a\\u001b[2Jb": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', b"1234"
            ),
            r"the name 'a\\x1b\[2Jb' of a tensor .* cannot be printed",
        ),
        (
            header(
                '{"' + "é" * 81 + '": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
                b"1234",
            ),
            f"the name {'é' * 80}\\.\\.\\. of a tensor is too long",
        ),
    ],
)
def test_a_damaged_header_is_told_in_one_short_line(
    data: bytes, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=complaint) as error:
        read_tensors(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500 + len(str(path))


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="is not a file"):
        read_tensors(tmp_path / "model.safetensors")
