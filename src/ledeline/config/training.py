"""The keys of `ledeline train` that every system has; `ledeline.train.train_config` has all."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from ledeline.config.search import DEVICE_DOC, Device
from ledeline.config.section import BadValue, above, at_least, below, section

BatchUnit: TypeAlias = Literal["pairs", "source_tokens", "words"]


@section
class DataConfig:
    """What to train on."""

    dataset: Annotated[Path, "Folder that `ledeline prepare` wrote, with splits train and valid."]
    pairs: Annotated[
        int | None, "Train on this many pairs, the first ones; none: on all.", at_least(1)
    ] = None


@section
class LoopConfig:
    """The training loop; the defaults are those of Table 2 of the paper."""

    batch_size: Annotated[
        int,
        "Pairs, source tokens or words per step, over all processes; see batch_unit.",
        at_least(1),
    ] = 256
    batch_unit: Annotated[
        BatchUnit,
        "What train.batch_size counts. pairs: a step learns so many headlines; source_tokens: as "
        "many as have so many tokens in their ledes, so that steps of long and of short ledes cost "
        "alike; words: it learns single words of headlines, each with the words before it. Only "
        "the system abs can do that.",
    ] = "pairs"
    equal_lengths: Annotated[
        bool, "Fill each batch with sources of one length, which is faster; false mixes lengths."
    ] = True
    similar_headlines: Annotated[
        bool,
        "Fill each batch with headlines of similar lengths too: less is padded, but a batch is "
        "less varied, and with small batches learning is slower.",
    ] = False
    clip_norm: Annotated[
        float | None, "Clip the gradient to this norm; 0 or none: no clipping.", at_least(0)
    ] = 5.0
    clip_value: Annotated[
        float | None,
        "Clip each value of the gradient to this size; 0 or none: no clipping.",
        at_least(0),
    ] = None
    label_smoothing: Annotated[
        float,
        "Label smoothing: this share of the target probability goes to all sub-words evenly. The "
        "loss per token is reported without it.",
        at_least(0),
        below(1),
    ] = 0.0
    divide_loss_by: Annotated[
        Literal["pairs", "tokens", "nothing"],
        "What the summed loss of a step is divided by: its number of pairs, its number of headline "
        "tokens, or nothing. The gradient is clipped after that.",
    ] = "pairs"
    epochs: Annotated[int, "Maximum number of epochs.", at_least(1)] = 15
    patience: Annotated[
        int, "Stop after this many epochs without a better validation loss.", at_least(1)
    ] = 2
    seed: Annotated[int, "Random seed of weights, batches and dropout.", at_least(0)] = 1
    start_from: Annotated[
        Path | None,
        "Start from the weights of this model, which must have the same sizes and sub-words, but "
        "may lack add-ons. A folder, shipped (the model that comes with ledeline), or the name of "
        "an installed model.",
    ] = None

    def __post_init__(self) -> None:
        if self.batch_unit == "source_tokens" and not self.equal_lengths:
            raise BadValue("batch_unit", self.batch_unit, "needs train.equal_lengths = true")
        if self.similar_headlines and (self.batch_unit == "words" or not self.equal_lengths):
            reason = "needs train.equal_lengths = true, and a batch_unit other than words"
            raise BadValue("similar_headlines", self.similar_headlines, reason)


@section
class ValidationConfig:
    """What is checked after each epoch."""

    headlines: Annotated[
        int,
        "Validation pairs to write headlines for, with greedy search, and to score.",
        at_least(0),
    ] = 500
    samples: Annotated[int, "How many of these headlines are shown.", at_least(0)] = 3


@section
class RunConfig:
    """Device, precision and checkpoints."""

    device: Annotated[Device, DEVICE_DOC] = "auto"
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        "Precision of matrix products; auto: bfloat16 on a GPU, float32 on a CPU.",
    ] = "auto"
    fast: Annotated[
        bool,
        "On a GPU: fused kernels and, in a single process with train.equal_lengths, steps captured "
        "as CUDA graphs; false: plain PyTorch.",
    ] = True
    checkpoint_minutes: Annotated[
        float, "Minutes between checkpoints; each epoch ends with one, too.", above(0)
    ] = 5.0
    checkpoint_every: Annotated[
        int, "Also write a checkpoint every so many steps; 0: only by time.", at_least(0)
    ] = 0
    keep_epochs: Annotated[
        int,
        "Keep the checkpoints of this many epochs beside the best and the last two.",
        at_least(0),
    ] = 0
    report_every: Annotated[int, "Steps between lines of metrics.", at_least(1)] = 100
