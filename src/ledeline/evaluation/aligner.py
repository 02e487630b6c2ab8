"""Aligns the test sets of an evaluation by the system in PyTorch, or says why that is left out."""

import warnings
from functools import cached_property
from typing import TYPE_CHECKING

from ledeline.core.errors import LeftOutWarning
from ledeline.core.extras import MissingExtraError, needed_by
from ledeline.core.progress import Progress, no_progress
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.evaluation.alignment_json import AlignmentSummary
from ledeline.evaluation.evaluation_folder import SetFolder
from ledeline.evaluation.summary import Samples
from ledeline.inference.engines import Bundle, as_system

if TYPE_CHECKING:
    from ledeline.model.format.model_folder import ModelBundle


class Aligner:
    """Aligns test sets by one system, which is loaded once, when it is first needed."""

    def __init__(self, bundle: Bundle, samples: Samples, progress: Progress = no_progress) -> None:
        self._bundle, self._samples, self._progress = bundle, samples, progress

    def align(self, test_set: EvaluationSet) -> AlignmentSummary:
        """How a test set is aligned; without PyTorch only why it is not, with a warning."""
        if self._reason is not None:
            message = f"the alignment of {test_set.name} is left out: {self._reason}"
            warnings.warn(message, LeftOutWarning, stacklevel=3)
            return AlignmentSummary({}, None, (), self._reason)
        from ledeline.evaluation.set_alignment import alignment_summary

        return alignment_summary(
            self._loaded,
            test_set,
            num_word_pairs=self._samples.word_pairs,
            num_heat_maps=self._samples.heat_maps,
            seed=self._samples.seed,
            progress=self._progress,
        )

    def complete(self, folder: SetFolder, test_set: EvaluationSet) -> None:
        """Align a test set that was evaluated where its alignment had to be left out."""
        before = folder.read_alignment(len(test_set.ledes))
        if before is not None and before.left_out is not None:
            folder.write_alignment(self.align(test_set))

    @cached_property
    def _loaded(self) -> "ModelBundle":
        return as_system(self._bundle)

    @cached_property
    def _reason(self) -> str | None:
        """Why nothing can be aligned here, and what to do; None: it can."""
        try:
            with needed_by("alignment", "train"):
                import ledeline.evaluation.set_alignment  # noqa: F401 - it needs torch
        except MissingExtraError as missing:
            return f"{missing}, and evaluate again with --resume"
        except ModuleNotFoundError:  # a bug of ours
            raise
        except (ImportError, OSError) as error:
            said = str(error).partition("\n")[0]
            return (
                f"torch cannot be imported ({said}); install it again, and evaluate with --resume"
            )
        return None
