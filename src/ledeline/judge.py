"""Headlines in files, whoever wrote them: scored against references, and audited."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledeline import rouge
from ledeline.analysis import audit as audits
from ledeline.analysis import scoring
from ledeline.analysis.audit import Audit
from ledeline.analysis.significance import SEED
from ledeline.corpus.columns import read_columns_alike
from ledeline.progress import Progress, silent
from ledeline.rouge import Rouge
from ledeline.text import Profile


class Scored(NamedTuple):
    """The scores of a system."""

    scores: list[Rouge]  # of each pair
    found: dict[str, Any]  # what `ledeline score --json` prints


def score_files(
    outputs: str,
    references: Sequence[str],
    settings: rouge.Settings,
    *,
    compare: str | None = None,
    seed: int = SEED,
    progress: Progress = silent,
) -> Scored:
    """Score the headlines of a file; `compare` names the file of another system.

    Two systems are compared by F1, or by recall where texts are cut to a number of bytes.
    """
    names = [outputs, *references, *([] if compare is None else [compare])]
    texts, *others = read_columns_alike([(name, "headline") for name in names])
    wanted = list(zip(*others[: len(references)], strict=True))
    scores = rouge.score_all(texts, wanted, settings, progress)
    signature = rouge.signature(settings, len(references))
    found = scoring.as_dict(scores, scoring.mean_intervals(scores, seed), signature)
    if compare is not None:
        part: scoring.Part = "f1" if settings.limit_bytes is None else "recall"
        theirs = rouge.score_all(others[-1], wanted, settings, progress)
        differences = scoring.comparisons(scores, theirs, part, seed)
        found["compare"] = {"with": compare, "by": part} | {
            name: {"mean": mean[part], **differences[name]._asdict()}
            for name, mean in scoring.means(theirs).items()
        }
    return Scored(scores, found)


class Audited(NamedTuple):
    """The audits of systems by name, and the words they are of."""

    systems: dict[str, Audit]
    outputs: dict[str, list[list[str]]]
    references: list[list[str]]
    sources: list[list[str]] | None


def audit_files(
    outputs: Sequence[str], reference: str, source: str | None, profile: Profile | None
) -> Audited:
    """Audit the headlines of files; words are those of a profile, or what spaces part."""
    files = [(name, "headline") for name in (*outputs, reference)]
    columns = read_columns_alike([*files, (source, "lede")] if source is not None else files)
    words = [[audits.split(text, profile) for text in column] for column in columns]
    sources = None if source is None else words.pop()
    references = words.pop()
    written = dict(zip(_system_names(outputs), words, strict=True))
    systems = {name: audits.audit(one, references, sources) for name, one in written.items()}
    return Audited(systems, written, references, sources)


def _system_names(files: Sequence[str]) -> Sequence[str]:
    """What to call systems: the names of their files without suffix, where these differ."""
    names = [Path(file).name.partition(".")[0] for file in files]
    return names if len(set(names)) == len(names) else files
