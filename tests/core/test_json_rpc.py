"""JSON-RPC over HTTP: what counts as an answer, what does not, and how much of a body is ever read."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.core.rpc_server import RpcServer, endless, hang, rpc_server
from toolserver.core.json_rpc import JsonRpcClient, RpcRefused, RpcUnusable

LIMIT = 1000


def right(call: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call["id"], "result": "0x1"}


@asynccontextmanager
async def client(reply: Any, **changed: Any) -> AsyncIterator[tuple[JsonRpcClient, RpcServer]]:
    async with rpc_server(reply) as server:
        rpc = JsonRpcClient(server.url, **({"timeout_s": 5.0, "most_bytes": LIMIT} | changed))
        yield rpc, server
        await rpc.aclose()


async def test_a_call_is_sent_to_the_whole_address_with_an_id_of_its_own():
    async with client(right) as (rpc, server):
        assert await rpc.call("eth_call", {"to": "0x1"}, "latest") == "0x1"
        assert await rpc.call("eth_chainId") == "0x1"
    assert server.paths == ["/v2/SECRETKEY?tier=1"] * 2
    first, second = server.asked
    assert (first["jsonrpc"], first["method"], first["params"]) == ("2.0", "eth_call", [{"to": "0x1"}, "latest"])
    assert second["params"] == []
    assert first["id"] != second["id"]


async def test_a_result_may_be_null():
    async with client(lambda call: right(call) | {"result": None}) as (rpc, _):
        assert await rpc.call("eth_getTransactionReceipt", "0x1") is None


async def test_an_error_of_the_server_has_its_number():
    error = {"code": -32005, "message": "SECRETKEY"}
    async with client(lambda call: {"id": call["id"], "error": error}) as (rpc, _):
        with pytest.raises(RpcRefused) as refused:
            await rpc.call("eth_chainId")
        assert refused.value.code == -32005
        assert "SECRETKEY" not in str(refused.value)
        assert (await rpc.exchange("eth_chainId", []))["error"] == error


UNUSABLE = {
    "a status": (lambda call: web.json_response(right(call), status=503), "HTTP 503"),
    "a redirection": (lambda call: web.Response(status=307, headers={"location": "http://127.0.0.1:9/"}), "HTTP 307"),
    "HTML": (lambda call: web.Response(text="<p>", content_type="text/html"), "not JSON"),
    "nothing": (lambda call: web.Response(), "not JSON"),
    "deep nesting": (lambda call: web.Response(text="[" * 900), "not JSON"),
    "a list": (lambda call: [right(call)], "another request"),
    "another id": (lambda call: right(call) | {"id": 999}, "another request"),
    "no id": (lambda call: {"result": 1}, "another request"),
    "an error that is a text": (lambda call: {"id": call["id"], "error": "no"}, "neither a result nor an error"),
    "one byte too many": (lambda call: web.Response(text=" " * (LIMIT + 1)), "too long"),
}


@pytest.mark.parametrize(("reply", "why"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_anything_else_is_unusable_and_says_why_without_the_address(reply, why, caplog):
    caplog.set_level(logging.DEBUG)
    async with client(reply) as (rpc, _):
        with pytest.raises(RpcUnusable, match=why) as unusable:
            await rpc.call("eth_chainId")
    assert "SECRETKEY" not in str(unusable.value) + caplog.text


async def test_an_answer_of_exactly_the_limit_is_read():
    async with client(lambda call: web.Response(text=f'{{"id":{call["id"]},"result":7}}'.ljust(LIMIT))) as (rpc, _):
        assert await rpc.call("eth_chainId") == 7


async def test_an_address_that_nobody_listens_at_is_not_named():
    rpc = JsonRpcClient("http://127.0.0.1:9/SECRETKEY", timeout_s=5, most_bytes=LIMIT)
    with pytest.raises(RpcUnusable, match=r"^ClientConnectorError$"):
        await rpc.call("eth_chainId")
    await rpc.aclose()
    await rpc.aclose()


async def test_a_server_that_hangs_is_given_up():
    async with client(hang, timeout_s=0.05) as (rpc, _):
        with pytest.raises(RpcUnusable, match="Timeout"):
            await rpc.call("eth_chainId")


async def test_a_body_without_end_is_given_up_at_the_limit():
    sent: list[int] = []
    async with client(lambda call: endless(sent)) as (rpc, _):
        with pytest.raises(RpcUnusable, match="too long"):
            await rpc.call("eth_chainId")
    assert sent[0] < 2**24, "what the buffers of both ends hold, not the 256 MB that were offered"


@pytest.mark.parametrize(("times", "lost"), [(1, False), (2, True)])
async def test_a_request_whose_connection_was_closed_is_sent_once_more(times, lost):
    def reply(call: dict[str, Any]) -> Any:
        return None if len(server.asked) <= times else right(call)

    async with client(reply) as (rpc, server):
        if lost:
            with pytest.raises(RpcUnusable):
                await rpc.call("eth_chainId")
        else:
            assert await rpc.call("eth_chainId") == "0x1"
        assert len(server.asked) == 2
        assert server.asked[0] == server.asked[1]
