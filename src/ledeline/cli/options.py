"""Options that several verbs have, each said once."""

from typing import Annotated, Literal, TypeAlias

import typer

# --- of the search ------------------------------------------------------------------------------

Beam: TypeAlias = Annotated[int, typer.Option(help="How many beginnings the search keeps.")]
MinLength: TypeAlias = Annotated[int, typer.Option(help="Sub-words of a headline at least.")]
MaxLength: TypeAlias = Annotated[int | None, typer.Option(help="Sub-words of a headline at most.")]
BlockNgrams: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="No run of so many sub-words twice in a headline; 0: off. As the model has it, if "
        "not given."
    ),
]
Unknown: TypeAlias = Annotated[
    Literal["replace", "keep", "forbid"],
    typer.Option(help="What becomes of a word that the model cannot spell."),
]
StopEarly: TypeAlias = Annotated[
    bool, typer.Option("--stop-early", help="End a search once no better headline can come.")
]

# --- of the model -------------------------------------------------------------------------------

Precision: TypeAlias = Annotated[
    Literal["auto", "float32", "float16", "int8"],
    typer.Option(help="Of the numbers of the model; float16 is for a GPU, int8 for a CPU."),
]
Device: TypeAlias = Annotated[
    Literal["auto", "cpu", "cuda"], typer.Option(help="auto: a GPU where there is one.")
]

# --- of test sets -------------------------------------------------------------------------------

SETS = "a table with columns lede and headline, or two text files, LEDES,HEADLINES."
LedeColumn: TypeAlias = Annotated[
    str, typer.Option("--lede", help="The column of the ledes, in tables.")
]
HeadlineColumn: TypeAlias = Annotated[
    str, typer.Option("--headline", help="The column of the headlines, in tables.")
]
NumWordPairs: TypeAlias = Annotated[
    int,
    typer.Option("--word-pairs", min=0, help="Pairs to take the table of aligned words from."),
]
SampleSeed: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Which pairs these are.")]

# --- of judgements ------------------------------------------------------------------------------

ScoreUnknown: TypeAlias = Annotated[
    Literal["keep", "drop", "strict"],
    typer.Option(
        help="How <unk> and UNK are scored; keep: as they stand, drop: left out, strict: none of "
        "an output matches."
    ),
]
Stem: TypeAlias = Annotated[bool, typer.Option(help="Compare stems, as the paper does.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print an object.")]
