"""What the tests of add-ons share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.system_config import SystemConfig
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[SystemConfig], tuple[Any, Any]]:
    """A system of a configuration, and the same from its folder."""

    def both(config: SystemConfig) -> tuple[Any, Any]:
        letters = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1)
        tokenizer = Tokenizer(NATURAL, Subwords.learn(letters, 0))
        model = build(config, tokenizer.vocabulary_size, seed=4).eval()
        for parameter in model.parameters():
            parameter.data *= 8  # far from uniform
        write_description(tmp_path, config, tokenizer)
        save_file(model.state_dict(), tmp_path / "model.safetensors")
        return model, load_model(tmp_path).model.eval()

    return both
