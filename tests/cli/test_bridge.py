"""A service elsewhere from the command line: which addresses, what is printed, and the exit status."""

import json
from contextlib import asynccontextmanager

import click
import pytest

from toolserver.cli import bridge
from toolserver.cli.bridge import call_server, has_data, open_bridge, origin_of

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
    async with open_bridge(SERVER, {"data_dir": tmp_path / "data", "token": "svc_live_x"}, {"toolset": "all"}) as made:
        assert made._purse.read_tokens() == ["svc_live_x"]
        assert made._path == "api/mcp?toolset=all"
    assert not (tmp_path / "data").exists()


@pytest.fixture
def answering(monkeypatch):
    """Lets the service answer with a result, and returns the messages that it is asked."""
    asked = []

    def answer(**told):
        class Bridge:
            async def answer(self, line, message):
                asked.append(json.loads(line))
                return json.dumps({"jsonrpc": "2.0", "id": 1, **told}).encode()

        @asynccontextmanager
        async def opened(server, flags, chosen):
            assert (server, chosen) == (SERVER, {"toolset": "all"})
            yield Bridge()

        monkeypatch.setattr(bridge, "open_bridge", opened)
        return asked

    return answer


def text(payload, *, failed=False):
    content = [{"type": "text", "text": json.dumps(payload)}]
    return {"content": content, "isError": failed} | ({} if failed else {"structuredContent": payload})


async def test_an_answer_is_printed_and_the_status_is_0(answering, capsys):
    asked = answering(result=text({"data": {"price": 3}}))
    assert await call_server(SERVER, "gas", {"chain": "base"}, {}, as_json=False) == 0
    assert asked[0]["params"] == {"name": "gas", "arguments": {"chain": "base"}}
    assert capsys.readouterr().out == '{\n  "data": {\n    "price": 3\n  }\n}\n'
    assert await call_server(SERVER, "gas", {}, {}, as_json=True) == 0
    assert capsys.readouterr().out == '{"data": {"price": 3}}\n'


async def test_a_refusal_goes_to_standard_error_and_the_status_is_1(answering, capsys):
    answering(result=text({"error": "missing_token"}, failed=True))
    assert await call_server(SERVER, "premium_macro", {}, {}, as_json=False) == 1
    told = capsys.readouterr()
    assert (told.out, "missing_token" in told.err) == ("", True)


async def test_without_data_the_status_is_1(answering):
    answering(result=text({"data": None, "stale": True}))
    assert await call_server(SERVER, "gas", {}, {}, as_json=True) == 1
    assert [has_data(payload) for payload in ({"credits": 3}, {"data": []}, {"data": None})] == [True, True, False]


async def test_an_error_of_the_protocol_ends_the_program_with_its_sentence(answering):
    answering(error={"code": -32602, "message": "there is no tool called gass; did you mean gas?"})
    with pytest.raises(click.ClickException, match="did you mean gas"):
        await call_server(SERVER, "gass", {}, {}, as_json=False)
