"""The errors and warnings a user can cause.

Each message is one sentence that names the file, line, key or value, and says what to do next. The
command prints that sentence without a traceback and exits with status 2. Any other exception is a
bug of ours and keeps its traceback.
"""


class LedelineError(Exception):
    """Something that the user gave cannot be used."""


class ConfigError(LedelineError):
    """A configuration file or an override is wrong."""


class ArgumentError(LedelineError, TypeError):
    """A function was called from Python with a wrong argument."""


class CorpusError(LedelineError):
    """A file of text or a table cannot be read or written."""


class TrainingError(LedelineError):
    """A training run cannot start or continue."""


class DatasetError(LedelineError):
    """An encoded dataset is missing, damaged, of another version, or would be overwritten."""


class CheckpointError(LedelineError):
    """A checkpoint is missing, damaged, of another version, or of another run."""


class ModelError(LedelineError):
    """A model folder is missing, damaged or of another version."""


class NewerModelError(ModelError):
    """A model folder has what only a newer ledeline knows."""


class ScoreError(LedelineError):
    """Headlines cannot be scored, audited or plotted as asked."""


# --- warnings; the command shows each as one line -------------------------------------------------


class LedelineWarning(Warning):
    """Something the user should know; the message is one sentence."""


class RenamedWarning(LedelineWarning, FutureWarning):
    """An old name was used, which works for one more version."""


class LeftOutWarning(LedelineWarning, UserWarning):
    """A part of the work was left out, because an extra is not installed."""


class EngineWarning(LedelineWarning, UserWarning):
    """No fast engine knows a system, so that it writes headlines itself."""


class DeviceWarning(LedelineWarning, UserWarning):
    """A GPU may be there, and torch, which would use it, cannot be imported."""
