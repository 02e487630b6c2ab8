"""What a search finds, ranked once more by a model that reads the headlines again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from ledeline.config import SearchConfig
from ledeline.core.steps import Steps, run_steps
from ledeline.data.dataset import Batch, padded
from ledeline.inference import rescoring
from ledeline.inference.checks.check import Check
from ledeline.inference.headliner import Headliner
from ledeline.inference.options import Options
from ledeline.inference.rescoring import Rescorer
from ledeline.model.addons.reconstruction import ReconstructionConfig
from ledeline.model.build import build
from ledeline.model.format.model_folder import ModelBundle, load_model, write_description
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.runtime.engine import Engine
from ledeline.search import Hypothesis, search
from ledeline.synth.newsroom import generate
from systems import addons

pytestmark = pytest.mark.usefixtures("one_thread")
LEDES = [story.lede for story in generate(4, 7)]
BEAM = 6
ALL = Options(search=SearchConfig(beam=BEAM, n_best=BEAM, max_length=8), check=False)
MakeBundle = Callable[..., ModelBundle]


@pytest.fixture(scope="module")
def bundle(model_folder: Path) -> MakeBundle:
    """Makes a model that knows the newsroom's words; the same weights for the same seed."""
    tokenizer = load_model(model_folder).tokenizer

    def made(seed: int = 3, *, reconstruction: bool = True, **keys: Any) -> ModelBundle:
        own = EncDecConfig(embedding_size=16, hidden_size=32, dropout=0.3)
        more = {"reconstruction": ReconstructionConfig(**keys)} if reconstruction else {}
        config = SystemConfig(system=own, addons=addons(sgate=True, spm=True) | more)
        model = build(config, tokenizer.vocabulary_size)
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4, generator=generator)
        return ModelBundle(model.eval(), tokenizer)

    return made


def found_by(headliner: Headliner, options: Options = ALL) -> list[list[tuple[str, float]]]:
    """The alternatives of each text."""
    return [
        [(one.text, one.score) for one in headline.alternatives]
        for headline in headliner.generate_batch(LEDES, options)
    ]


def hypotheses(headliner: Headliner, text: str) -> tuple[list[int], list[Hypothesis]]:
    """The ids of a text, and what a search of all `BEAM` finds."""
    (source,) = headliner.read([text])
    (found,) = search(headliner._model.step_model, *padded([source.ids]), ALL.search)
    return list(source.ids), found


# --- the order ------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["auto", "float32"])
def test_the_order_is_by_the_sum_of_score_and_rank(bundle: MakeBundle, precision: Any) -> None:
    """Each headline is read alone here; the score of a headline stays its own."""
    one = bundle(weight=2.0)
    headliner = Headliner([one], precision)
    assert isinstance(headliner._model.step_model, Engine)
    ranked, num_moved = found_by(headliner), 0
    for text, alternatives in zip(LEDES, ranked, strict=True):
        source, found = hypotheses(headliner, text)
        with torch.inference_mode():
            totals = [
                each.score
                + one.model.rescore(one.model.pairs(Batch.of([(source, each.ids)]))).item()
                for each in found
            ]
        order = sorted(range(len(found)), key=lambda number: -totals[number])
        assert [score for _, score in alternatives] == [found[number].score for number in order]
        num_moved += order != sorted(order)
    assert num_moved >= 2


def test_the_same_hypotheses_are_found_without_it(bundle: MakeBundle) -> None:
    ranked, plain = found_by(Headliner([bundle()])), found_by(Headliner([bundle(rank=False)]))
    assert ranked != plain
    assert list(map(sorted, ranked)) == list(map(sorted, plain))


@pytest.mark.parametrize("n_best", [1, 2, 4])
def test_the_n_best_are_the_first_of_all_that_was_found(bundle: MakeBundle, n_best: int) -> None:
    headliner = Headliner([bundle(weight=2.0)])
    every = found_by(headliner)
    some = Options(search=SearchConfig(beam=BEAM, n_best=n_best, max_length=8), check=False)
    for headline, alternatives in zip(headliner.generate_batch(LEDES, some), every, strict=True):
        assert (headline.text, headline.score) == alternatives[0]
        if n_best > 1:
            found = [(one.text, one.score) for one in headline.alternatives]
            assert found == alternatives[:n_best]


@pytest.mark.parametrize("keys", [{"weight": 1e-12}, {"weight": 0.0}, {"rank": False}])
def test_without_weight_it_is_the_plain_order(bundle: MakeBundle, keys: dict[str, Any]) -> None:
    plain = found_by(Headliner([bundle(rank=False)]))
    assert found_by(Headliner([bundle(**keys)])) == plain
    for alternatives in plain:
        scores = [score for _, score in alternatives]
        assert scores == sorted(scores, reverse=True)


def test_equals_stay_as_they_are() -> None:
    class Level(System):  # type: ignore[misc]
        rescores = True
        device = torch.device("cpu")
        losses = encode = step = trace = None  # type: ignore[assignment]

        def __init__(self) -> None:
            torch.nn.Module.__init__(self)

    found = [Hypothesis((5, number), 3.0) for number in range(4)] + [Hypothesis((), 0.5)]
    ranked = run_steps(Rescorer([Level()]).ranked([4, 5], found))
    assert ranked == [found[4], *found[:4]]


# --- nothing else changes it ----------------------------------------------------------------------


def test_other_texts_do_not_change_it(bundle: MakeBundle) -> None:
    headliner = Headliner([bundle()])
    together = headliner.generate_batch(LEDES, ALL)
    assert [headliner.generate_batch([text], ALL)[0] for text in LEDES] == together


def test_a_rank_has_the_same_bits_in_any_batch(
    bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[tuple[int, ...], list[float]] = {}
    rescore = rescoring._rescore

    def watched(system: System, source: Any, some: Any) -> torch.Tensor:
        found = rescore(system, source, some)
        seen.setdefault(tuple(source), []).extend(found.tolist())
        return found

    monkeypatch.setattr(rescoring, "_rescore", watched)
    headliner = Headliner([bundle()])
    headliner.generate_batch(LEDES, ALL)
    together = seen.copy()
    seen.clear()
    for text in LEDES:
        headliner.generate_batch([text], ALL)
    assert seen == together
    assert len(together) == len(LEDES)


def test_a_long_list_is_read_in_steps(bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    headliner = Headliner([bundle()])
    source, found = hypotheses(headliner, LEDES[0])

    def run() -> tuple[int, list[Hypothesis]]:
        assert headliner._model.rescorer is not None
        steps, number = headliner._model.rescorer.ranked(source, found), 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return number, end.value
            number += 1

    assert len(found) == BEAM
    monkeypatch.setattr(rescoring, "_MAX_POSITIONS", BEAM * len(source))
    assert (at_once := run())[0] == 1
    monkeypatch.setattr(rescoring, "_MAX_POSITIONS", 2 * len(source))
    assert run() == (3, at_once[1])
    monkeypatch.setattr(rescoring, "_MAX_POSITIONS", 1)
    assert run() == (BEAM, at_once[1])


# --- who is asked ---------------------------------------------------------------------------------


def test_an_ensemble_adds_the_mean(bundle: MakeBundle) -> None:
    """A model that does not rescore adds 0."""
    one, two = bundle(3, weight=2.0), bundle(4, weight=1.0)
    third = bundle(5, reconstruction=False)
    headliner = Headliner([one, two, third])
    for text, alternatives in zip(LEDES, found_by(headliner), strict=True):
        source, found = hypotheses(headliner, text)
        totals = []
        for each in found:
            added = 0.0
            for model in (one.model, two.model):
                with torch.inference_mode():
                    added += model.rescore(model.pairs(Batch.of([(source, each.ids)]))).item()
            totals.append(each.score + added / 3)
        order = sorted(range(len(found)), key=lambda number: -totals[number])
        assert [score for _, score in alternatives] == [found[number].score for number in order]


def test_models_that_do_not_rescore_are_left_alone(bundle: MakeBundle) -> None:
    assert Headliner([bundle(reconstruction=False)])._model.rescorer is None
    assert Headliner([bundle(rank=False)])._model.rescorer is None


def test_a_single_hypothesis_is_not_read_again(
    bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(rescoring, "_rescore", refuse)
    headliner = Headliner([bundle()])
    assert headliner(LEDES[0], beam=1, n_best=1, options=ALL).score is not None
    with pytest.raises(AssertionError, match="read again"):
        headliner(LEDES[0], n_best=1, options=ALL)


def test_texts_that_were_given_up_are_not_read_again(
    bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, ...]] = []
    rescore = rescoring._rescore

    def watched(system: System, source: Any, some: Any) -> torch.Tensor:
        read.append(tuple(source))
        return rescore(system, source, some)

    monkeypatch.setattr(rescoring, "_rescore", watched)
    headliner = Headliner([bundle()])
    alone = headliner.generate_batch(LEDES, ALL)
    read.clear()
    sources = headliner.read(LEDES)
    running = headliner.begin(sources, ALL)
    while not read:
        running.advance()
    running.give_up([1, 2])
    while not running.done:
        running.advance()
    assert set(read) == {tuple(sources[row].ids) for row in (0, 3)}
    assert running.headlines[1] is running.headlines[2] is None
    assert [running.headlines[row] for row in (0, 3)] == [alone[row] for row in (0, 3)]


def test_checks_that_rank_see_all_of_them(bundle: MakeBundle) -> None:
    """Others see the best, in the order of the model."""
    seen: list[list[str]] = []

    class Reversing:
        """Likes the last best."""

        def steps(self, asked: Any) -> Steps[list[list[Check]]]:
            ((_, headlines),) = asked
            seen.append(list(headlines))
            yield
            return [[Check(1.0, value=number) for number in range(len(headlines))]]

    headliner = Headliner([bundle()])
    headliner._model = headliner._model._replace(checker=Reversing)  # type: ignore[arg-type]
    expected = [text for text, _ in found_by(headliner)[0]]
    two = replace(ALL.search, n_best=2)
    options = Options(search=two, check=True, rank="support", constrain=False)
    (by_support,) = headliner.generate_batch(LEDES[:1], options)
    (by_score,) = headliner.generate_batch(LEDES[:1], replace(options, rank="score"))
    assert seen == [expected, expected[:2]]
    assert [one.text for one in by_support.alternatives] == expected[:-3:-1]
    assert [one.text for one in by_score.alternatives] == expected[:2]


def test_a_model_folder_ranks_as_its_model(bundle: MakeBundle, tmp_path: Path) -> None:
    one = bundle()
    write_description(tmp_path, one.model.config, one.tokenizer)
    save_file(one.model.state_dict(), tmp_path / "model.safetensors")
    assert found_by(Headliner.load(tmp_path, device="cpu")) == found_by(Headliner([one]))
