"""`ledeline`, and any program in Python, as a command, without two seconds of importing torch.

A process that has imported everything waits at a socket and forks a child for each command. The
child is a process of its own with its own arguments, folder, environment, streams and exit status,
so a test sees what a user would see. What an import costs or needs is tested in new processes.

Run as `ledeline` (see `shim`), this file asks that process, too: for commands in a shell.
"""

import json
import os
import socket
import sys

CONNECTION = "LEDELINE_TEST_COMMANDS"  # the variable with the path of the socket
PRELOADED = (
    "torch",
    "torch._dynamo",  # which the first optimizer imports
    "numpy",
    "pyarrow.parquet",
    "rich.console",
    "ledeline.evaluation.align",
    "ledeline.report",
    "ledeline.evaluation.significance",
    "ledeline.cli",
    "ledeline.evaluation.evaluate",
    "ledeline.inference.headliner",
    "ledeline.model.format.pack",
    "ledeline.data.prepare",
    "ledeline.train.loop",
)


def ask(path: str, words: list[str], cwd: str, environment: dict[str, str], *files: int) -> int:
    """Have a command run with these files as its standard streams, and give its exit status."""
    request = {"words": words, "cwd": cwd, "environment": environment}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"."], files)
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        return int(connection.recv(16))


# --- for tests ------------------------------------------------------------------------------------


def ledeline(*arguments, cwd=None, env=None, stdin=b""):  # type: ignore[no-untyped-def]
    """Run `ledeline` to its end; `env` adds to the environment. Warnings are errors in it."""
    environment = {"COLUMNS": "120", "PYTHONWARNINGS": "error", **(env or {})}
    return program("ledeline", *arguments, cwd=cwd, env=environment, stdin=stdin)


def program(*words, cwd=None, env=None, stdin=b""):  # type: ignore[no-untyped-def]
    """Run a program in Python by the path of its file, or `ledeline`, with arguments to its end."""
    import subprocess
    import tempfile

    words = [str(word) for word in words]
    where, path = str(cwd or os.getcwd()), _started()  # noqa: PTH109
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        files = [stream.fileno() for stream in (given, out, err)]
        status = ask(path, words, where, {**os.environ, **(env or {})}, *files)
        texts = [os.pread(file, 2**30, 0).decode() for file in files[1:]]
    return subprocess.CompletedProcess(words, status, *texts)


def shim() -> dict[str, str]:
    """An environment in which a shell's `ledeline` is this file."""
    folder = os.path.dirname(_started())  # noqa: PTH120
    search = os.pathsep.join([folder, os.path.dirname(sys.executable), os.environ["PATH"]])  # noqa: PTH120
    return {**os.environ, "PATH": search, CONNECTION: _started()}


_path = ""


def _started() -> str:
    """The path of the socket of a process that lives as long as this one."""
    global _path
    if not _path:
        import atexit
        import subprocess
        import tempfile

        folder = tempfile.TemporaryDirectory(prefix="ledeline-")
        _path = os.path.join(folder.name, "socket")  # noqa: PTH118
        with open(os.path.join(folder.name, "ledeline"), "w") as script:  # noqa: PTH118, PTH123
            script.write(f"#!/bin/sh\nexec '{sys.executable}' -ISE '{__file__}' -- \"$@\"\n")
        os.chmod(script.name, 0o755)  # noqa: PTH101
        command = [sys.executable, __file__, _path]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.read()  # until it listens, and closes it
        process.stdout.close()
        atexit.register(folder.cleanup)
        atexit.register(process.wait)
        atexit.register(process.stdin.close)  # which ends it
    return _path


# --- the process that forks -----------------------------------------------------------------------


def _serve(path: str) -> None:
    import select

    for name in PRELOADED:
        __import__(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:  # it was closed: whoever started this has gone
                return
            with listener.accept()[0] as connection:
                _answer(connection)


def _answer(connection: socket.socket) -> None:
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    request = b"".join(iter(lambda: connection.recv(2**16), b""))
    child = os.fork()
    if not child:
        _become(json.loads(request), files)
    for file in files:
        os.close(file)
    connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _become(request: dict, files: list[int]) -> None:  # type: ignore[type-arg]
    """Be the command, to its end."""
    import atexit
    import tempfile
    import warnings

    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = request["words"]
    warnings.simplefilter(os.environ.get("PYTHONWARNINGS", "default"))  # type: ignore[arg-type]
    tempfile.tempdir = None  # the environment says where
    status = _status()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def _status() -> int:
    import traceback

    try:
        _work()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _work() -> None:
    if sys.argv[0] == "ledeline":
        from ledeline.cli import main

        main()
    else:
        import runpy

        sys.path[0] = os.path.dirname(sys.argv[0])  # noqa: PTH120
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1] == "--":  # as a command of a shell
        environment, words = dict(os.environ), ["ledeline", *sys.argv[2:]]
        sys.exit(ask(environment[CONNECTION], words, os.getcwd(), environment, 0, 1, 2))  # noqa: PTH109
    _serve(sys.argv[1])
