"""`Headliner`: text in, headlines out. Command, server and evaluation all use it."""

import io
import warnings
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
from ledeline.core.errors import ArgumentError, ModelError, RenamedWarning
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.data.dataset import padded
from ledeline.inference.arguments import check_choice, check_folders, check_options, each_text
from ledeline.inference.attribution import AttributionWeights, attribute, word_weights
from ledeline.inference.detokenize import HeadlineWords, headline_words, replace_unknown_words
from ledeline.inference.engines import choose_engine, open_model
from ledeline.inference.headline import Alignment, Candidate, Headline, HeadlineWarning, Matrix
from ledeline.inference.source_text import SourceText, read_source_text
from ledeline.model.format.model_folder import ModelBundle
from ledeline.search import Ensemble, Hypothesis, search
from ledeline.text.function_words import is_content
from ledeline.text.subwords import SPECIALS, UNK

# Texts of a stream are worked on in chunks: small ones first, for quick first headlines.
FIRST_CHUNK_SIZES, MAX_CHUNK_SIZE = {"cpu": 64, "cuda": 512}, 2048
_MIN_SOURCES_PER_THREAD: Final = 4  # with fewer sources, threads share single products instead
_CPU_BATCH: Final = 32
# The batch size on a GPU is limited by the scores of a step (half a gigabyte) and by the sub-words
# of the sources (some 200 MB of states).
_GPU_SCORES, _GPU_SUBWORDS = 2**27, 2**16
# Only one thread at a time may use the GPU, because that sets global flags of torch; or change
# torch's number of threads, because a thread keeps the number at its first computation.
_GPU_LOCK, _THREADS_LOCK = Lock(), Lock()


@section
class Options:
    """How headlines are generated."""

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


DEFAULT_OPTIONS: Final = Options()


class Headliner:
    """A trained model, or several as an ensemble, that writes headlines.

    Every text gets a `Headline`, whatever it is; `headline.WARNING_KINDS` lists what can be wrong.
    A headline does not depend on the other texts of a batch.

    Several threads may use one Headliner at once, with the same results as alone. A stream must be
    read by one thread.
    """

    def __init__(self, models: Sequence[ModelBundle], precision: Precision = "auto") -> None:
        if not models:
            raise ArgumentError("a Headliner needs a model; Headliner.load() loads the bundled one")
        check_choice("precision", precision, Precision)
        _check_same_tokenizer(models)
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
        """Load a model folder, or several as an ensemble; without folders, the bundled model.

        The precision is that of matrix products: `auto` is float16 on a GPU, int8 on a CPU with
        VNNI, and float32 on any other. The device is `cpu`, `cuda`, or `auto`: a GPU if there is
        one.
        """
        check_folders(folders)
        named = folders or (SHIPPED_NAME,)
        return cls([open_model(folder, device) for folder in named], precision)

    @property
    def first_chunk_size(self) -> int:
        """Texts in the first chunk of a stream."""
        return FIRST_CHUNK_SIZES["cpu" if self._on_cpu else "cuda"]

    def __call__(
        self,
        text: object,
        *,
        beam: int | None = None,
        n_best: int | None = None,
        explain: bool | None = None,
        options: Options = DEFAULT_OPTIONS,
    ) -> Headline:
        """The headline of one text; `beam`, `n_best` and `explain` override the options."""
        return self.generate_batch([text], _with_overrides(options, beam, n_best, explain))[0]

    def stream(
        self,
        texts: Iterable[object],
        *,
        beam: int | None = None,
        n_best: int | None = None,
        explain: bool | None = None,
        options: Options = DEFAULT_OPTIONS,
    ) -> Iterator[Headline]:
        """The headline of each text, in order; any number of texts, which are read as needed.

        In a file opened as text, lines that are not UTF-8 get a warning instead of an error.
        """
        if isinstance(texts, io.TextIOWrapper):
            with suppress(io.UnsupportedOperation):  # some of it was read already
                texts.reconfigure(errors="surrogateescape")
        return self._stream(each_text(texts), _with_overrides(options, beam, n_best, explain))

    def _stream(self, remaining: Iterator[object], options: Options) -> Iterator[Headline]:
        size, first = self.first_chunk_size, 1
        while chunk := list(islice(remaining, size)):
            yield from self.generate_batch(chunk, options, first=first)
            first, size = first + len(chunk), min(2 * size, MAX_CHUNK_SIZE)

    def generate_batch(
        self, texts: Sequence[object], options: Options = DEFAULT_OPTIONS, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order; warnings number the texts from `first`."""
        check_options(options, Options)
        ledes = [
            read_source_text(text, number, self._tokenizer, options.max_source)
            for number, text in enumerate(each_text(texts), start=first)
        ]
        with nullcontext() if self._on_cpu else _GPU_LOCK:
            found = self._search(ledes, options)
            weights = self._attribution_weights(ledes, found, options)
        return [
            self._headline(lede, headlines, weights[row], options)
            for row, (lede, headlines) in enumerate(zip(ledes, found, strict=True))
        ]

    def answers(
        self, texts: Sequence[object], options: Options = DEFAULT_OPTIONS, *, first: int = 1
    ) -> list[Headline]:
        """As `generate_batch`, by its name in 0.1.0; it works for one more version."""
        warnings.warn(
            "Headliner.answers is called generate_batch now", RenamedWarning, stacklevel=2
        )
        return self.generate_batch(texts, options, first=first)

    # --- search -------------------------------------------------------------------------------

    def resolve_search(self, config: SearchConfig) -> SearchConfig:
        """The configuration with the defaults of the model, or of the first of several."""
        if config.block_ngrams is not None:
            return config
        return replace(config, block_ngrams=self.models[0].block_ngrams)

    def _search(self, ledes: Sequence[SourceText], options: Options) -> list[list[Hypothesis]]:
        """The n-best list of each lede, empty for one without ids; batches have similar lengths."""
        rows = [row for row, lede in enumerate(ledes) if lede.ids]
        rows.sort(key=lambda row: -len(ledes[row].ids))
        threads = _num_threads() if self._on_cpu else 1
        parallel = threads > 1 and len(rows) >= threads * _MIN_SOURCES_PER_THREAD
        batches = self._batches(rows, ledes, options, threads if parallel else 1)
        config = self.resolve_search(options.search)

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
        self, rows: list[int], ledes: Sequence[SourceText], options: Options, min_batches: int
    ) -> list[list[int]]:
        """Rows, sorted by length, in batches; at least `min_batches`, if there are enough rows."""
        batches, start = [], 0
        while start < len(rows):
            left = len(rows) - start
            longest = len(ledes[rows[start]].ids)
            max_size = options.batch_size or self._max_batch_size(longest, options)
            if self._on_cpu:
                size = min(max_size, max(1, -(-len(rows) // min_batches)))
            else:
                size = -(-left // -(-left // max_size))  # of about equal size
            batches.append(rows[start : start + size])
            start += size
        return batches

    def _max_batch_size(self, longest: int, options: Options) -> int:
        """How many texts of this length are searched together by default."""
        if self._on_cpu:
            return _CPU_BATCH
        scores = _GPU_SCORES // (options.search.beam * self._tokenizer.vocabulary_size)
        return max(1, min(scores, _GPU_SUBWORDS // longest))

    @property
    def _on_cpu(self) -> bool:
        return self._step_model.device.type == "cpu"

    # --- words and attribution ----------------------------------------------------------------

    def _attribution_weights(
        self, ledes: Sequence[SourceText], found: Sequence[Sequence[Hypothesis]], options: Options
    ) -> list[dict[int, AttributionWeights]]:
        """For each lede, by rank, the attribution of the headlines that need it."""
        wanted = [
            (row, rank)
            for row, headlines in enumerate(found)
            for rank, headline in enumerate(headlines)
            if (options.explain and not rank) or (options.replace_unknown and UNK in headline.ids)
        ]
        pairs = [(ledes[row].ids, found[row][rank].ids) for row, rank in wanted]
        weights: list[dict[int, AttributionWeights]] = [{} for _ in ledes]
        for (row, rank), one in zip(wanted, attribute(self._tracer, pairs), strict=True):
            weights[row][rank] = one
        return weights

    def _headline(
        self,
        lede: SourceText,
        found: Sequence[Hypothesis],
        weights: dict[int, AttributionWeights],
        options: Options,
    ) -> Headline:
        all_words = [
            replace_unknown_words(one.ids, self._tokenizer, lede, weights[rank].best)
            if options.replace_unknown and UNK in one.ids
            else headline_words(one.ids, self._tokenizer)
            for rank, one in enumerate(found)
        ]
        ranked = tuple(map(self._candidate, found, all_words))
        if not ranked or not ranked[0].text:
            nothing = (
                [HeadlineWarning("truncated", "the search came to no headline")] if lede.ids else []
            )
            return Headline(lede.text, "", warnings=(*lede.warnings, *nothing))
        best = ranked[0]
        return Headline(
            source=lede.text,
            text=best.text,
            tokens=best.tokens,
            score=best.score,
            alternatives=ranked if options.search.n_best > 1 else (),
            truncated=best.truncated,
            warnings=(*lede.warnings, *self._warnings(lede, best, all_words[0])),
            alignment=self._alignment(lede, all_words[0], weights[0]) if options.explain else None,
        )

    def _candidate(self, found: Hypothesis, words: HeadlineWords) -> Candidate:
        text, tokens = self._tokenizer.join(words.words), tuple(self._tokenizer.plain(words.words))
        return Candidate(text, tokens, found.score, found.truncated)

    def _alignment(
        self, lede: SourceText, words: HeadlineWords, weights: AttributionWeights
    ) -> Alignment:
        def rows(matrix: npt.NDArray[np.floating[Any]]) -> Matrix:
            return tuple(map(tuple, word_weights(matrix, words.word_ids, lede.word_ids).tolist()))

        return Alignment(
            source=tuple(self._tokenizer.spaced(lede.words)),
            headline=tuple(self._tokenizer.spaced(words.words)),
            attention=rows(weights.attention),
            spm=None if weights.spm is None else rows(weights.spm),
        )

    def _warnings(
        self, lede: SourceText, headline: Candidate, words: HeadlineWords
    ) -> Iterator[HeadlineWarning]:
        if headline.truncated:
            yield HeadlineWarning(
                "truncated",
                f"no end came within {len(words.word_ids)} sub-words; this is a beginning",
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
    """The name of the system, such as EncDec+SPM."""
    names = list(dict.fromkeys(one.model.config.name for one in headliner.models))
    return " & ".join(names) + (f" x {len(headliner.models)}" if len(headliner.models) > 1 else "")


def _num_threads() -> int:
    """Torch's number of threads; a thread that has not computed yet gets it by asking."""
    with _THREADS_LOCK:
        return torch.get_num_threads()


def _single_threaded(threads: int) -> ThreadPoolExecutor:
    """A pool whose threads each compute on one core; other threads are not affected.

    It must be shut down after use: idle, its threads would slow down OpenMP's.
    """
    before, all_started = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.set_num_threads(1)  # of this thread, and of all that start later
        all_started.wait()

    pool = ThreadPoolExecutor(threads, "headliner", initializer=begin)
    with _THREADS_LOCK:
        for _ in range(threads):
            pool.submit(int)
        all_started.wait()
        torch.set_num_threads(before)
    return pool


def _with_overrides(
    options: Options, beam: int | None, n_best: int | None, explain: bool | None
) -> Options:
    """The options with these overrides."""
    check_options(options, Options)
    search = options.search
    beam = search.beam if beam is None else beam
    n_best = search.n_best if n_best is None else n_best
    return replace(
        options,
        search=replace(search, beam=beam, n_best=n_best),
        explain=options.explain if explain is None else explain,
    )


def _check_same_tokenizer(models: Sequence[ModelBundle]) -> None:
    """Refuse models with different tokenizers in an ensemble."""
    for one in models[1:]:
        if one.tokenizer != models[0].tokenizer:
            raise ModelError(
                "the models of an ensemble must share one vocabulary and one text profile; these "
                "were trained on different datasets"
            )
