"""The errors and warnings a user can cause.

Each message is one sentence that names the file, line, key or value and says what to do next. The
command prints that sentence alone and exits with status 2; anything outside this family is a bug of
ours and keeps its traceback.
"""


class LedelineError(Exception):
    """Something the user gave cannot be used."""


class ConfigError(LedelineError):
    """A configuration file or an override of it is wrong."""


class ArgumentError(LedelineError, TypeError):
    """A function was called from Python with what it does not take."""


class CorpusError(LedelineError):
    """Text from outside cannot be read."""


class TrainingError(LedelineError):
    """A run cannot begin or go on."""


class DatasetError(LedelineError):
    """An encoded dataset is missing, damaged, of another version, or would be overwritten."""


class CheckpointError(LedelineError):
    """A checkpoint is missing, damaged, of another version, or of another run."""


class ModelError(LedelineError):
    """A model folder is missing, damaged or of another version."""


class ScoreError(LedelineError):
    """Headlines cannot be scored, audited or drawn as asked."""


# --- warnings; the command shows each as one line -------------------------------------------------


class RenamedWarning(FutureWarning):
    """An old name was used, which works for one more version."""


class UncheckedWarning(UserWarning):
    """Something the user gave was not checked."""
