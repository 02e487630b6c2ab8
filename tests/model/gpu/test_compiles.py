"""Kernels compile for real GPUs, on a machine that has none: Triton brings its own assembler.

Triton's interpreter, in which the tests of kernels run on a CPU, takes programs that its compiler
refuses. The compiler runs in a process of its own, since the interpreter is chosen on import.
"""

import os
import subprocess
import sys

import pytest

from ledeline.model.gpu import dispatch

pytestmark = pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton")

# name of the kernel -> types of its arguments in order, and what it is compiled for
PROGRAM = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ledeline.model.gpu import loss_kernels, norm_kernels

X, H, LONG, I, F = "*fp32", "*bf16", "*i64", "i32", "fp32"
CASES = [
    (norm_kernels.add_and_norm_forward,
     [X, H, LONG, X, X, X, H, X, X, I, F, F, I, I, I], {"DROPS": True, "BLOCK": 512}),
    (norm_kernels.add_and_norm_forward,
     [X, X, LONG, X, X, X, X, X, X, I, F, F, I, I, I], {"DROPS": False, "BLOCK": 2048}),
    (norm_kernels.add_and_norm_backward,
     [X, H, X, LONG, X, X, X, X, H, X, X, I, I, F, I, I, I],
     {"HAS_SUMS": True, "DROPS": True, "BLOCK": 512}),
    (norm_kernels.add_and_norm_backward,
     [X, X, X, LONG, X, X, X, X, X, X, X, I, I, F, I, I, I],
     {"HAS_SUMS": False, "DROPS": False, "BLOCK": 512}),
    (loss_kernels.smoothed_row,
     [H, LONG, X, X, I, F, I],
     {"FIRST": 0, "SECOND": 2, "GRADIENT": True, "BLOCK": 2048}),
    (loss_kernels.target_row, [H, LONG, X, I], {"GRADIENT": True, "BLOCK": 2048}),
]
for kernel, types, constants in CASES:
    names = kernel.arg_names
    assert len(names) == len(types) + len(constants), kernel
    signature = dict(zip(names, [*types, *["constexpr"] * len(constants)], strict=True))
    given = {(names.index(name),): value for name, value in constants.items()}
    for architecture in (80, 90):
        source = ASTSource(fn=kernel, signature=signature, constexprs=given)
        compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32))
        assert compiled.asm["cubin"], kernel
print("compiled", 2 * len(CASES))
"""


def test_for_an_a100_and_an_h100(tmp_path: object) -> None:
    environment = {name: one for name, one in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)  # nothing is found compiled
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptxas" in done.stderr and "not found" in done.stderr.lower():
        pytest.skip("this Triton has no assembler")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "compiled 12\n"
