"""The tokenizer: a text profile with the sub-words that were learned in it.

Text becomes words by the profile, and words become ids by the sub-words; and back. A dataset, the
models trained on it and all that reads or writes their text share one tokenizer.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ledeline.core.errors import DatasetError, LedelineError, ModelError
from ledeline.core.manifest import checksum_matches
from ledeline.core.shipped import is_name, model_folder
from ledeline.text.profiles import PROFILES, Profile
from ledeline.text.subwords import Subwords

# What describes a folder that has a tokenizer, and the format that it says it has.
DATASET_FILE: Final = "dataset.json"
DATASET_FORMAT: Final = "ledeline-dataset"
MODEL_FILE: Final = "model.json"
MODEL_FORMAT: Final = "ledeline-model"


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """Text to words to sub-word ids, and back.

    The profile leaves the typographic marks alone that the sub-words know. Two tokenizers are equal
    if they read and write the same.
    """

    profile: Profile
    subwords: Subwords

    def __post_init__(self) -> None:
        object.__setattr__(self, "profile", self.profile.keeping_marks(self.subwords.alphabet))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        mine, others = self.subwords, other.subwords
        return self.profile is other.profile and (
            (mine.types, mine.merges, mine.unknown_words)
            == (others.types, others.merges, others.unknown_words)
        )

    @classmethod
    def load(cls, name: Path | str) -> Self:
        """The tokenizer of a dataset, or of a model, which may be given by its name."""
        folder = model_folder(name)
        if (folder / MODEL_FILE).exists():
            return cls.read(folder, _profile_name(folder / MODEL_FILE, MODEL_FORMAT, ModelError))
        if (folder / DATASET_FILE).exists():
            path = folder / DATASET_FILE
            return cls.read(folder, _profile_name(path, DATASET_FORMAT, DatasetError))
        raise DatasetError(f"{folder} is neither a dataset nor a model folder: {_lack(folder)}")

    @classmethod
    def read(cls, folder: Path, profile: str) -> Self:
        """The tokenizer of a folder whose text profile is known by name."""
        return cls(PROFILES[profile], Subwords.load(folder))

    @property
    def vocabulary_size(self) -> int:
        """How many sub-words there are."""
        return len(self.subwords)

    @property
    def types(self) -> tuple[str, ...]:
        """Each sub-word as people see it, by its id."""
        return self.subwords.types

    def words(self, text: str) -> list[str]:
        """Text -> words."""
        return self.profile.words(text)

    def headline_words(self, text: str) -> list[str]:
        """A headline -> the words that a model learns to write."""
        return self.profile.target_words(self.profile.words(text))

    def encode(self, words: Iterable[str]) -> list[int]:
        """Words -> ids."""
        return self.subwords.encode(words)

    def encode_word(self, word: str) -> tuple[int, ...]:
        """One word -> its ids."""
        return self.subwords.encode_word(word)

    def encode_words(self, words: Iterable[str]) -> tuple[list[int], list[int]]:
        """Words -> ids, and how many of them each word has."""
        return self.subwords.encode_words(words)

    def decode_words(self, ids: Iterable[int]) -> list[str]:
        """Ids -> words."""
        return self.subwords.decode(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Ids -> text."""
        return self.join(self.decode_words(ids))

    def word_ids(self, ids: Iterable[int]) -> list[int]:
        """For each id the number of its word, among those that `decode_words` gives."""
        return self.subwords.word_ids(ids)

    def join(self, words: Iterable[str]) -> str:
        """Words -> text."""
        return self.profile.join(words)

    def plain(self, words: Sequence[str]) -> Sequence[str]:
        """Words -> the same without joiner marks."""
        return self.profile.plain(words)

    def spaced(self, words: Iterable[str]) -> list[str]:
        """Words -> the same without joiner marks, each with the space that precedes it in text."""
        return self.profile.spaced(words)


def _lack(folder: Path) -> str:
    """What a folder lacks, or why a name is no model's."""
    if folder.exists() or not is_name(folder):
        return f"it has no {DATASET_FILE} and no {MODEL_FILE}"
    from ledeline.core.installed_models import not_installed

    return f"it does not exist, and {not_installed()}"


def _profile_name(path: Path, wanted_format: str, kind: type[LedelineError]) -> str:
    """The name of the text profile that a folder's description gives."""
    try:
        about: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise kind(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise kind(f"{path} is damaged") from None
    if not isinstance(about, dict) or about.get("format") != wanted_format:
        described = wanted_format.removeprefix("ledeline-")
        raise kind(f"{path} does not describe a {described} of ledeline")
    if "checksum" in about and not checksum_matches(about):
        raise kind(f"{path} was changed after it was written")
    name = about.get("profile")
    if name not in list(PROFILES):
        known = " and ".join(PROFILES)
        raise kind(f"{path} has the text profile {name}, but this ledeline knows {known}")
    return str(name)
