"""What attention and SPM saw of one pair, as a heat map has it (Section 6.2 and Appendix D).

Legend: I source length, J headline length, V vocabulary, all in sub-words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledeline.core.errors import ScoreError
from ledeline.evaluation.tracing import look
from ledeline.inference.headline import Rows
from ledeline.model.format.folder import ModelBundle
from ledeline.text.profiles import JOINER
from ledeline.text.subwords import EOS, PAD
from ledeline.text.tokenizer import Tokenizer

CONTINUED: Final = "·"  # ends a piece that goes on in the next one
_DIGITS: Final = 4  # of values in files


@dataclass(frozen=True)
class HeatMap:
    """Rows are steps, columns the sub-words of the source.

    A row is named by the token that its step writes, with the source token it is aligned to in
    brackets: by attention the place with the largest value, by the SPM the likeliest type of the
    whole vocabulary, whether the source has it or not.
    """

    source: tuple[str, ...]  # I
    attention_rows: tuple[str, ...]  # J + 1: the headline and <eos>
    attention: Rows  # (J + 1, I)
    spm_rows: tuple[str, ...] | None  # as many, then <pad> up to I; None for a system without SPM
    spm: Rows | None  # (I or J + 1, I): q_j of the type at each place

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "source": list(self.source),
            "attention_rows": list(self.attention_rows),
            "attention": _rounded(self.attention),
            "spm_rows": None if self.spm_rows is None else list(self.spm_rows),
            "spm": None if self.spm is None else _rounded(self.spm),
        }


def heat_map(loaded: ModelBundle, lede: str, headline: str) -> HeatMap:
    """Force a pair through a model and, with SPM, through the <pad> of Y'.

    The lede is read as a `Headliner` reads it, as far as it does.
    """
    ((reading, seen),) = look(loaded, [(lede, headline)], padded=True)
    if seen is None:
        raise ScoreError("a heat map needs a lede, with letters that the model knows")
    source, targets = reading.lede.ids, [*reading.ids, EOS]
    attention = seen.attention[: len(targets)]
    aligned = [source[place] for place in attention.argmax(1).tolist()]
    written = targets + [PAD] * (len(source) - len(targets))
    tokenizer, q = loaded.tokenizer, seen.q
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


def _rows(rows: Iterable[Iterable[float]]) -> Rows:
    return tuple(map(tuple, rows))


def _rounded(rows: Rows) -> list[list[float]]:
    return [[round(value, _DIGITS) for value in row] for row in rows]
