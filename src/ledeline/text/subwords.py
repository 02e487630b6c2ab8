"""Sub-words by joint byte-pair encoding: learn, encode, decode.

Words are cut into pieces by merges learned from word counts, one table for sources and headlines
together (Sennrich et al., 2016). Merges and pieces are those of subword-nmt 0.3.8 (codes version
0.2: the last character of a word carries ``</w>``), whose tools can read the ``codes.txt`` written
here. Added to them are a closed vocabulary with ids, and decoding that loses nothing.

A word is a non-empty string without white space. A piece is its text and whether it ends its word;
the printed forms ``text@@`` (more follows) and ``text`` are for people only, because a text may
itself end in ``@@``.
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ledeline.core.cache import BoundedCache
from ledeline.core.errors import DatasetError
from ledeline.core.progress import Progress, no_progress
from ledeline.text.bpe import WORD_END, SymbolPair, apply_merges

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")

_CONTINUED = "@@"
_MAX_CACHED_WORDS = 2**20
FILES = _CODES_FILE, _DESCRIPTION_FILE = "codes.txt", "subwords.json"  # in a saved folder
_CODES_HEADER = "#version: 0.2\n"
_DESCRIPTION_VERSION = 1


class Subwords:
    """A joint sub-word vocabulary, with the merges that cut words into its pieces.

    Ids are given to the special symbols, then to each character of the alphabet, inside and at the
    end of a word, then to the result of each merge. So every word over the alphabet can be encoded
    and decoded back; any other character becomes ``<unk>``. The ``unknown_words`` are words of the
    text, such as ``UNK``, that already stand for something unknown.
    """

    def __init__(
        self,
        merges: Sequence[SymbolPair],
        alphabet: Iterable[str],
        unknown_words: Sequence[str] = (),
    ) -> None:
        self.merges = tuple(merges)
        self.alphabet = "".join(sorted(set(alphabet)))
        self.unknown_words = tuple(unknown_words)
        learned = self._vocabulary()
        self.types = SPECIALS + tuple(
            [  # a symbol that does not end its word is its text
                text + _CONTINUED if len(text) == len(one) else text
                for one, text in learned.items()
            ]
        )
        # What each id adds to its word, with `</w>` where it ends it.
        self._symbols = ["", SPECIALS[UNK] + WORD_END, "", "", *learned]
        self._typecode = "H" if len(self) <= 2**16 else "I"  # of arrays of ids: 16 or 32 bits
        self._cache = BoundedCache(self._encode_new_word, _MAX_CACHED_WORDS)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The id of each symbol."""
        learned = self._symbols[len(SPECIALS) :]
        return dict(zip(learned, range(len(SPECIALS), len(self)), strict=True))

    @cached_property
    def _ranks(self) -> dict[SymbolPair, int]:
        """The place of each merge; a pair that was learned twice counts where it came first."""
        return dict(zip(reversed(self.merges), range(len(self.merges))[::-1], strict=True))

    @property
    def id_dtype(self) -> "np.dtype[np.unsignedinteger[Any]]":
        """The type of ids in arrays and files."""
        import numpy as np  # here, so that text can be encoded without it

        return np.dtype("<u2" if self._typecode == "H" else "<u4")

    @classmethod
    def learn(
        cls,
        counts: Mapping[str, int],
        num_merges: int,
        *,
        min_character_count: int = 1,
        unknown_words: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> Self:
        """Learn from word counts; characters rarer than ``min_character_count`` stay unknown."""
        from ledeline.text.bpe_learning import learn_merges  # needs NumPy

        characters: Counter[str] = Counter()
        for word, count in counts.items():
            for character in word:
                characters[character] += count
        alphabet = [char for char, count in characters.items() if count >= min_character_count]
        return cls(learn_merges(counts, num_merges, progress=progress), alphabet, unknown_words)

    def __len__(self) -> int:
        return len(self.types)

    def _vocabulary(self) -> dict[str, str]:
        """The symbols that have ids, of the characters and of merges of these, and their texts."""
        characters = {text + end: text for text in self.alphabet for end in ("", WORD_END)}
        symbols = ["".join(pair) for pair in self.merges]
        # Like `_ends_word`, without a call for each.
        ends = WORD_END
        texts = [one[:-_END] if one.endswith(ends) and one != ends else one for one in symbols]
        known, merged = set(self.alphabet), zip(symbols, texts, strict=True)
        if known.issuperset("".join(texts)):  # as always, unless characters are too rare
            return characters | dict(merged)
        return characters | {one: text for one, text in merged if known.issuperset(text)}

    def segment(self, word: str) -> tuple[str, ...]:
        """Cut a word as subword-nmt does: ``@@`` ends every piece but the last."""
        *inner, last = self._split(word)
        return (*(symbol + _CONTINUED for symbol in inner), last.removesuffix(WORD_END))

    def _split(self, word: str) -> list[str]:
        """The symbols of a word; the last one ends in ``</w>``."""
        if not word:
            raise ValueError("a word needs at least one character")
        return apply_merges(word, self._ranks)

    def _encode_new_word(self, word: str) -> bytes:
        if word in self.unknown_words:
            ids = [UNK]
        else:
            *inner, last = self._split(word)
            ids = [number for symbol in inner for number in self._inner_ids(symbol)]
            ids += self._last_ids(last)
        return array(self._typecode, ids).tobytes()

    def _inner_ids(self, symbol: str) -> list[int]:
        """The id of a symbol inside a word, or those of its characters if it is not known.

        There ``</w>`` is text, and so a symbol that ends in it is not the one that has an id.
        """
        if symbol in self._ids and not _ends_word(symbol):
            return [self._ids[symbol]]
        return [self._ids.get(character, UNK) for character in symbol]

    def _last_ids(self, symbol: str) -> list[int]:
        """The same for the symbol that ends a word."""
        if symbol in self._ids:
            return [self._ids[symbol]]
        text = symbol.removesuffix(WORD_END)
        characters = (*text[:-1], text[-1] + WORD_END)
        return [self._ids.get(character, UNK) for character in characters]

    def encode_word(self, word: str) -> tuple[int, ...]:
        """Return the ids of one word."""
        return tuple(self.encode([word]))

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of a text that is already split into words."""
        encoded = b"".join(map(self._cache.__getitem__, words))
        return array(self._typecode, encoded).tolist()

    def encode_words(self, words: Iterable[str]) -> tuple[list[int], list[int]]:
        """Return the ids of a text that is split into words, and how many each word has."""
        encoded = list(map(self._cache.__getitem__, words))
        ids = array(self._typecode, b"".join(encoded))
        return ids.tolist(), [len(word) // ids.itemsize for word in encoded]

    def encode_lines(
        self, lines: Iterable[str]
    ) -> "tuple[npt.NDArray[np.unsignedinteger[Any]], npt.NDArray[np.int64]]":
        """Return the ids of all lines in one array, and where each starts (and the last one ends).

        White space separates words. Ids are uint16, or uint32 if the vocabulary is too large.
        """
        import numpy as np

        look_up, join = self._cache.__getitem__, b"".join
        encoded, starts = bytearray(), array("q", [0])
        for line in lines:
            encoded += join(map(look_up, line.split()))
            starts.append(len(encoded))
        ids = np.frombuffer(encoded, np.dtype(self._typecode))
        dtype = self.id_dtype
        return ids.astype(dtype, copy=False), np.frombuffer(starts, np.int64) // dtype.itemsize

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words; the inverse of ``encode``.

        An unknown symbol becomes ``<unk>`` and ends its word; the other special symbols become
        nothing. Pieces at the end that do not end a word make a word, too.
        """
        words: list[str] = []
        text, symbols = "", self._symbols
        for number in ids:
            if not 0 <= number < len(symbols):
                raise ValueError(f"id {number} is not in a vocabulary of {len(self)} types")
            symbol = symbols[number]
            if _ends_word(symbol):
                words.append(text + symbol[:-_END])
                text = ""
            else:
                text += symbol
        return [*words, text] if text else words

    def word_ids(self, ids: Iterable[int]) -> list[int]:
        """Return for each id the number of its word, among those that ``decode`` returns.

        A special symbol that decodes to nothing belongs to the word that is open, or to the next.
        """
        word_ids, number = [], 0
        for piece in ids:
            word_ids.append(number)
            number += _ends_word(self._symbols[piece])
        return word_ids

    def save(self, folder: Path) -> None:
        """Write ``codes.txt``, as subword-nmt does, and ``subwords.json`` with the rest."""
        description = json.dumps(
            self._description(_sha256(self._codes())), ensure_ascii=False, indent=0
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _CODES_FILE).write_bytes(self._codes())
        (folder / _DESCRIPTION_FILE).write_bytes(description.encode())

    def _codes(self) -> bytes:
        return "".join([_CODES_HEADER, *(f"{a} {b}\n" for a, b in self.merges)]).encode()

    def _description(self, codes_sha256: str) -> dict[str, Any]:
        return {
            "version": _DESCRIPTION_VERSION,
            "codes_sha256": codes_sha256,
            "alphabet": self.alphabet,
            "unknown_words": list(self.unknown_words),
            "types": list(self.types),
        }

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what ``save`` wrote; a file that is missing, damaged or changed is an error."""
        codes_path, path = folder / _CODES_FILE, folder / _DESCRIPTION_FILE
        try:
            codes, description = codes_path.read_bytes(), json.loads(path.read_bytes())
            if description["version"] != _DESCRIPTION_VERSION:
                raise _unusable(path, f"is not of version {_DESCRIPTION_VERSION}")
            found = _sha256(codes)
            if description["codes_sha256"] != found:
                raise _unusable(codes_path, f"is not the file that {path.name} describes")
            header, *lines = codes.decode().split("\n")
            rest = lines.pop()  # nothing, if the last line ends as it should
            merges = [(left, right) for left, right in (line.split(" ") for line in lines)]
            subwords = cls(merges, description["alphabet"], description["unknown_words"])
        except OSError as error:
            raise _unusable(error.filename, f"cannot be read ({error.strerror})") from None
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            raise _unusable(path, "is damaged") from None
        is_whole = header + "\n" == _CODES_HEADER and not rest
        if not is_whole or subwords._description(found) != description:
            raise _unusable(path, f"does not agree with {codes_path.name}")
        return subwords


_END = len(WORD_END)


def _ends_word(symbol: str) -> bool:
    """Whether a symbol is the last one of its word; the text ``</w>`` alone is not."""
    return symbol.endswith(WORD_END) and len(symbol) > _END


def _sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _unusable(path: Path | str, reason: str) -> DatasetError:
    return DatasetError(f"{path} {reason}; restore both files or prepare the dataset again.")
