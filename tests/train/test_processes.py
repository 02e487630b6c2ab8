"""However many processes train, and whatever happens to them, the run ends as that of one."""

import gc
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import distributed, nn

from ledeline.config import (
    DataConfig,
    LoopConfig,
    RunConfig,
    ValidationConfig,
)
from ledeline.config.toml import to_toml
from ledeline.core.errors import ConfigError, TrainingError
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.train import processes
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.optimizers import AdagradConfig, AdamConfig, OptimizerConfig, SgdConfig
from ledeline.train.processes import World, join_processes
from ledeline.train.schedules import WarmupCosineSchedule
from ledeline.train.train_config import TrainConfig

# Adam divides a gradient by its own size. Where a gradient is little but rounding, so is the step,
# which may yet be as long as any other, the rate; so the rate is what to measure by. At this one
# 3e-7 was the largest difference seen, at ten times the rate 4e-5.
RATE = 0.001
WEIGHTS = RATE / 20

LOST = "lost touch with another process"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
if sys.platform == "linux":
    ENVIRONMENT["GLOO_SOCKET_IFNAME"] = "lo"  # whatever the name of this machine resolves to


# --- a dataset, a configuration, a run of one process, all of them once ---------------------------


@pytest.fixture(scope="session")
def prepared(prepare_newsroom: Any) -> Callable[[Path, int], Path]:
    """Some 70 short pairs to train on."""

    def made(folder: Path, seed: int) -> Path:
        return prepare_newsroom(folder, 300, seed=seed, merges=2000, num_valid=60, longest=30)

    return made


@pytest.fixture(scope="module")
def config(
    tmp_path_factory: pytest.TempPathFactory, prepared: Callable[[Path, int], Path]
) -> TrainConfig:
    from systems import addons  # here, for the nursery runs this file by itself

    return TrainConfig(
        data=DataConfig(dataset=prepared(tmp_path_factory.mktemp("news"), 5)),
        system=EncDecConfig(embedding_size=6, hidden_size=8, dropout=0.3),
        addons=addons(sgate=True, spm=True),
        optimizer=AdamConfig(learning_rate=RATE),
        train=LoopConfig(batch_size=5, epochs=3),
        validation=ValidationConfig(headlines=4, samples=1),
        run=RunConfig(device="cpu", checkpoint_every=7, report_every=1),
    )


@pytest.fixture(scope="module")
def toml(config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("configs") / "config.toml"
    path.write_text(to_toml(config))
    return path


@pytest.fixture(scope="module")
def alone(toml: Path, nursery: "Nursery", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    assert nursery.together(1, folder, toml, "--run", folder / "run") == [0]
    assert train_state(folder / "run")["step"] >= 50
    return folder / "run"


# --- what a run left behind -----------------------------------------------------------------------


def train_state(run: Path) -> dict[str, Any]:
    """Where a run stands by its newest checkpoint, every byte of which is looked at."""
    checkpoints = Checkpoints(run / "checkpoints")
    found: dict[str, Any] = checkpoints.open(checkpoints.steps()[-1]).state["train_state"]
    return found


def assert_alike(runs: Any, run: Path, other: Path) -> None:
    """The same up to rounding: losses, norms, validation, the best step and the weights."""
    runs.assert_losses_alike(runs.metrics(run), runs.metrics(other))
    assert (run / "best").readlink() == (other / "best").readlink()
    for key in ("step", "position", "best_step", "finished"):
        assert train_state(run)[key] == train_state(other)[key]
    mine, yours = runs.weights(run), runs.weights(other)
    assert mine.keys() == yours.keys()
    assert max(float((mine[name] - yours[name]).abs().max()) for name in mine) < WEIGHTS


def assert_same(runs: Any, run: Path, other: Path) -> None:
    """The same to the last bit."""
    assert runs.metrics(run) == runs.metrics(other)
    assert train_state(run) == train_state(other)
    assert runs.same(runs.weights(run), runs.weights(other))


# --- processes that torchrun starts ---------------------------------------------------------------


class Launched:
    """`ledeline train` in two processes of torchrun, which write into a file."""

    def __init__(self, log: Path, *arguments: str | Path, patience: float = 0.1) -> None:
        """`patience`: seconds between two looks of torchrun, which then ends what is left."""
        self._log = log
        options = ["--standalone", "--local-addr=127.0.0.1", "--nproc-per-node=2"]
        options += [f"--monitor-interval={patience}"]
        command = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "--", "ledeline"]
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [*command, "train", *map(str, arguments)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=os.environ | ENVIRONMENT,
            )

    def __enter__(self) -> "Launched":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def output(self) -> str:
        return self._log.read_text()

    def wait(self) -> int:
        return self.process.wait(timeout=120)

    def worker(self, rank: int) -> int:
        """The id of a process, by Linux's own account of its parent and environment."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent != self.process.pid:
                    continue
                if f"RANK={rank}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    return int(folder.name)
            except OSError:
                continue
        raise AssertionError(f"no process of rank {rank}")


def until(happened: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def ours(output: str) -> str:
    """What our processes wrote, which torchrun's own report comes after."""
    return output.partition("torch/distributed/elastic")[0]


@pytest.fixture(scope="module")
def two(toml: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undisturbed run of two processes."""
    folder = tmp_path_factory.mktemp("two")
    with Launched(folder / "log", toml, "--run", folder / "run") as launched:
        assert launched.wait() == 0, launched.output
    return folder / "run"


class TestTorchrun:
    def test_two_processes_train_as_one(self, alone: Path, two: Path, runs: Any) -> None:
        assert_alike(runs, two, alone)
        assert [line["processes"] for line in runs.lines(two, "start")] == [2]

    def test_they_write_nothing_unasked(self, two: Path) -> None:
        log = (two.parent / "log").read_text()
        assert "cpu, 2 processes" in log
        assert "done after" in log
        for unwanted in ("Warning", "warn", "Traceback", "Error", "destroy_process_group"):
            assert unwanted not in log

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_stopped_and_robbed_of_a_process_they_end_with_the_same_bits(
        self, tmp_path: Path, toml: Path, two: Path, nursery: "Nursery", runs: Any
    ) -> None:
        run = tmp_path / "run"
        with Launched(tmp_path / "first", toml, "--run", run) as launched:
            until(lambda: runs.num_steps(run) >= 10)
            launched.process.send_signal(signal.SIGTERM)
            assert launched.wait() != 0  # torchrun's own word for a signal
        stopped = train_state(run)["step"]
        assert stopped == runs.num_steps(run) >= 10
        assert f"stopped at step {stopped}: SIGTERM" in launched.output

        arguments = [toml, "--run", run, "--resume"]
        with Launched(tmp_path / "second", *arguments, patience=2) as launched:
            until(lambda: runs.num_steps(run) >= stopped + 10)
            begun = time.monotonic()
            os.kill(launched.worker(1), signal.SIGKILL)
            assert launched.wait() != 0
        assert time.monotonic() - begun < 30
        assert f"process 0 {LOST}" in launched.output
        assert "Traceback" not in ours(launched.output)
        assert stopped < train_state(run)["step"] <= runs.num_steps(run)

        assert nursery.together(2, tmp_path, toml, "--run", run, "--resume") == [0, 0]
        assert_same(runs, run, two)


# --- processes without torchrun, which need not import torch each ---------------------------------


class Child(NamedTuple):
    pid: int
    log: Path


class Nursery:
    """Runs `ledeline train` in children of a process that has imported everything."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def _ask(self, **request: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, rank: int, size: int, port: int, folder: Path, *arguments: str | Path) -> Child:
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
        log = folder / f"log-{rank}"
        words = ["ledeline", "train", *map(str, arguments)]
        pid = self._ask(environment=environment | address, log=str(log), arguments=words)
        return Child(pid, log)

    def wait(self, child: Child, seconds: float = 120) -> int:
        """The exit status; below 0, the signal that ended it."""
        return self._ask(wait=child.pid, seconds=seconds)

    def together(self, size: int, folder: Path, *arguments: str | Path) -> list[int]:
        port = free_port()
        children = [self.start(rank, size, port, folder, *arguments) for rank in range(size)]
        return [self.wait(child) for child in children]


def raise_children() -> None:
    """What the nursery's process does: fork on request, wait on request."""
    from ledeline import cli

    torch.optim.Adam([nn.Parameter(torch.zeros(1))])  # which imports a good deal of torch, too
    with suppress(ImportError):
        from torch.utils import tensorboard  # noqa: F401
    gc.freeze()  # so that no child looks through all of it as it ends
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(status_of(request["wait"], request["seconds"]), flush=True)
            continue
        if pid := os.fork():
            print(pid, flush=True)
            continue
        os.environ.update(request["environment"])
        log = os.open(request["log"], os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(log, stream)
        warnings.simplefilter("error")
        sys.argv = request["arguments"]
        cli.main()


def status_of(pid: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 999  # it hung


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    ) as process:
        yield Nursery(process)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class TestEquality:
    def test_three_processes_some_of_them_without_a_pair_train_as_one(
        self,
        config: TrainConfig,
        tmp_path: Path,
        toml: Path,
        alone: Path,
        nursery: Nursery,
        runs: Any,
    ) -> None:
        batches = Batches(Dataset(config.data.dataset)["train"], size=5, seed=1)
        sizes = {batch.num_pairs for batch in batches.epoch(0)}
        assert {1, 2} <= sizes
        assert max(sizes) > 3
        run = tmp_path / "run"
        assert nursery.together(3, tmp_path, toml, "--run", run, "--train.epochs=1") == [0, 0, 0]
        runs.assert_losses_alike(runs.metrics(run), runs.metrics(alone)[: len(batches) + 1])

    @pytest.mark.parametrize(
        "changes",
        [
            ["--train.equal_lengths=false"],
            ["--sgate.enabled=false", "--spm.enabled=false"],
        ],
        ids=["mixed lengths", "EncDec"],
    )
    def test_so_do_other_systems_and_batches(
        self, tmp_path: Path, toml: Path, changes: list[str], nursery: Nursery, runs: Any
    ) -> None:
        for size in (1, 2):
            arguments = [toml, "--run", tmp_path / str(size), "--train.epochs=1", *changes]
            assert nursery.together(size, tmp_path, *arguments) == [0] * size
        assert_alike(runs, tmp_path / "2", tmp_path / "1")


class TestResuming:
    def test_time_is_up_for_all_at_one_step_and_one_process_goes_on(
        self, tmp_path: Path, toml: Path, alone: Path, nursery: Nursery, runs: Any
    ) -> None:
        run = tmp_path / "run"
        limit = ["--max-minutes", "0.005"]
        assert nursery.together(2, tmp_path, toml, "--run", run, *limit) == [0, 0]
        stopped = train_state(run)["step"]
        assert stopped == runs.num_steps(run)
        assert (
            f"stopped at step {stopped}: time limit of 0.005 minutes reached"
            in (tmp_path / "log-0").read_text()
        )
        assert nursery.together(1, tmp_path, toml, "--run", run, "--resume") == [0]
        assert_alike(runs, run, alone)

    def test_two_go_on_where_one_was_killed(
        self, tmp_path: Path, toml: Path, alone: Path, nursery: Nursery, runs: Any
    ) -> None:
        run = tmp_path / "run"
        child = nursery.start(0, 1, 0, tmp_path, toml, "--run", run)
        checkpoints = Checkpoints(run / "checkpoints")
        until(lambda: runs.num_steps(run) >= 10 and bool(checkpoints.steps()))
        os.kill(child.pid, signal.SIGKILL)
        assert nursery.wait(child) == -signal.SIGKILL
        assert nursery.together(2, tmp_path, toml, "--run", run, "--resume") == [0, 0]
        assert "resuming after step" in (tmp_path / "log-0").read_text()
        assert_alike(runs, run, alone)

    @pytest.mark.parametrize(
        "optimizer", [AdagradConfig(), SgdConfig(momentum=0.9, nesterov=True)], ids=repr
    )
    def test_every_process_gets_the_state_of_any_optimizer(
        self,
        tmp_path: Path,
        config: TrainConfig,
        optimizer: OptimizerConfig,
        nursery: Nursery,
        runs: Any,
    ) -> None:
        toml, schedule = tmp_path / "config.toml", WarmupCosineSchedule(warmup_steps=5)
        toml.write_text(to_toml(replace(config, optimizer=optimizer, schedule=schedule)))
        given = [toml, "--train.epochs=1"]
        assert nursery.together(2, tmp_path, *given, "--run", tmp_path / "whole") == [0, 0]
        parts = [*given, "--run", tmp_path / "parts"]
        for limit in (["--max-minutes=0"], ["--resume", "--max-minutes=0"], ["--resume"]):
            assert nursery.together(2, tmp_path, *parts, *limit) == [0, 0]
        assert_same(runs, tmp_path / "parts", tmp_path / "whole")


class TestFailure:
    """Where one process fails, the others do so within seconds and in a sentence."""

    def outcome(self, nursery: Nursery, children: list[Child]) -> list[tuple[int, str]]:
        ends = [(nursery.wait(child, 30), child.log.read_text()) for child in children]
        assert all("Traceback" not in log for _, log in ends), ends
        return ends

    def test_the_leading_process_refuses(
        self, tmp_path: Path, toml: Path, nursery: Nursery
    ) -> None:
        port, run = free_port(), tmp_path / "run"
        run.mkdir()
        (run / "taken").touch()
        children = [nursery.start(rank, 2, port, tmp_path, toml, "--run", run) for rank in (0, 1)]
        (status, said), (other_status, other_said) = self.outcome(nursery, children)
        assert (status, other_status) == (2, 2)
        assert f"{run} already exists" in said
        assert f"ledeline: process 1 {LOST}" in other_said

    def test_their_datasets_differ(
        self,
        config: TrainConfig,
        prepared: Callable[[Path, int], Path],
        tmp_path: Path,
        toml: Path,
        nursery: Nursery,
    ) -> None:
        other = prepared(tmp_path, 6)
        port, run = free_port(), tmp_path / "run"
        children = [
            nursery.start(rank, 2, port, tmp_path, toml, "--run", run, f"--data.dataset={dataset}")
            for rank, dataset in enumerate((config.data.dataset, other))
        ]
        for (status, said), dataset in zip(
            self.outcome(nursery, children), (config.data.dataset, other), strict=True
        ):
            assert status == 2
            assert f"differ in the dataset {dataset}; give all the same" in said
        assert not run.exists()

    def test_their_configurations_differ(
        self, tmp_path: Path, toml: Path, nursery: Nursery
    ) -> None:
        port, run = free_port(), tmp_path / "run"
        children = [
            nursery.start(rank, 2, port, tmp_path, toml, "--run", run, f"--system.hidden_size={h}")
            for rank, h in enumerate((8, 9))
        ]
        for status, said in self.outcome(nursery, children):
            assert status == 2
            assert "differ in the configuration; give all the same" in said

    def test_one_never_comes_and_the_other_is_told_to_stop(
        self, tmp_path: Path, toml: Path, nursery: Nursery
    ) -> None:
        port = free_port()
        child = nursery.start(0, 2, port, tmp_path, toml, "--run", tmp_path / "run")

        def waits() -> bool:
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", port)) == 0

        until(waits)
        os.kill(child.pid, signal.SIGTERM)
        assert nursery.wait(child, 10) == -signal.SIGTERM
        assert not (tmp_path / "run").exists()

    def test_a_process_is_killed_while_another_leads(
        self, tmp_path: Path, toml: Path, nursery: Nursery, runs: Any
    ) -> None:
        port, run = free_port(), tmp_path / "run"
        children = [nursery.start(rank, 2, port, tmp_path, toml, "--run", run) for rank in (0, 1)]
        until(lambda: runs.num_steps(run) >= 8 and bool(Checkpoints(run / "checkpoints").steps()))
        os.kill(children[0].pid, signal.SIGKILL)
        (status, _), (other_status, other_said) = self.outcome(nursery, children)
        assert (status, other_status) == (-signal.SIGKILL, 2)
        assert other_said.strip().startswith(f"ledeline: process 1 {LOST}")
        assert train_state(run)["step"] >= 7


# --- without any other process --------------------------------------------------------------------


@pytest.fixture
def no_torchrun(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


class TestAlone:
    def test_a_single_process_is_all_there_is(self, no_torchrun: pytest.MonkeyPatch) -> None:
        model = nn.Linear(2, 2)
        with join_processes("cpu") as world:
            assert (world.rank, world.size, world.device) == (0, 1, torch.device("cpu"))
            assert world.is_leader
            assert world.sum([0.1, 2, math.inf]) == [0.1, 2, math.inf]
            assert world.any(True)
            assert not world.any(False)
            world.require_same("anything", "nothing")
            assert world.wrap(model) is model
            assert not distributed.is_initialized()

    def test_only_the_first_leads(self) -> None:
        ranks = [World(rank, 3, torch.device("cpu")) for rank in range(3)]
        assert [world.is_leader for world in ranks] == [True, False, False]

    def test_half_an_address_is_refused(self, no_torchrun: pytest.MonkeyPatch) -> None:
        no_torchrun.setenv("WORLD_SIZE", "2")
        no_torchrun.setenv("RANK", "0")
        sentence = r"WORLD_SIZE = 2 .* MASTER_ADDR, MASTER_PORT is not set"
        with pytest.raises(ConfigError, match=sentence), join_processes("cpu"):
            pass

    def test_one_that_meets_nobody_says_so(self, no_torchrun: pytest.MonkeyPatch) -> None:
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        for name, value in (address | {"RANK": "0", "WORLD_SIZE": "2"}).items():
            no_torchrun.setenv(name, value)
        no_torchrun.setattr(processes, "JOIN_TIMEOUT", timedelta(seconds=0.3))
        handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        sentence = r"process 0 did not meet .* docs/scale\.md"
        with pytest.raises(TrainingError, match=sentence), join_processes("cpu"):
            pass
        assert not distributed.is_initialized()
        assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers

    @pytest.mark.parametrize(
        ("error", "raised"),
        [
            (None, None),
            (RuntimeError("gloo: connection closed"), TrainingError),
            (ConfigError("something else"), ConfigError),
            (KeyboardInterrupt(), KeyboardInterrupt),
        ],
        ids=["well", "lost", "failed", "stopped"],
    )
    def test_whatever_happens_the_connection_is_closed(
        self,
        error: BaseException | None,
        raised: type[BaseException] | None,
        no_torchrun: pytest.MonkeyPatch,
    ) -> None:
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            no_torchrun.setenv(name, "1")
        no_torchrun.setenv("WORLD_SIZE", "2")
        backends: list[str] = []
        closed: list[bool] = []
        no_torchrun.setattr(processes, "_join", backends.append)
        no_torchrun.setattr(distributed, "get_rank", lambda: 1)
        no_torchrun.setattr(distributed, "is_initialized", lambda: True)
        no_torchrun.setattr(distributed, "destroy_process_group", lambda: closed.append(True))
        with pytest.raises(raised) if raised else nullcontext(), join_processes("cpu") as world:
            assert (world.rank, world.size, world.is_leader) == (1, 2, False)
            if error is not None:
                raise error
        assert (backends, closed) == (["gloo"], [True])

    @pytest.mark.parametrize(
        "error",
        [
            distributed.DistBackendError("NCCL error"),
            distributed.DistNetworkError("reset"),
            distributed.DistStoreError("wait timeout"),
            RuntimeError("[/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed"),
        ],
    )
    def test_a_lost_connection_is_told_as_one(
        self, error: RuntimeError, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RANK", "3")
        sentence = f"process 3 {LOST} .* with --resume"
        with (
            pytest.raises(TrainingError, match=sentence),
            processes._connection_errors(processes.LOST),
        ):
            raise error

    def test_no_other_error_is(self) -> None:
        with (
            pytest.raises(RuntimeError, match="mat1"),
            processes._connection_errors(processes.LOST),
        ):
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


class TestDevice:
    @pytest.fixture(autouse=True)
    def gpus(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
        def there_are(number: int) -> None:
            monkeypatch.setattr(torch.cuda, "is_available", lambda: number > 0)
            monkeypatch.setattr(torch.cuda, "device_count", lambda: number)

        return there_are

    def test_auto_takes_a_gpu_where_there_is_one(self, gpus: Callable[[int], None]) -> None:
        gpus(0)
        assert processes._device("auto", 0) == torch.device("cpu")
        gpus(2)
        assert processes._device("auto", 1) == torch.device("cuda", 1)
        assert processes._device("cuda", 0) == torch.device("cuda", 0)
        assert processes._device("cpu", 0) == torch.device("cpu")

    def test_no_gpu_is_refused_where_one_is_asked_for(self, gpus: Callable[[int], None]) -> None:
        gpus(0)
        with pytest.raises(ConfigError, match=r"run\.device = cuda: torch finds no GPU here"):
            processes._device("cuda", 0)

    @pytest.mark.parametrize("wanted", ["auto", "cuda"])
    def test_each_process_has_a_gpu_of_its_own(
        self, wanted: str, gpus: Callable[[int], None]
    ) -> None:
        gpus(2)
        with pytest.raises(ConfigError, match=r"process 2 .* there are 2; .* --nproc-per-node"):
            processes._device(wanted, 2)


if __name__ == "__main__":
    raise_children()
