"""What can be set, where, and what cannot be."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ledeline.cli import app
from ledeline.config.toml import load
from ledeline.core.errors import ConfigError
from ledeline.server.settings import TOKEN_VARIABLE, ServeConfig, find_tokens

TOKEN = "0123456789abcdef"


def test_folders_of_models_are_paths(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('[model]\nfolders = ["a", "b"]\n')
    assert load(ServeConfig, file).model.folders == (Path("a"), Path("b"))
    assert load(ServeConfig, None, ["--model.folders=a"]).model.folders == (Path("a"),)


@pytest.mark.parametrize("arguments", [[], ["FILE"]])
def test_overrides_need_no_file(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text("[limits]\nbeam = 7\n")
    given = [str(file) if one == "FILE" else one for one in arguments]
    shown = CliRunner().invoke(app, ["serve", *given, "--limits.texts=9999"])
    assert shown.exit_code == 2
    assert "limits.texts = 9999: must be at most limits.waiting, 512" in shown.stderr


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("--server.port=70000", "server.port = 70000: must be at most 65535"),
        ("--server.prefix=desk", "server.prefix = 'desk'|must begin with /"),
        ("--server.health_port=70000", "server.health_port = 70000: must be at most 65535"),
        ("--server.proxies=desk", "server.proxies = .*desk.*must be an IP address or a network"),
        ("--server.proxies=10.0.0.1/8", "must be an IP address or a network"),
        ("--server.proxies=*", "must be an IP address or a network"),
        ("--server.hosts=http://desk", "server.hosts = .*must be a name without scheme and port"),
        ("--server.hosts=desk:80", "must be a name without scheme and port"),
        ("--limits.beam=0", "limits.beam = 0"),
        ("--limits.bean=3", "did you mean limits.beam"),
    ],
)
def test_what_cannot_be_is_told(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load(ServeConfig, None, [override])


class TestToken:
    def test_nobody_is_asked_without(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
        assert find_tokens(None) == ()

    def test_the_file_goes_before_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(TOKEN_VARIABLE, "of the environment")
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        assert find_tokens(tmp_path / "token") == (TOKEN,)
        assert find_tokens(None) == ("of the environment",)

    @pytest.mark.parametrize("text", ["", "short", "two\nlines of a token", "täglich-neu-0123456"])
    def test_a_bad_one_is_refused_and_not_shown(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "token").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="a token has") as caught:
            find_tokens(tmp_path / "token")
        assert not text or text not in str(caught.value)

    def test_a_file_may_have_several(self, tmp_path: Path) -> None:
        lines = ["# of the desk", TOKEN, "", "  ", f"  {TOKEN[::-1]}\r", "#" + TOKEN]
        (tmp_path / "token").write_bytes("\n".join(lines).encode())
        assert find_tokens(tmp_path / "token") == (TOKEN, TOKEN[::-1])

    @pytest.mark.parametrize("text", ["# nothing else\n", "\n\n", f"{TOKEN}\nshort\n"])
    def test_a_file_without_any_opens_nothing(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "token").write_text(text)
        with pytest.raises(ConfigError, match="a token has at least 16"):
            find_tokens(tmp_path / "token")

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"nothing: the token cannot be read: No such file"):
            find_tokens(tmp_path / "nothing")
