import csv
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from ledeline.cli import app
from ledeline.config import CorpusConfig, DatasetConfig, PrepareConfig
from ledeline.config.toml import load
from ledeline.core.errors import ConfigError, CorpusError, DatasetError, LedelineError
from ledeline.corpus.table_writer import write_table
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset
from ledeline.data.prepare import PrepareResult, prepare
from ledeline.model.format.model_folder import write_description
from ledeline.synth.newsroom import generate
from ledeline.text.profiles import NATURAL, TYPOGRAPHIC
from ledeline.text.subwords import UNK, Subwords
from ledeline.text.tokenizer import Tokenizer
from pages import ROOT
from systems import encdec

CONFIGS = ROOT / "configs"


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def stories(number: int, seed: int = 1) -> list[dict[str, object]]:
    return [dict(story._asdict()) for story in generate(number, seed)]


def run(tmp_path: Path, text: str, *overrides: str) -> PrepareResult:
    path = tmp_path / "config.toml"
    path.write_text(text)
    options = [
        f"--corpus.root={tmp_path}",
        f"--dataset.output={tmp_path / 'out'}",
        "--subword.merges=200",
        *overrides,
    ]
    return prepare(load(PrepareConfig, path, options))


DATED = ["--split.by=date", "--split.valid_from=2025-01-01"]
TABLE = '[corpus]\ntrain = ["train.jsonl"]\n'


def decoded(dataset: Dataset, split: str) -> list[tuple[str, str]]:
    """The pairs of a split as text again."""

    def text(ids: list[int]) -> str:
        return dataset.tokenizer.decode(ids)

    pairs = dataset[split]
    return [
        (text(source), text(headline)) for source, headline in (pairs[i] for i in range(len(pairs)))
    ]


class TestWhole:
    @pytest.mark.parametrize("profile", ["paper", "natural"])
    def test_text_goes_in_and_comes_out(self, tmp_path: Path, profile: str) -> None:
        rows = stories(300)
        write_jsonl(tmp_path / "train.jsonl", rows)
        prepared = run(tmp_path, TABLE, f"--text.profile={profile}")
        dataset = Dataset(prepared.folder)
        dataset.verify()
        assert dataset.tokenizer.profile.name == profile
        expected = []
        for row in rows:
            lede = dataset.tokenizer.words(str(row["lede"]))
            headline = dataset.tokenizer.headline_words(str(row["headline"]))
            expected.append((dataset.tokenizer.join(lede), dataset.tokenizer.join(headline)))
        assert decoded(dataset, "train") == expected
        if profile == "natural":
            assert expected[0] == (rows[0]["lede"], rows[0]["headline"])

    def test_the_resolved_configuration_makes_the_same_dataset(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(100))
        run(tmp_path, TABLE, "--subword.merges=77")
        resolved = load(PrepareConfig, tmp_path / "out" / "config.toml")
        assert resolved.subword.merges == 77
        again = load(
            PrepareConfig,
            tmp_path / "out" / "config.toml",
            [f"--dataset.output={tmp_path / 'again'}"],
        )
        prepare(again)
        assert Dataset(tmp_path / "again").checksum == Dataset(tmp_path / "out").checksum

    def test_subwords_are_learned_from_training_pairs_alone(self, tmp_path: Path) -> None:
        rows = stories(200)
        write_jsonl(tmp_path / "train.jsonl", rows[:100])
        write_jsonl(tmp_path / "valid.jsonl", [{"lede": "zyzzyva " * 20, "headline": "zyzzyva"}])
        run(tmp_path, TABLE, '--corpus.valid="valid.jsonl"')
        with_valid = Dataset(tmp_path / "out").tokenizer.types
        run(tmp_path, TABLE, "--dataset.overwrite=true")
        assert Dataset(tmp_path / "out").tokenizer.types == with_valid

    def test_what_is_held_out_teaches_no_subwords(self, tmp_path: Path) -> None:
        rows = stories(100)
        held_out = [{"lede": f"zyzzyva {row['lede']}", "headline": "zyzzyva"} for row in rows[:50]]
        write_jsonl(tmp_path / "train.jsonl", rows + held_out)
        write_jsonl(tmp_path / "test.jsonl", held_out)
        prepared = run(tmp_path, TABLE, "--corpus.test=test.jsonl")
        assert prepared.report.dropped["train"] == {"also in a held-out split": 50}
        assert "zy@@" not in Dataset(tmp_path / "out").tokenizer.types

    def test_subwords_can_be_reused(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(200))
        run(tmp_path, TABLE)
        first = Dataset(tmp_path / "out")
        write_jsonl(tmp_path / "train.jsonl", stories(50, seed=9))
        run(
            tmp_path,
            TABLE,
            f"--subword.reuse={tmp_path / 'out'}",
            f"--dataset.output={tmp_path / 'b'}",
        )
        assert Dataset(tmp_path / "b").tokenizer == first.tokenizer
        with pytest.raises(ConfigError, match=r"subword\.reuse: .* has the text profile paper"):
            run(
                tmp_path,
                TABLE,
                f"--subword.reuse={tmp_path / 'out'}",
                f"--dataset.output={tmp_path / 'c'}",
                "--text.profile=natural",
            )

    def test_typographic_marks_are_those_of_a_keyboard(self, tmp_path: Path) -> None:
        rows = [
            {"lede": f"Japan’s “{word}” – a first – was 3–4…", "headline": f"“{word}”—Japan’s"}
            for word in ("talks", "rain", "deal")
        ]
        write_jsonl(tmp_path / "train.jsonl", rows)
        dataset = Dataset(run(tmp_path, TABLE, "--text.profile=natural").folder)
        assert dataset.tokenizer.profile is NATURAL
        assert TYPOGRAPHIC.keys().isdisjoint(dataset.tokenizer.subwords.alphabet)
        straight = 'Japan\'s "talks" - a first - was 3-4...', '"talks" - Japan\'s'
        assert decoded(dataset, "train")[0] == straight

    def test_marks_that_reused_subwords_know_stay(self, tmp_path: Path) -> None:
        """As the model that learns on reads them."""
        subwords = Subwords([], "Japnsotlk￭’")
        model = tmp_path / "model"
        model.mkdir()
        write_description(model, encdec(), Tokenizer(NATURAL, subwords))
        write_jsonl(tmp_path / "train.jsonl", [{"lede": "Japan’s “no”", "headline": "Japan’s"}])
        options = "--text.profile=natural", f"--subword.reuse={model}"
        dataset = Dataset(run(tmp_path, TABLE, *options).folder)
        assert dataset.tokenizer.profile is NATURAL.keeping_marks("’")
        assert dataset.tokenizer.words("’“") == ["’", '￭"']
        source, headline = dataset["train"][0]
        assert subwords.decode(headline) == ["Japan", "￭’s"]
        assert source == subwords.encode(["Japan", "￭’s", '"￭', "no", '￭"'])

    def test_subwords_of_a_model_can_be_reused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(200))
        run(tmp_path, TABLE)
        first, model = Dataset(tmp_path / "out"), tmp_path / "model"
        model.mkdir()
        write_description(model, encdec(), first.tokenizer)
        monkeypatch.setattr("ledeline.core.shipped.SHIPPED", model)
        write_jsonl(tmp_path / "train.jsonl", stories(50, seed=9))
        for name, folder in {"b": str(model), "c": "shipped"}.items():
            options = f"--subword.reuse={folder}", f"--dataset.output={tmp_path / name}"
            run(tmp_path, TABLE, *options)
            assert Dataset(tmp_path / name).tokenizer == first.tokenizer
        (model / "subwords.json").unlink()
        with pytest.raises(LedelineError, match=r"subwords\.json"):
            run(tmp_path, TABLE, f"--subword.reuse={model}", f"--dataset.output={tmp_path / 'd'}")

    def test_rare_words_become_unknown_if_asked_each_side_by_itself(self, tmp_path: Path) -> None:
        rows = [
            {"lede": "alpha beta gamma delta rare words here .", "headline": "alpha beta"},
            {"lede": "alpha beta gamma delta seldom words here .", "headline": "alpha gamma"},
        ]
        write_jsonl(tmp_path / "train.jsonl", rows)
        run(tmp_path, TABLE, "--text.unknown_below=2", "--subword.merges=50")
        assert decoded(Dataset(tmp_path / "out"), "train") == [
            ("alpha beta gamma delta <unk> words here .", "alpha <unk>"),
            ("alpha beta gamma delta <unk> words here .", "alpha <unk>"),
        ]
        run(tmp_path, TABLE, "--dataset.overwrite=true")
        assert UNK not in Dataset(tmp_path / "out")["train"][0][0]

    def test_rare_characters_become_unknown(self, tmp_path: Path) -> None:
        rows = stories(50)
        rows[0]["lede"] = f"☃ {rows[0]['lede']}"
        write_jsonl(tmp_path / "train.jsonl", rows)
        run(tmp_path, TABLE, "--subword.min_character_count=2")
        assert Dataset(tmp_path / "out")["train"][0][0][0] == UNK

    def test_the_marks_of_the_public_test_set_are_unknown_words(self, tmp_path: Path) -> None:
        row = {"lede": "nec and UNK corp. said <unk> .", "headline": "nec UNK"}
        write_jsonl(tmp_path / "train.jsonl", [row, *stories(20)])
        run(tmp_path, TABLE)
        dataset = Dataset(tmp_path / "out")
        source, headline = dataset["train"][0]
        assert source.count(UNK) == 2
        assert headline[-1] == UNK
        assert "K" not in dataset.tokenizer.subwords.alphabet  # a mark is no text to learn from


class TestSplits:
    def test_by_files_without_what_is_held_out(self, tmp_path: Path) -> None:
        rows = stories(120)
        write_jsonl(tmp_path / "train.jsonl", rows[:100])
        write_jsonl(tmp_path / "valid.jsonl", rows[95:110])
        write_jsonl(tmp_path / "test.jsonl", rows[105:120])
        prepared = run(tmp_path, TABLE, "--corpus.valid=valid.jsonl", "--corpus.test=test.jsonl")
        rule = "also in a held-out split"
        assert prepared.report.dropped["train"][rule] == 5
        assert prepared.report.dropped["valid"][rule] == 5
        assert prepared.report.kept == {"train": 95, "valid": 10, "test": 15}
        assert len(prepared.report.examples["train"][rule]) == 3

    @pytest.mark.parametrize("pool", ["train", "valid"])
    def test_at_random(self, tmp_path: Path, pool: str) -> None:
        rows = stories(150)
        write_jsonl(tmp_path / "train.jsonl", rows[:100])
        write_jsonl(tmp_path / "valid.jsonl", rows[100:])
        files = ["--corpus.valid=valid.jsonl"] if pool == "valid" else []
        options = ["--split.by=random", "--split.num_valid=10", "--split.num_test=20"]
        prepared = run(tmp_path, TABLE, f"--split.pool={pool}", *files, *options)
        left = 70 if pool == "train" else 100
        assert prepared.report.kept == {"train": left, "valid": 10, "test": 20}
        dataset = Dataset(tmp_path / "out")
        seen = [pair for split in dataset.splits for pair in decoded(dataset, split)]
        assert len(set(seen)) == len(seen)
        for split in ("valid", "test"):
            lines = (tmp_path / "out" / f"{split}.jsonl").read_text().splitlines()
            texts = [(one["lede"], one["headline"]) for one in map(json.loads, lines)]
            assert texts == decoded(dataset, split)
        data = prepared.report.as_json()
        for split in data.values():
            assert split["read"] == split["kept"] + sum(
                rule["pairs"] for rule in split["dropped"].values()
            )

    def test_by_date(self, tmp_path: Path) -> None:
        rows = stories(6)
        days = [
            "2024-01-01",
            "2024-03-01",
            None,
            "2024-05-01",
            "2023-01-01",
            "2024-03-31T10:00:00Z",
        ]
        for row, date in zip(rows, days, strict=True):
            row["date"] = date
        write_jsonl(tmp_path / "train.jsonl", rows)
        options = [
            "--split.by=date",
            "--split.valid_from=2024-03-01",
            "--split.test_from=2024-05-01",
        ]
        prepared = run(tmp_path, TABLE, *options)
        assert prepared.report.kept == {"train": 3, "valid": 2, "test": 1}

    def test_little_training_is_warned_of_once_the_dataset_is_there(self, tmp_path: Path) -> None:
        rows = [row | {"date": f"2025-01-{day:02}"} for day, row in enumerate(stories(20), start=1)]
        write_jsonl(tmp_path / "train.jsonl", rows)
        options = [
            "--split.by=date",
            "--split.valid_from=2025-01-05",
            "--split.test_from=2025-01-06",
        ]
        prepared = run(tmp_path, TABLE, *options)
        assert prepared.warnings == (
            "split.valid_from = 2025-01-05 and split.test_from = 2025-01-06 leave only 4 of 20 pairs "
            "for training (1 for validation, 15 for the test); choose another date: the pairs are from 2025-01-01 to "
            "2025-01-20",
        )
        files = [f"--corpus.root={tmp_path}", f"--dataset.output={tmp_path / 'again'}"]
        config = str(tmp_path / "config.toml")
        shown = CliRunner().invoke(app, ["prepare", config, *files, "--subword.merges=9", *options])
        assert shown.exit_code == 0
        assert f"ledeline: {prepared.warnings[0]}\n" in shown.stderr
        options = ["--split.valid_from=2025-01-15", "--split.test_from=2025-01-18"]
        again = run(tmp_path, TABLE, "--split.by=date", *options, "--dataset.overwrite=true")
        assert again.warnings == ()

    def test_a_split_without_a_pair_says_from_when_pairs_are(self, tmp_path: Path) -> None:
        rows = [row | {"date": f"2025-01-{day:02}"} for day, row in enumerate(stories(9), start=1)]
        write_jsonl(tmp_path / "train.jsonl", rows)
        with pytest.raises(
            ConfigError, match=r"the split valid would be empty; .* from 2025-01-01 to 2025-01-09$"
        ):
            run(tmp_path, TABLE, "--split.by=date", "--split.valid_from=2026-01-01")

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--split.by=date"], "needs split.valid_from"),
            (
                ["--split.by=date", "--split.test_from=2024-01-01", "--corpus.format=parallel"],
                "parallel text has no dates",
            ),
            (["--split.by=random"], "needs split.num_valid"),
            (["--split.by=random", "--split.num_test=5", "--corpus.test=x"], "has files already"),
            (["--split.by=random", "--split.num_valid=5", "--corpus.valid=x"], "has files already"),
            (["--split.by=random", "--split.num_valid=5", "--split.pool=valid"], "names no files"),
            (
                ["--split.by=date", "--split.valid_from=2024-01-01", "--corpus.test=x"],
                "all files belong in corpus.train",
            ),
            (
                [
                    "--split.by=date",
                    "--split.valid_from=2024-01-01",
                    "--split.test_from=2024-01-01",
                ],
                "must be later",
            ),
        ],
    )
    def test_splits_that_cannot_be(self, tmp_path: Path, options: list[str], sentence: str) -> None:
        with pytest.raises(ConfigError, match=sentence):
            run(tmp_path, TABLE, *options)


class TestFilters:
    def test_headlines_longer_than_their_lede_leave_training_and_validation_only(
        self, tmp_path: Path
    ) -> None:
        long = {"lede": "a b c", "headline": "d e f"}  # three and the end mark do not fit three
        fits = {"lede": "a b c d", "headline": "d e f"}
        for split in ("train", "valid", "test"):
            extra = {"lede": f"{split} a b c d e", "headline": "x"}
            write_jsonl(tmp_path / f"{split}.jsonl", [fits | {"lede": f"a b c {split[0]}"}, extra])
        rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
        write_jsonl(tmp_path / "train.jsonl", [*rows, *stories(100), long])
        write_jsonl(tmp_path / "valid.jsonl", [*rows[:1], {"lede": "b c a", "headline": "d e f"}])
        write_jsonl(tmp_path / "test.jsonl", [{"lede": "c a b", "headline": "d e f"}])
        prepared = run(tmp_path, TABLE, "--corpus.valid=valid.jsonl", "--corpus.test=test.jsonl")
        rule = "headline longer than lede in sub-words"
        assert prepared.report.dropped["train"][rule] == 1
        assert prepared.report.dropped["valid"][rule] == 1
        assert prepared.report.kept["test"] == 1
        example = prepared.report.examples["train"][rule][0]
        assert (example.lede, example.headline) == ("a b c", "d e f")
        train = Dataset(tmp_path / "out")["train"]
        for batch in Batches(train, size=16, seed=1).epoch(0):
            assert batch.targets(batch.sources.shape[1]).shape == batch.sources.shape

    def test_empty_sides_are_dropped_everywhere(self, tmp_path: Path) -> None:
        rows = [
            {"lede": "", "headline": "x"},
            {"lede": "x", "headline": None},
            {"lede": "x", "headline": " \u200b "},
            {"lede": "words are here", "headline": "?"},  # nothing is left without punctuation
        ]
        write_jsonl(tmp_path / "train.jsonl", [*rows, *stories(5)])
        write_jsonl(tmp_path / "test.jsonl", rows + stories(1, seed=3))
        prepared = run(tmp_path, TABLE, "--corpus.test=test.jsonl")
        assert prepared.report.dropped["train"] == {"empty side": 4}
        assert prepared.report.dropped["test"] == {"empty side": 4}
        place = prepared.report.examples["train"]["empty side"][0].place
        assert place == f"{tmp_path / 'train.jsonl'}: line 1"

    def test_rules_spare_the_test(self, tmp_path: Path) -> None:
        for split in ("train", "valid", "test"):
            write_jsonl(tmp_path / f"{split}.jsonl", stories(30, seed=ord(split[1])))
        files = ["--corpus.valid=valid.jsonl", "--corpus.test=test.jsonl"]
        prepared = run(tmp_path, TABLE, *files, "--filter.max_lede_words=25")
        assert prepared.report.kept["test"] == 30
        assert prepared.report.dropped["train"]["lede too long"]
        assert prepared.report.dropped["valid"]["lede too long"]

    def test_limits_in_subwords(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(200))
        prepared = run(
            tmp_path, TABLE, "--filter.max_lede_subwords=60", "--filter.max_headline_subwords=15"
        )
        train = Dataset(tmp_path / "out")["train"]
        assert train.sources.lengths().max() <= 60
        assert train.headlines.lengths().max() <= 15
        dropped = prepared.report.dropped["train"]
        assert dropped["lede too long in sub-words"]
        assert dropped["headline too long in sub-words"]

    def test_rules_look_at_words_without_joiners(self, tmp_path: Path) -> None:
        rows = [
            {"lede": "Stocks fell. Bonds rose", "headline": "Stocks down"},
            {"lede": "Stocks fell, bonds rose", "headline": "Stocks down"},
            {"lede": "Stocks fell far. Bonds rose", "headline": "Live: stocks"},
        ]
        write_jsonl(tmp_path / "train.jsonl", rows + stories(5))
        prepared = run(
            tmp_path,
            TABLE,
            "--text.profile=natural",
            "--filter.require_period=true",
            "--filter.blocklist= : ",
        )
        assert prepared.report.dropped["train"] == {"lede without period": 1, "blocked headline": 1}

    def test_nothing_left_to_train_on(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(5))
        with pytest.raises(CorpusError, match=r"no training pair is left.*lede too short 5"):
            run(tmp_path, TABLE, "--filter.min_lede_words=1000")
        write_jsonl(tmp_path / "train.jsonl", [{"lede": "a b", "headline": "a b"}])
        with pytest.raises(
            CorpusError, match=r"no training pair is left.*headline longer than lede .* 1$"
        ):
            run(tmp_path, TABLE)
        assert not (tmp_path / "out").exists()

    def test_the_report_is_written_as_json(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", [{"lede": "", "headline": "x"}, *stories(5)])
        run(tmp_path, TABLE)
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        assert report["train"]["read"] == 6
        assert report["train"]["kept"] == 5
        assert report["train"]["dropped"]["empty side"]["pairs"] == 1


class TestBadRows:
    def test_the_first_one_stops_the_work_and_leaves_nothing(self, tmp_path: Path) -> None:
        path = write_jsonl(tmp_path / "train.jsonl", stories(5))
        with path.open("a") as file:
            file.write("{broken\n")
        with pytest.raises(CorpusError, match=r"train\.jsonl: line 6: .*--corpus\.bad_rows=skip"):
            run(tmp_path, TABLE)
        assert not (tmp_path / "out").exists()

    def test_skipped_ones_are_kept_with_their_reason(self, tmp_path: Path) -> None:
        path = write_jsonl(tmp_path / "train.jsonl", stories(5))
        with path.open("ab") as file:
            file.write(b'{broken\n{"lede": "x"}\n\xff\xfe\n')
            file.write(json.dumps(stories(6)[-1]).encode() + b"\n")
        prepared = run(tmp_path, TABLE, "--corpus.bad_rows=skip")
        assert prepared.num_rejects == 3
        assert prepared.report.kept["train"] == 6
        lines = (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()
        rejects = [json.loads(line) for line in lines]
        assert [reject["line"] for reject in rejects] == [6, 7, 8]
        assert all(reject["file"] == str(path) and reject["reason"] for reject in rejects)

    @pytest.mark.parametrize(
        ("data", "options", "sentence"),
        [
            (b"title;text\n", [], "semicolons; name yours with --corpus.lede and --corpus.headline"),
            (b"lede,headline\n", DATED, "; name yours with --corpus.lede and --corpus.headline, and --corpus.date"),
            (b"lede;headline;x|lede|headline\n", [], "; set it with --corpus.delimiter"),
            (b"lede,lede,headline\n", [], "the column 'lede' occurs 2 times; correct it"),
            (b"lede,headline\xe9\n", [], "at byte 14; save the file as UTF-8"),
            (b"lede,headline\nx,\xe9\n", [], "; save the file as UTF-8, or skip such rows with --corpus.bad_rows=skip"),
            (b"lede,headline\nx\n", [], "; correct it, or skip such rows with --corpus.bad_rows=skip"),
        ],
    )  # fmt: skip
    def test_what_to_do_never_loses_all_rows(
        self, tmp_path: Path, data: bytes, options: list[str], sentence: str
    ) -> None:
        (tmp_path / "train.csv").write_bytes(data)
        with pytest.raises(CorpusError) as error:
            run(tmp_path, TABLE, "--corpus.train=train.csv", *options)
        assert str(error.value).endswith(sentence)

    def test_where_all_rows_are_skipped_the_reason_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "train.csv").write_text("title,text\na,b\n")
        with pytest.raises(CorpusError, match=r"no pair can be read; .*line 1: there is no column"):
            run(tmp_path, TABLE, "--corpus.train=train.csv", "--corpus.bad_rows=skip")

    def test_a_truncated_gzip_keeps_what_was_whole(self, tmp_path: Path) -> None:
        lines = "".join(json.dumps(row) + "\n" for row in stories(500))
        (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(lines.encode())[:-200])
        with pytest.raises(CorpusError, match=r"train\.jsonl\.gz: line \d+: "):
            run(tmp_path, '[corpus]\ntrain = ["train.jsonl.gz"]\n')
        prepared = run(tmp_path, '[corpus]\ntrain = ["train.jsonl.gz"]\n', "--corpus.bad_rows=skip")
        assert prepared.num_rejects == 1
        assert 300 < prepared.report.kept["train"] < 500

    @pytest.mark.parametrize(
        ("train", "sentence"),
        [
            ("none.jsonl", r"none\.jsonl: no such file"),
            ("*.csv", r"no file in .* matches \*\.csv"),
            ("train.xml", r"train\.xml"),
        ],
    )
    def test_files_that_cannot_be_read(self, tmp_path: Path, train: str, sentence: str) -> None:
        (tmp_path / "train.xml").write_text("x")
        with pytest.raises(CorpusError, match=sentence):
            run(tmp_path, TABLE, f"--corpus.train={train}")

    def test_parallel_files_come_in_twos(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("x\n")
        with pytest.raises(CorpusError, match=r"the number of files is odd: .*a\.txt"):
            run(tmp_path, TABLE, "--corpus.format=parallel", "--corpus.train=a.txt")


class TestFormats:
    def test_the_bar_of_reading_ends_where_the_rows_do(self, tmp_path: Path) -> None:
        rows = stories(20)
        rows[3]["lede"] = "Rain fell\nin Oslo on Monday and on Tuesday."  # more lines than rows
        write_table(tmp_path / "x.csv", rows, ["lede", "headline"])
        told = []
        config = PrepareConfig(
            corpus=CorpusConfig(train=(str(tmp_path / "x.csv"),)),
            dataset=DatasetConfig(output=tmp_path / "out"),
        )
        prepare(config, lambda *call: told.append(call))
        assert [call for call in told if call[0] == "read"][-1] == ("read", 20, 20)

    @pytest.mark.parametrize("key", [[], ["--corpus.delimiter=semicolon"]])
    def test_csv_with_semicolons(self, tmp_path: Path, key: list[str]) -> None:
        rows = stories(20)
        with (tmp_path / "train.csv").open("w", encoding="utf-8-sig", newline="") as file:
            table = csv.writer(file, delimiter=";")
            table.writerows(
                [["headline", "lede"], *([row["headline"], row["lede"]] for row in rows)]
            )
        options = ["--corpus.train=train.csv", "--text.profile=natural", *key]
        prepared = run(tmp_path, TABLE, *options)
        assert prepared.report.kept == {"train": 20}
        assert decoded(Dataset(prepared.folder), "train")[0] == (
            rows[0]["lede"],
            rows[0]["headline"],
        )
        with pytest.raises(CorpusError, match="there is no column 'lede'"):
            run(tmp_path, TABLE, *options, "--corpus.delimiter=tab", "--dataset.overwrite=true")

    def test_parallel_text(self, tmp_path: Path) -> None:
        rows = stories(20)
        for side in ("lede", "headline"):
            text = "".join(f"{row[side]}\n" for row in rows)
            (tmp_path / f"{side}.txt.gz").write_bytes(gzip.compress(text.encode()))
        files = '--corpus.train=["lede.txt.gz", "headline.txt.gz"]'
        prepared = run(tmp_path, TABLE, files, "--corpus.format=parallel")
        assert prepared.report.kept == {"train": 20}

    def test_several_files_by_pattern(self, tmp_path: Path) -> None:
        for part in range(3):
            write_jsonl(tmp_path / f"part-{part}.jsonl", stories(10, seed=part))
        prepared = run(tmp_path, TABLE, "--corpus.train=part-*.jsonl")
        assert prepared.report.kept == {"train": 30}

    def test_gigaword_by_file_lists_with_all_rules(self, tmp_path: Path) -> None:
        for month, number in (("199405", 40), ("199406", 30)):
            write_gigaword(tmp_path / "afp" / f"afp_eng_{month}.xml.gz", number, int(month))
        (tmp_path / "train.splits.txt").write_text("afp/afp_eng_199405\n")
        (tmp_path / "valid.splits.txt").write_text("afp/afp_eng_199406\n")
        config = (CONFIGS / "gigaword-paper.toml").read_text()
        prepared = run(tmp_path, config, "--split.num_valid=8", "--split.num_test=10")
        assert prepared.report.read["train"] == 41
        assert prepared.report.dropped["train"]["no paragraph"] == 1
        assert prepared.report.kept["valid"] == 8
        assert prepared.report.kept["test"] == 10
        words = " ".join(headline for _, headline in decoded(Dataset(tmp_path / "out"), "train"))
        assert words == words.lower()
        assert not any(character.isdigit() for character in words)


def write_gigaword(path: Path, number: int, seed: int) -> None:
    """A small file in the line layout of Annotated Gigaword."""

    def parse(words: list[str]) -> str:
        return "(ROOT (S " + " ".join(f"(X {word})" for word in words) + "))"

    documents = []
    for i, story in enumerate(generate(number, seed)):
        lede = story.lede.rstrip(".").replace(",", " ,").split()
        # Words the block list would catch by accident are not what this test is about.
        headline = [word for word in story.headline.split() if not {"ap", "by"} & {word[:2]}]
        documents.append(
            f'<DOC id="AFP_ENG_19940501.{i:04}" type="story" >\n<HEADLINE>\n{parse(headline)}\n'
            f"</HEADLINE>\n<TEXT>\n<P>\n{parse(lede)[:-2]} (. .)))\n</P>\n</TEXT>\n</DOC>\n"
        )
    documents.append(
        '<DOC id="AFP_ENG_19940501.9999" type="story" >\n<HEADLINE>\n(ROOT (X none))\n</HEADLINE>\n'
        "<TEXT>\n</TEXT>\n</DOC>\n"
    )
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(("<FILE>\n" + "".join(documents) + "</FILE>\n").encode()))


class TestCrash:
    def test_an_output_that_is_there_is_not_touched(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(20))
        run(tmp_path, TABLE)
        before = Dataset(tmp_path / "out").checksum
        with pytest.raises(DatasetError, match="already exists"):
            run(tmp_path, TABLE, "--subword.merges=3")
        assert Dataset(tmp_path / "out").checksum == before

    def test_overwriting_is_for_datasets(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(20))
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "letters.txt").write_text("precious")
        with pytest.raises(DatasetError, match="is not overwritten"):
            run(tmp_path, TABLE, "--dataset.overwrite=true")
        assert (tmp_path / "out" / "letters.txt").read_text() == "precious"

    def test_killed_at_any_moment_it_leaves_no_dataset_or_a_whole_one(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "train.jsonl", stories(3000))
        output = tmp_path / "out"
        config = tmp_path / "config.toml"
        config.write_text(TABLE)
        command = [
            *(sys.executable, "-m", "ledeline", "prepare", str(config)),
            *(f"--corpus.root={tmp_path}", f"--dataset.output={output}"),
            *("--subword.merges=300", "--dataset.overwrite=true"),
        ]
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        whole, duration = Dataset(output).checksum, time.monotonic() - start
        moments = random.Random(1)
        outcomes = set()
        for attempt in range(12):
            if attempt % 2:
                for path in output.glob("*"):
                    path.unlink()
                output.rmdir()
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as process:
                time.sleep(moments.uniform(0, duration))
                os.kill(process.pid, signal.SIGKILL)
            outcomes.add(output.exists())
            if output.exists():
                dataset = Dataset(output)
                dataset.verify()
                assert dataset.checksum == whole
            else:
                subprocess.run(command, check=True, capture_output=True)
                assert Dataset(output).checksum == whole
        assert outcomes == {True, False}
        subprocess.run(command, check=True, capture_output=True)
        assert list(tmp_path.glob(".out.*")) == []  # what the killed runs left is gone
