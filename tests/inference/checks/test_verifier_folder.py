"""The folder of a verifier: small, read as it was written, refused in one sentence if damaged."""

import json
import shutil

import pytest
import torch

from ledeline.core.errors import ModelError
from ledeline.core.shipped import SHIPPED
from ledeline.inference.checks.checker import VERIFIER, Checker, bundled_generator
from ledeline.inference.checks.verifier_folder import (
    read_verifier,
    verifier_checksum,
    write_verifier,
)
from ledeline.synth.newsroom import generate
from ledeline.text.tokenizer import Tokenizer
from verifiers import verifier_in_torch

MOST_BYTES = 10_000_000
PAIRS = [(story.lede, story.headline) for story in generate(6, 20)]

pytestmark = pytest.mark.usefixtures("one_thread")


def copied(tmp_path):
    return shutil.copytree(VERIFIER, tmp_path / "verifier")


def about(folder):
    return json.loads((folder / "verifier.json").read_text())


def changed(folder, **changes):
    (folder / "verifier.json").write_text(json.dumps(about(folder) | changes))


def checks_of(bundle):
    """What a checker with this verifier says of some pairs."""
    return Checker(bundled_generator().engine, Tokenizer.load(SHIPPED), *bundle).check_batch(PAIRS)


def test_it_is_small():
    assert sum(path.stat().st_size for path in VERIFIER.iterdir()) <= MOST_BYTES
    assert {path.name for path in VERIFIER.iterdir()} >= {"model.safetensors", "verifier.json"}


def test_what_is_written_is_read(tmp_path):
    verifier, folder = verifier_in_torch(VERIFIER), tmp_path / "new" / "verifier"
    bundle = read_verifier(VERIFIER)
    write_verifier(folder, verifier, bundle.calibration)
    again = read_verifier(folder)
    assert about(folder) == about(VERIFIER)
    assert again.calibration == bundle.calibration
    for name, one in verifier_in_torch(folder).state_dict().items():
        assert torch.equal(one, verifier.state_dict()[name]), name
    assert checks_of(again) == checks_of(bundle)


def test_int8_products_say_about_the_same():
    in_int8 = [one.support for one in checks_of(read_verifier(VERIFIER))]
    in_float32 = [one.support for one in checks_of(read_verifier(VERIFIER, "float32"))]
    assert in_int8 == pytest.approx(in_float32, abs=0.03)
    assert in_int8 != in_float32


def test_the_checksum_is_of_both_files(tmp_path):
    folder = copied(tmp_path)
    first = verifier_checksum(folder)
    assert first == verifier_checksum(VERIFIER)
    changed(folder, calibration={**about(folder)["calibration"], "bias": 0.25})
    second = verifier_checksum(folder)
    damaged = bytearray((folder / "model.safetensors").read_bytes())
    damaged[-1] ^= 1
    (folder / "model.safetensors").write_bytes(damaged)
    assert len({first, second, verifier_checksum(folder)}) == 3


@pytest.mark.parametrize("name", ["verifier.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = copied(tmp_path)
    (folder / name).unlink()
    for read in (read_verifier, verifier_checksum):
        with pytest.raises(ModelError, match=name) as refused:
            read(folder)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is damaged"),
        ("{", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        ("[]", "does not describe a verifier"),
        ('{"format": "ledeline-model"}', "does not describe a verifier"),
        ('{"format": "ledeline-verifier", "version": 2}', "has version 2; this ledeline reads 1"),
        ('{"format": "ledeline-verifier", "version": 1}', "is damaged"),
    ],
)
def test_a_damaged_description_is_named(tmp_path, text, said):
    folder = copied(tmp_path)
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "verifier.json").write_bytes(data)
    with pytest.raises(ModelError, match=said) as refused:
        read_verifier(folder)
    assert "verifier.json" in str(refused.value)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("shape", {"size": "192"}),
        ("shape", {"size": -1}),
        ("shape", {"heads": 0}),
        ("shape", {"heads": 5}),
        ("shape", {"unheard": 1}),
        ("calibration", {"bias": None}),
        ("calibration", {"bias": "0.5"}),
        ("calibration", {"bias": float("nan")}),
        ("calibration", {"unheard": 1.0}),
    ],
)
def test_a_value_that_cannot_be_is_damage(tmp_path, part, change):
    folder = copied(tmp_path)
    changed(folder, **{part: about(folder)[part] | change})
    with pytest.raises(ModelError, match=r"verifier\.json is damaged"):
        read_verifier(folder)


def test_weights_that_are_cut_short_or_of_another_shape_are_named(tmp_path):
    folder = copied(tmp_path)
    changed(folder, shape=about(folder)["shape"] | {"layers": 1})
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        read_verifier(folder)
    whole = (VERIFIER / "model.safetensors").read_bytes()
    for part in (b"", whole[:100], whole[:-7]):
        (folder / "model.safetensors").write_bytes(part)
        with pytest.raises(ModelError, match=r"model\.safetensors"):
            read_verifier(folder)
