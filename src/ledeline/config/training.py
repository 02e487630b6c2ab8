"""The keys of `ledeline train`."""

from pathlib import Path
from typing import Annotated, Literal

from ledeline.config.section import above, at_least, section
from ledeline.config.system import GateConfig, ModelConfig, SpmConfig, SystemConfig


@section
class DataConfig:
    """What is learned from."""

    dataset: Annotated[Path, "Folder that `ledeline prepare` wrote, with splits train and valid."]
    pairs: Annotated[
        int | None, "Learn from the first so many pairs alone; none: from all.", at_least(1)
    ] = None


@section
class OptimizerConfig:
    """How it is learned: Table 2 of the paper."""

    batch_size: Annotated[int, "Pairs of a step, over all processes.", at_least(1)] = 256
    equal_lengths: Annotated[
        bool, "Batches of one source length each, which is faster; false mixes lengths."
    ] = True
    learning_rate: Annotated[float, "Of Adam, at the start.", above(0)] = 0.001
    halve_from: Annotated[
        int, "First epoch, counted from 1, with half the rate of the epoch before.", at_least(2)
    ] = 10
    clip: Annotated[float, "Largest norm of the gradient.", above(0)] = 5.0
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
    """What is looked at after each epoch."""

    headlines: Annotated[
        int, "Validation pairs whose headlines are written (greedily) and scored.", at_least(0)
    ] = 500
    samples: Annotated[int, "How many of them are shown.", at_least(0)] = 3


@section
class RunConfig:
    """How it runs."""

    device: Annotated[
        Literal["auto", "cpu", "cuda"], "auto: a GPU where there is one, else the CPU."
    ] = "auto"
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        "Of the products; auto: bfloat16 on a GPU, float32 on a CPU.",
    ] = "auto"
    fast: Annotated[
        bool,
        "On a GPU: fused kernels and, in a single process with train.equal_lengths, steps captured "
        "as CUDA graphs; false: plain PyTorch.",
    ] = True
    checkpoint_minutes: Annotated[
        float, "Minutes between two checkpoints; each epoch ends with one, too.", above(0)
    ] = 5.0
    checkpoint_every: Annotated[
        int, "Steps after which there is a checkpoint in any case; 0: no such number.", at_least(0)
    ] = 0
    keep_epochs: Annotated[
        int, "Epochs whose checkpoints are kept beside the best and the last two.", at_least(0)
    ] = 0
    report_every: Annotated[int, "Steps between two lines of metrics.", at_least(1)] = 100


@section
class TrainConfig:
    """Everything `ledeline train` needs."""

    data: Annotated[DataConfig, ""]
    model: Annotated[ModelConfig, ""] = ModelConfig()
    gate: Annotated[GateConfig, ""] = GateConfig()
    spm: Annotated[SpmConfig, ""] = SpmConfig()
    train: Annotated[OptimizerConfig, ""] = OptimizerConfig()
    validation: Annotated[ValidationConfig, ""] = ValidationConfig()
    run: Annotated[RunConfig, ""] = RunConfig()

    @property
    def system(self) -> SystemConfig:
        """The model alone."""
        return SystemConfig(model=self.model, gate=self.gate, spm=self.spm)
