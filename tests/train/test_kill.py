"""Killed by kill -9 at any moment and resumed, a run ends as one that was never killed."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledeline.config.toml import load, to_toml
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.train_config import TrainConfig

NUM_KILLS = 20


def nursery(config: Path, run: Path, seed: int) -> None:
    """Raise children that train, and kill them at random moments: a process of its own.

    It imports everything once, also what torch and the metrics log import late, and computes nothing,
    so that children can be forked from it and are killed while they train.
    """
    import torch
    import torch._dynamo

    with suppress(ImportError):
        from torch.utils import tensorboard  # noqa: F401
    from ledeline.train.loop import train

    settings, numbers, kills, longest = load(TrainConfig, config), random.Random(seed), 0, 0.3
    reached = set()
    while True:
        child = os.fork()
        if not child:
            torch.set_num_threads(1)
            train(settings, run, resume=True)
            os._exit(0)
        if kills < NUM_KILLS:
            time.sleep(numbers.uniform(0, longest))
            before = os.waitpid(child, os.WNOHANG)[0]
            if not before:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                kills += 1
                reached.update(Checkpoints(run / "checkpoints").steps()[-1:])
                # on a busy machine it takes longer to get anywhere
                longest = min(longest * 1.1, 0.6) if len(reached) >= 3 else longest * 1.15
                continue
            print(f"finished after {kills} kills", flush=True)
            return
        _, status = os.waitpid(child, 0)
        print(f"finished after {kills} kills with status {status}", flush=True)
        print(f"killed behind {len(reached)} different checkpoints", flush=True)
        return


def test_killed_at_20_moments_a_run_ends_with_the_same_bits(
    tmp_path: Path, tiny: TrainConfig, runs: Any
) -> None:
    import command  # here, for the nursery is run by itself

    config = tmp_path / "config.toml"
    longer = replace(tiny, train=replace(tiny.train, epochs=16, patience=16))
    often = replace(longer.run, checkpoint_every=2, report_every=1)  # each line is of one step
    config.write_text(to_toml(replace(longer, run=often)))
    whole_run = command.ledeline("train", config, "--run", tmp_path / "whole")
    assert whole_run.returncode == 0, whole_run.stderr
    script = [sys.executable, __file__, str(config), str(tmp_path / "killed"), "7"]
    shown = subprocess.run(script, capture_output=True, text=True, check=True)
    assert "finished after" in shown.stdout
    if f"finished after {NUM_KILLS} kills" not in shown.stdout:
        pytest.fail(f"the run ended before it could be killed so often: {shown.stdout}")
    checkpoints = re.search(r"behind (\d+) different", shown.stdout)
    assert checkpoints is not None
    assert int(checkpoints[1]) >= 3, "it was killed before it had done anything"
    whole, killed = (Checkpoints(tmp_path / run / "checkpoints") for run in ("whole", "killed"))
    assert whole.steps() == killed.steps()
    for step in whole.steps():
        one, other = whole.open(step), killed.open(step)
        assert one.state == other.state
        for name in ("model", "optimizer"):
            file = f"{name}.safetensors"
            assert (one.folder / file).read_bytes() == (other.folder / file).read_bytes()
    links = [(tmp_path / run / "best").readlink() for run in ("whole", "killed")]
    assert links[0] == links[1]
    assert runs.metrics(tmp_path / "whole") == runs.metrics(tmp_path / "killed")
    hidden = [path.name for path in tmp_path.rglob(".*")]
    assert not hidden, "something was left behind"


if __name__ == "__main__":
    nursery(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
