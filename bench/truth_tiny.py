"""What bench/truth.py --quick works on: made-up labels of headlines of the newsroom."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import tiny
from ledeline.corpus.table_writer import write_table
from truth_labels import GOOD, LABELS, PUBLISHER, lede_hash

NUMBER = 24  # ledes
WEIGHTS = {"beam20": (5, 2, 1, 4), "ranked": (7, 2, 1, 2), PUBLISHER: (5, 0, 5, 1)}
AGREE = 0.85


class TinyTruth(NamedTuple):
    """Files that belong together."""

    labels: Path
    pairs: Path
    supports: Path
    figure: Path


def made() -> TinyTruth:
    """Labels by dice, and supports and doubts that know something of them."""
    dice, place = random.Random(1), tiny.folder() / "truth"
    place.mkdir()
    stories = list({one.lede: one for one in tiny.stories(NUMBER, 3)}.values())
    labels, supports = [], []
    for story in stories:
        words = story.headline.split()
        for writer, weights in WEIGHTS.items():
            first = dice.choices(LABELS, weights)[0]
            second = first if dice.random() < AGREE else dice.choices(LABELS, weights)[0]
            both = [first, second]
            wrong = [None if label in GOOD else words[0] for label in both]
            row: dict[str, Any] = {"lede": lede_hash(story.lede), "writer": writer}
            headline = story.headline if writer == PUBLISHER else f"{story.headline} {writer}"
            row |= {} if writer == PUBLISHER else {"headline": headline}
            row |= {"part": "test", "labels": both}
            row |= {"kinds": [word and "role" for word in wrong], "words": wrong}
            labels.append(row)
            support = round(min(1.0, dice.random() * (0.7 if "false" in both else 1.3)), 3)
            doubts = [{"words": dice.choice(words[:2]), "kind": "role"}] if support < 0.5 else []
            told = {"lede": row["lede"], "headline": headline, "support": support}
            supports.append({**told, "doubts": doubts})
    pairs = place / "pairs.parquet"
    columns = ("lede", "headline")
    write_table(pairs, ({"lede": one.lede, "headline": one.headline} for one in stories), columns)
    found = TinyTruth(place / "labels.jsonl", pairs, place / "supports.jsonl", place / "risk.svg")
    write_lines(found.labels, labels)
    write_lines(found.supports, supports)
    return found


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """JSON lines."""
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
