"""The engine without Python, from other compilers and for another processor: the same bits.

Each test is skipped where its compiler or QEMU is missing.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT

pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import golden
import native_driver

(ARM, QEMU), (WINDOWS, WINE) = golden.ELSEWHERE["aarch64"], golden.ELSEWHERE["windows"]
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
LEDES = (3, 190, 333, 480, 481, 482, 483, 484, 486, 488, 490)  # of the golden file, most are short
SHORT = (480, 481, 483)


def needs(*programs: str) -> pytest.MarkDecorator:
    reason = native_driver.missing(*programs)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("portability")


def dump(folder: Path, ledes: tuple[int, ...]) -> Path:
    path = folder / f"{len(ledes)}.dump"
    sources = golden.encoded(golden.ledes())
    return path if path.exists() else golden.write_dump(path, [sources[one] for one in ledes])


def finds_the_golden_file(
    driver: list[str], folder: Path, ledes: tuple[int, ...], **options: object
) -> bool:
    done = native_driver.run(driver, dump(folder, ledes), block_ngrams=2, **options)
    found = [
        golden.Golden(one.cost, one.labels, one.seen, one.ids) for one in native_driver.lines(done)
    ]
    wanted = golden.read()
    return found == [wanted[one] for one in ledes]


@pytest.mark.parametrize(
    "compiler", [pytest.param(one, marks=needs(one)) for one in ("gcc", "clang")]
)
def test_compilers_give_the_same_bits(compiler: str, folder: Path) -> None:
    driver = native_driver.build(compiler, folder / compiler, WARNINGS)
    for kind in native_driver.kinds([str(driver)]):
        ledes = SHORT if kind == "portable" else LEDES
        assert finds_the_golden_file([str(driver)], folder, ledes, kind=kind)
    assert finds_the_golden_file([str(driver)], folder, LEDES, threads=3, batch=2)


@pytest.fixture(scope="module")
def arm(folder: Path) -> Path:
    return native_driver.build(ARM, folder / "arm", ["-static", *WARNINGS])


@needs(ARM, QEMU)
class TestArm:
    @pytest.mark.parametrize(
        ("kind", "ledes"), [("dotprod", LEDES[:9]), ("neon", LEDES[:4]), ("portable", SHORT)]
    )
    def test_it_has_the_bits_of_x86(
        self, arm: Path, folder: Path, kind: str, ledes: tuple[int, ...]
    ) -> None:
        assert finds_the_golden_file([QEMU, str(arm)], folder, ledes, kind=kind)

    @pytest.mark.parametrize(
        ("processor", "kinds"),
        [("max", ["portable", "neon", "dotprod"]), ("cortex-a53", ["portable", "neon"])],
    )
    def test_which_kinds_it_has(self, arm: Path, processor: str, kinds: list[str]) -> None:
        assert native_driver.kinds([QEMU, "-cpu", processor, str(arm)]) == kinds


@pytest.fixture(scope="module")
def exe(folder: Path) -> Path:
    return native_driver.build(WINDOWS, folder / "driver.exe", ["-static", *WARNINGS])


@needs(WINDOWS)
class TestWindows:
    def test_the_engine_compiles_without_warnings(self, exe: Path) -> None:
        assert exe.read_bytes()[:2] == b"MZ"

    @needs(WINE)
    def test_it_has_the_same_bits(self, exe: Path, folder: Path) -> None:
        env = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
        assert finds_the_golden_file([WINE, str(exe)], folder, LEDES, env=env)

    def test_what_needs_python_compiles_beside_its_headers(self, tmp_path: Path) -> None:
        """The headers are those of this machine; all that Windows lacks of them is one file."""
        import sysconfig

        include = sysconfig.get_path("include")
        (tmp_path / "sys").mkdir()
        (tmp_path / "sys" / "select.h").touch()
        others = set(native_driver.NATIVE.glob("*.c")) - set(native_driver.engine_sources())
        asked = [WINDOWS, *native_driver.flags(), "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
        done = subprocess.run(
            [*asked, f"-I{tmp_path}", f"-I{include}", *map(str, sorted(others))],
            capture_output=True,
            text=True,
        )
        assert len(others) >= 6
        assert done.returncode == 0, done.stderr


@needs("gcc")
def test_an_old_compiler_leaves_out_what_it_does_not_know(folder: Path) -> None:
    """It stands for GCC 9 and 10, which end with an error where they read `avxvnni`."""
    driver = [str(native_driver.build("gcc", folder / "old", [*WARNINGS, "-DNO_AVXVNNI"]))]
    own = native_driver.kinds([str(native_driver.build("gcc", folder / "new"))])
    assert native_driver.kinds(driver) == [kind for kind in own if kind != "avxvnni"]
    assert finds_the_golden_file(driver, folder, SHORT)
    text = (native_driver.NATIVE / "kernels.c").read_text("utf-8")
    asked = ["gcc", *native_driver.flags(), "-DNO_AVXVNNI", "-E", f"-I{native_driver.NATIVE}"]
    done = subprocess.run([*asked, "-xc", "-"], input=text, capture_output=True, text=True)
    assert "vnni_kernels" in done.stdout
    assert "avxvnni_" not in done.stdout


@needs("gcc")
@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (
            ["-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__", "-Wno-builtin-macro-redefined"],
            "little-endian",
        ),
        (["-ffast-math"], "fast-math"),
        (["-D__FLT_EVAL_METHOD__=2", "-Wno-builtin-macro-redefined"], "one precision"),
    ],
)
def test_what_would_change_bits_is_not_compiled(flags: list[str], complaint: str) -> None:
    source = str(native_driver.NATIVE / "kernels.c")
    asked = ["gcc", *native_driver.flags(), *flags, "-fsyntax-only", source]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode
    assert complaint in done.stderr
