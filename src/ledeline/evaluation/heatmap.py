"""The heat map of one pair: attention and SPM at each step (Section 6.2 and Appendix D).

Legend: I source length, J headline length, V vocabulary, all in sub-words.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ledeline.core.errors import ScoreError
from ledeline.evaluation.alignment_json import HeatMap
from ledeline.evaluation.teacher_forcing import trace_pairs
from ledeline.inference.headline import Matrix
from ledeline.model.format.model_folder import ModelBundle
from ledeline.text.profiles import JOINER
from ledeline.text.subwords import EOS, PAD
from ledeline.text.tokenizer import Tokenizer

CONTINUED: Final = "·"  # ends a sub-word whose word goes on in the next one


def heat_map(loaded: ModelBundle, lede: str, headline: str) -> HeatMap:
    """Force a pair through a model, with SPM also through the steps of <pad> in Y'.

    The lede is read as a `Headliner` reads it, and as far.
    """
    ((encoded, trace),) = trace_pairs(loaded, [(lede, headline)], padded=True)
    if trace is None:
        raise ScoreError("a heat map needs a lede, with letters that the model knows")
    source, targets = encoded.lede.ids, [*encoded.ids, EOS]
    attention = trace.attention[: len(targets)]
    aligned = [source[place] for place in attention.argmax(1).tolist()]
    written = targets + [PAD] * (len(source) - len(targets))
    tokenizer, q = loaded.tokenizer, trace.q
    return HeatMap(
        source=tuple(shown(id_, tokenizer) for id_ in source),
        attention_rows=_labels(targets, aligned, tokenizer),
        attention=_rows(attention.tolist()),
        spm_rows=None if q is None else _labels(written, q.argmax(1).tolist(), tokenizer),
        spm=None if q is None else _rows(q[:, list(source)].tolist()),
    )


def shown(id_: int, tokenizer: Tokenizer) -> str:
    """A sub-word for people: without marks of a profile, and a dot where its word goes on."""
    name = tokenizer.types[id_]
    text = "".join(tokenizer.decode_words([id_])) or name  # special ones read as nothing
    return (text.strip(JOINER) or JOINER) + CONTINUED * (text != name)


def _labels(
    written: Sequence[int], aligned: Sequence[int], tokenizer: Tokenizer
) -> tuple[str, ...]:
    pairs = zip(written, aligned, strict=True)
    return tuple(f"{shown(token, tokenizer)} ({shown(type_, tokenizer)})" for token, type_ in pairs)


def _rows(rows: Iterable[Iterable[float]]) -> Matrix:
    return tuple(map(tuple, rows))
