"""The options of the search on the command line are those of `SearchConfig`."""

from typing import Annotated, Any, Literal, get_args

import click
import pytest
from click.testing import CliRunner

from ledeline.cli import app, options
from ledeline.cli.parameters import make_command
from ledeline.config import SearchConfig, search
from ledeline.config.section import at_least, fields, section
from ledeline.inference import headliner
from pages import ROOT

COMMANDS: Any = {
    verb: app.get_command(click.Context(app), verb) for verb in ("generate", "evaluate")
}
KEYS = fields(SearchConfig)
ELSEWHERE = {  # keys without an option of their own
    "generate": {"forbid_unknown": "--unknown forbid"},
    "evaluate": {"forbid_unknown": "--unknown forbid", "n_best": "only the best is scored"},
}


@pytest.mark.parametrize("verb", ELSEWHERE)
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_is_an_option(verb: str, key: Any) -> None:
    found = {one.name: one for one in COMMANDS[verb].params}
    if key.name in ELSEWHERE[verb]:
        assert key.name not in found
        return
    option = found[key.name]
    assert option.opts == [f"--{key.name.replace('_', '-')}"]
    assert option.secondary_opts == []
    assert option.default == key.default
    assert option.help == key.doc


@pytest.mark.parametrize("name", ["check", "rank", "constrain", "min_support"])
def test_options_of_the_check_are_those_of_python(name: str) -> None:
    key = next(one for one in fields(headliner.Options) if one.name == name)
    for verb in ELSEWHERE:
        option = {one.name: one for one in COMMANDS[verb].params}[name]
        assert (option.default, option.help) == (key.default, key.doc)


def test_python_knows_the_same_precisions_and_devices() -> None:
    assert get_args(headliner.Precision) == get_args(search.Precision)
    assert get_args(headliner.Device) == get_args(search.Device)


@pytest.mark.parametrize("page", ["headliner.md", "search.md"])
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_is_on_the_pages(page: str, key: Any) -> None:
    assert f"`{key.name}`" in (ROOT / "docs" / page).read_text(), f"docs/{page} lacks {key.name}"


@section
class Longer:
    """Options with more kinds of values."""

    beam: Annotated[int, "As before.", at_least(1)] = 20
    diverse_groups: Annotated[int, "A new one."] = 3
    penalty: Annotated[float | None, "A number, or none."] = None
    order: Annotated[Literal["best", "first"], "Which."] = "best"
    verbose: Annotated[bool, "A flag."] = False
    hidden: Annotated[bool, "Without an option."] = True


DEFAULT = Longer()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(options, "SearchConfig", Longer)
    seen: list[tuple[str, Longer, bool]] = []

    @options.with_search_options(without=("hidden",))
    def verb(text: str, search: Longer = DEFAULT, last: bool = False) -> None:
        """Say something."""
        seen.append((text, search, last))

    small = make_command("verb", verb)

    def call(*words: str) -> tuple[Any, Any]:
        result = CliRunner().invoke(small, words)
        return result, seen[-1] if seen else None

    return call


class TestANewKey:
    def test_becomes_an_option_with_its_default(self, run: Any) -> None:
        result, _ = run("--help")
        for word in ("--diverse-groups", "--penalty", "--order", "--verbose", "--last", "TEXT"):
            assert word in result.output
        assert "Say something." in result.output
        assert "hidden" not in result.output
        assert run("a")[1] == ("a", Longer(), False)

    def test_is_passed_on(self, run: Any) -> None:
        given = ["a", "--diverse-groups=5", "--penalty=0.5", "--order=first", "--verbose", "--last"]
        search = Longer(diverse_groups=5, penalty=0.5, order="first", verbose=True)
        assert run(*given)[1] == ("a", search, True)
        assert "best" in run("a", "--order=worst")[0].output  # click lists what there is
