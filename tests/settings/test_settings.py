"""Test the settings: their precedence, the values that are refused, and the default data folder."""

import os
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from toolserver.settings import KEYS, PREFIX, Settings, default_data_dir


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(PREFIX) or name in KEYS:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_arguments_win_over_the_environment_and_it_over_the_file(tmp_path, monkeypatch):
    (tmp_path / "toolserver.toml").write_text('host = "::1"\nport = 1\n[limits]\ndaily = 5\nspacing_s = 2\n')
    monkeypatch.setenv("TOOLSERVER_PORT", "2")
    monkeypatch.setenv("TOOLSERVER_LIMITS__DAILY", "6")
    found = Settings(port=3)

    assert (found.host, found.port, found.limits.daily, found.limits.spacing_s) == ("::1", 3, 6, 2)
    assert Settings().port == 2


@pytest.mark.parametrize("name", ["TOOLSERVER_PROT", "TOOLSERVER_LIMIT__DAILY"])
def test_a_name_in_the_environment_that_is_no_setting_is_refused(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(ValueError, match=f"{name} is not a setting"):
        Settings()


@pytest.mark.parametrize("text", ["prot = 1", "[limits]\ndayly = 1", "[limits]\ndaily = 0"])
def test_a_name_or_a_value_in_the_file_that_is_wrong_is_refused(tmp_path, text):
    (tmp_path / "toolserver.toml").write_text(text)
    with pytest.raises(ValidationError):
        Settings()


def test_settings_cannot_be_changed_later():
    with pytest.raises(ValidationError):
        Settings().port = 1


@pytest.mark.parametrize(
    "url",
    [
        *("data.example", "ftp://data.example", "/tools", "http://", "https:///tools", "//data.example", "https:data"),
        *("https://me@data.example", "https://me:secret@data.example", "https://@data.example"),
        *("https://data.example?a=1", "https://data.example/?", "https://data.example/#top", "https://data.example#"),
        *("https://data.example:0", "https://data.example:", "https://data.example:70000", "https://data.example:x"),
        *("https://da ta.example", " https://data.example", "https://data.example\n", "https://data.example/a\tb"),
        *(
            "https://-data.example",
            "https://data..example",
            "https://data.example.",
            "https://.",
            "https://dätä.example",
        ),
        *("https://[::1", "https://[nonsense]", "https://::1", "https://data.example/../x", "https://data.example//x"),
        *("https://data.example/a%2fb", "https://data.example\\x", 'https://data.example/"><b>', "javascript:alert(1)"),
    ],
)
def test_a_base_url_that_is_not_a_plain_absolute_address_is_refused_and_not_repeated(url):
    with pytest.raises(ValidationError) as refused:
        Settings(base_url=url)
    assert "secret" not in refused.value.errors(include_input=False)[0]["msg"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("HTTPS://Data.Example/Tools/", "https://data.example/Tools"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://tool_server:8080/a/b.c", "http://tool_server:8080/a/b.c"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("https://192.0.2.1", "https://192.0.2.1"),
        ("https://xn--dt-1ja.example", "https://xn--dt-1ja.example"),
    ],
)
def test_a_base_url_is_kept_in_one_spelling(given, kept):
    assert Settings(base_url=given).base_url == kept


def test_a_base_url_loses_its_last_slash():
    assert Settings(base_url="https://data.example/tools/").base_url == "https://data.example/tools"
    assert Settings().base_url is None


def test_upstreams_are_replaced_by_a_web_address_only():
    with pytest.raises(ValidationError):
        Settings(upstream={"via": "world:9999"})
    assert Settings(upstream={"via": "http://127.0.0.1:9"}).upstream.via == "http://127.0.0.1:9"


def test_keys_come_from_the_settings_before_the_environment_and_empty_ones_are_not_set(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "from-environment")
    monkeypatch.setenv("FRED_API_KEY", "from-environment")
    monkeypatch.setenv("BLS_API_KEY", "")
    found = Settings(sources={"keys": {"github_token": "from-settings", "UNKNOWN": "x"}})

    assert found.keys == {"GITHUB_TOKEN": "from-settings", "FRED_API_KEY": "from-environment"}
    assert "from-settings" not in repr(found)


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_loopback_is_the_host_s(host, expected):
    assert Settings(host=host).loopback is expected


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("Linux", ".local/share/toolserver"),
        ("Darwin", "Library/Application Support/toolserver"),
    ],
)
def test_data_live_where_the_platform_puts_them(monkeypatch, tmp_path, system, expected):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(os, "uname", lambda: type("Name", (), {"sysname": system}))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert default_data_dir() == tmp_path / expected


def test_on_linux_the_directory_follows_the_desktop_s_variable(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "uname", lambda: type("Name", (), {"sysname": "Linux"}))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "toolserver"


def test_every_setting_says_what_it_means():
    def undescribed(model, prefix=""):
        for name, field in model.model_fields.items():
            kinds = [field.annotation, *get_args(field.annotation)]
            parts = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
            if parts:
                yield from undescribed(parts[0], f"{prefix}{name}.")
            elif not field.description:
                yield prefix + name

    assert list(undescribed(Settings)) == []
