"""The verb `generate`, run as a command.

Most tests need no model: the driver puts a stand-in for `ledeline.inference.headliner` in its place; all else
is the real command. The last ones are with a model.
"""

import gzip
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from safetensors.torch import save_file

import command
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.format.model_folder import write_description
from ledeline.synth.newsroom import generate as generate_stories
from systems import encdec

DRIVER = """
import atexit, os, sys, time, types
from dataclasses import asdict
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.headline import Alignment, Candidate, HeadlineWarning, Headline
from ledeline.inference.options import Options

def headline(text, number, options):
    if text is None or not text.strip():
        return Headline(text, "", warnings=(HeadlineWarning("empty", f"text {number} is empty"),))
    words = text.split()
    best = " ".join(words[:3]).upper()
    others = tuple(Candidate(f"{best} {n}" if n else best, (), -n / 2) for n in range(options.search.n_best))
    rows = tuple(tuple(float(i == j) for i in range(len(words))) for j in range(len(words[:3])))
    alignment = Alignment(tuple(words), tuple(words[:3]), rows, None) if options.explain else None
    doubts = (Doubt(0, len(words[0]), words[0].upper(), "name", "x"),) if options.check else ()
    support = 0.25 if options.check else None
    return Headline(text, best, (), -0.5, others, alignment=alignment, support=support, doubts=doubts)

class Headliner:
    @classmethod
    def load(cls, *folders, precision="auto", device="auto"):
        if "SHOW" in os.environ:
            print("load", *folders, precision, file=sys.stderr)
        return cls()

    first_chunk_size = 64

    def generate_batch(self, texts, options=Options(), *, first=1):
        if "SHOW" in os.environ:
            print("options", asdict(options), file=sys.stderr)
        time.sleep(float(os.environ.get("SECONDS_A_WINDOW", 0)))
        return [headline(text, number, options) for number, text in enumerate(texts, first)]

module = types.ModuleType("ledeline.inference.headliner")
module.Options, module.Headliner = Options, Headliner
sys.modules["ledeline.inference.headliner"] = module

if "SHOW_MODULES" in os.environ:
    heavy = ("pyarrow", "numpy", "torch", "rich.console")
    say = lambda: print("loaded", [one for one in heavy if one in sys.modules], file=sys.stderr)
    atexit.register(say)

from ledeline.cli import main

main()
"""
COMMAND = [sys.executable, "-c", DRIVER, "generate"]
ENVIRONMENT = os.environ | {"COLUMNS": "120", "PYTHONWARNINGS": "error"}


def generate(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=ENVIRONMENT | environment,
    )


def started(*arguments: str | Path, **choices: Any) -> "subprocess.Popen[bytes]":
    choices = {"env": ENVIRONMENT} | choices
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stderr=subprocess.PIPE,
        # ignored in background jobs
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **choices,
    )


# -- texts in, lines out -----------------------------------------------------------------------


def test_texts_of_the_command_line() -> None:
    shown = generate("one two three four", "", "five")
    assert shown.stdout == b"ONE TWO THREE\n\nFIVE\n"
    assert shown.stderr == b"text 2: empty: text 2 is empty\n"
    assert shown.returncode == 0


@pytest.mark.parametrize("arguments", [[], ["-"], ["--input", "-"], ["--output", "-"]])
def test_standard_input_has_a_lede_a_line(arguments: list[str]) -> None:
    shown = generate(*arguments, stdin=b"one two three four\r\n\nb\xff\n\xc3\xa9t\xc3\xa9")
    assert shown.stdout == "ONE TWO THREE\n\n\nÉTÉ\n".encode()
    assert shown.stderr.splitlines() == [
        b"line 2: empty: text 2 is empty",
        b"standard input: line 3: not UTF-8: byte 0xff at byte 2",
    ]
    assert shown.returncode == 0


def test_nothing_in_nothing_out() -> None:
    shown = generate()
    assert (shown.stdout, shown.stderr, shown.returncode) == (b"", b"", 0)


def test_lines_are_utf8_whatever_the_terminal_is() -> None:
    shown = generate("é", PYTHONIOENCODING="ascii")
    assert shown.stdout == "É\n".encode()


def test_a_file_and_its_field(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,story\n1,one two three four\n2\n3,five\n")
    shown = generate("--input", "in.csv", "--field", "story", cwd=tmp_path)
    assert shown.stdout == b"ONE TWO THREE\n\nFIVE\n"
    assert shown.stderr == b"in.csv: line 3: 1 field, but the header has 2\n"


def test_a_spreadsheet_of_europe_keeps_how_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"\xef\xbb\xbfid;story\r\n1;one two, three four\r\n")
    options = ["--field", "story", "--output", "out.csv"]
    assert generate("--input", "in.csv", *options, cwd=tmp_path).stderr == b""
    made = (tmp_path / "out.csv").read_bytes()
    assert made == (
        b'\xef\xbb\xbf"id";"story";"headline"\r\n"1";"one two, three four";"ONE TWO, THREE"\r\n'
    )
    generate("--input", "in.csv", *options, "--resume", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == made


def test_the_format_of_a_file_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"n;x|lede\n1;2|one two\n")
    options = ["--format", "csv", "--delimiter", "bar"]
    assert generate("--input", "input", *options, cwd=tmp_path).stdout == b"ONE TWO\n"


@pytest.mark.parametrize("place", [[], ["-"]])
def test_the_format_of_standard_input_can_be_said(place: list[str]) -> None:
    shown = generate(*place, "--format", "csv", stdin=b'n;lede\r\n1;"one\r\ntwo"\r\nshort\r\n')
    assert shown.stdout == b"ONE TWO\n\n"
    assert shown.stderr == b"standard input: line 4: 1 field, but the header has 2\n"


def test_a_file_without_an_ending_has_a_lede_a_line(tmp_path: Path) -> None:
    (tmp_path / "ledes").write_text("one\n\nthree\n")
    assert generate("--input", "ledes", cwd=tmp_path).stdout == b"ONE\n\nTHREE\n"


def test_json_has_the_warnings_and_what_was_asked_for() -> None:
    shown = generate("--json", "--n-best", "2", "--explain", "one two", "")
    first, second = map(json.loads, shown.stdout.splitlines())
    assert [one["headline"] for one in first["alternatives"]] == ["ONE TWO", "ONE TWO 1"]
    assert [one["source"] for one in first["alignment"]["words"]] == ["one", "two"]
    assert second["warnings"] == [{"kind": "empty", "message": "text 2 is empty"}]
    assert shown.stderr == b""


def test_alternatives_stand_between_tabs() -> None:
    assert generate("a b", "c", "--n-best", "3").stdout == b"A B\tA B 1\tA B 2\nC\tC 1\tC 2\n"


def test_an_explanation_in_a_pipe_has_no_colour() -> None:
    shown = generate("--explain", "one two three four", "five six", "")
    assert b"\x1b" not in shown.stdout
    assert b"[four]" in shown.stdout
    assert len(shown.stdout.splitlines()) > 8
    assert shown.stdout.count(b"empty: text 3") == 1
    assert shown.stderr == b""


def test_many_bad_rows_are_counted() -> None:
    shown = generate(stdin=b"\xff\n" * 50)
    lines = shown.stderr.decode().splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 30 more bad rows"
    assert shown.stdout == b"\n" * 50


def test_options_reach_the_headliner() -> None:
    shown = generate(
        "x", "--beam=5", "--n-best=2", "--min-length=3", "--max-length=9", "--block-ngrams=4",
        "--recombine=3", "--stop-early", "--unknown=keep", "--explain", "--json", "--model=folder", "--precision=int8",
        SHOW="1",
    )  # fmt: skip
    load, options = shown.stderr.decode().splitlines()
    assert load == "load folder int8"
    search = {
        "beam": 5,
        "n_best": 2,
        "min_length": 3,
        "max_length": 9,
        "block_ngrams": 4,
        "recombine": 3,
        "keep_finished": False,
        "forbid_unknown": False,
        "stop_early": True,
    }
    assert f"{{'search': {search}, 'explain': True, 'replace_unknown': False, " in options
    untold = ("check", "rank", "constrain", "min_support")
    assert all(f"'{key}': None" in options for key in untold)  # the model decides


def test_options_of_the_check_reach_the_headliner() -> None:
    given = ["--check", "--rank=score", "--no-constrain", "--min-support=0.8"]
    shown = generate("x", *given, SHOW="1").stderr.decode()
    assert "'check': True, 'rank': 'score', 'constrain': False, 'min_support': 0.8" in shown
    shown = generate("x", "--no-check", "--constrain", SHOW="1").stderr.decode()
    assert "'check': False, 'rank': None, 'constrain': True, 'min_support': None" in shown


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.parquet"])
def test_a_table_has_the_support_where_it_is_asked_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.jsonl").write_text('{"lede": "one two", "n": 1}\n{"lede": "", "n": 2}\n')
    arguments = ["--input", "in.jsonl", "--output", name, "--support-column", "s"]
    assert generate(*arguments, cwd=tmp_path).returncode == 0
    made = (tmp_path / name).read_bytes()
    tables = {
        "out.csv": '"lede","n","headline","s"\n"one two","1","ONE TWO","0.25"\n"","2","",""\n',
        "out.tsv": "lede\tn\theadline\ts\none two\t1\tONE TWO\t0.25\n\t2\t\t\n",
        "out.jsonl": '{"lede": "one two", "n": 1, "headline": "ONE TWO", "s": 0.25}\n'
        '{"lede": "", "n": 2, "headline": "", "s": null}\n',
    }
    if name == "out.parquet":
        rows = pq.read_table(tmp_path / name).to_pylist()
        assert rows == [json.loads(line) for line in tables["out.jsonl"].splitlines()]
        return
    assert made == tables[name].encode()
    for length in range(len(made) - 20, len(made), 7):
        (tmp_path / name).write_bytes(made[:length])
        assert generate(*arguments, "--resume", cwd=tmp_path).returncode == 0
        assert (tmp_path / name).read_bytes() == made
    refused = generate(*arguments[:4], "--resume", cwd=tmp_path)  # without the column
    assert refused.returncode == 2
    assert b"that is not from this input" in refused.stderr
    assert (tmp_path / name).read_bytes() == made


def test_an_explanation_has_support_and_doubts() -> None:
    lines = generate("--check", "--explain", "one two three four").stdout.decode().splitlines()
    assert lines[1:3] == ["support 25 %", 'doubt (name): "ONE": x']


@pytest.mark.parametrize(
    ("unknown", "forbidden", "replaced"),
    [("replace", False, True), ("keep", False, False), ("forbid", True, False)],
)
def test_what_becomes_of_unknown_words(unknown: str, forbidden: bool, replaced: bool) -> None:
    shown = generate("x", f"--unknown={unknown}", SHOW="1").stderr.decode()
    assert shown.startswith("load auto\n")  # no folder stands for the model that is shipped
    assert f"'forbid_unknown': {forbidden}" in shown
    assert f"'replace_unknown': {replaced}" in shown


def test_what_is_not_needed_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("lede\na\n")
    for arguments in (["a"], ["--input", "in.csv"], ["--input", "in.csv", "--output", "out.csv"]):
        shown = generate(*arguments, cwd=tmp_path, SHOW_MODULES="1")
        assert shown.stderr == b"loaded []\n"


# -- as it comes -------------------------------------------------------------------------------


def test_each_line_of_a_pipe_is_answered_when_it_comes() -> None:
    with started(stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part, answer in ((b"one\nhalf ", b"ONE\n"), (b"a line\nlast", b"HALF A LINE\n")):
            process.stdin.write(part)
            process.stdin.flush()
            assert process.stdout.readline() == answer
        process.stdin.close()
        assert process.stdout.read() == b"LAST\n"
    assert process.returncode == 0


@contextmanager
def answered_once() -> Iterator[subprocess.Popen[bytes]]:
    """A command that has read a line of a pipe, has answered it, and waits for the next."""
    with started(stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ONE\n"
        yield process


def test_a_reader_that_goes_away_is_no_error() -> None:
    with answered_once() as process:
        process.stdout.close()
        process.stdin.write(b"two\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def on_a_terminal(*arguments: str, typed: tuple[bytes, ...] = ()) -> tuple[int, str]:
    """Run on a terminal of its own; type each line once the answer to the one before is there."""
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [*COMMAND, *arguments], ENVIRONMENT | {"TERM": "xterm"})
    shown = b""
    for line in typed:
        shown += awaited(terminal)
        os.write(terminal, line)
    while block := block_of(terminal):
        shown += block
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def awaited(terminal: int) -> bytes:
    """What is shown up to the first pause that has something before it."""
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            shown += block_of(terminal)
        elif shown:
            return shown
    raise AssertionError(f"nothing came after {shown!r}")


def block_of(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""


def test_on_a_terminal_each_line_is_answered_at_once() -> None:
    status, shown = on_a_terminal(typed=(b"one two\n", b"three\n", b"\x04"))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert status == 0
    assert plain.splitlines() == [
        "ledeline: reading one lede per line; Ctrl-D ends the input",
        "one two",  # the terminal's own echo
        "ONE TWO",
        "three",
        "THREE",
    ]
    assert "\x1b[1mONE TWO\x1b[0m" in shown


def test_on_a_terminal_alternatives_have_scores_and_warnings_lines() -> None:
    status, shown = on_a_terminal("one two", "", "--n-best", "2")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert status == 0
    assert plain.splitlines() == [
        "ONE TWO",
        "  -0.50  ONE TWO 1",
        "",
        "text 2: empty: text 2 is empty",
    ]


def test_on_a_terminal_doubted_words_are_underlined() -> None:
    status, shown = on_a_terminal("one two", "--check")
    assert status == 0
    assert "\x1b[1;4mONE\x1b[0m\x1b[1m TWO\x1b[0m" in shown


def test_a_file_has_a_bar_where_somebody_sees_it(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n" * 300)
    given, output = str(tmp_path / "in.txt"), str(tmp_path / "out.txt")
    status, shown = on_a_terminal("--input", given, "--output", output)
    assert status == 0
    assert "300/300" in shown
    assert (tmp_path / "out.txt").read_text() == "A\n" * 300
    assert "300/300" not in on_a_terminal("--input", given)[1]


# -- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.tsv", "out.parquet", "out.txt"])
def test_killed_and_resumed(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"n": n, "lede": f"lede {n} is here"}) + "\n" for n in range(900))
    )
    arguments = ["--input", tmp_path / "in.jsonl", "--output", tmp_path / name]
    slowly = ENVIRONMENT | {"SECONDS_A_WINDOW": "0.5"}
    grows = tmp_path / (".out.parquet.partial.jsonl" if name == "out.parquet" else name)
    with started(*arguments, env=slowly, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: grows.exists() and grows.stat().st_size > 0)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    refused = generate(*arguments)
    assert refused.returncode == 2
    assert b"continue it with --resume" in refused.stderr
    assert generate(*arguments, "--resume", SHOW="1").stderr.count(b"options") in (2, 3, 4)
    assert generate(*arguments[:3], tmp_path / f"again-{name}").returncode == 0
    if name == "out.parquet":
        assert pq.read_table(tmp_path / name).num_rows == 900
    assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def wait_for(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_name_the_way_on(tmp_path: Path, number: int, status: int) -> None:
    (tmp_path / "in.txt").write_text("a\n" * 900)
    slowly = ENVIRONMENT | {"SECONDS_A_WINDOW": "0.5"}
    arguments = ["--input", "in.txt", "--output", "out.txt"]
    with started(*arguments, cwd=tmp_path, env=slowly) as process:
        wait_for(lambda: (tmp_path / "out.txt").exists())
        process.send_signal(number)
        assert process.stderr is not None
        errors = process.stderr.read().decode()
    assert process.returncode == status
    found = re.fullmatch(
        r"ledeline: stopped after lede (\d+); run the same command with --resume to continue\n",
        errors,
    )
    assert found is not None
    assert (tmp_path / "out.txt").read_text() == "A\n" * int(found[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_ctrl_c_without_an_output() -> None:
    with answered_once() as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"ledeline: stopped after lede 1\n"
        process.stdin.close()
    assert process.returncode == 130


# -- what the user can cause -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["x", "--input", "in.txt"], "give ledes or --input, not both"),
        (["in.txt"], "in.txt is a file; to read its ledes, use --input in.txt"),
        (["a lede", "missing.txt"], "missing.txt is neither a lede nor an existing file"),
        (["--input", "in.csv", "--delimiter", "tab", "--format", "tsv"], "--delimiter tab: only CSV"),
        (["--input", "none.txt"], "none.txt: no such file"),
        (["--input", "in.doc"], "in.doc: .doc is not supported; save it as .txt"),
        (["--input", "in.csv"], "in.csv: no column is called 'lede'; name the column of the ledes"),
        (["--input", "in.csv", "--field", "stroy"], "there is no column 'stroy' (the nearest is 'story')"),
        (["--input", "in.txt", "--field", "x"], "in.txt: plain text has no column 'x'"),
        (["x", "--field", "x"], "--field x: only a table has columns"),
        (["x", "--resume"], "--resume continues an output file; name it with --output"),
        (["x", "--column", "c"], "--column c: only a table has columns"),
        (["x", "--column", "c", "--output", "out.txt"], "--column c: only a table has columns"),
        (["x", "--explain", "--output", "out.csv"], "--explain is for the terminal"),
        (["x", "--n-best", "2", "--output", "out.csv"], "--n-best 2: a table has one headline per row"),
        (["x", "--output", "in.csv"], "in.csv already exists"),
        (["x", "--output", "out.csv", "--column", "source"], "the table already has a column 'source'"),
        (["a\tb", "--output", "out.tsv"], "command line: line 1 has a tab"),
        (["x", "--output", "in.txt/out.csv"], "in.txt"),
        (["x", "-"], "- reads standard input; give ledes or -, not both"),
        (["x", "--beam", "0"], "beam = 0: must be at least 1"),
        (["x", "--no-check", "--rank", "support"], "rank = \"support\": needs check"),
        (["x", "--no-check", "--min-support", "0.5"], "min_support = 0.5: needs check"),
        (["x", "--support-column", "s"], "--support-column s: only a table has columns"),
        (["x", "--support-column", "s", "--output", "out.csv", "--no-check"], "--support-column s: needs --check"),
        (["x", "--support-column", "headline", "--output", "out.csv"], "--support-column headline: the headlines have"),
        (["x", "--support-column", "source", "--output", "out.csv"], "column 'source'; name another with --support-column"),
    ],
)  # fmt: skip
def test_what_the_user_can_cause_is_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "in.csv").write_text("id,story\n1,a\n")
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "in.doc").write_text("a\n")
    shown = generate(*arguments, cwd=tmp_path)
    assert shown.returncode == 2
    assert sentence in shown.stderr.decode()
    assert shown.stderr.startswith(b"ledeline: ")
    assert shown.stderr.count(b"\n") == 1
    assert shown.stdout == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.doc", "in.txt"]


@pytest.mark.parametrize("arguments", [["--unknown", "guess"], ["--precision", "int4"], ["--bean"]])
def test_wrong_usage(arguments: list[str]) -> None:
    shown = generate("x", *arguments)
    assert shown.returncode == 2
    assert b"Traceback" not in shown.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
def test_a_beam_that_does_not_fit_into_memory_is_one_sentence() -> None:
    words = [sys.executable, "-m", "ledeline", "generate", "--beam", "1000000", "Rain fell."]
    shell = ["bash", "-c", 'ulimit -v 3000000 && exec "$@"', "bash", *words]
    shown = subprocess.run(shell, capture_output=True, text=True)
    sentence = "ledeline: beam 1000000 for 1 text does not fit into memory\n"
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", sentence)


def test_a_closed_standard_output() -> None:
    shell = ["bash", "-c", '"$@" >&-', "bash", *COMMAND, "x"]
    shown = subprocess.run(shell, capture_output=True, text=True, env=ENVIRONMENT)
    sentence = "ledeline: standard output is closed; name a file with --output\n"
    assert (shown.returncode, shown.stderr) == (2, sentence)


def test_a_closed_standard_input() -> None:
    shell = ["bash", "-c", '"$@" <&-', "bash", *COMMAND]
    shown = subprocess.run(shell, capture_output=True, env=ENVIRONMENT)
    assert shown.returncode == 2
    assert b"standard input is closed" in shown.stderr


def test_a_packed_file_that_breaks_off_keeps_what_was_done(tmp_path: Path) -> None:
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"a\nb\n") + b"rubbish")
    shown = generate("--input", "in.txt.gz", "--output", "out.txt", cwd=tmp_path)
    assert shown.returncode == 2
    assert b"in.txt.gz: line 3: the file cannot be read beyond this point" in shown.stderr
    assert (tmp_path / "out.txt").read_text() == "A\nB\n"


# -- with a model ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, prepare_newsroom: Any) -> Path:
    """The folder of a small model that has learnt nothing."""
    folder = tmp_path_factory.mktemp("model")
    dataset = Dataset(prepare_newsroom(folder, 200, seed=1, merges=200, num_valid=10))
    system = encdec(embedding_size=8, hidden_size=8, layers=1)
    weights = build(system, dataset.tokenizer.vocabulary_size, seed=1).state_dict()
    write_description(folder, system, dataset.tokenizer)
    save_file({name: one.clone() for name, one in weights.items()}, folder / "model.safetensors")
    return folder


def ledeline(*arguments: str | Path, stdin: bytes = b"") -> bytes:
    shown = command.ledeline("generate", *arguments, stdin=stdin)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.encode()


def test_a_model_gives_the_same_headlines_in_all_formats(tmp_path: Path, model: Path) -> None:
    rows = [{"lede": story.lede + "\n"} for story in generate_stories(20, seed=2)]
    rows[3]["lede"] = ""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = [
        "--model",
        model,
        "--beam",
        "3",
        "--max-length",
        "8",
        "--input",
        tmp_path / "in.jsonl",
    ]
    headlines = ledeline(*options).decode().splitlines()
    assert [bool(one) for one in headlines] == [n != 3 for n in range(20)]
    objects = [json.loads(line) for line in ledeline(*options, "--json").splitlines()]
    assert [one["headline"] for one in objects] == headlines
    assert [one["source"] for one in objects] == [row["lede"] for row in rows]
    for output in ("out.jsonl", "out.parquet"):
        ledeline(*options, "--output", tmp_path / output)
    table = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert table == pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert table == [row | {"headline": one} for row, one in zip(rows, headlines, strict=True)]


def test_a_model_goes_on_where_it_was_cut(tmp_path: Path, model: Path) -> None:
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"lede": one.lede + "\n"}) + "\n" for one in generate_stories(9, seed=3))
    )
    path = tmp_path / "out.jsonl"
    options = ["--model", model, "--beam", "3", "--max-length", "8", "--explain", "--n-best", "2"]
    options += ["--json", "--input", tmp_path / "in.jsonl", "--output", path, "--device", "cpu"]
    ledeline(*options)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    ledeline(*options, "--resume")
    assert path.read_bytes() == whole


def test_a_model_explains_itself_in_a_pipe(model: Path) -> None:
    (story,) = generate_stories(1, seed=4)
    shown = ledeline("--model", model, "--max-length", "8", "--explain", story.lede).decode()
    assert "\x1b" not in shown
    assert story.lede.split()[0] in shown


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ledeline", "generate", "--model", str(tmp_path), "a lede"]
    shown = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert shown.returncode == 2
    assert f"{tmp_path} is not a model folder" in shown.stderr
    assert shown.stderr.count("\n") == 1
