"""Regular expressions that are compiled when they are first used."""

import re

import pytest

from ledeline.core.patterns import lazy_pattern


def test_it_finds_what_a_compiled_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or compile_now(*given))
    lazy = lazy_pattern(r"(b)(c)?", re.IGNORECASE)
    assert not compiled
    assert lazy.findall("abBC") == compile_now(r"(b)(c)?", re.IGNORECASE).findall("abBC")
    assert lazy.sub(r"<\1>", "abc") == "a<b>"
    assert lazy.pattern == r"(b)(c)?"
    assert len(compiled) == 3
    assert lazy.sub("-", "aB") == "a-"
    assert len(compiled) == 3


def test_it_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        _ = lazy_pattern("a").nonsense  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = lazy_pattern("a").__array__  # type: ignore[attr-defined]
