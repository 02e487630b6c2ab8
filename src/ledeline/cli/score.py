"""The verbs `score` and `audit`, which take the headlines of any system."""

import json
from pathlib import Path
from typing import Annotated, Literal

from ledeline.cli.command import progress_bar, refuse_input, refuse_mixture, write
from ledeline.cli.options import AsJson, ScoreUnknown, Stem
from ledeline.cli.parameters import Argument, Option
from ledeline.core.errors import ConfigError

_OUTPUTS = "Headlines, one per line; or a table: its column headline, or FILE:COLUMN."
_REFERENCES = "Reference headlines, in the same order and form."


def score(
    outputs: Annotated[str, Argument(metavar="OUTPUTS", help=_OUTPUTS)],
    reference: Annotated[
        list[str],
        Option("--reference", "-r", metavar="FILE", help=f"{_REFERENCES} Can be repeated."),
    ],
    compare: Annotated[
        str | None,
        Option(metavar="FILE", help="Headlines of another system. Tests the difference."),
    ] = None,
    as_json: AsJson = False,
    per_pair: Annotated[
        str | None,
        Option(metavar="FILE", help="Write the F1 of each pair as TSV. - prints it."),
    ] = None,
    limit_bytes: Annotated[
        int | None,
        Option(
            "--bytes", min=1, help="Compare only the first bytes of each text; 75 for DUC-2004."
        ),
    ] = None,
    stem: Stem = True,
    weighted: Annotated[bool, Option("--rouge-w", help="Also compute ROUGE-W.")] = False,
    unknown: ScoreUnknown = "keep",
    seed: Annotated[int, Option(min=0, help="Random seed of the resampling.")] = 12345,
) -> None:
    """Score headlines against references with ROUGE.

    The scores are those of ROUGE-1.5.5, to the last digit. Prints means with 95 % intervals. With
    --compare it also prints the difference of two systems and its significance. See
    docs/evaluation.md.
    """
    from ledeline import rouge
    from ledeline.evaluation.scoring import per_pair_lines, score_files

    refuse_mixture(as_json, per_pair, "--per-pair")
    settings = rouge.Settings(
        stem=stem, weighted=weighted, limit_bytes=limit_bytes, unknown=unknown
    )
    with progress_bar(wanted=True) as progress:
        scored = score_files(
            outputs, reference, settings, compare=compare, seed=seed, progress=progress
        )
    if per_pair is not None:
        write(per_pair, per_pair_lines(scored.scores), [outputs, *reference, compare or ""])
    if as_json:
        print(json.dumps(scored.summary))
    elif per_pair != "-":
        from rich.console import Console

        from ledeline.cli.views.scores import score_table

        Console().print(score_table(outputs, scored.summary), soft_wrap=True)


def audit(
    outputs: Annotated[list[str], Argument(metavar="OUTPUTS", help=_OUTPUTS)],
    reference: Annotated[str, Option("--reference", "-r", metavar="FILE", help=_REFERENCES)],
    source: Annotated[
        str | None,
        Option(
            "--source",
            "-s",
            metavar="FILE",
            help="Ledes, one per line; or a table: its column lede.",
        ),
    ] = None,
    profile: Annotated[
        Literal["spaces", "paper", "natural"],
        Option(help="How to split words: at spaces, or with a text profile."),
    ] = "spaces",
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Also check headlines against --source: their support, and doubts by kind. Loads "
            "the verifier that comes with ledeline.",
        ),
    ] = False,
    worst: Annotated[int, Option(min=0, help="Number of worst examples to show per kind.")] = 3,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    per_pair: Annotated[
        str | None,
        Option(metavar="FILE", help="Write the counts of each headline as TSV. - prints them."),
    ] = None,
    figure: Annotated[
        Path | None,
        Option(metavar="FILE", help="Draw the histograms to a .png or .svg file."),
    ] = None,
) -> None:
    """Count repeating, lacking and irrelevant words in headlines.

    Several systems are shown side by side. Irrelevant words are counted only with --source; with
    --check, doubts are counted, too. See docs/evaluation.md.
    """
    from ledeline.evaluation import audit as audits
    from ledeline.evaluation.figures import picture_format, save
    from ledeline.text.profiles import PROFILES

    refuse_mixture(as_json, per_pair, "--per-pair")
    if figure is not None:
        picture_format(figure)
    if check and source is None:
        raise ConfigError("--check needs the ledes; name their file with --source")
    if per_pair is not None and len(outputs) > 1:
        raise ConfigError("--per-pair takes the headlines of one system; several files are given")
    with progress_bar(wanted=check) as progress:
        audited = audits.audit_files(
            outputs, reference, source, PROFILES.get(profile), check=check, progress=progress
        )
    systems = audited.systems
    if per_pair is not None:
        ((name, one),) = systems.items()
        lines = audits.per_pair_lines(one, audited.checks.get(name))
        write(per_pair, lines, [*outputs, reference, source or ""])
    if figure is not None:
        from ledeline.evaluation.histogram import odd_figure

        save(odd_figure(systems), refuse_input(figure, [*outputs, reference, source or ""]))
    if as_json:
        found = audited.as_dict()
        print(json.dumps(found if len(found) > 1 else next(iter(found.values()))))
    elif per_pair != "-":
        from rich.console import Console

        from ledeline.cli.views.audit import audit_tables

        tables = audit_tables(systems, audited.texts, audited.check_counts, num_examples=worst)
        Console().print(tables)
