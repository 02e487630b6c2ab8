"""Text in, headlines out: the one entry to a trained model that all others share."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Barrier, Lock
from typing import Annotated, Any, Final, Self

import numpy as np
import numpy.typing as npt
import torch

from ledeline.config.search import Device, Precision, SearchConfig
from ledeline.config.section import at_least, section
from ledeline.core.errors import ArgumentError, ModelError
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.data.dataset import padded
from ledeline.inference.arguments import check_choice, check_folders, check_options, each_text
from ledeline.inference.attribution import Weights, attribute, by_words
from ledeline.inference.detokenize import HeadlineWords, with_source_words, wording
from ledeline.inference.engines import choose_engine, open_model
from ledeline.inference.headline import Alignment, Candidate, Headline, HeadlineWarning, Rows
from ledeline.inference.source_text import SourceText, read_source_text
from ledeline.model.format.folder import ModelBundle
from ledeline.search import Ensemble, Hypothesis, search
from ledeline.text.function_words import is_content
from ledeline.text.subwords import SPECIALS, UNK

# Texts of a stream that are worked on together: few first, so that the first headlines come soon.
FIRST_WINDOWS, LARGEST_WINDOW = {"cpu": 64, "cuda": 512}, 2048
_WORTH_A_THREAD: Final = 4  # sources, below which threads share the products instead
_CPU_BATCH: Final = 32
# A GPU is kept busy by as many texts as come to so many scores a step, if that is not more than so
# many sub-words: half a gigabyte of scores, and some 200 MB of source states.
_GPU_SCORES, _GPU_SUBWORDS = 2**27, 2**16
# One at a time: a GPU's work, which sets flags of all of torch; and changes of the number of
# threads, which one that computes for the first time would take over for good.
_ON_GPU, _COUNTING_THREADS = Lock(), Lock()


@section
class Options:
    """What is wanted of a headline."""

    search: Annotated[SearchConfig, ""] = SearchConfig()
    explain: Annotated[bool, "Say where each word came from, and what was dropped."] = False
    replace_unknown: Annotated[
        bool, "Put the aligned word of the source where the model writes <unk>."
    ] = True
    max_source: Annotated[int, "Sub-words of a text that are read, at most.", at_least(1)] = 512
    batch_size: Annotated[
        int | None,
        "Texts that are searched together, at most; none: as many as suit the device.",
        at_least(1),
    ] = None


DEFAULT: Final = Options()


class Headliner:
    """Writes headlines, and says why.

    Every text has an answer, whatever it is: see `ledeline.inference.headline.KINDS`. The answer
    does not depend on the texts beside it.

    Several threads may use one Headliner at once, and get the answers that each would get alone. A
    stream is for the thread that reads it.
    """

    def __init__(self, models: Sequence[ModelBundle], precision: Precision = "auto") -> None:
        if not models:
            raise ArgumentError("a Headliner needs a model; Headliner.load() loads the bundled one")
        check_choice("precision", precision, Precision)
        _refuse_strangers(models)
        self.models = tuple(models)
        self._tokenizer = models[0].tokenizer
        engines = [choose_engine(one.model, precision) for one in models]
        self.precision = engines[0].precision
        steps = [engine.step_model for engine in engines]
        self._step_model = steps[0] if len(steps) == 1 else Ensemble(steps)
        self._tracer = engines[0].tracer

    @classmethod
    def load(
        cls, *folders: Path | str, precision: Precision = "auto", device: Device = "auto"
    ) -> Self:
        """Open a model folder, or several as an ensemble; none stands for the shipped model.

        The precision is of the products: `auto` is int8 on a CPU that is made for it, else float32,
        and float16 on a GPU. The device is `cpu`, `cuda`, or `auto`: a GPU where there is one.
        """
        check_folders(folders)
        named = folders or (SHIPPED_NAME,)
        return cls([open_model(folder, device) for folder in named], precision)

    @property
    def first_window(self) -> int:
        """Texts of a stream to begin with: few on a CPU, so that the first headlines come soon."""
        return FIRST_WINDOWS["cpu" if self._on_cpu else "cuda"]

    def __call__(
        self,
        text: object,
        *,
        beam: int | None = None,
        n_best: int | None = None,
        explain: bool | None = None,
        options: Options = DEFAULT,
    ) -> Headline:
        """The headline of one text; `beam`, `n_best`, `explain` go before the options."""
        return self.generate_batch([text], _adapted(options, beam, n_best, explain))[0]

    def stream(
        self,
        texts: Iterable[object],
        *,
        beam: int | None = None,
        n_best: int | None = None,
        explain: bool | None = None,
        options: Options = DEFAULT,
    ) -> Iterator[Headline]:
        """The headline of each text, in order; of any number, some at a time.

        A file opened as text is read on past lines that are not UTF-8.
        """
        if isinstance(texts, io.TextIOWrapper):
            with suppress(io.UnsupportedOperation):  # some of it was read already
                texts.reconfigure(errors="surrogateescape")
        return self._stream(each_text(texts), _adapted(options, beam, n_best, explain))

    def _stream(self, remaining: Iterator[object], options: Options) -> Iterator[Headline]:
        size, first = self.first_window, 1
        while window := list(islice(remaining, size)):
            yield from self.generate_batch(window, options, first=first)
            first, size = first + len(window), min(2 * size, LARGEST_WINDOW)

    def generate_batch(
        self, texts: Sequence[object], options: Options = DEFAULT, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order; warnings count the texts from `first`."""
        check_options(options, Options)
        ledes = [
            read_source_text(text, number, self._tokenizer, options.max_source)
            for number, text in enumerate(each_text(texts), start=first)
        ]
        with nullcontext() if self._on_cpu else _ON_GPU:
            found = self._search(ledes, options)
            weights = self._weights(ledes, found, options)
        return [
            self._headline(lede, headlines, weights[row], options)
            for row, (lede, headlines) in enumerate(zip(ledes, found, strict=True))
        ]

    # --- search -------------------------------------------------------------------------------

    def settled(self, config: SearchConfig) -> SearchConfig:
        """A search with what it leaves to the model, or to the first of several."""
        if config.block_ngrams is not None:
            return config
        return replace(config, block_ngrams=self.models[0].block_ngrams)

    def _search(self, ledes: Sequence[SourceText], options: Options) -> list[list[Hypothesis]]:
        """The n-best list of each lede, empty for one without ids; batches are of like lengths."""
        rows = [row for row, lede in enumerate(ledes) if lede.ids]
        rows.sort(key=lambda row: -len(ledes[row].ids))
        threads = _num_threads() if self._on_cpu else 1
        parallel = threads > 1 and len(rows) >= threads * _WORTH_A_THREAD
        batches = self._batches(rows, ledes, options, threads if parallel else 1)
        config = self.settled(options.search)

        def run(batch: list[int]) -> list[list[Hypothesis]]:
            return search(
                self._step_model, *padded([ledes[row].ids for row in batch]), config=config
            )

        with _single_threaded(threads) if parallel else nullcontext() as pool:
            results = list(pool.map(run, batches) if pool else map(run, batches))
        found: list[list[Hypothesis]] = [[] for _ in ledes]
        for batch, lists in zip(batches, results, strict=True):
            for row, headlines in zip(batch, lists, strict=True):
                found[row] = headlines
        return found

    def _batches(
        self, rows: list[int], ledes: Sequence[SourceText], options: Options, least: int
    ) -> list[list[int]]:
        """Rows, the longest first, in batches; at least so many of them, if there are the rows."""
        batches, start = [], 0
        while start < len(rows):
            left = len(rows) - start
            most = options.batch_size or self._most(len(ledes[rows[start]].ids), options)
            if self._on_cpu:
                size = min(most, max(1, -(-len(rows) // least)))
            else:
                size = -(-left // -(-left // most))  # even ones
            batches.append(rows[start : start + size])
            start += size
        return batches

    def _most(self, longest: int, options: Options) -> int:
        """How many texts to search together, where nobody says it."""
        if self._on_cpu:
            return _CPU_BATCH
        scores = _GPU_SCORES // (options.search.beam * self._tokenizer.vocabulary_size)
        return max(1, min(scores, _GPU_SUBWORDS // longest))

    @property
    def _on_cpu(self) -> bool:
        return self._step_model.device.type == "cpu"

    # --- words and reasons --------------------------------------------------------------------

    def _weights(
        self, ledes: Sequence[SourceText], found: Sequence[Sequence[Hypothesis]], options: Options
    ) -> list[dict[int, Weights]]:
        """For each lede, by rank, what the model saw of the headlines where that is wanted."""
        wanted = [
            (row, rank)
            for row, headlines in enumerate(found)
            for rank, headline in enumerate(headlines)
            if (options.explain and not rank) or (options.replace_unknown and UNK in headline.ids)
        ]
        pairs = [(ledes[row].ids, found[row][rank].ids) for row, rank in wanted]
        weights: list[dict[int, Weights]] = [{} for _ in ledes]
        for (row, rank), one in zip(wanted, attribute(self._tracer, pairs), strict=True):
            weights[row][rank] = one
        return weights

    def _headline(
        self,
        lede: SourceText,
        found: Sequence[Hypothesis],
        weights: dict[int, Weights],
        options: Options,
    ) -> Headline:
        wordings = [
            with_source_words(one.ids, self._tokenizer, lede, weights[rank].best)
            if options.replace_unknown and UNK in one.ids
            else wording(one.ids, self._tokenizer)
            for rank, one in enumerate(found)
        ]
        ranked = tuple(map(self._candidate, found, wordings))
        if not ranked or not ranked[0].text:
            nothing = (
                [HeadlineWarning("truncated", "the search came to no headline")] if lede.ids else []
            )
            return Headline(lede.text, "", warnings=(*lede.cautions, *nothing))
        best = ranked[0]
        return Headline(
            source=lede.text,
            text=best.text,
            tokens=best.tokens,
            score=best.score,
            alternatives=ranked if options.search.n_best > 1 else (),
            truncated=best.truncated,
            warnings=(*lede.cautions, *self._cautions(lede, best, wordings[0])),
            alignment=self._alignment(lede, wordings[0], weights[0]) if options.explain else None,
        )

    def _candidate(self, found: Hypothesis, words: HeadlineWords) -> Candidate:
        text, tokens = self._tokenizer.join(words.words), tuple(self._tokenizer.plain(words.words))
        return Candidate(text, tokens, found.score, found.truncated)

    def _alignment(self, lede: SourceText, words: HeadlineWords, weights: Weights) -> Alignment:
        def rows(matrix: npt.NDArray[np.floating[Any]]) -> Rows:
            return tuple(map(tuple, by_words(matrix, words.owners, lede.owners).tolist()))

        return Alignment(
            source=tuple(self._tokenizer.spaced(lede.words)),
            headline=tuple(self._tokenizer.spaced(words.words)),
            attention=rows(weights.attention),
            spm=None if weights.spm is None else rows(weights.spm),
        )

    def _cautions(
        self, lede: SourceText, headline: Candidate, words: HeadlineWords
    ) -> Iterator[HeadlineWarning]:
        if headline.truncated:
            yield HeadlineWarning(
                "truncated",
                f"no end came within {len(words.owners)} sub-words; this is a beginning",
            )
        if words.has_unknown:
            yield HeadlineWarning("unseen", "the headline has a word that the model does not know")
        known = (word.casefold() for word in headline.tokens if SPECIALS[UNK] not in word)
        for word, times in Counter(known).items():
            if times > 1 and is_content(word):
                available = [one.casefold() for one in self._tokenizer.plain(lede.words)]
                if times > available.count(word):
                    yield HeadlineWarning("repetition", f"{word!r} is there {times} times")


def system_name(headliner: Headliner) -> str:
    """What a system is, such as EncDec+SPM."""
    names = list(dict.fromkeys(one.model.config.name for one in headliner.models))
    return " & ".join(names) + (f" x {len(headliner.models)}" if len(headliner.models) > 1 else "")


def _num_threads() -> int:
    """As many as products of this thread are computed by, from now on if it never computed."""
    with _COUNTING_THREADS:
        return torch.get_num_threads()


def _single_threaded(threads: int) -> ThreadPoolExecutor:
    """A pool whose threads compute alone, while all others compute as before.

    It must not stay: OpenMP's threads share the processor badly with any that once computed.
    """
    before, all_there = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.set_num_threads(1)  # of this thread, and of all that begin later
        all_there.wait()

    pool = ThreadPoolExecutor(threads, "headliner", initializer=begin)
    with _COUNTING_THREADS:
        for _ in range(threads):
            pool.submit(int)
        all_there.wait()
        torch.set_num_threads(before)
    return pool


def _adapted(
    options: Options, beam: int | None, n_best: int | None, explain: bool | None
) -> Options:
    """The options with what was said beside them."""
    check_options(options, Options)
    search = options.search
    beam = search.beam if beam is None else beam
    n_best = search.n_best if n_best is None else n_best
    return replace(
        options,
        search=replace(search, beam=beam, n_best=n_best),
        explain=options.explain if explain is None else explain,
    )


def _refuse_strangers(models: Sequence[ModelBundle]) -> None:
    """Models of an ensemble must read and write the same sub-words."""
    for one in models[1:]:
        if one.tokenizer != models[0].tokenizer:
            raise ModelError(
                "the models of an ensemble must share one vocabulary and one text profile; these "
                "were trained on different datasets"
            )
