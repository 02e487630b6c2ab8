import io
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from operator import eq
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

import pytest
import torch

import ledeline
from ledeline.config import SearchConfig
from ledeline.core.errors import (
    ArgumentError,
    ConfigError,
    LedelineError,
    ModelError,
    RenamedWarning,
)
from ledeline.data.dataset import Batch
from ledeline.inference.engine_model import EngineModel
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.source_text import SourceText
from ledeline.inference.threads import VARIABLE
from ledeline.inference.torch_model import TorchModel
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.gpu.gpu_step_model import GpuStepModel
from ledeline.runtime.cpu import kinds
from ledeline.search import Hypothesis
from ledeline.search.engine_search import EngineSearch
from ledeline.synth.newsroom import generate
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from systems import encdec

LEDES = [story.lede for story in generate(40, 7)]
SHORT = Options(search=SearchConfig(beam=4, n_best=4, max_length=8))
PRECISIONS = ["float32", "int8"]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def headliner(model_folder: Path) -> Headliner:
    return Headliner.load(model_folder, device="cpu")


def test_it_is_a_public_name() -> None:
    assert ledeline.Headliner is Headliner
    assert ledeline.Options is Options
    with pytest.raises(AttributeError, match="nothing"):
        ledeline.nothing  # noqa: B018


def test_the_old_name_of_generate_batch_works_and_warns(headliner: Headliner) -> None:
    with pytest.warns(RenamedWarning, match="Headliner.answers is called generate_batch now"):
        found = headliner.answers(LEDES[:2], SHORT, first=3)
    assert found == headliner.generate_batch(LEDES[:2], SHORT, first=3)


def test_a_text_gives_a_headline(headliner: Headliner) -> None:
    headline = headliner(LEDES[0], beam=4)
    assert isinstance(headline, ledeline.Headline)
    assert str(headline) == headline.text
    assert headline
    assert headline.source == LEDES[0]
    assert headline.tokens == tuple(headline)
    assert headline.score is not None
    assert headline.score < 0
    assert headline.alignment is None
    assert headline.alternatives == ()


def test_alternatives_are_there_where_asked_for(headliner: Headliner) -> None:
    headline = headliner(LEDES[0], beam=4, n_best=3)
    best, *others = headline.alternatives
    assert (best.text, best.score) == (headline.text, headline.score)
    assert len(others) == 2
    assert headline.as_dict()["alternatives"][0]["headline"] == headline.text
    scores = [one.score for one in headline.alternatives]
    assert scores == sorted(scores, reverse=True)
    # Only one comes to an end: the list is there all the same.
    one_step = Options(search=SearchConfig(beam=2, n_best=2, max_length=1, min_length=1))
    assert "alternatives" in headliner(LEDES[0], options=one_step).as_dict()


def test_the_score_is_that_of_the_forced_headline(model_folder: Path) -> None:
    headliner = Headliner.load(model_folder, precision="float32", device="cpu")
    loaded = load_model(model_folder)
    num_scored = 0
    for one in headliner.generate_batch(LEDES[:8], SHORT):
        words = loaded.tokenizer.words(one.source or "")
        for candidate in one.alternatives:
            ids = loaded.tokenizer.encode(loaded.tokenizer.words(candidate.text))
            if loaded.tokenizer.decode_words(ids) != loaded.tokenizer.words(candidate.text):
                continue
            pair = (loaded.tokenizer.encode(words), ids)
            with torch.inference_mode():
                forced = loaded.model.trace(loaded.model.pairs(Batch.of([pair])))
            score = float(forced.log_probabilities[0, : len(ids) + 1].mean())
            # An untrained model may write a word in other pieces than ours; those do not compare.
            num_scored += candidate.score == pytest.approx(score, abs=1e-4)
    assert num_scored > 3


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_answer_does_not_depend_on_the_batch(model_folder: Path, precision: str) -> None:
    headliner = Headliner.load(model_folder, precision=precision, device="cpu")  # type: ignore[arg-type]
    alone = [headliner(text, options=SHORT) for text in LEDES]
    assert len({one.text for one in alone}) > 10
    assert headliner.generate_batch(LEDES, SHORT) == alone
    assert headliner.generate_batch(LEDES[::-1], SHORT) == alone[::-1]
    sizes = (Options(search=SHORT.search, batch_size=size) for size in (1, 7))
    for options in sizes:
        assert headliner.generate_batch(LEDES, options) == alone


class TestBatches:
    """On a GPU batches are as large as its memory is meant to hold."""

    @pytest.fixture
    def as_on_a_gpu(self, headliner: Headliner, monkeypatch) -> Callable[[list[int]], list[int]]:
        """The sizes of batches of texts that have so many sub-words."""
        monkeypatch.setattr(Headliner, "on_cpu", False)
        monkeypatch.setattr(
            "ledeline.inference.headliner._GPU_SCORES",
            10 * 4 * headliner._tokenizer.vocabulary_size,
        )
        monkeypatch.setattr("ledeline.inference.headliner._GPU_SUBWORDS", 40)

        def sizes(lengths: list[int], **options: int) -> list[int]:
            ledes = [SourceText("", ids=(5,) * length) for length in lengths]
            wanted = Options(search=SHORT.search, **options)
            batches = headliner._batches(list(range(len(ledes))), ledes, wanted, 1)
            assert [row for batch in batches for row in batch] == list(range(len(ledes)))
            return [len(batch) for batch in batches]

        return sizes

    def test_they_are_even(self, as_on_a_gpu) -> None:
        assert as_on_a_gpu([1] * 11) == [6, 5]
        assert as_on_a_gpu([1] * 10) == [10]
        assert as_on_a_gpu([]) == []

    def test_long_texts_make_them_smaller(self, as_on_a_gpu) -> None:
        assert as_on_a_gpu([100, 20, 20, 10, 1, 1, 1]) == [1, 2, 4]

    def test_a_size_that_is_given_is_kept_to(self, as_on_a_gpu) -> None:
        assert max(as_on_a_gpu([30] * 20, batch_size=7)) == 7

    def test_answers_are_the_same(self, headliner: Headliner, as_on_a_gpu) -> None:
        found = headliner.generate_batch(LEDES, SHORT)
        assert found == headliner.generate_batch(LEDES, Options(search=SHORT.search, batch_size=32))


def test_the_writer_of_a_gpu_writes_the_same(model_folder: Path) -> None:
    """As far as it can run here; on a GPU see below."""
    one, other = (Headliner.load(model_folder, precision="float32", device="cpu") for _ in "12")
    system = load_model(model_folder).model
    model = TorchModel(GpuStepModel(system), system, "float32")
    other._model = other._model._replace(model=model)
    for found, expected in zip(
        other.generate_batch(LEDES, SHORT), one.generate_batch(LEDES, SHORT), strict=True
    ):
        assert found.text == expected.text
        assert found.score == pytest.approx(expected.score, abs=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
class TestCuda:
    def test_cuda_float32_writes_what_a_cpu_writes(self, model_folder: Path) -> None:
        here, there = (
            Headliner.load(model_folder, precision="float32", device=device)  # type: ignore[arg-type]
            for device in ("cuda", "cpu")
        )
        for one, other in zip(
            here.generate_batch(LEDES, SHORT), there.generate_batch(LEDES, SHORT), strict=True
        ):
            assert one.text == other.text
            assert one.score == pytest.approx(other.score, abs=1e-3)
            assert len(one.alternatives) == len(other.alternatives)

    def test_cuda_is_float16_where_nothing_is_said(self, model_folder: Path) -> None:
        headliner = Headliner.load(model_folder)
        assert headliner.precision == "float16"
        exact = Headliner.load(model_folder, precision="float32").generate_batch(LEDES, SHORT)
        found = headliner.generate_batch(LEDES, SHORT)
        assert sum(map(eq, map(str, found), map(str, exact))) > 0.8 * len(LEDES)
        assert found == headliner.generate_batch(LEDES, SHORT)
        with pytest.raises(ModelError, match="precision int8 is for a CPU"):
            Headliner.load(model_folder, precision="int8")


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda number: monkeypatch.setenv(VARIABLE, str(number))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_threads_change_nothing(model_folder: Path, precision: str, threads) -> None:
    """Neither their number nor whether they share a product or have batches of their own."""
    headliner = Headliner.load(model_folder, precision=precision, device="cpu")  # type: ignore[arg-type]
    answers = []
    for number in (1, 2, 3):
        threads(number)
        answers.append(headliner.generate_batch(LEDES, SHORT))
        answers.append([headliner(text, options=SHORT) for text in LEDES])
        assert headliner.num_threads == number
    assert all(one == answers[0] for one in answers)


def test_batches_are_shared_out_to_threads(model_folder: Path, threads, monkeypatch) -> None:
    """So many, and none where there are few texts or one thread."""
    headliner, used = Headliner.load(model_folder, device="cpu"), set()
    steps = EngineSearch.step

    def step(search: EngineSearch) -> None:
        used.add(get_ident())
        steps(search)

    monkeypatch.setattr(EngineSearch, "step", step)
    for number, texts, least, most in ((1, LEDES, 1, 1), (3, LEDES, 2, 3), (3, LEDES[:1], 1, 1)):
        used.clear()
        threads(number)
        headliner.generate_batch(texts, SHORT)
        assert least <= len(used) <= most
        assert (get_ident() in used) == (most == 1)


@pytest.mark.parametrize(("number", "texts", "most"), [(2, 9, 2), (9, 2, 2), (9, 1, 1), (1, 9, 1)])
def test_few_texts_have_a_thread_each(
    model_folder: Path, threads, monkeypatch, number: int, texts: int, most: int
) -> None:
    """However many threads there are: a machine of many cores is not left idle."""
    headliner, pools = Headliner.load(model_folder, device="cpu"), []
    pool = EngineModel.pool
    monkeypatch.setattr(
        EngineModel, "pool", lambda *given: (pools.append(given[1]), pool(*given))[1]
    )
    threads(number)
    headliner.generate_batch(list(islice(cycle(LEDES), texts)), SHORT)
    assert pools == [most] * (most > 1)


@pytest.mark.parametrize(
    ("beam", "most"), [(1, 8), (20, 8), (32, 8), (64, 4), (200, 1), (10**6, 1)]
)
def test_large_beams_make_batches_smaller(model_folder: Path, beam: int, most: int) -> None:
    """A hypothesis takes memory, whichever text it belongs to."""
    headliner = Headliner.load(model_folder, device="cpu")
    ledes, options = [SourceText("", ids=(5,))] * 40, Options(search=SearchConfig(beam=beam))
    batches = headliner._batches(list(range(40)), ledes, options, 1)
    assert max(map(len, batches)) == most


class TestSeveralThreads:
    """Of a program, with one Headliner."""

    @pytest.mark.parametrize("precision", PRECISIONS)
    @pytest.mark.parametrize("products", [1, 2])
    def test_each_has_the_answers_it_would_have_alone(
        self, model_folder: Path, precision: Any, products: int, threads
    ) -> None:
        headliner = Headliner.load(model_folder, precision=precision, device="cpu")
        options = Options(search=SHORT.search, explain=True)
        threads(products)
        alone = headliner.generate_batch(LEDES, options)
        singles = [headliner(text, options=options) for text in LEDES[:6]]

        def one_by_one(_: int) -> bool:
            return [headliner(text, options=options) for text in LEDES[:6]] == singles

        def together(_: int) -> bool:
            stream = headliner.stream(LEDES, options=options)
            return [(one.text, one.score) for one in stream] == said

        said = [(one.text, one.score) for one in alone]
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(do, n) for n in range(3) for do in (one_by_one, together)]
            assert all(one.result(timeout=60) for one in work)

    def test_on_a_gpu_they_wait_for_each_other(self, headliner: Headliner, monkeypatch) -> None:
        at_work, steps = Lock(), EngineSearch.step

        def step(search: EngineSearch) -> None:
            assert at_work.acquire(blocking=False), "two at once"
            time.sleep(0.01)
            steps(search)
            at_work.release()

        monkeypatch.setattr(EngineModel, "on_cpu", False)
        monkeypatch.setattr(EngineSearch, "step", step)
        options = Options(search=SearchConfig(beam=1, max_length=2))
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(headliner, "Rain fell.", options=options) for _ in range(8)]
            assert all(one.result(timeout=60) for one in work)


def test_a_search_that_comes_to_nothing_says_so(headliner: Headliner) -> None:
    impossible = SearchConfig(beam=2, block_ngrams=1, min_length=10_000)
    headline = headliner("Rain fell.", options=Options(search=impossible))
    assert not headline
    assert headline.warnings[-1].kind == "truncated"


class TestStream:
    def test_order_is_kept(self, headliner: Headliner) -> None:
        texts = LEDES * 4
        assert list(headliner.stream(texts, options=SHORT)) == headliner.generate_batch(
            texts, SHORT
        )

    def test_it_reads_no_more_than_a_window_ahead(self, headliner: Headliner) -> None:
        read = []

        def endless():
            while True:
                read.append(1)
                yield "a"

        options = Options(search=SearchConfig(beam=1, max_length=1))
        assert len(list(islice(headliner.stream(endless(), options=options), 65))) == 65
        assert len(read) == 64 + 128

    def test_texts_are_counted_over_all_windows(self, headliner: Headliner) -> None:
        options = Options(search=SearchConfig(beam=1, max_length=1))
        texts = ["Rain fell."] * 66 + [""]
        *_, last = headliner.stream(texts, options=options)
        assert "text 67" in last.warnings[0].message

    def test_a_file_goes_on_past_a_line_that_is_not_utf_8(
        self, headliner: Headliner, tmp_path: Path
    ) -> None:
        path = tmp_path / "ledes.txt"
        path.write_bytes(b"Rain fell.\n\xff\xfe no text\nSnow fell.\n")
        for file in (path.open(), path.open("rb")):
            with file:
                found = list(headliner.stream(file, beam=2))
            assert [bool(one) for one in found] == [True, False, True]
            assert found[1].warnings[0].kind == "invalid"
            assert "text 2" in found[1].warnings[0].message
            assert found[0].source == "Rain fell."

    def test_a_file_that_was_read_from_before_is_taken_as_it_is(self, headliner: Headliner) -> None:
        file = io.TextIOWrapper(io.BytesIO(b"first\nRain fell.\n"), encoding="utf-8")
        assert file.readline() == "first\n"
        assert [one.source for one in headliner.stream(file, beam=2)] == ["Rain fell."]


EMPTY = ["", "   ", "\n", "\u200b\u200d", "\x00"]
UNKNOWN = ["😀😀 🎉", "漢字"]
NO_TEXT = [None, 42, 1.5, ["a"], object(), b"\xff", "\udcff", "a\ud800b"]


class TestOddTexts:
    @pytest.mark.parametrize(
        ("given", "kind"),
        [(text, "empty") for text in EMPTY]
        + [(text, "unseen") for text in UNKNOWN]
        + [(text, "invalid") for text in NO_TEXT],
    )
    def test_each_has_an_answer(self, headliner: Headliner, given: object, kind: str) -> None:
        answers = headliner.generate_batch(["Rain fell.", given, "Snow fell."], SHORT, first=10)
        headline = answers[1]
        assert not headline
        assert headline.score is None
        assert headline.alternatives == ()
        assert [warning.kind for warning in headline.warnings] == [kind]
        assert "text 11" in headline.warnings[0].message
        assert json.dumps(headline.as_dict(), ensure_ascii=True)
        assert headline == headliner.generate_batch([given], SHORT, first=11)[0]
        assert answers[0] == headliner("Rain fell.", options=SHORT)
        assert answers[2] == headliner("Snow fell.", options=SHORT)

    def test_the_source_is_given_back_as_it_came(self, headliner: Headliner) -> None:
        assert headliner("  Rain  fell. \r\n", beam=2).source == "  Rain  fell. "

    def test_a_text_that_just_fits_is_not_cut(self, headliner: Headliner) -> None:
        number = len(headliner_lede(headliner, LEDES[0]).ids)
        for most, expected in ((number, set()), (number - 1, {"cut"})):
            options = Options(search=SearchConfig(beam=1, max_length=3), max_source=most)
            found = headliner(LEDES[0], options=options).warnings
            assert {one.kind for one in found} & {"cut"} == expected

    def test_bytes_are_text(self, headliner: Headliner) -> None:
        assert headliner(b"Rain fell.\r\n", beam=2) == headliner("Rain fell.", beam=2)

    def test_halves_of_a_character_that_belong_together_are_one(self, headliner: Headliner) -> None:
        headline = headliner("Rain \ud83d\ude00 fell.", beam=2)
        assert headline
        assert headline.source == "Rain 😀 fell."

    def test_ten_thousand_words_are_cut(self, headliner: Headliner) -> None:
        words = (" ".join(LEDES) + " ").split()
        text = " ".join(words[i % len(words)] for i in range(10_000))
        headline = headliner(text, beam=1, options=Options(search=SearchConfig(max_length=5)))
        assert headline
        (warning,) = (one for one in headline.warnings if one.kind == "cut")
        assert re.fullmatch(r"only \d+ of 11,\d\d\d words were read", warning.message)

    def test_what_is_not_read_is_not_cut_into_subwords(
        self, headliner: Headliner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        encoded: list[int] = []
        encode = Subwords.encode_words
        monkeypatch.setattr(
            Subwords,
            "encode_words",
            lambda self, words: encoded.append(len(words)) or encode(self, words),
        )
        options = Options(search=SearchConfig(beam=1, max_length=2), max_source=9)
        assert headliner("rain " * 1000, options=options)
        assert encoded == [10]

    @pytest.mark.parametrize("max_source", [1, 7, 30])
    def test_what_is_cut_does_not_count(self, headliner: Headliner, max_source: int) -> None:
        options = Options(search=SHORT.search, max_source=max_source)
        one, other = (
            headliner.generate_batch([LEDES[0] + end], options)[0] for end in ("", " Rain fell.")
        )
        assert one.text == other.text
        assert one.score == other.score

    def test_a_word_longer_than_all_that_is_read(self, headliner: Headliner) -> None:
        options = Options(search=SearchConfig(beam=2, max_length=5), max_source=20)
        headline = headliner("x" * 5000, options=options)
        assert headline
        assert "cut" in {warning.kind for warning in headline.warnings}

    def test_words_that_are_known_in_part_are_named(self, headliner: Headliner) -> None:
        headline = headliner("The Dvořák prize went to Łódź.", beam=2)
        (warning,) = (one for one in headline.warnings if one.kind == "unseen")
        assert "'Dvořák', 'Łódź'" in warning.message


class TestExplain:
    @pytest.mark.parametrize("spm", [True, False])
    def test_every_word_has_an_origin(self, make_model, spm: bool) -> None:
        headliner = Headliner.load(make_model(spm=spm))
        for headline in headliner.stream(LEDES[:10], beam=3, explain=True):
            alignment = headline.alignment
            assert alignment is not None
            assert "".join(alignment.source) == headline.source
            assert "".join(alignment.headline) == headline.text
            assert (alignment.spm is not None) == spm
            matrices = [alignment.attention, *([alignment.spm] if alignment.spm else [])]
            for matrix in matrices:
                assert len(matrix) == len(alignment.headline)
                assert {len(row) for row in matrix} == {len(alignment.source)}
            for row in alignment.attention:
                assert sum(row) == pytest.approx(1, abs=1e-5)
            used = {link.source for link in alignment.links}
            assert sorted([*used, *alignment.dropped]) == list(range(len(alignment.source)))

    def test_the_words_are_those_of_the_profile(self, headliner: Headliner) -> None:
        """A typeset lede is shown as the model reads it."""
        options = Options(search=SHORT.search, explain=True)
        texts = "Japan’s “big” storm—rain – fell.", 'Japan\'s "big" storm - rain - fell.'
        one, other = (headliner(text, options=options) for text in texts)
        assert one.alignment == other.alignment is not None
        assert "".join(one.alignment.source) == texts[1]

    def test_it_changes_no_headline(self, headliner: Headliner) -> None:
        plain = headliner.generate_batch(LEDES[:5], SHORT)
        explained = headliner.generate_batch(LEDES[:5], Options(search=SHORT.search, explain=True))
        assert [one.alternatives for one in plain] == [one.alternatives for one in explained]


class TestRepetition:
    def said(self, headliner: Headliner, source: str, words: list[str]) -> list[str]:
        """What is said of a headline whose words are given."""
        tokenizer = headliner._tokenizer
        lede = headliner_lede(headliner, source)
        found = [Hypothesis(tuple(tokenizer.encode(words)), 1.0)]
        composer, options = headliner._model.composer, Options(replace_unknown=False)
        ranked = composer.candidates(lede, found, {}, options)
        headline = composer.headline(lede, ranked, None, options)
        return [one.message for one in headline.warnings if one.kind == "repetition"]

    def test_a_word_more_often_than_in_the_source(self, headliner: Headliner) -> None:
        assert self.said(headliner, "Storm hits town", ["Storm", "storm", "hits"]) == [
            "'storm' is there 2 times"
        ]

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("Storm hits town", ["Storm", "hits"]),
            ("Storm after storm hits", ["Storm", "storm"]),
            ("Storm hits town", ["the", "the", "of", "of"]),
            ("Storm hits town", ["漢", "漢"]),
        ],
    )
    def test_what_is_none(self, headliner: Headliner, source: str, words: list[str]) -> None:
        assert self.said(headliner, source, words) == []


def headliner_lede(headliner: Headliner, text: str):
    from ledeline.inference.source_text import read_source_text

    return read_source_text(text, 1, headliner._tokenizer, 100)


class TestModels:
    def test_an_ensemble(self, make_model, model_folder: Path) -> None:
        other = make_model(seed=1)
        together = Headliner.load(model_folder, other)
        answers = [one.text for one in together.generate_batch(LEDES[:8], SHORT)]
        for alone in (model_folder, other):
            assert answers != [
                one.text for one in Headliner.load(alone).generate_batch(LEDES[:8], SHORT)
            ]
        twice = Headliner.load(model_folder, model_folder, precision="float32")
        once = Headliner.load(model_folder, precision="float32")
        for one, two in zip(
            once.generate_batch(LEDES[:8], SHORT),
            twice.generate_batch(LEDES[:8], SHORT),
            strict=True,
        ):
            assert one.text == two.text
            assert one.score == pytest.approx(two.score, abs=1e-5)

    def test_strangers_make_no_ensemble(self, make_model, model_folder: Path) -> None:
        with pytest.raises(ModelError, match="share one vocabulary"):
            Headliner.load(model_folder, make_model(merges=200))

    def test_marks_that_a_model_learned_stay(self, tmp_path: Path) -> None:
        for name, known in (("old", "Japnsrt￭’'"), ("same", "’x"), ("new", "Japnsrt￭'")):
            (tmp_path / name).mkdir()
            write_description(tmp_path / name, encdec(), Tokenizer(NATURAL, Subwords([], known)))
        names = "old", "same", "new"
        old, same, new = (Tokenizer.load(tmp_path / name).profile for name in names)
        assert old.words("Japan’s “art”") == ["Japan", "￭’s", '"￭', "art", '￭"']
        assert old is same
        assert new is NATURAL

    def test_a_folder_that_is_no_model(self, tmp_path: Path, model_folder: Path) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "empty").mkdir()
        shutil.copytree(model_folder, tmp_path / "run" / "best")
        for name, reason in (
            ("nothing", "it does not exist; name one, such as runs/NAME/best"),
            ("file", "it is a file; name one"),
            ("empty", r"it has no model\.json; name one"),
            ("run", rf"it has no model\.json; name {tmp_path / 'run' / 'best'}$"),
        ):
            with pytest.raises(ModelError, match=f"{name} is not a model folder: {reason}"):
                Headliner.load(tmp_path / name)

    def test_no_folder_is_the_shipped_model(self, monkeypatch, model_folder: Path) -> None:
        monkeypatch.setattr("ledeline.core.shipped.SHIPPED", model_folder)
        assert Headliner.load()("Rain fell.", beam=2)
        monkeypatch.setattr("ledeline.core.shipped.SHIPPED", model_folder / "nothing")
        with pytest.raises(ModelError, match="the model that ships with ledeline is missing"):
            Headliner.load()

    def test_a_gpu_where_there_is_none(self, monkeypatch, model_folder: Path) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        assert Headliner.load(model_folder).generate_batch([]) == []
        with pytest.raises(ModelError, match="device cuda needs a GPU"):
            Headliner.load(model_folder, device="cuda")

    def test_float16_on_a_cpu(self, model_folder: Path) -> None:
        with pytest.raises(ModelError, match="precision float16 is for a GPU"):
            Headliner.load(model_folder, precision="float16", device="cpu")

    @pytest.mark.parametrize("kind", kinds())
    def test_int8_is_there_on_every_cpu(self, monkeypatch, model_folder: Path, kind: str) -> None:
        """It was refused on CPUs without VNNI; now answers are the same on all, to the last bit."""
        expected = Headliner.load(model_folder, device="cpu").generate_batch(LEDES[:5], SHORT)
        monkeypatch.setenv("LEDELINE_CPU", kind)
        headliner = Headliner.load(model_folder, device="cpu")
        assert headliner.precision == "int8"
        assert headliner.generate_batch(LEDES[:5], SHORT) == expected

    def test_torch_is_not_needed(self, model_folder: Path) -> None:
        """Neither to load a model, nor to write, explain and check headlines."""
        program = (
            "import sys\n"
            "for name in ('torch', 'numpy', 'pyarrow', 'safetensors'): sys.modules[name] = None\n"
            "from ledeline import Headliner, Options\n"
            f"headliner = Headliner.load({str(model_folder)!r})\n"
            "found = headliner('Rain fell in Oslo on Monday.', options=Options(explain=True, check=True))\n"
            "assert found.alignment is not None\n"
            "print(found.text)\n"
        )
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert shown.returncode == 0, shown.stderr
        expected = Headliner.load(model_folder, device="cpu")("Rain fell in Oslo on Monday.")
        assert shown.stdout.strip() == expected.text


class TestArguments:
    @pytest.mark.parametrize("wrong", [{"beam": 0}, {"n_best": 0}, {"beam": 2, "n_best": 3}])
    def test_wrong_options_are_named(self, headliner: Headliner, wrong: dict[str, int]) -> None:
        with pytest.raises(ConfigError, match="must be at"):
            headliner("Rain fell.", **wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "value", "complaint"),
        [
            ("beam", "5", 'beam = "5": must be a whole number'),
            ("beam", 2.5, "beam = 2.5: must be a whole number"),
            ("beam", True, "beam = true: must be a whole number"),
            ("n_best", 1.0, "n_best = 1.0: must be a whole number"),
            ("explain", "yes", 'explain = "yes": must be true or false'),
        ],
    )
    def test_types(self, headliner: Headliner, name: str, value: Any, complaint: str) -> None:
        with pytest.raises(ConfigError, match=complaint):
            headliner("Rain fell.", **{name: value})
        with pytest.raises(ConfigError, match=complaint):
            headliner.stream([], **{name: value})

    @pytest.mark.parametrize("texts", ["Rain fell.", b"Rain fell.", bytearray(b"a"), None, 3])
    def test_texts_are_many(self, headliner: Headliner, texts: Any) -> None:
        """A string is refused when the stream is asked for, before anything is read."""
        sentence = f"texts is of type {type(texts).__name__}; pass a list of texts"
        with pytest.raises(ArgumentError, match=sentence):
            headliner.stream(texts)
        with pytest.raises(ArgumentError, match=sentence):
            headliner.generate_batch(texts)

    @pytest.mark.parametrize("texts", [iter(["Rain."]), {"Rain.": 1}, ("Rain.",)])
    def test_texts_may_be_of_any_kind(self, headliner: Headliner, texts: Any) -> None:
        assert [one.source for one in headliner.stream(texts, beam=1)] == ["Rain."]

    @pytest.mark.parametrize("options", [{"beam": 3}, None, SearchConfig(beam=3)])
    def test_options_of_another_kind(self, headliner: Headliner, options: Any) -> None:
        sentence = re.escape(
            f"options is of type {type(options).__name__}; pass beam=3 as a keyword argument, or "
            "options=Options(search=SearchConfig(beam=3))"
        )
        for call in (headliner.__call__, headliner.stream):
            with pytest.raises(ArgumentError, match=sentence):
                call(["Rain fell."], options=options)
        with pytest.raises(ArgumentError, match=sentence):
            headliner.generate_batch(["Rain fell."], options)

    def test_a_search_of_another_kind(self) -> None:
        with pytest.raises(ConfigError, match=r"search = \{beam = 3\}: must be a SearchConfig"):
            Options(search={"beam": 3})  # type: ignore[arg-type]

    def test_what_load_does_not_know(self, model_folder: Path) -> None:
        known = r"precision = \"int4\": must be one of auto, float32, float16, int8"
        with pytest.raises(ConfigError, match=known):
            Headliner.load(model_folder, precision="int4")  # type: ignore[arg-type]
        for device in ("gpu", "cuda:0", None):
            with pytest.raises(ConfigError, match=r"device = .*: must be one of auto, cpu, cuda"):
                Headliner.load(model_folder, device=device)  # type: ignore[arg-type]

    @pytest.mark.parametrize("folder", [None, 3, ["one", "other"]])
    def test_what_is_no_name_of_a_folder(self, folder: Any) -> None:
        with pytest.raises(ArgumentError, match=f"of type {type(folder).__name__}; pass each as"):
            Headliner.load(folder)

    def test_no_model_at_all(self) -> None:
        with pytest.raises(ArgumentError, match="needs a model"):
            Headliner([])

    def test_they_are_type_errors_too(self) -> None:
        assert issubclass(ArgumentError, LedelineError)
        assert issubclass(ArgumentError, TypeError)


def test_the_paper_profile_writes_tokens(make_model) -> None:
    headliner = Headliner.load(make_model("paper"))
    headline = headliner("Tokyo stocks rose 5% on Friday.", beam=3, explain=True)
    assert headline.alignment is not None
    assert "".join(headline.alignment.source) == "tokyo stocks rose # % on friday ."
    assert headline.text == " ".join(headline.tokens)
