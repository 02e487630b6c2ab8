"""What trains the verifier sees what the engine's verifier sees."""

import sys

import pytest
import torch

from ledeline.core.steps import run_steps
from ledeline.inference.checks.checker import bundled_generator
from ledeline.inference.checks.followed import AskedIds, follow
from ledeline.model.verifier import Verifier, VerifierBatch, VerifierShape
from ledeline.runtime.tensor_file import StoredTensor
from ledeline.runtime.verifier_engine import VerifierEngine
from ledeline.text.tokenizer import Tokenizer
from pages import ROOT

sys.path.append(str(ROOT / "bench"))

from verifier_data import seen_by_torch

LEDE = "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen."
HEADLINES = ("Tokyo stocks rise", "Tokyo stocks fall on Tuesday as yen gains")


def test_the_view_of_pytorch_is_that_of_the_engine() -> None:
    tokenizer = Tokenizer.load("shipped")
    ids = [tokenizer.encode(tokenizer.headline_words(one)) for one in HEADLINES]
    asked = AskedIds(tokenizer.encode(tokenizer.words(LEDE)), ids)
    generator = bundled_generator().engine
    (view,) = run_steps(follow(generator, [asked]))
    seen = seen_by_torch(view)
    longest = max(map(len, ids))
    assert seen.source.tolist() == list(asked.source)
    assert seen.headlines.tolist() == [[*one, *[0] * (longest - len(one))] for one in ids]
    assert seen.states.shape == (2, longest + 1, generator.size)
    assert seen.values.flatten().tolist() == list(memoryview(view.values).cast("f"))
    assert seen.scores.tolist() == pytest.approx(
        [sum(logs) / (len(one) + 1) for logs, one in zip(view.logs, ids, strict=True)]
    )

    torch.manual_seed(1)
    shape = VerifierShape(tokenizer.vocabulary_size, layers=1, generator_size=generator.size)
    verifier = Verifier(shape).eval()
    verifier.classes.copy_(torch.arange(shape.vocabulary))
    tensors = {
        name: StoredTensor("F32", tuple(one.shape), one.detach().numpy().tobytes())
        for name, one in verifier.state_dict().items()
    }
    engine = VerifierEngine(shape._asdict(), tensors, "float32")
    with torch.inference_mode():
        wanted = verifier(VerifierBatch.of([seen]))
    found = engine.judge(view)
    torch.testing.assert_close(torch.tensor(found.labels), wanted.labels, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.tensor(found.kinds), wanted.kinds, rtol=1e-4, atol=1e-4)
