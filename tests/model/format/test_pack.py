"""A packed model is the model it was made of, as far as its storage goes."""

import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import command
from ledeline.config import SearchConfig
from ledeline.core.errors import LedelineError, ModelError
from ledeline.core.shipped import SHIPPED
from ledeline.core.steps import run_steps
from ledeline.inference.engine_bundle import read_engine_bundle
from ledeline.inference.headliner import Headliner, Options
from ledeline.model.format.int8 import quantize
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.format.pack import pack
from ledeline.model.format.weights import as_float32, as_stored
from ledeline.synth.newsroom import generate
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from pages import ROOT
from systems import encdec

LEDES = [story.lede for story in generate(20, 7)]
SHORT = Options(search=SearchConfig(beam=4, n_best=4, max_length=8))
FILES = ["codes.txt", "model.json", "model.safetensors", "subwords.json", "system.toml"]
WEIGHTS = "model.safetensors"
TINY = encdec(embedding_size=6, hidden_size=4)
FIRST, MIX, BILINEAR = (
    "decoder.first.weight",
    "decoder.attention.mix.weight",
    "decoder.attention.bilinear",
)
WIDTHS = {FIRST: [16, 64], MIX: [32, 32]}  # of the parts, in the model of these tests

pytestmark = pytest.mark.usefixtures("one_thread")

Pack = Callable[[Any], Path]


@pytest.fixture
def packed(model_folder: Path, tmp_path: Path) -> Pack:
    """The model, packed in a storage."""
    return lambda storage: pack([model_folder], tmp_path / storage, storage).folder


def weights_of(folder: Path) -> dict[str, Tensor]:
    return load_model(folder).model.state_dict()


def with_weights(folder: Path, copy: Path, change: Callable[[dict[str, Tensor]], object]) -> Path:
    """A copy of a model folder whose tensors are changed."""
    shutil.copytree(folder, copy)
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, copy / WEIGHTS)
    return copy


# --- how weights are stored -----------------------------------------------------------------------


class TestStorages:
    def test_float32_is_the_model_byte_for_byte(self, packed: Pack, model_folder: Path) -> None:
        folder = packed("float32")
        assert sorted(path.name for path in folder.iterdir()) == FILES
        for name in FILES:
            assert (folder / name).read_bytes() == (model_folder / name).read_bytes(), name

    def test_float16_is_the_nearest_half(self, packed: Pack, model_folder: Path) -> None:
        folder = packed("float16")
        assert {one.dtype for one in load_file(folder / WEIGHTS).values()} == {torch.float16}
        found = weights_of(folder)
        for name, one in weights_of(model_folder).items():
            assert found[name].dtype == torch.float32
            assert torch.equal(found[name], one.half().float()), name

    def test_int8_is_within_half_a_level(self, packed: Pack, model_folder: Path) -> None:
        folder = packed("int8")
        stored, found = load_file(folder / WEIGHTS), weights_of(folder)
        for name, one in weights_of(model_folder).items():
            if one.dim() == 1:
                assert torch.equal(found[name], one), name
                continue
            assert (stored[name].dtype, stored[name].shape) == (torch.int8, one.shape)
            scales = stored[f"{name}.scale"]
            if name in (FIRST, MIX):
                scales = scales.repeat_interleave(torch.tensor(WIDTHS[name]), 1)
            assert torch.equal(found[name], stored[name] * scales), name
            assert ((found[name] - one).abs() <= scales * 0.5001).all(), name

    def test_the_scales_are_those_of_the_rows_that_are_multiplied(self, packed: Pack) -> None:
        stored = load_file(packed("int8") / WEIGHTS)
        assert stored[f"{FIRST}.scale"].shape == (128, 2)
        assert stored[f"{MIX}.scale"].shape == (32, 2)
        assert stored[f"{BILINEAR}.scale"].shape == (1, 32)
        assert stored["output.weight.scale"].shape == (len(stored["output.weight"]), 1)
        for part in (*stored[FIRST].split(WIDTHS[FIRST], 1), stored[BILINEAR].t()):
            assert (part.abs().amax(1) == 127).all()

    def test_they_are_as_small_as_they_should_be(self, packed: Pack, model_folder: Path) -> None:
        whole, half, eighth = (
            (folder / WEIGHTS).stat().st_size
            for folder in (model_folder, packed("float16"), packed("int8"))
        )
        assert half < 0.55 * whole
        assert eighth < 0.35 * whole  # scales and vectors are much of a model as small as this

    @pytest.mark.parametrize("storage", ["float16", "int8"])
    def test_what_is_packed_again_is_the_same(
        self, packed: Pack, tmp_path: Path, storage: Any
    ) -> None:
        once = packed(storage)
        twice = pack([once], tmp_path / "twice", storage).folder
        for name in FILES:
            assert (once / name).read_bytes() == (twice / name).read_bytes(), name

    def test_a_weight_too_large_for_float16(self, model_folder: Path, tmp_path: Path) -> None:
        def change(tensors: dict[str, Tensor]) -> None:
            tensors["output.bias"][3] = 70_000

        large = with_weights(model_folder, tmp_path / "large", change)
        with pytest.raises(ModelError, match=r"output\.bias has weights too large for float16"):
            pack([large], tmp_path / "packed", "float16")
        assert [path.name for path in tmp_path.iterdir()] == ["large"]
        pack([large], tmp_path / "packed", "int8")


# --- the engine comes to the integers that are stored ---------------------------------------------


def levels_again(weight: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Levels and scales of a weight; and those of the weight that they stand for."""
    stored = as_stored({"x": weight}, "int8", {})
    again = as_float32(stored, "int8", {})["x"]
    return (stored["x"], stored["x.scale"].squeeze(1)), quantize(again)


def assert_same(ones: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor]) -> None:
    for one, other in zip(ones, others, strict=True):
        assert torch.equal(one, other)


class TestExactness:
    def test_every_scale_is_found_again(self) -> None:
        """All 2^23 largest values between 1 and 2; those of another exponent behave alike."""
        bits = torch.arange(2**23, dtype=torch.int32) + (127 << 23)
        assert_same(*levels_again(bits.view(torch.float32).unsqueeze(1)))

    def test_every_level_is_found_again(self) -> None:
        levels = torch.arange(-127, 128)
        largest = torch.logspace(-35, 35, 20_000).unsqueeze(1)
        stored, again = levels_again(largest * (levels / 127))
        assert (stored[0] == levels).all()
        assert_same(stored, again)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("scale", [1e-44, 1e-38, 3e-36, 1e-6, 0.1, 1.0, 1e4, 1e30])
    def test_random_matrices(self, scale: float, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(200, 300, generator=generator)
        weight[::7] **= 3  # few are large
        weight *= torch.randn(200, 1, generator=generator).exp() * scale  # rows of unlike sizes
        weight[::11] = 0
        weight[5, 1:] = 0
        assert_same(*levels_again(weight))

    @pytest.mark.parametrize("spm", [True, False])
    def test_the_engine_has_the_levels_and_scales_of_the_model(
        self, make_model, tmp_path: Path, spm: bool
    ) -> None:
        """Of the model that was packed, so that all that it computes has the same bits."""
        folder = make_model(spm=spm)
        small = pack([folder], tmp_path / "packed").folder
        before, after = (self.seen(one, "int8") for one in (folder, small))
        assert before == after
        assert before != self.seen(folder, "float32")
        assert self.seen(folder, "float32") != self.seen(small, "float32")

    def seen(self, folder: Path, precision: Any) -> list[Any]:
        """What the engine of a folder makes of some pairs: every product has a part in it."""
        bundle = read_engine_bundle(folder)
        assert bundle is not None
        sources = [bundle.tokenizer.encode(bundle.tokenizer.words(lede)) for lede in LEDES[:6]]
        headlines = [(row, source[:7]) for row, source in enumerate(sources)]
        engine = bundle.model.engine(precision)
        seen = run_steps(engine.follow(sources, headlines, explain=True))
        return [(seen.headline(row), seen.values(row)) for row in range(len(sources))]


@pytest.mark.parametrize(
    ("storage", "precision", "num_same", "most"),
    [
        ("float16", "float32", 19, 0.005),
        ("int8", "float32", 12, 0.1),  # the model is random: its headlines are close to each other
        ("int8", "int8", 12, 0.1),
    ],
)
def test_headlines_are_those_of_the_model(
    packed: Pack, model_folder: Path, storage: Any, precision: Any, num_same: int, most: float
) -> None:
    before, after = (
        Headliner.load(folder, precision=precision, device="cpu").generate_batch(LEDES, SHORT)
        for folder in (model_folder, packed(storage))
    )
    pairs = zip(before, after, strict=True)
    same = [(one.score, other.score) for one, other in pairs if one.text == other.text]
    assert len(same) >= num_same
    for one, other in same:
        assert one == pytest.approx(other, abs=most)


# --- several models -------------------------------------------------------------------------------


class TestMean:
    def test_of_three(self, make_model, tmp_path: Path) -> None:
        folders = [make_model(seed=seed) for seed in range(3)]
        found = weights_of(pack(folders, tmp_path / "mean", "float32").folder)
        weights = [weights_of(folder) for folder in folders]
        for name, one in found.items():
            mean = sum(each[name].double() for each in weights) / 3
            assert torch.equal(one, mean.float()), name

    def test_it_is_taken_in_float64(self, model_folder: Path, tmp_path: Path) -> None:
        def valued(value: float) -> Path:
            def change(tensors: dict[str, Tensor]) -> None:
                tensors["output.bias"][0] = value

            return with_weights(model_folder, tmp_path / f"{value:g}", change)

        folders = [valued(value) for value in (1e8, 3, -1e8)]
        found = weights_of(pack(folders, tmp_path / "mean", "float32").folder)
        assert found["output.bias"][0] == 1

    def test_then_it_is_stored(self, make_model, tmp_path: Path) -> None:
        folders = [make_model(seed=seed) for seed in range(2)]
        mean = pack(folders, tmp_path / "mean", "float32").folder
        one, other = pack(folders, tmp_path / "a").folder, pack([mean], tmp_path / "b").folder
        assert (one / WEIGHTS).read_bytes() == (other / WEIGHTS).read_bytes()

    @pytest.mark.parametrize(
        ("other", "what"),
        [
            ({"spm": False}, "system.toml"),
            ({"merges": 200}, "their sub-words"),
            ({"profile": "paper"}, "their text profiles"),
        ],
    )
    def test_strangers_have_none(
        self, make_model, model_folder: Path, tmp_path: Path, other: dict[str, Any], what: str
    ) -> None:
        with pytest.raises(ModelError, match=f"cannot be averaged: they differ in {what}; name"):
            pack([model_folder, make_model(**other)], tmp_path / "mean")
        assert list(tmp_path.iterdir()) == []


# --- the folder -----------------------------------------------------------------------------------


def test_a_folder_that_is_there_stays(model_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "there"
    output.mkdir()
    (output / "mine.txt").write_text("x")
    with pytest.raises(ModelError, match="there already exists; name another folder"):
        pack([model_folder], output)
    assert [path.name for path in tmp_path.rglob("*")] == ["there", "mine.txt"]


def test_nothing_is_left_of_what_failed(monkeypatch, model_folder: Path, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ledeline.model.format.pack.write_weights", fail)
    with pytest.raises(ModelError, match="packed: the disk is full"):
        pack([model_folder], tmp_path / "packed")
    assert list(tmp_path.iterdir()) == []


def test_what_is_shipped_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["ledeline"]
    place = (SHIPPED / WEIGHTS).relative_to(ROOT / "src" / "ledeline")
    assert any(place.match(pattern) for pattern in patterns)


def test_the_description_names_the_system_and_its_add_ons(tmp_path: Path) -> None:
    system = encdec(spm=True, embedding_size=6, hidden_size=4)
    write_description(tmp_path, system, Tokenizer(NATURAL, Subwords([], "ab")))
    assert (tmp_path / "model.json").read_text() == (
        '{\n  "format": "ledeline-model",\n  "version": 3,\n  "system": "encdec",\n'
        '  "addons": [\n    "spm"\n  ],\n  "profile": "natural",\n  "vocabulary": 8\n}\n'
    )


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_the_description_says_how_weights_are_stored(packed: Pack, storage: str) -> None:
    about = json.loads((packed(storage) / "model.json").read_text())
    assert (about["version"], about["weights"]) == (3, storage)


class TestBlockedNgrams:
    """What a model asks of a search that leaves it open."""

    @pytest.fixture
    def blocking(self, model_folder: Path, tmp_path: Path) -> Path:
        return pack([model_folder], tmp_path / "blocking", "float32", block_ngrams=1).folder

    def test_they_are_kept_until_somebody_says_otherwise(
        self, blocking: Path, model_folder: Path, tmp_path: Path
    ) -> None:
        assert load_model(blocking).block_ngrams == 1
        again, off = (
            pack([blocking], tmp_path / name, "float32", block_ngrams=number).folder
            for name, number in (("again", None), ("off", 0))
        )
        assert (again / "model.json").read_bytes() == (blocking / "model.json").read_bytes()
        assert (off / "model.json").read_bytes() == (model_folder / "model.json").read_bytes()

    def test_they_hold_where_a_search_does_not_say(
        self, blocking: Path, model_folder: Path
    ) -> None:
        def texts(folder: Path, blocked: int | None) -> list[str]:
            search = SearchConfig(beam=4, max_length=12, min_length=8, block_ngrams=blocked)
            headliner = Headliner.load(folder, precision="float32", device="cpu")
            return [one.text for one in headliner.generate_batch(LEDES, Options(search=search))]

        assert texts(blocking, None) == texts(model_folder, 1)
        assert texts(blocking, 0) == texts(model_folder, None)
        assert texts(blocking, None) != texts(blocking, 0)


class TestBeam:
    """The beam of a search that leaves it open."""

    @pytest.fixture
    def narrow(self, model_folder: Path, tmp_path: Path) -> Path:
        return pack([model_folder], tmp_path / "narrow", "float32", beam=3).folder

    def test_it_is_kept_until_somebody_says_otherwise(
        self, narrow: Path, model_folder: Path, tmp_path: Path
    ) -> None:
        assert (load_model(model_folder).beam, load_model(narrow).beam) == (20, 3)
        again, usual = (
            pack([narrow], tmp_path / name, "float32", beam=beam).folder
            for name, beam in (("again", None), ("usual", 20))
        )
        assert (again / "model.json").read_bytes() == (narrow / "model.json").read_bytes()
        assert (usual / "model.json").read_bytes() == (model_folder / "model.json").read_bytes()

    @pytest.mark.parametrize(
        ("asked", "beam"),
        [({}, 3), ({"beam": 7}, 7), ({"n_best": 2}, 3), ({"n_best": 5}, 5)],
    )
    def test_it_holds_where_a_search_does_not_say(
        self, narrow: Path, asked: dict[str, int], beam: int
    ) -> None:
        headliner = Headliner.load(narrow, precision="float32", device="cpu")
        found = headliner.resolve_search(SearchConfig(**asked))
        assert (found.beam, found.beam_size) == (beam, beam)
        n_best = asked.get("n_best", 1)
        options = Options(search=SearchConfig(**asked))
        ours = headliner.generate_batch(LEDES, options)
        wide = headliner.generate_batch(
            LEDES, Options(search=SearchConfig(beam=beam, n_best=n_best))
        )
        assert [one.as_dict() for one in ours] == [one.as_dict() for one in wide]

    def test_without_a_model_it_is_that_of_the_paper(self) -> None:
        assert SearchConfig().beam_size == 20
        assert SearchConfig(n_best=30).beam_size == 30


class TestDamage:
    """What is not as it should be is named in one sentence."""

    @pytest.mark.parametrize(
        ("storage", "change", "sentence"),
        [
            (
                "int8",
                lambda them: them.pop("output.weight.scale"),
                r"output\.weight\.scale is missing but should be float32 \(\d+, 1\)",
            ),
            (
                "int8",
                lambda them: them.update({FIRST: them[FIRST].float()}),
                r"decoder\.first\.weight is float32 \(128, 80\) but should be int8 \(128, 80\)",
            ),
            (
                "int8",
                lambda them: them.update({f"{MIX}.scale": torch.ones(32, 1)}),
                r"mix\.weight\.scale is float32 \(32, 1\) but should be float32 \(32, 2\)",
            ),
            (
                "int8",
                lambda them: them[f"{BILINEAR}.scale"].fill_(float("nan")),
                r"bilinear has weights that are not finite",
            ),
            (
                "int8",
                lambda them: them["output.weight.scale"].fill_(float("inf")),
                r"output\.weight has weights that are not finite",
            ),
            (
                "float16",
                lambda them: them.update({FIRST: them[FIRST].float()}),
                r"decoder\.first\.weight is float32 \(128, 80\) but should be float16",
            ),
            (
                "float32",
                lambda them: them.update({FIRST: them[FIRST].half()}),
                r"decoder\.first\.weight is float16 \(128, 80\) but should be float32",
            ),
            (
                "float32",
                lambda them: them.update({"more": torch.ones(3)}),
                r"more is float32 \(3,\) but should be missing",
            ),
            (
                "float32",
                lambda them: them["output.bias"].fill_(float("nan")),
                r"output\.bias has weights that are not finite",
            ),
        ],
    )
    def test_of_weights(
        self, packed: Pack, tmp_path: Path, storage: str, change: Any, sentence: str
    ) -> None:
        folder = with_weights(packed(storage), tmp_path / "damaged", change)
        with pytest.raises(ModelError, match=rf"damaged/model\.safetensors .*{sentence}"):
            load_model(folder)

    @pytest.mark.parametrize("storage", ["float16", "int8"])
    def test_of_a_file_that_breaks_off(self, packed: Pack, storage: str) -> None:
        path = packed(storage) / WEIGHTS
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(ModelError, match=r"model\.safetensors cannot be read: "):
            load_model(path.parent)

    @pytest.mark.parametrize(
        ("lie", "sentence"),
        [
            ({"version": 1}, "version 1 has no weights in int8"),
            ({"version": 2, "weights": "float32"}, "version 2 has no weights in float32"),
            ({"weights": "\nt8"}, r"version 3 has no weights in '\\nt8'$"),
            ({"addons": ["\x1b[2J"]}, r"names the add-on '\\x1b\[2J', but"),
            ({"system": "x" * 10**6}, r"names the system 'x+\.\.\.x+', but this"),
            ({"weights": "int4"}, "version 3 has no weights in int4"),
            ({"weights": ["int8"]}, "version 3 has no weights in"),
            ({"version": 4}, "format version 4 and profile .natural., but this ledeline reads"),
            ({"profile": ["natural"]}, "format version 3 and profile"),
            (
                {"system": "seq3seq"},
                "names the system seq3seq, but this ledeline only has encdec, gru",
            ),
            ({"system": None}, "names the system None, but this ledeline only has encdec, gru"),
            ({"addons": ["spn"]}, "names the add-on spn, but this ledeline only has sgate, spm"),
            ({"addons": 5}, "is damaged: addons is 5, not a list of names"),
            ({"addons": None}, "is damaged: addons is None, not a list of names"),
            ({"addons": {"spm": 1}}, "is damaged: addons is .*, not a list of names"),
            ({"beam": 0}, "is damaged: beam is 0, not a whole number above 0"),
            ({"beam": True}, "beam is True, not a whole number above 0"),
            ({"block_ngrams": -1}, "is damaged: block_ngrams is -1, not a whole number"),
            ({"block_ngrams": True}, "block_ngrams is True, not a whole number"),
            ({"block_ngrams": "2"}, "block_ngrams is '2', not a whole number"),
            ({"version": 1, "weights": "float32"}, "is int8 .* but should be float32"),
        ],
    )
    def test_of_the_description(self, packed: Pack, lie: dict[str, Any], sentence: str) -> None:
        path = packed("int8") / "model.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | lie))
        with pytest.raises(ModelError, match=sentence):
            load_model(path.parent)

    @pytest.mark.parametrize("name", ["model.json", "subwords.json"])
    def test_of_a_description_too_deep_to_read(self, packed: Pack, name: str) -> None:
        path = packed("int8") / name
        path.write_text("[" * 10**5)
        with pytest.raises(LedelineError, match=f"{name} is damaged"):
            load_model(path.parent)


# --- the verb -------------------------------------------------------------------------------------


def ledeline(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return command.ledeline("pack", *arguments, cwd=cwd)


def test_the_verb_prints_one_line(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "about.md").write_bytes("# Größe\r\n".encode())
    shown = ledeline(model_folder, "--output", "a/b", "--card", "about.md", cwd=tmp_path)
    folder = tmp_path / "a" / "b"
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "card.md"])
    assert (folder / "card.md").read_bytes() == (tmp_path / "about.md").read_bytes()
    num_parameters = sum(one.numel() for one in weights_of(model_folder).values())
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    assert shown.stdout == (
        f"a/b: EncDec+sGate+SPM, {num_parameters:,} parameters in int8, {num_bytes:,} bytes\n"
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert load_file(folder / WEIGHTS)["output.weight"].dtype == torch.int8


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing", "--output", "new"], "nothing is not a model folder"),
        (["MODEL", "--output", "."], "already exists; name another folder"),
        (["MODEL", "--output", "new", "--card", "none.md"], "none.md: the card cannot be read"),
        (["MODEL", "nothing", "--output", "new"], "nothing is not a model folder"),
    ],
)
def test_what_the_user_can_cause_is_one_sentence(
    model_folder: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    given = [str(model_folder) if one == "MODEL" else one for one in arguments]
    shown = ledeline(*given, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert sentence in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
