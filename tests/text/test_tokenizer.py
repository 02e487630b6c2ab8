"""The tokenizer: a profile and its sub-words as one thing."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ledeline.core.errors import DatasetError, LedelineError, ModelError
from ledeline.core.manifest import with_checksum
from ledeline.text.profiles import NATURAL, PAPER
from ledeline.text.subwords import UNK, Subwords
from ledeline.text.tokenizer import DATASET_FILE, MODEL_FILE, Tokenizer

TEXT = "Oslo’s rain: 3 days"
LETTERS = "".join(sorted({*"Oslosrain3daysOilup￭:'"}))


def tokenizer(alphabet: str = LETTERS, merges: tuple[tuple[str, str], ...] = ()) -> Tokenizer:
    return Tokenizer(NATURAL, Subwords(merges, alphabet))


def saved(folder: Path, name: str, **about: object) -> Path:
    folder.mkdir(exist_ok=True)
    tokenizer("abc’￭").subwords.save(folder)
    (folder / name).write_text(json.dumps(about))
    return folder


class TestText:
    def test_text_goes_to_ids_and_back(self) -> None:
        one = tokenizer()
        assert one.words(TEXT) == ["Oslo", "￭'s", "rain", "￭:", "3", "days"]
        ids = one.encode(one.words(TEXT))
        assert one.decode_words(ids) == one.words(TEXT)
        assert one.decode(ids) == "Oslo's rain: 3 days"
        assert one.plain(one.words(TEXT))[1] == "'s"
        assert one.spaced(one.words(TEXT)) == ["Oslo", "'s", " rain", ":", " 3", " days"]
        assert one.vocabulary_size == len(one.types) == 4 + 2 * len(LETTERS)

    def test_each_id_has_its_word(self) -> None:
        one = tokenizer()
        ids, counts = one.encode_words(["Oil", "up"])
        assert counts == [3, 2]
        assert one.word_ids(ids) == [0, 0, 0, 1, 1]
        assert [*one.encode_word("Oil"), *one.encode_word("up")] == ids

    def test_a_headline_has_the_words_that_a_model_learns(self) -> None:
        paper = Tokenizer(PAPER, Subwords([], "oilup.,", PAPER.unknown_words))
        assert paper.words("Oil, up.") == ["oil", ",", "up", "."]
        assert paper.headline_words("Oil, up.") == ["oil", "up"]
        assert paper.encode(["UNK"]) == [UNK]

    def test_marks_that_the_subwords_know_stay(self) -> None:
        assert tokenizer().profile is NATURAL
        assert tokenizer(LETTERS + "’").words("Oslo’s") == ["Oslo", "￭’s"]


class TestEquality:
    def test_tokenizers_that_do_the_same_are_equal(self) -> None:
        assert tokenizer() == tokenizer()
        assert tokenizer() != "a tokenizer"

    @pytest.mark.parametrize(
        "other",
        [
            tokenizer(LETTERS + "x"),
            tokenizer(merges=(("O", "s"),)),
            Tokenizer(PAPER, Subwords([], LETTERS)),
            Tokenizer(NATURAL, Subwords([], LETTERS, ["UNK"])),
            dataclasses.replace(tokenizer(), profile=NATURAL.keeping_marks("’")),
        ],
        ids=["alphabet", "merges", "profile", "unknown", "marks"],
    )
    def test_others_are_not(self, other: Tokenizer) -> None:
        assert tokenizer() != other

    def test_the_same_types_by_other_merges_read_otherwise(self) -> None:
        """Either way there are ab, bc and abc; but abcd is cut otherwise."""
        one = (("a", "b"), ("b", "c"), ("ab", "c"))
        other = (("a", "b"), ("b", "c"), ("a", "bc"))
        first, second = tokenizer("abcd", one), tokenizer("abcd", other)
        assert first.types == second.types
        assert first.encode(["abcd"]) != second.encode(["abcd"])
        assert first != second


class TestLoad:
    def test_of_a_model_folder(self, tmp_path: Path) -> None:
        saved(tmp_path, MODEL_FILE, format="ledeline-model", version=1, profile="natural")
        assert Tokenizer.load(tmp_path) == tokenizer("abc’￭")
        assert Tokenizer.load(str(tmp_path)).profile is NATURAL.keeping_marks("’")

    def test_of_a_dataset(self, tmp_path: Path) -> None:
        about = with_checksum({"format": "ledeline-dataset", "version": 1, "profile": "natural"})
        saved(tmp_path, DATASET_FILE, **about)
        assert Tokenizer.load(tmp_path) == tokenizer("abc’￭")
        saved(tmp_path, DATASET_FILE, **about | {"profile": "paper"})
        with pytest.raises(DatasetError, match=r"dataset\.json was changed after it was written"):
            Tokenizer.load(tmp_path)

    def test_shipped_is_a_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        saved(tmp_path / "box", MODEL_FILE, format="ledeline-model", profile="paper")
        monkeypatch.setattr("ledeline.core.shipped.SHIPPED", tmp_path / "box")
        assert Tokenizer.load("shipped").profile is PAPER
        monkeypatch.setattr("ledeline.core.shipped.SHIPPED", tmp_path / "nowhere")
        with pytest.raises(ModelError, match="the model that ships with ledeline is missing"):
            Tokenizer.load("shipped")

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("other.json", "{}", "neither a dataset nor a model folder: it has no dataset.json"),
            (MODEL_FILE, "{", "model.json is damaged"),
            (MODEL_FILE, "[]", "model.json does not describe a model"),
            (DATASET_FILE, '{"format": "x"}', "dataset.json does not describe a dataset"),
            (
                MODEL_FILE,
                '{"format": "ledeline-model", "profile": ["paper"]}',
                "has the text profile .'paper'., but this ledeline knows paper and natural",
            ),
        ],
    )
    def test_what_cannot_be_read_is_said(
        self, tmp_path: Path, name: str, text: str, said: str
    ) -> None:
        (tmp_path / name).write_text(text)
        with pytest.raises(LedelineError, match=said):
            Tokenizer.load(tmp_path)

    def test_it_needs_neither_torch_nor_models(self, tmp_path: Path) -> None:
        folder = saved(tmp_path, MODEL_FILE, format="ledeline-model", profile="paper")
        program = (
            "import sys\n"
            "from ledeline.text.tokenizer import Tokenizer\n"
            f"Tokenizer.load({str(folder)!r})\n"
            "sys.exit('torch' in sys.modules or 'ledeline.model' in sys.modules)\n"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
