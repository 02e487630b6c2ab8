"""What `pip install ledeline` alone must do: text is read and written without NumPy and the like."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = ("torch", "numpy", "pyarrow", "safetensors", "jinja2")
UNIX = ("fcntl", "grp", "pwd", "resource", "termios")  # which Python has on Unix alone


def without(names: tuple[str, ...]) -> str:
    """Code after which these modules are missing."""
    return f"""
import importlib.abc
import sys


class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{fullname!r}}", name=fullname)


sys.meta_path.insert(0, Missing())
"""


WITHOUT = without(MISSING)

TOKENIZER = """
from ledeline.core.shipped import SHIPPED
from ledeline.text.tokenizer import Tokenizer

tokenizer = Tokenizer.load(SHIPPED)
words = tokenizer.words("Shares of Café Nero’s owner fell 3.5% in 2019.")
ids = tokenizer.encode(words)
assert tokenizer.decode(ids) == "Shares of Café Nero's owner fell 3.5% in 2019.", ids
assert tokenizer.encode_words(words) == (ids, [len(tokenizer.encode_word(one)) for one in words])
tokenizer.subwords.save(folder)
assert type(tokenizer.subwords).load(folder).types == tokenizer.types
"""

TABLES = """
import os

from ledeline.corpus.inputs import FileInput, StreamInput
from ledeline.corpus.records import InputLayout
from ledeline.inference.headline import Headline
from ledeline.inference.outputs import RecordResult
from ledeline.inference.outputs.open_output import open_output

LEDES = ["Rain fell, and more is to come.", 'Mayor says "no" to taxes.']
FILES = {
    "given.txt": "".join(f"{lede}\\n" for lede in LEDES),
    "given.csv": 'id,lede\\n1,"Rain fell, and more is to come."\\n2,"Mayor says ""no"" to taxes."\\n',
    "given.tsv": "id\\tlede\\n" + "".join(f"{n}\\t{lede}\\n" for n, lede in enumerate(LEDES)),
    "given.jsonl": '{"lede": "Rain fell, and more is to come."}\\n'
    '{"lede": "Mayor says \\\\"no\\\\" to taxes."}\\n',
}
for name, text in FILES.items():
    (folder / name).write_text(text)
    given = FileInput(folder / name)
    assert [record.text for record in given.records(whole=True)] == LEDES, name
    for ending in ("txt", "csv", "tsv", "jsonl"):
        path = folder / f"{name}-written.{ending}"
        with open_output(path, given) as output:
            for record in given.records(whole=True):
                output.write([RecordResult(record, Headline(record.text, "Rain"))])
            output.finish()
        if ending != "txt":
            written = FileInput(path, "headline").records(whole=True)
            assert [record.text for record in written] == ["Rain", "Rain"], path
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    stream = StreamInput(read, layout=InputLayout(name.partition(".")[2]))
    assert [record.text for record in stream.records(whole=True)] == LEDES, name
"""

PAIRS = """
import io
import sys

from ledeline.core.errors import CorpusError
from ledeline.corpus.inputs import FileInput
from ledeline.inference.check_pairs import check_pairs
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.rules import rule_doubts
from ledeline.inference.outputs.added_columns import CHECK_COLUMNS
from ledeline.inference.outputs.open_output import open_output
from ledeline.inference.outputs.reporter import LimitedReporter


class Rules:
    def check_batch(self, pairs):
        found = [rule_doubts(*pair) for pair in pairs]
        return [Check(0.5 if doubts else 1.0, tuple(doubts)) for doubts in found]


path = folder / "pairs.csv"
path.write_text("lede,headline\\nThree men died in Paris.,Five die in Paris\\nIt rained.,Rain\\n")
given = FileInput(path)
reporter = LimitedReporter(print, "line", unlimited=True, warnings=True)
with open_output(folder / "checked.jsonl", given, added=CHECK_COLUMNS) as output:
    result = check_pairs(Rules(), given, "headline", output, reporter, min_support=0.6)
assert (result.num_done, result.num_low) == (2, 1), result
assert '"kind": "number"' in (folder / "checked.jsonl").read_text()
try:
    check_pairs(Rules(), given, "title", output, reporter)
except CorpusError as error:
    assert "there is no column 'title'" in str(error)
else:
    raise AssertionError("a missing column was not refused")
"""

HEADLINES = """
from ledeline.core.shipped import SHIPPED
from ledeline.inference.checks.lede_vocabulary import LedeVocabulary
from ledeline.inference.detokenize import replace_unknown_words
from ledeline.inference.display import render_html, render_terminal
from ledeline.inference.generate import generate
from ledeline.inference.headline import Headline
from ledeline.inference.outputs.standard_output import open_standard_output
from ledeline.inference.source_text import read_source_text
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer

tokenizer = Tokenizer.load(SHIPPED)
lede = read_source_text("Talks with Łódź begin.", 1, tokenizer, 100)
weights = [[float(word == 2) for word in lede.word_ids]]
assert replace_unknown_words([UNK], tokenizer, lede, weights).words == ("Łódź",)
(london,) = tokenizer.encode(["London"])
vocabulary = LedeVocabulary(tokenizer)
assert london in vocabulary.forbidden("Rain fell in Paris.")
assert london not in vocabulary.forbidden("Rain fell in London.")
assert "Rain" in render_html(Headline("Rain fell.", "Rain"))
assert render_terminal(Headline("Rain fell.", "Rain"))
"""

SYNTH = """
from ledeline.corpus.table_writer import write_table
from ledeline.synth.newsroom import Story, generate

for ending in ("jsonl", "csv", "tsv", "csv.gz"):
    stories = (story._asdict() for story in generate(5, 1))
    write_table(folder / f"stories.{ending}", stories, Story._fields)
assert len((folder / "stories.jsonl").read_text().splitlines()) == 5
"""

MODELS = """
import json

from ledeline.core.errors import ModelError
from ledeline.core.extras import MissingExtraError
from ledeline.core.shipped import SHIPPED
from ledeline.model.format.model_summary import named_models, summarize_model

(shipped,) = [one for one in named_models() if one.name == "shipped"]
assert shipped.summary.system == "Transformer", shipped
for path in SHIPPED.iterdir():
    (folder / path.name).write_bytes(path.read_bytes()[:1000])
try:
    summarize_model(folder)
except ModelError as error:
    assert "model.safetensors cannot be read" in str(error), error
else:
    raise AssertionError("a damaged file was not refused")
about = json.loads((folder / "model.json").read_text()) | {"version": 3, "system": "seass"}
(folder / "model.json").write_text(json.dumps(about))
try:
    summarize_model(folder)
except MissingExtraError as error:
    assert f"{folder}: the engine does not know the system seass, so" in str(error), error
else:
    raise AssertionError("a system that is not there was summarized")
"""

PARQUET = """
from ledeline.corpus.table_writer import write_table

try:
    write_table(folder / "table.parquet", [{"lede": "Rain."}], ["lede"])
except ModuleNotFoundError as error:
    assert error.name == "pyarrow"
else:
    raise AssertionError("pyarrow is there")
"""


@pytest.mark.parametrize(
    "work",
    [TOKENIZER, TABLES, PAIRS, HEADLINES, SYNTH, MODELS, PARQUET],
    ids=["tokenizer", "tables", "pairs", "headlines", "synth", "models", "parquet"],
)
def test_text_is_read_and_written_without(work: str, tmp_path: Path) -> None:
    place = f"from pathlib import Path\nfolder = Path({str(tmp_path)!r})\n"
    done = run(WITHOUT + place + work)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MISSING)
def test_they_are_missing_in_these_tests(name: str) -> None:
    done = run(f"{WITHOUT}import {name}")
    assert f"No module named '{name}'" in done.stderr


def test_headlines_are_written_without_what_only_unix_has(tmp_path: Path) -> None:
    command = ["ledeline", "generate", "Rain fell in Oslo on Monday.", "--output"]
    work = f"sys.argv = {command!r} + [{str(tmp_path / 'headline.jsonl')!r}]\n"
    work += "import ledeline.core.atomic\nledeline.core.atomic._lock = lambda file: None\n"
    done = run(f"{without(UNIX)}{work}from ledeline.cli import main\nmain()")
    assert done.returncode == 0, done.stderr
    assert "Rain falls in Oslo" in (tmp_path / "headline.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    "module",
    ["text.tokenizer", "corpus.inputs", "inference.checks.rules", "inference.outputs.open_output"],
)
def test_slow_modules_are_imported_when_they_are_needed(module: str) -> None:
    slow = "hashlib gzip tempfile difflib shutil random ledeline.rouge.scores importlib.resources"
    done = run(
        f"import sys; old = set(sys.modules); import ledeline.{module}; "
        f"print(*sorted({set(slow.split())!r} & sys.modules.keys() - old))"
    )
    assert done.stdout.strip() == "", done.stdout


def run(code: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONWARNINGS": "error", "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
