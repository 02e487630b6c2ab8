"""Two hosts, as far as one machine can show them: two network namespaces joined by a cable.

Each has addresses and a loopback of its own, and nothing else can be reached from them.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import command
from ledeline.config.toml import to_toml
from ledeline.train.config import TrainConfig

pytestmark = pytest.mark.slow

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
CABLE = "cable"  # the name of each end of it
ADDRESSES = ("10.77.0.1", "10.77.0.2")
UNDISTURBED = ("config.toml", "--run", "undisturbed")
KILLED = ("config.toml", "--run", "killed")


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Host:
    """A network namespace with a working folder of its own."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, folder
        self.name = f"ledeline-{os.getpid()}-{number}"
        self.address = ADDRESSES[number]
        folder.mkdir()

    def plug(self) -> None:
        ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", CABLE)
        for device in ("lo", CABLE):
            ip("-n", self.name, "link", "set", device, "up")

    def pids(self) -> set[int]:
        return {int(word) for word in ip("netns", "pids", self.name).split()}

    def torchrun(self, meeting: list[str], *arguments: str) -> "subprocess.Popen[bytes]":
        """Start one of the two processes of `ledeline train`; what it says goes to `log`."""
        options = ["--nnodes=2", "--nproc-per-node=1", *meeting]
        command = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "--", "ledeline"]
        with (self.folder / "log").open("w") as log:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.name, *command, "train", *arguments],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | ENVIRONMENT | {"GLOO_SOCKET_IFNAME": CABLE},
            )

    def by_rank(self) -> list[str]:
        """How the hosts meet where each is told its number."""
        address = [f"--master-addr={ADDRESSES[0]}", "--master-port=29500"]
        return [f"--node-rank={self.number}", *address]

    def by_c10d(self) -> list[str]:
        """How they meet where torchrun gives the numbers, by the order of the addresses."""
        meeting = ["--rdzv-backend=c10d", "--rdzv-id=run", f"--local-addr={self.address}"]
        is_host = f"--rdzv-conf=is_host={int(self.number == 0)}"
        return [*meeting, is_host, f"--rdzv-endpoint={ADDRESSES[0]}:29400"]

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def remove(self) -> None:
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        ip("netns", "delete", self.name)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need Linux, root and the command ip")
    one, two = (Host(number, tmp_path / f"host-{number}") for number in (0, 1))
    with ExitStack() as stack:
        try:
            for host in (one, two):
                ip("netns", "add", host.name)
                stack.callback(host.remove)
            ends = ["name", CABLE, "netns", one.name], ["name", CABLE, "netns", two.name]
            ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
            one.plug()
            two.plug()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces can be made here: {error.stderr.strip()}")
        yield one, two


def test_two_hosts_train_as_one_and_outlive_a_kill(
    tmp_path: Path, tiny: TrainConfig, hosts: tuple[Host, Host], runs: Any
) -> None:
    one, two = hosts
    config = replace(
        tiny,
        train=replace(tiny.train, epochs=4, patience=4),
        run=replace(tiny.run, report_every=1),
    )
    for host in hosts:  # each has a dataset and a configuration of its own
        shutil.copytree(config.data.dataset, host.folder / "dataset")
        own = replace(config, data=replace(config.data, dataset=Path("dataset")))
        (host.folder / "config.toml").write_text(to_toml(own))
    alone = command.ledeline("train", "config.toml", "--run", "alone", cwd=one.folder)
    assert alone.returncode == 0, alone.stderr
    undisturbed, killed = one.folder / "undisturbed", one.folder / "killed"
    (two.folder / "killed").touch()  # a file where the run folder would be does no harm

    # The losses are those of one process, and only the leading one has a run folder.
    together = [host.torchrun(host.by_c10d(), *UNDISTURBED) for host in hosts]
    assert [process.wait(120) for process in together] == [0, 0], one.log + two.log
    assert "2 processes" in one.log
    expected = runs.metrics(one.folder / "alone")
    assert len(expected) >= 45
    runs.assert_losses_alike(runs.metrics(undisturbed), expected)
    assert not (two.folder / "undisturbed").exists()

    # The process of the second host is killed.
    together = [host.torchrun(host.by_c10d(), *KILLED) for host in hosts]
    deadline = time.monotonic() + 60
    while runs.num_steps(killed) < 20:
        assert time.monotonic() < deadline, one.log + two.log
        time.sleep(0.02)
    (worker,) = two.pids() - {together[1].pid}
    os.kill(worker, signal.SIGKILL)
    assert [process.wait(60) for process in together] == [1, 1]
    assert "ledeline: process 0 lost touch with another process of this run" in one.log

    # Both are started again, in the other of torchrun's two ways.
    together = [host.torchrun(host.by_rank(), *KILLED, "--resume") for host in hosts]
    assert [process.wait(120) for process in together] == [0, 0], one.log + two.log
    assert "resuming after step" in one.log
    assert runs.same(runs.weights(killed), runs.weights(undisturbed))
    assert runs.metrics(killed) == runs.metrics(undisturbed)
    assert (two.folder / "killed").is_file()
