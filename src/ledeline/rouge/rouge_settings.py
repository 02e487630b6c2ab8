"""What is scored: the options of ROUGE-1.5.5 that matter for headlines, and unknown words."""

from typing import Annotated, Literal

from ledeline.config.section import at_least, section


@section
class Settings:
    """How texts are compared; the defaults are ``-n 2 -m`` of the Perl script."""

    stem: Annotated[bool, "compare stems, as -m: Porter's rules and WordNet 2.0's exceptions"] = (
        True
    )
    weighted: Annotated[bool, "score ROUGE-W, too, with the weight 1.2, as -w 1.2"] = False
    limit_bytes: Annotated[
        int | None, "compare so many bytes of every text, as -b; 75 in DUC-2004", at_least(1)
    ] = None
    unknown: Annotated[
        Literal["keep", "drop", "strict"],
        "the words <unk>, <UNK> and UNK: keep scores them as they stand, drop takes them out of "
        "both texts, strict lets those of an output match nothing",
    ] = "keep"


DEFAULT = Settings()
