"""How fast two public toolkits generate headlines on a CPU: OpenNMT-py and Eole.

    python bench/peers.py --peer eole [--beam N] [--length N] [--batch N] [--threads N] [--turns N]

Each runs in an environment of its own, build/peers/NAME, made on the first run: the torch that
constraints.txt names, the toolkit without what it asks for, and the few packages that generating
needs. Another bench calls `measure`. To take turns with the peers it calls it several times with
one turn each; start, building and a first pass over all sources never count.

The model has random weights and the paper's sizes: 5,131 types, embeddings of 200, 2 layers in the
encoder, 2 in the decoder with input feeding, 400 wide, "general" attention. Each toolkit builds it,
saves it and loads it into its own inference engine. The differences to ours:

- the two directions of their encoders are 200 wide and joined; ours are 400 wide and summed, so our
  encoder does more;
- Eole does not tell its encoder where a short source of a batch ends;
- neither has the sGate or the SPM.

Both run in float32, sort the sources by length themselves, keep the best headline alone and have no
length penalty, which saves a pass over the scores. Eole adds no position encodings, which its RNNs
have by default. Their other ways do not work for this model on a CPU: 8 bits are an error in Eole
0.6.4 and, by its source, do nothing in OpenNMT-py 3.5.1, and Eole cannot compile an RNN. bfloat16
was not tried.

All headlines are N words long: the end is forbidden before, and there they are cut. The worker
checks it. Latency is the time of one source alone, the preparation of its batch included, as a
service would see it.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from machine import described

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "peers"
VOCABULARY, NUM_SPECIALS = 5131, 4  # a type is t4, t5, ..., t5130; below are <unk>, <s> and so on
EMBEDDING, HIDDEN, LAYERS = 200, 400, 2
INIT = 0.1  # weights are uniform between this and its negative
TAIL = 3000  # characters of what a failed program said

Generate = Callable[[list[str]], list[str]]  # headlines of sources


class PeerError(Exception):
    """A peer could not be installed or measured."""


class Peer(NamedTuple):
    """A toolkit, what to install for it beside torch, and how to load a model into it."""

    title: str
    requirement: str
    needs: tuple[str, ...]  # constraints.txt pins those without a version
    load: Callable[[Path, argparse.Namespace], Generate]


def main() -> None:
    options = read_options()
    if options.worker:
        with contextlib.redirect_stdout(sys.stderr):  # the toolkits may print
            result = work(options)
        print(json.dumps(result))
        return
    dice = random.Random(1)
    lengths = [round(dice.triangular(20, 60, 37)) for _ in range(options.sources)]
    sources = [[dice.randrange(NUM_SPECIALS, VOCABULARY) for _ in range(n)] for n in lengths]
    names = ("beam", "length", "batch", "threads", "turns", "alone")
    try:
        result = measure(options.peer, sources, **{name: getattr(options, name) for name in names})
    except PeerError as error:
        sys.exit(str(error))
    print(described())
    print(f"torch {result['torch']}, {result['threads']} threads")
    print(f"{len(sources)} sources of {min(lengths)} to {max(lengths)} words, ", end="")
    print(f"{statistics.mean(lengths):.1f} in the mean, in batches of {options.batch}; ", end="")
    print(f"beam {options.beam}, headlines of {options.length} words\n")
    print_table(result)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--peer", choices=PEERS, help="measure it on synthetic sources")
    what.add_argument("--worker", choices=PEERS, help="what measure runs, with Python of the peer")
    parser.add_argument("--input", type=Path, help="of the worker: ids, one source in a line")
    parser.add_argument("--sources", type=int, default=200, help="how many synthetic ones")
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--length", type=int, default=18, help="words of each headline")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--alone", type=int, default=20, help="how many sources for the latency")
    options = parser.parse_args()
    if options.worker and not options.input:
        parser.error("--worker needs --input")
    return options


def print_table(result: dict[str, Any]) -> None:
    columns = {"sentences/s": result["sentences_per_second"], "one alone, ms": result["latency_ms"]}
    columns = {name: values for name, values in columns.items() if values}
    print(" " * 18, end="")
    for name in columns:
        print(f"{f'{name}, median':>24}{'lowest':>9}{'highest':>9}", end="")
    print(f"\n{result['peer']:18}", end="")
    for values in columns.values():
        print(f"{statistics.median(values):24.1f}{min(values):9.1f}{max(values):9.1f}", end="")
    print()


# --- for other benches --------------------------------------------------------------------------


def measure(
    peer: str,
    sources: Sequence[Sequence[int]],
    *,
    beam: int,
    length: int,
    batch: int,
    threads: int,
    turns: int,
    alone: int = 20,
    folder: Path = FOLDER,
) -> dict[str, Any]:
    """Let a peer generate headlines of all sources `turns` times, and of `alone` single ones.

    The result has "peer", "sentences_per_second" (of each turn), "latency_ms" (of each source
    alone), "output_lengths" (the shortest and the longest), "torch" and "threads".
    """
    for number, source in enumerate(sources):
        if not source or min(source) < NUM_SPECIALS or max(source) >= VOCABULARY:
            raise PeerError(
                f"source {number} is empty or has an id outside {NUM_SPECIALS} to {VOCABULARY - 1}"
            )
    python = make_environment(folder, peer)
    settings = {"beam": beam, "length": length, "batch": batch, "threads": threads}
    settings |= {"turns": turns, "alone": alone}
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "sources.txt"
        file.write_text("".join(" ".join(map(str, source)) + "\n" for source in sources))
        command = [python, "-W", "ignore", Path(__file__), "--worker", peer, "--input", file]
        command += [f"--{name}={value}" for name, value in settings.items()]
        said = run(f"the worker of {peer}", command, OMP_NUM_THREADS=str(threads))
    try:
        return dict(json.loads(said))
    except ValueError:
        raise PeerError(f"the worker of {peer} gave no result but: {said[-TAIL:]}") from None


def make_environment(folder: Path, peer: str) -> Path:
    """The Python of a peer, in `folder / peer`; installs it there if it is missing or another."""
    if peer not in PEERS:
        raise PeerError(f"there is no peer {peer}, only {', '.join(PEERS)}")
    place, known = folder.resolve() / peer, PEERS[peer]
    python, mark = place / "bin" / "python", place / ".installed"
    constraints = ROOT / "constraints.txt"
    wanted = "\n".join([known.requirement, *known.needs, constraints.read_text()])
    if mark.exists() and mark.read_text() == wanted:
        return python
    print(f"installing {known.title} in {place}", file=sys.stderr)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(f"making {place}", [sys.executable, "-m", "venv", "--clear", place])
    needs = ["--constraint", constraints, "torch", *known.needs]
    run(f"installing what {known.title} needs", [*pip, *needs])
    run(f"installing {known.title}", [*pip, "--no-deps", known.requirement])
    mark.write_text(wanted)
    return python


def run(what: str, command: Sequence[str | Path], **variables: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | variables
    )
    if done.returncode:
        said = done.stderr.strip()[-TAIL:]
        raise PeerError(f"{what} failed with status {done.returncode}, and said:\n{said}")
    return done.stdout


# --- the worker ---------------------------------------------------------------------------------


def work(options: argparse.Namespace) -> dict[str, Any]:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch is imported
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    lines = options.input.read_text().splitlines()
    sources = [" ".join(f"t{number}" for number in line.split()) for line in lines]
    some = sources[:: max(1, len(sources) // max(1, options.alone))][: options.alone]
    lengths: set[int] = set()

    def timed(generate: Generate, sources: list[str]) -> float:
        begin = time.perf_counter()
        headlines = generate(sources)
        seconds = time.perf_counter() - begin
        assert len(headlines) == len(sources), (len(headlines), len(sources))
        lengths.update(len(headline.split()) for headline in headlines)
        return seconds

    with tempfile.TemporaryDirectory() as folder:
        generate = PEERS[options.worker].load(Path(folder), options)
        timed(generate, sources)  # the first time warms up
        seconds = [timed(generate, sources) for _ in range(options.turns)]
        alone = [timed(generate, [source]) for source in some[:1] + some][1:]
    if lengths != {options.length}:
        raise SystemExit(f"headlines have {sorted(lengths)} words instead of {options.length}")
    return {
        "peer": PEERS[options.worker].title,
        "sentences_per_second": [len(sources) / each for each in seconds],
        "latency_ms": [1000 * each for each in alone],
        "output_lengths": [min(lengths), max(lengths)],
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def write_vocabulary(folder: Path) -> Path:
    """Without the special types, which both toolkits put before these."""
    file = folder / "vocabulary.txt"
    file.write_text("".join(f"t{number}\t1\n" for number in range(NUM_SPECIALS, VOCABULARY)))
    return file


def search_options(options: argparse.Namespace) -> dict[str, Any]:
    """What both toolkits call alike."""
    return {
        "beam_size": options.beam,
        "n_best": 1,
        "length_penalty": "none",
        "min_length": options.length,
        "max_length": options.length,
        "max_length_ratio": 0,
        "batch_size": options.batch,
        "batch_type": "sents",
    }


def load_opennmt(folder: Path, options: argparse.Namespace) -> Generate:
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints hold its options
    for name in ("ahocorasick", "fasttext", "spacy"):  # of transforms that nobody uses here
        sys.modules[name] = types.ModuleType(name)
    from onmt.inference_engine import InferenceEnginePY
    from onmt.inputters.inputter import build_vocab
    from onmt.model_builder import build_model
    from onmt.models.model_saver import ModelSaver
    from onmt.opts import train_opts, translate_opts
    from onmt.utils.parse import ArgumentParser
    from torch.optim import SGD

    def parsed(add_options: Callable[[ArgumentParser], None], **values: object) -> Any:
        parser = ArgumentParser()
        add_options(parser)
        return parser.parse_args([f"--{name}={value}" for name, value in values.items()])

    model = parsed(
        train_opts,
        data={},
        src_vocab=write_vocabulary(folder),
        vocab_size_multiple=1,
        encoder_type="brnn",
        decoder_type="rnn",
        rnn_type="LSTM",
        global_attention="general",
        input_feed=1,
        word_vec_size=EMBEDDING,
        hidden_size=HIDDEN,
        layers=LAYERS,
        param_init=INIT,
    )
    model.share_vocab, model.data_task = True, model.model_task
    ArgumentParser.update_model_opts(model)
    ArgumentParser.validate_model_opts(model)
    vocabularies = build_vocab(model, {"src": [], "tgt": []})
    assert len(vocabularies["src"]) == len(vocabularies["tgt"]) == VOCABULARY
    built = build_model(model, model, vocabularies, None, -1)
    saver = ModelSaver(str(folder / "model"), built, model, vocabularies, SGD(built.parameters()))
    saver.save(0)

    search = parsed(
        translate_opts,
        model=folder / "model_step_0.pt",
        src="unused",
        output=folder / "unused.txt",
        gpu=-1,
        **search_options(options),
    )
    ArgumentParser.validate_translate_opts(search)
    ArgumentParser._get_all_transform_translate(search)
    ArgumentParser._validate_transforms_opts(search)
    ArgumentParser.validate_translate_opts_dynamic(search)
    engine = InferenceEnginePY(search)
    return lambda sources: [best for (best,) in engine.infer_list(sources)[1]]


def load_eole(folder: Path, options: argparse.Namespace) -> Generate:
    from eole.config.run import PredictConfig, TrainConfig
    from eole.inference_engine import InferenceEnginePY
    from eole.inputters.inputter import build_vocab
    from eole.models.model import get_model_class
    from eole.models.model_saver import TrainingModelSaver
    from torch.optim import SGD

    vocabulary, path = str(write_vocabulary(folder)), str(folder / "model")
    embeddings = {"word_vec_size": EMBEDDING, "position_encoding_type": None}
    config = TrainConfig(
        data={},
        src_vocab=vocabulary,
        tgt_vocab=vocabulary,
        share_vocab=True,
        vocab_size_multiple=1,
        model={
            "architecture": "custom",
            "hidden_size": HIDDEN,
            "layers": LAYERS,
            "input_feed": 1,
            "embeddings": embeddings,
            "encoder": {"encoder_type": "brnn", "rnn_type": "LSTM"},
            "decoder": {
                "decoder_type": "rnn",
                "rnn_type": "LSTM",
                "global_attention": "general",
            },
        },
        training={"model_path": path, "param_init_method": "uniform", "param_init": INIT},
    )
    vocabularies = build_vocab(config, {"src": [], "tgt": []})
    assert len(vocabularies["src"]) == len(vocabularies["tgt"]) == VOCABULARY
    kind = get_model_class(config.model)
    built = kind.for_training(config.model, vocabularies, config.training, device_id=-1)
    TrainingModelSaver(path, built, config, vocabularies, SGD(built.parameters())).save(0)

    search = PredictConfig(
        model_path=path,
        src="unused",
        gpu_ranks=[],
        world_size=0,
        **search_options(options),
    )
    engine = InferenceEnginePY(search)
    return lambda sources: [best for (best,) in engine.infer_list(sources)[2]]


PEERS = {
    "opennmt-py": Peer(
        "OpenNMT-py 3.5.1",
        "OpenNMT-py==3.5.1",
        (
            "ConfigArgParse==1.9.0",
            "numpy",
            "pyonmttok==1.38.1",
            "RapidFuzz==3.14.6",
            "regex==2026.11.9",
        ),
        load_opennmt,
    ),
    "eole": Peer(
        "Eole 0.6.4",
        "eole==0.6.4",
        (
            "huggingface_hub",
            "numpy",
            "pydantic",
            "pyonmttok==1.38.1",
            "PyYAML",
            "regex==2026.11.9",
            "safetensors",
        ),
        load_eole,
    ),
}


if __name__ == "__main__":
    main()
