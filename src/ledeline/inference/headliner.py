"""`Headliner`: text in, headlines out. Command, server and evaluation all use it."""

import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ledeline.config.search import Device, Precision, SearchConfig
from ledeline.config.section import BadValue
from ledeline.core.errors import ArgumentError, ModelError, RenamedWarning
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.inference.arguments import check_choice, check_folders, check_options, each_text
from ledeline.inference.attribution import NO_ATTENTION
from ledeline.inference.checks.checker import BundledGenerator, Checker
from ledeline.inference.checks.lede_vocabulary import LedeVocabulary
from ledeline.inference.compose import Composer
from ledeline.inference.engine_model import EngineModel
from ledeline.inference.engines import Bundle, choose_model, open_bundles
from ledeline.inference.generation import Generation, GenerationModel
from ledeline.inference.headline import Headline
from ledeline.inference.options import CHUNK_GROWTH
from ledeline.inference.options import DEFAULT_OPTIONS as DEFAULT_OPTIONS
from ledeline.inference.options import Options as Options
from ledeline.inference.source_text import SourceText, read_source_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

# Texts of a stream are worked on in chunks: small ones first, for quick first headlines.
FIRST_CHUNK_SIZES: Final = {"cpu": 64, "cuda": 512}
# The batch size on a CPU is limited by memory: a hypothesis keeps its states for the verifier.
_CPU_BATCH, _CPU_SUBWORDS, _CPU_HYPOTHESES = 8, 1024, 256
# The batch size on a GPU is limited by the scores of a step (half a gigabyte) and by the sub-words
# of the sources (some 200 MB of states).
_GPU_SCORES, _GPU_SUBWORDS = 2**27, 2**16


class Headliner:
    """A trained model, or several as an ensemble, that writes headlines.

    Every text gets a `Headline`, whatever it is; `headline.WARNING_KINDS` lists what can be wrong.
    A headline does not depend on the other texts of a batch.

    Several threads may use one Headliner at once, with the same results as alone. A stream must be
    read by one thread.
    """

    def __init__(self, models: Sequence[Bundle], precision: Precision = "auto") -> None:
        if not models:
            raise ArgumentError("a Headliner needs a model; Headliner.load() loads the bundled one")
        check_choice("precision", precision, Precision)
        _check_same_tokenizer(models)
        self.models = tuple(models)
        self._tokenizer = models[0].tokenizer
        model = choose_model(models, precision)
        self.precision = model.precision
        bundled = None
        if isinstance(model, EngineModel) and len(models) == 1 and models[0].check:
            bundled = BundledGenerator(model.engines[0], self._tokenizer)
        self._model = GenerationModel(
            model,
            Composer(self._tokenizer),
            checker=cache(partial(Checker.load, bundled)),
            known_to_verifier=bundled is not None,
            vocabulary=cache(partial(LedeVocabulary, self._tokenizer)),
        )

    @classmethod
    def load(
        cls, *folders: Path | str, precision: Precision = "auto", device: Device = "auto"
    ) -> Self:
        """Load a model folder, or several as an ensemble; without folders, the bundled model.

        The precision is that of matrix products: `auto` is float16 on a GPU and int8 on a CPU. The
        device is `cpu`, `cuda`, or `auto`: a GPU if there is one.
        """
        check_folders(folders)
        return cls(open_bundles(folders or (SHIPPED_NAME,), device), precision)

    @property
    def first_chunk_size(self) -> int:
        """Texts in the first chunk of a stream."""
        return FIRST_CHUNK_SIZES["cpu" if self.on_cpu else "cuda"]

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
        largest = CHUNK_GROWTH * size
        while chunk := list(islice(remaining, size)):
            yield from self.generate_batch(chunk, options, first=first)
            first, size = first + len(chunk), min(2 * size, largest)

    def generate_batch(
        self, texts: Sequence[object], options: Options = DEFAULT_OPTIONS, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order; warnings number the texts from `first`."""
        ledes = self.read(texts, options, first=first)
        headlines: list[Headline | None] = [None] * len(ledes)
        for rows, found in self._generate(ledes, options):
            for row, headline in zip(rows, found, strict=True):
                headlines[row] = headline
        return [one for one in headlines if one is not None]

    def read(
        self, texts: Iterable[object], options: Options = DEFAULT_OPTIONS, *, first: int = 1
    ) -> list[SourceText]:
        """The texts as the model reads them; warnings number them from `first`."""
        check_options(options, Options)
        return [
            read_source_text(text, number, self._tokenizer, options.max_source)
            for number, text in enumerate(each_text(texts), start=first)
        ]

    def begin(self, ledes: Sequence[SourceText], options: Options = DEFAULT_OPTIONS) -> Generation:
        """Begin to generate the headlines of texts that were read; nothing is computed yet."""
        resolved = self.resolve_options(options)
        return Generation(self._model, ledes, resolved, resolved.search)

    def checker(self) -> Checker:
        """What checks headlines; it is loaded when it is first needed."""
        return self._model.checker()

    @property
    def is_known_to_verifier(self) -> bool:
        """Whether checks can use what the search saw; else each headline is read once more."""
        return self._model.known_to_verifier

    @property
    def rescores(self) -> bool:
        """Whether a model ranks once more what a search finds."""
        return self._model.model.rescorer is not None

    def answers(
        self, texts: Sequence[object], options: Options = DEFAULT_OPTIONS, *, first: int = 1
    ) -> list[Headline]:
        """As `generate_batch`, by its name in 0.1.0; it works for one more version."""
        warnings.warn(
            "Headliner.answers is called generate_batch now", RenamedWarning, stacklevel=2
        )
        return self.generate_batch(texts, options, first=first)

    # --- search -------------------------------------------------------------------------------

    def resolve_options(self, options: Options) -> Options:
        """The options with the defaults of the model, or of the first of several.

        A model without attention cannot explain, nor say which word belongs where it writes <unk>.
        """
        own, has_attention = self.models[0].check, self.models[0].model.has_attention
        if options.explain and not has_attention:
            raise BadValue("explain", True, NO_ATTENTION)
        asked = options.rank == "support" or options.min_support is not None
        check = options.check if options.check is not None else own or asked
        rank = options.rank or ("support" if own and check else "score")
        constrain = options.constrain if options.constrain is not None else rank == "support"
        return replace(
            options,
            search=self.resolve_search(options.search),
            check=check,
            rank=rank,
            constrain=constrain,
            replace_unknown=options.replace_unknown and has_attention,
        )

    def resolve_search(self, config: SearchConfig) -> SearchConfig:
        """The configuration with the defaults of the model, or of the first of several."""
        return resolve_search(self.models, config)

    def _generate(
        self, ledes: Sequence[SourceText], options: Options
    ) -> list[tuple[list[int], list[Headline | None]]]:
        """The headlines of each batch, with their rows; batches have similar lengths."""
        rows = sorted(range(len(ledes)), key=lambda row: -len(ledes[row].ids))
        threads = max(1, min(self.num_threads, len(rows) // self.min_texts_per_thread))
        resolved = replace(options, search=self.resolve_search(options.search))
        batches = self._batches(rows, ledes, resolved, threads)

        def run(batch: list[int]) -> list[Headline | None]:
            generation = self.begin([ledes[row] for row in batch], options)
            while not generation.done:
                generation.advance()
            return generation.headlines

        with self.pool(threads) if threads > 1 else nullcontext() as pool:
            found = list(pool.map(run, batches) if pool else map(run, batches))
        return list(zip(batches, found, strict=True))

    def _batches(
        self, rows: list[int], ledes: Sequence[SourceText], options: Options, threads: int
    ) -> list[list[int]]:
        """Rows, sorted by length, in batches. Each thread gets as many, of about equal size."""
        batches, start = [], 0
        while start < len(rows):
            left, longest = len(rows) - start, len(ledes[rows[start]].ids)
            at_once = threads * (options.batch_size or self._max_batch_size(longest, options))
            size = -(-left // (threads * -(-left // at_once)))
            stop = min(start + threads * size, len(rows))
            batches += [rows[first : min(first + size, stop)] for first in range(start, stop, size)]
            start = stop
        return batches

    def _max_batch_size(self, longest: int, options: Options) -> int:
        """How many texts of this length are searched together by default."""
        if self.on_cpu:
            hypotheses = _CPU_HYPOTHESES // options.search.beam_size
            return max(1, min(_CPU_BATCH, _CPU_SUBWORDS // max(1, longest), hypotheses))
        scores = _GPU_SCORES // (options.search.beam_size * self._tokenizer.vocabulary_size)
        return max(1, min(scores, _GPU_SUBWORDS // max(1, longest)))

    @property
    def on_cpu(self) -> bool:
        """Whether it computes on a CPU."""
        return self._model.model.on_cpu

    @property
    def num_threads(self) -> int:
        """How many threads generate at once."""
        return self._model.model.num_threads

    @property
    def min_texts_per_thread(self) -> int:
        """How many texts are worth a thread of their own."""
        return self._model.model.min_texts_per_thread

    def pool(self, threads: int) -> "Executor":
        """Threads that each compute on one core; it must be shut down after use."""
        return self._model.model.pool(threads)


def resolve_search(models: Sequence[Bundle], config: SearchConfig) -> SearchConfig:
    """The configuration with the defaults of the model, or of several."""
    blocked, recombined = config.block_ngrams, config.recombine
    return replace(
        config,
        beam=max(models[0].beam, config.n_best) if config.beam is None else config.beam,
        block_ngrams=models[0].block_ngrams if blocked is None else blocked,
        recombine=_context_size(models) if recombined is None else recombined,
    )


def _context_size(models: Sequence[Bundle]) -> int:
    """On how many of the last words a step depends, at most; 0: on all of them."""
    sizes = [one.model.context_size for one in models]
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else 0


def system_name(headliner: Headliner) -> str:
    """The name of the system, such as EncDec+SPM."""
    extractive = headliner.models[0].extractive  # the first has a say in the search of all
    models = [one._replace(extractive=extractive) for one in headliner.models]
    names = list(dict.fromkeys(one.name for one in models))
    return " & ".join(names) + (f" x {len(headliner.models)}" if len(headliner.models) > 1 else "")


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


def _check_same_tokenizer(models: Sequence[Bundle]) -> None:
    """Refuse models with different tokenizers in an ensemble."""
    for one in models[1:]:
        if one.tokenizer != models[0].tokenizer:
            raise ModelError(
                "the models of an ensemble must share one vocabulary and one text profile; these "
                "were trained on different datasets"
            )
