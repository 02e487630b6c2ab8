"""Sub-words by joint byte-pair encoding: learn, encode, decode.

Words are cut into pieces by merges learned from word counts, one table for sources and headlines
together (Sennrich et al., 2016). Merges and pieces are those of subword-nmt 0.3.8 (codes version
0.2: the last character of a word carries ``</w>``), whose tools can read the ``codes.txt`` written
here. Added to them are a closed vocabulary with ids, and decoding that loses nothing.

A word is a non-empty string without white space. A piece is its text and whether it ends its word;
the printed forms ``text@@`` (more follows) and ``text`` are for people only, because a text may
itself end in ``@@``.
"""

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ledeline.core.cache import BoundedCache
from ledeline.core.errors import DatasetError
from ledeline.core.progress import Progress, no_progress
from ledeline.text.bpe import WORD_END, SymbolPair, apply_merges, learn_merges

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")

_CONTINUED = "@@"
_MAX_CACHED_WORDS = 2**20
FILES = _CODES_FILE, _DESCRIPTION_FILE = "codes.txt", "subwords.json"  # in a saved folder
_CODES_HEADER = "#version: 0.2\n"
_DESCRIPTION_VERSION = 1

_Piece = tuple[str, bool]  # text, ends its word
_Ids = npt.NDArray[np.unsignedinteger[Any]]


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
        pieces = list(dict.fromkeys(self._vocabulary()))
        self.types = SPECIALS + tuple(text + _CONTINUED * (not ends) for text, ends in pieces)
        self._ids = {piece: number for number, piece in enumerate(pieces, len(SPECIALS))}
        self._pieces = [("", False)] * len(SPECIALS) + pieces  # what each id adds to its word
        self._pieces[UNK] = (SPECIALS[UNK], True)
        # Reversed, so that a pair that was learned twice counts where it came first.
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(self.merges)))}
        self.id_dtype = np.dtype("<u2" if len(self) <= 2**16 else "<u4")
        self._cache = BoundedCache(self._encode_new_word, _MAX_CACHED_WORDS)

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
        characters: Counter[str] = Counter()
        for word, count in counts.items():
            for character in word:
                characters[character] += count
        alphabet = [char for char, count in characters.items() if count >= min_character_count]
        return cls(learn_merges(counts, num_merges, progress=progress), alphabet, unknown_words)

    def __len__(self) -> int:
        return len(self.types)

    def _vocabulary(self) -> Iterator[_Piece]:
        for character in self.alphabet:
            yield character, False
            yield character, True
        known = set(self.alphabet)
        for symbol in map("".join, self.merges):
            ends_word = symbol.endswith(WORD_END) and symbol != WORD_END
            text = symbol.removesuffix(WORD_END) if ends_word else symbol
            if known.issuperset(text):
                yield text, ends_word

    def segment(self, word: str) -> tuple[str, ...]:
        """Cut a word as subword-nmt does: ``@@`` ends every piece but the last."""
        return tuple(text + _CONTINUED * (not ends) for text, ends in self._split(word))

    def _split(self, word: str) -> list[_Piece]:
        if not word:
            raise ValueError("a word needs at least one character")
        symbols = apply_merges(word, self._ranks)
        last = symbols.pop().removesuffix(WORD_END)
        return [*((text, False) for text in symbols), (last, True)]

    def _encode_new_word(self, word: str) -> bytes:
        if word in self.unknown_words:
            ids = [UNK]
        else:
            ids = [number for piece in self._split(word) for number in self._piece_ids(piece)]
        return np.array(ids, self.id_dtype).tobytes()

    def _piece_ids(self, piece: _Piece) -> list[int]:
        """Return the id of a piece, or those of its characters if it is not in the vocabulary."""
        if piece in self._ids:
            return [self._ids[piece]]
        text, ends_word = piece
        characters = [*((character, False) for character in text[:-1]), (text[-1], ends_word)]
        return [self._ids.get(character, UNK) for character in characters]

    def encode_word(self, word: str) -> tuple[int, ...]:
        """Return the ids of one word."""
        return tuple(self.encode([word]))

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of a text that is already split into words."""
        encoded = b"".join(map(self._cache.__getitem__, words))
        return list(np.frombuffer(encoded, self.id_dtype).tolist())

    def encode_words(self, words: Iterable[str]) -> tuple[list[int], list[int]]:
        """Return the ids of a text that is split into words, and how many each word has."""
        encoded = list(map(self._cache.__getitem__, words))
        size = self.id_dtype.itemsize
        ids = np.frombuffer(b"".join(encoded), self.id_dtype).tolist()
        return ids, [len(word) // size for word in encoded]

    def encode_lines(self, lines: Iterable[str]) -> tuple[_Ids, npt.NDArray[np.int64]]:
        """Return the ids of all lines in one array, and where each starts (and the last one ends).

        White space separates words. Ids are uint16, or uint32 if the vocabulary is too large.
        """
        look_up, join = self._cache.__getitem__, b"".join
        encoded, starts = bytearray(), array("q", [0])
        for line in lines:
            encoded += join(map(look_up, line.split()))
            starts.append(len(encoded))
        ids = np.frombuffer(encoded, self.id_dtype)
        return ids, np.frombuffer(starts, np.int64) // self.id_dtype.itemsize

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words; the inverse of ``encode``.

        An unknown symbol becomes ``<unk>`` and ends its word; the other special symbols become
        nothing. Pieces at the end that do not end a word make a word, too.
        """
        words: list[str] = []
        text, pieces = "", self._pieces
        for number in ids:
            if not 0 <= number < len(pieces):
                raise ValueError(f"id {number} is not in a vocabulary of {len(self)} types")
            more, ends_word = pieces[number]
            text += more
            if ends_word:
                words.append(text)
                text = ""
        return [*words, text] if text else words

    def word_ids(self, ids: Iterable[int]) -> list[int]:
        """Return for each id the number of its word, among those that ``decode`` returns.

        A special symbol that decodes to nothing belongs to the word that is open, or to the next.
        """
        word_ids, number = [], 0
        for piece in ids:
            word_ids.append(number)
            number += self._pieces[piece][1]
        return word_ids

    def save(self, folder: Path) -> None:
        """Write ``codes.txt``, as subword-nmt does, and ``subwords.json`` with the rest."""
        description = json.dumps(self._description(), ensure_ascii=False, indent=0)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _CODES_FILE).write_bytes(self._codes())
        (folder / _DESCRIPTION_FILE).write_bytes(description.encode())

    def _codes(self) -> bytes:
        return "".join([_CODES_HEADER, *(f"{a} {b}\n" for a, b in self.merges)]).encode()

    def _description(self) -> dict[str, Any]:
        return {
            "version": _DESCRIPTION_VERSION,
            "codes_sha256": hashlib.sha256(self._codes()).hexdigest(),
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
            if description["codes_sha256"] != hashlib.sha256(codes).hexdigest():
                raise _unusable(codes_path, f"is not the file that {path.name} describes")
            pairs = (line.split(" ") for line in codes.decode().split("\n")[1:-1])
            merges = [(left, right) for left, right in pairs]
            subwords = cls(merges, description["alphabet"], description["unknown_words"])
        except OSError as error:
            raise _unusable(error.filename, f"cannot be read ({error.strerror})") from None
        except (ValueError, TypeError, KeyError):
            raise _unusable(path, "is damaged") from None
        if subwords._description() != description:
            raise _unusable(path, f"does not agree with {codes_path.name}")
        return subwords


def _unusable(path: Path | str, reason: str) -> DatasetError:
    return DatasetError(f"{path} {reason}; restore both files or prepare the dataset again.")
