"""A service elsewhere from the command line: to which addresses tokens may go."""

import click
import pytest

from toolserver.cli.bridge import open_bridge, origin_of

SERVER = "https://data.example"


@pytest.mark.parametrize(
    ("server", "origin"),
    [
        ("https://Data.example", "https://data.example"),
        ("https://data.example/", "https://data.example"),
        ("https://data.example/api/mcp", "https://data.example"),
        ("https://example.org/tools", "https://example.org/tools"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://localhost:8080/api/mcp", "http://localhost:8080"),
    ],
)
def test_credentials_are_kept_under_the_address_of_the_service(server, origin):
    assert origin_of(server) == origin


@pytest.mark.parametrize("server", ["http://data.example", "http://10.0.0.1:8080", "data.example", "ftp://x", ""])
def test_a_token_never_travels_where_others_can_read_it(server):
    with pytest.raises(click.ClickException, match="--server must"):
        origin_of(server)


async def test_a_bridge_has_the_given_token_and_writes_nothing(tmp_path):
    async with open_bridge(
        SERVER, {"data_dir": tmp_path / "data", "token": "svc_live_x"}, {"toolset": "all"}
    ) as bridge:
        assert bridge.purse.read_tokens() == ["svc_live_x"]
        assert bridge.path == "api/mcp?toolset=all"
    assert not (tmp_path / "data").exists()
