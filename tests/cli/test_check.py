"""The verb `check`, run as a command, and `ledeline.check`."""

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import ledeline
from command import ledeline as command
from ledeline.inference.checks.doubt import DOUBT_KINDS
from pages import ROOT

LEDE = "About 282 million people went hungry last year, the agency said."
WRONG = "28m people went hungry"


def check(*arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None) -> CompletedProcess:  # type: ignore[type-arg]
    return command("check", *arguments, stdin=stdin, cwd=cwd)  # type: ignore[no-any-return]


def test_json_is_one_object() -> None:
    shown = check(LEDE, WRONG, "--json")
    assert (shown.returncode, shown.stderr, shown.stdout.count("\n")) == (0, "", 1)
    found = json.loads(shown.stdout)
    assert list(found) == ["lede", "headline", "support", "doubts"]
    assert (found["lede"], found["headline"]) == (LEDE, WRONG)
    assert 0 <= found["support"] <= 1
    assert found["doubts"] == [
        {"start": 0, "end": 3, "words": "28m", "kind": "number", "why": "the lede has 282 million"}
    ]


def test_python_says_the_same() -> None:
    found = ledeline.check(LEDE, WRONG)
    assert isinstance(found, ledeline.Check)
    assert all(isinstance(one, ledeline.Doubt) for one in found.doubts)
    assert json.loads(check(LEDE, WRONG, "--json").stdout) == {
        "lede": LEDE,
        "headline": WRONG,
        **found.as_dict(),
    }


def test_people_read_percent_words_kind_and_why() -> None:
    lines = check(LEDE, WRONG).stdout.splitlines()
    support = ledeline.check(LEDE, WRONG).support or 0
    assert lines[:3] == [
        WRONG,
        f"support {100 * support:.0f} %",
        'doubt (number): "28m": the lede has 282 million',
    ]


def test_a_pair_without_words_says_so() -> None:
    shown = check("", WRONG, "--json")
    found = json.loads(shown.stdout)
    assert (found["support"], found["doubts"]) == (None, [])
    assert shown.stderr == "ledeline: empty: the lede has no words\n"
    assert "empty: the lede has no words" in check("", WRONG).stdout


PAIRS = [{"lede": LEDE, "headline": WRONG, "id": 7}, {"lede": LEDE, "headline": None, "id": 8}]
LINES = "".join(json.dumps(one) + "\n" for one in PAIRS).encode()


@pytest.mark.parametrize("arguments", [[], ["--input", "-"], ["--output", "-"]])
def test_standard_input_has_objects(arguments: list[str]) -> None:
    shown = check("--json", *arguments, stdin=LINES)
    first, second = map(json.loads, shown.stdout.splitlines())
    assert first == json.loads(check(LEDE, WRONG, "--json").stdout)
    assert second == {"lede": LEDE, "headline": "", "support": None, "doubts": []}
    assert shown.stderr == "line 2: empty: the headline has no words\n"


def test_a_table_is_checked_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(LINES)
    arguments = ["--input", "in.jsonl", "--output", "out.jsonl"]
    shown = check(*arguments, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (0, "")
    assert shown.stderr == "line 2: empty: the headline has no words\n"
    made = (tmp_path / "out.jsonl").read_bytes()
    first, second = map(json.loads, made.splitlines())
    assert first == PAIRS[0] | ledeline.check(LEDE, WRONG).as_dict()
    assert second == PAIRS[1] | {"support": None, "doubts": None}
    assert "continue it with --resume" in check(*arguments, cwd=tmp_path).stderr
    (tmp_path / "out.jsonl").write_bytes(made[:-9])
    assert check(*arguments, "--resume", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out.jsonl").read_bytes() == made


def test_too_little_support_is_status_1() -> None:
    assert check(LEDE, WRONG, "--min-support", "0").returncode == 0
    shown = check(LEDE, WRONG, "--min-support", "1", "--json")
    assert shown.returncode == 1
    assert json.loads(shown.stdout)["headline"] == WRONG  # it is still printed
    assert shown.stderr == "ledeline: 1 of 1 pair has less support than 1\n"
    shown = check("--json", "--min-support", "0", stdin=LINES)  # the second cannot be checked
    assert shown.returncode == 1
    assert shown.stderr.endswith("ledeline: 1 of 2 pairs have less support than 0\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a lede"], "a headline is missing: give LEDE and HEADLINE"),
        (["a lede", "b", "--input", "in.csv"], "give a lede and a headline, or --input, not both"),
        (["in.csv", "b"], "in.csv is not a lede; to check the pairs of a file, use --input in.csv"),
        (["a lede", "b", "--output", "o.csv"], "--output o.csv: is for the pairs of an --input"),
        (["a lede", "b", "--resume"], "--resume continues an output file"),
        (["--input", "in.txt"], "in.txt: pairs come from a table"),
        (["--input", "none.csv"], "none.csv: no such file"),
        (["--input", "in.csv"], "in.csv: there is no column 'headline' (the nearest is 'headlin')"),
        (["--input", "in.csv", "--lede", "x"], "there is no column 'x'"),
        (["--input", "in.csv", "--output", "o.txt"], "o.txt: name a table"),
        (["--input", "in.csv", "--output", "o.csv", "--json"], "--json prints"),
        (["--input", "in.csv", "--output", "in.csv"], "in.csv is the input"),
        (
            ["--input", "in.csv", "--output", "o.csv", "--resume", "--min-support", "0.5"],
            "--min-support 0.5: with --resume",
        ),
    ],
)
def test_what_the_user_can_cause_is_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "in.csv").write_text("lede,headlin\na,b\n")
    (tmp_path / "in.txt").write_text("a\n")
    shown = check(*arguments, cwd=tmp_path)
    assert shown.returncode == 2
    assert sentence in shown.stderr
    assert shown.stderr.startswith("ledeline: ")
    assert shown.stderr.count("\n") == 1
    assert shown.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.txt"]


def test_wrong_usage() -> None:
    for arguments in (["--min-support", "2"], ["--format", "txt"]):
        shown = check(LEDE, WRONG, *arguments)
        assert shown.returncode == 2
        assert "Traceback" not in shown.stderr


def test_every_kind_is_on_the_page() -> None:
    page = (ROOT / "docs" / "check.md").read_text()
    for kind, sentence in DOUBT_KINDS.items():
        assert f"| `{kind}` | {sentence} |" in page
