"""The keys of `ledeline train` that every system has; `ledeline.train.config` puts all together."""

from pathlib import Path
from typing import Annotated, Literal

from ledeline.config.search import DEVICE_DOC, Device
from ledeline.config.section import above, at_least, below, section


@section
class DataConfig:
    """What to train on."""

    dataset: Annotated[Path, "Folder that `ledeline prepare` wrote, with splits train and valid."]
    pairs: Annotated[
        int | None, "Train on this many pairs, the first ones; none: on all.", at_least(1)
    ] = None


@section
class LoopConfig:
    """How it is learned: Table 2 of the paper."""

    batch_size: Annotated[int, "Pairs of a step, over all processes.", at_least(1)] = 256
    equal_lengths: Annotated[
        bool, "Batches of one source length each, which is faster; false mixes lengths."
    ] = True
    clip_norm: Annotated[
        float | None, "Largest norm of the gradient; none: no limit.", above(0)
    ] = 5.0
    clip_value: Annotated[
        float | None, "Largest value in the gradient; none: no limit.", above(0)
    ] = None
    label_smoothing: Annotated[
        float,
        "Share of the probability that all sub-words share in the loss.",
        at_least(0),
        below(1),
    ] = 0.0
    epochs: Annotated[int, "Most epochs.", at_least(1)] = 15
    patience: Annotated[
        int, "Epochs without a better validation loss after which training stops.", at_least(1)
    ] = 2
    seed: Annotated[int, "Of weights, batches and dropout.", at_least(0)] = 1
    start_from: Annotated[
        Path | None,
        "Model of the same sizes and sub-words (shipped: that of ledeline) whose weights are the "
        "start, instead of random ones.",
    ] = None


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
    """How it runs."""

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
    report_every: Annotated[int, "Steps between two lines of metrics.", at_least(1)] = 100
