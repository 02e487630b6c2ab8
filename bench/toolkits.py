"""The toolkits of bench/peers.py: what to install for each, and how a model is loaded into it.

Each runs in an environment of its own, which has no ledeline.
"""

import argparse
import os
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

VOCABULARY, NUM_SPECIALS = 5131, 4  # a type is t4, t5, ..., t5130; below are <unk>, <s> and so on
EMBEDDING, HIDDEN, LAYERS = 200, 400, 2
INIT = 0.1  # weights are uniform between this and its negative
STAND_IN = "stand-in"  # for a toolkit, with --quick: it only waits

Generate = Callable[[list[str]], list[str]]  # headlines of sources


class Peer(NamedTuple):
    """A toolkit, what to install for it beside torch, and how to load a model into it."""

    title: str
    requirement: str
    needs: tuple[str, ...]  # constraints.txt pins those without a version
    load: Callable[[Path, argparse.Namespace], Generate]


def set_up_torch(options: argparse.Namespace) -> None:
    """No GPU, so many threads, and the same weights each time."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch is imported
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)


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
    set_up_torch(options)
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
    set_up_torch(options)
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


def load_stand_in(_: Path, options: argparse.Namespace) -> Generate:
    headline = " ".join(["t4"] * options.length)

    def generate(sources: list[str]) -> list[str]:
        time.sleep(0.001 * len(sources))  # so that there is something to measure
        return [headline for _ in sources]

    return generate


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
ALL = PEERS | {STAND_IN: Peer("a stand-in", "", (), load_stand_in)}
