"""The verifier: its alignment beside a slow one, what padding may not change, what training moves."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from ledeline.model.verifier import (
    KINDS,
    LABELS,
    Judgement,
    PairView,
    Places,
    Verifier,
    VerifierBatch,
    VerifierShape,
    _mean_skipped,
    _pick,
    align,
)
from ledeline.text.subwords import PAD

SHAPE = VerifierShape(vocabulary=30, size=16, heads=2, layers=2, embedding_size=8, generator_size=6)
# Sub-words 5 to 9 are words of a class of their own, 10 to 14 other forms of them; the others
# match none.
CLASSES = torch.zeros(SHAPE.vocabulary)
CLASSES[5:10] = CLASSES[10:15] = torch.arange(1.0, 6.0)

pytestmark = pytest.mark.usefixtures("one_thread")


# --- alignment ----------------------------------------------------------------------------------


def worth(source, headline, j, place, last):
    """What it is worth, in hundredths, to put sub-word j at a place; None: it does not match."""

    def same(own, other):
        return CLASSES[own] > 0 and CLASSES[own] == CLASSES[other]

    if not same(headline[j], source[place]):
        return None
    has_next = j + 1 < len(headline) and place + 1 < len(source)
    total = 150 if has_next and same(headline[j + 1], source[place + 1]) else 0
    total += 30 if headline[j] == source[place] else 0
    jump = place - last - 1  # over so many sub-words
    if jump == 0:
        return total + 200
    return total - 3 * min(jump, 40) if jump > 0 else total - 60 + jump


def check_alignment(source, headline, places, row=0):
    """That each place is one of the best, and the rest is what it follows from it."""
    at, last, start, stop, is_exact = (one[row].tolist() for one in places)
    before = -1
    for j, word in enumerate(headline):
        assert last[j] == before
        worths = {i: worth(source, headline, j, i, before) for i in range(len(source))}
        worths = {i: one for i, one in worths.items() if one is not None}
        if not worths:
            assert at[j] == -1
            assert not is_exact[j]
            assert places.num_skipped[row, j] == 0
            continue
        assert worths.get(at[j]) == max(worths.values()), (source, headline, j, at[j])
        assert is_exact[j] == (source[at[j]] == word)
        skipped = range(before + 1, at[j]) if at[j] > before else range(at[j] + 1, before)
        assert places.num_skipped[row, j] == len(skipped)
        assert list(range(start[j], stop[j])) == list(skipped)
        before = at[j]


words = st.integers(4, 16)  # few, so that there are repeats


@settings(max_examples=150)
@given(st.lists(words, min_size=1, max_size=50), st.lists(words, min_size=1, max_size=12))
def test_the_alignment_is_the_slow_one(source, headline):
    check_alignment(
        source, headline, align(CLASSES, torch.tensor([source]), torch.tensor([headline]))
    )


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.lists(words, min_size=1, max_size=12), st.lists(words, min_size=1, max_size=6)
        ),
        min_size=2,
        max_size=4,
    )
)
def test_each_pair_is_aligned_as_if_it_were_alone(pairs):
    sources, headlines = (
        torch.nn.utils.rnn.pad_sequence([torch.tensor(one) for one in some], batch_first=True)
        for some in zip(*pairs, strict=True)
    )
    places = align(CLASSES, sources, headlines)
    for row, (source, headline) in enumerate(pairs):
        check_alignment(source, headline, places, row)
        assert (places.at[row, len(headline) :] == -1).all()


@pytest.mark.parametrize(
    ("source", "headline", "at"),
    [
        ([5, 6, 7, 5], [7, 5], [2, 3]),  # right behind the last, not the first of its kind
        ([4, 5, 4, 5, 6], [5, 6], [3, 4]),  # where the next one matches as well
        ([4, 5, 4, 5], [5], [1]),  # the nearest ahead
        ([5, 6, 4, 5], [6, 5], [1, 3]),  # rather ahead than back
        ([5, 6, 7], [7, 5], [2, 0]),  # but back, if it is nowhere else
        ([4, 10, 4, 5], [5], [3]),  # rather the very sub-word than another form of it
        ([10, 6], [5, 6], [0, 1]),  # another form will do
        ([5, 6], [4, 5, 4, 6], [-1, 0, -1, 1]),  # one without a place does not move the last
        ([4, 4], [4, 5], [-1, -1]),  # a sub-word without a class matches not even itself
    ],
)
def test_where_a_headline_stands_in_its_lede(source, headline, at):
    places = align(CLASSES, torch.tensor([source]), torch.tensor([headline]))
    assert places.at.tolist() == [at]


# --- what is looked up in the lede --------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_what_was_skipped_is_the_mean_of_a_loop(seed):
    generator = torch.Generator().manual_seed(seed)
    sources, headlines = (
        torch.randint(4, 16, shape, generator=generator) for shape in ((2, 9), (3, 5))
    )
    values, rows = torch.randn(2, 9, 4, generator=generator), torch.tensor([1, 0, 1])
    places = align(CLASSES, sources[rows], headlines)
    found = _mean_skipped(values, rows, places)
    for n, row in enumerate(rows.tolist()):
        for j in range(headlines.shape[1]):
            at, last = int(places.at[n, j]), int(places.last[n, j])
            between = range(min(at, last) + 1, max(at, last)) if at >= 0 else range(0)
            some = [values[row, i] for i in between]
            expected = torch.stack(some).mean(0) if some else torch.zeros(4)
            torch.testing.assert_close(found[n, j], expected, atol=1e-5, rtol=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_values_are_picked_as_by_a_loop(seed):
    generator = torch.Generator().manual_seed(seed)
    values, rows = torch.randn(2, 6, 4, generator=generator), torch.tensor([1, 0, 1])
    at = torch.randint(-1, 7, (3, 5), generator=generator)
    valid = (at >= 0) & (at < 6)
    found = _pick(values, rows, at, valid)
    for n, row in enumerate(rows.tolist()):
        for j, place in enumerate(at[n].tolist()):
            expected = values[row, place] if 0 <= place < 6 else torch.zeros(4)
            assert torch.equal(found[n, j], expected)


# --- padding ------------------------------------------------------------------------------------


def view_of(length, own_lengths, seed):
    """A lede and some headlines that share words with it, with random states."""
    generator = torch.Generator().manual_seed(seed)
    headlines = torch.full((len(own_lengths), max(own_lengths)), PAD)
    logs = torch.zeros(len(own_lengths), max(own_lengths) + 1)
    for row, own in enumerate(own_lengths):
        headlines[row, :own] = torch.randint(4, 16, (own,), generator=generator)
        logs[row, : own + 1] = -torch.rand(own + 1, generator=generator)
    return PairView(
        torch.randint(4, 16, (length,), generator=generator),
        torch.randn(length, SHAPE.generator_size, generator=generator),
        headlines,
        torch.randn(*logs.shape, SHAPE.generator_size, generator=generator),
        logs,
    )


@pytest.fixture(scope="module")
def verifier():
    torch.manual_seed(1)
    made = Verifier(SHAPE)
    made.classes.copy_(CLASSES)
    return made.eval()


@torch.inference_mode()
def judged(verifier, *views):
    return verifier(VerifierBatch.of(list(views)))


def alone(view, row):
    """One headline of a view, without the others' padding."""
    own = int((view.headlines[row] != PAD).sum())
    return view._replace(
        headlines=view.headlines[row : row + 1, :own],
        states=view.states[row : row + 1, : own + 1],
        logs=view.logs[row : row + 1, : own + 1],
    )


def assert_same(one: Judgement, other: Judgement, written):
    """That two judgements are the same; those of words only where there are some."""
    torch.testing.assert_close(one.labels, other.labels, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(one.kinds, other.kinds, atol=1e-5, rtol=1e-5)
    width = written.shape[1]
    torch.testing.assert_close(
        one.doubts[:, :width][written], other.doubts[:, :width][written], atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_headline_is_judged_as_if_it_were_alone(verifier, row):
    view = view_of(9, [4, 7, 1], seed=2)
    single = alone(view, row)
    together = Judgement(*(one[row : row + 1] for one in judged(verifier, view)))
    assert_same(judged(verifier, single), together, single.headlines != PAD)


def test_ledes_are_judged_as_if_each_were_alone(verifier):
    """Of other lengths, with another number of headlines, in any order."""
    views = [view_of(9, [4, 7], 3), view_of(2, [1], 4), view_of(30, [12, 2, 5], 5)]
    for order in ((0, 1, 2), (2, 0, 1)):
        together, start = judged(verifier, *(views[n] for n in order)), 0
        for view in (views[n] for n in order):
            some = slice(start, start + len(view.headlines))
            own = Judgement(*(one[some] for one in together))
            assert_same(judged(verifier, view), own, view.headlines != PAD)
            start = some.stop
        assert start == len(together.labels)


@pytest.mark.parametrize(("more_lede", "more_headline"), [(5, 0), (0, 3), (16, 8)])
def test_padding_changes_nothing(verifier, more_lede, more_headline):
    view = view_of(9, [4, 7], seed=6)
    batch = VerifierBatch.of([view])
    wider = VerifierBatch(
        functional.pad(batch.sources, (0, more_lede)),
        functional.pad(batch.values, (0, 0, 0, more_lede)),
        batch.rows,
        functional.pad(batch.headlines, (0, more_headline)),
        functional.pad(batch.states, (0, 0, 0, more_headline), value=5.0),  # whatever stands there
        functional.pad(batch.logs, (0, more_headline)),
    )
    with torch.inference_mode():
        assert_same(verifier(batch), verifier(wider), view.headlines != PAD)


def test_a_judgement_depends_on_all_that_was_seen(verifier):
    """Else the tests of padding would pass by themselves."""
    view = view_of(9, [4, 7], seed=7)
    first = judged(verifier, view).labels
    other = view_of(9, [4, 7], seed=8)
    for name in PairView._fields:
        changed = judged(verifier, view._replace(**{name: getattr(other, name)})).labels
        assert not torch.allclose(first, changed, atol=1e-3), name


def test_an_empty_headline_beside_others_is_no_number_gone_wrong(verifier):
    view = view_of(3, [2, 1], seed=9)
    view.headlines[1] = PAD
    assert all(one.isfinite().all() for one in judged(verifier, view))


def test_scores_are_means_with_the_end():
    view = view_of(5, [3, 1], seed=10)
    expected = [float(view.logs[0].sum()) / 4, float(view.logs[1].sum()) / 2]
    assert view.scores.tolist() == pytest.approx(expected)


# --- training -----------------------------------------------------------------------------------


def loss_of(verifier, batch):
    """The loss of labels, words and kinds that are right at random."""
    seen, generator = verifier(batch), torch.Generator().manual_seed(0)
    number, written = len(batch.rows), batch.headlines != PAD
    labels = torch.randint(len(LABELS), (number,), generator=generator)
    kinds = torch.randint(len(KINDS), (number,), generator=generator)
    wrong = torch.randint(2, written.shape, generator=generator).float()
    return (
        functional.cross_entropy(seen.labels, labels)
        + functional.cross_entropy(seen.kinds, kinds)
        + functional.binary_cross_entropy_with_logits(seen.doubts[written], wrong[written])
    )


def test_gradients_reach_every_parameter_and_a_step_lowers_the_loss():
    torch.manual_seed(3)
    verifier = Verifier(SHAPE)
    verifier.classes.copy_(CLASSES)
    batch = VerifierBatch.of([view_of(12, [6, 3, 8], 11), view_of(7, [5, 5], 12)])
    before = loss_of(verifier, batch)
    before.backward()
    for name, parameter in verifier.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    torch.optim.SGD(verifier.parameters(), lr=1e-2).step()
    assert loss_of(verifier, batch) < before


def test_places_say_how_much_was_skipped():
    at, last = torch.tensor([[4, 1, -1, 2]]), torch.tensor([[-1, 4, 1, 1]])
    places = Places(at, last, torch.tensor([[0, 2, 9, 2]]), torch.tensor([[4, 4, 3, 2]]), at > 0)
    assert places.num_skipped.tolist() == [[4, 2, 0, 0]]
