"""A paid call that is given up at its n-th await, for every n: nobody pays for an answer that did not leave."""

import json
import secrets
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.arranged import FACTS
from tests.calls.cancelling import Exchange, drive
from tests.calls.parts import RICH
from tests.calls.shop import Shop, shop
from tests.requirements import proves
from tests.size import a_share
from tests.test_hot_path import JSON, request
from toolserver.serving.connections import RequestGate

PRICE, FUNDS, MOST = 2, 100, 200
WAYS = ("task", "scope", "client")
TTL_S = 120.0


def asking(face: str, token: str, key: str | None) -> tuple[dict[str, Any], bytes]:
    """The scope and the body of a paid call."""
    bearer = (b"authorization", f"Bearer {token}".encode())
    if face == "REST":
        keyed = () if key is None else ((b"idempotency-key", key.encode()),)
        return request("/api/pro/report", bearer, *keyed), b""
    params: dict[str, Any] = {"name": "premium_report", "arguments": {}}
    if key is not None:
        params["_meta"] = {"idempotency_key": key}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return request("/api/mcp", *JSON, bearer, method="POST"), json.dumps(message).encode()


async def give_up_everywhere(
    s: Shop, app: Any, face: str, way: str, *, cold: bool, keyed: bool, again: bool = False
) -> dict[str, int]:
    """Give a call up at its first await, at its second, and so on, each with a token of its own, until it has no more.

    `again`: the caller asks once more with the same key, and stays. Returns what each token owes: the price, if an
    answer left as a whole.
    """
    owed: dict[str, int] = {}
    for n in range(1, MOST):
        token, key = f"svc_live_{secrets.token_hex(32)}", f"key {n}" if keyed else None
        await s.ledger.mint(token, FUNDS, cause=token[-16:])
        if cold:
            s.clock.advance(TTL_S)
        scope, body = asking(face, token, key)
        exchange = Exchange(body)
        with anyio.fail_after(20):
            await drive(app, scope, exchange, n, way)
        owed[token] = PRICE * exchange.is_whole
        if again:
            second = Exchange(body)
            await drive(app, scope, second, MOST, way)
            assert second.is_whole
            assert not exchange.is_whole or paid_answer(second) == paid_answer(exchange)
            owed[token] = PRICE
        if exchange.awaits < n:
            assert exchange.is_whole
            return owed
    raise AssertionError("a call has no end of awaits")


def paid_answer(exchange: Exchange) -> Any:
    """The answer to a call that was paid for. Raises AssertionError for a refusal."""
    said = json.loads(exchange.answer)
    assert exchange.sent[0]["status"] == 200, said
    assert said.get("result", {}).get("isError", False) is False, said
    return said


async def settle(s: Shop) -> None:
    """Let what nobody waits for be written."""
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
        await s.ledger.sweep()


async def charged(s: Shop, token: str) -> int:
    return FUNDS - await s.ledger.balance(token)


CASES = [
    (face, way, cold, keyed)
    for face in ("MCP", "REST")
    for way in WAYS
    for cold in (False, True)
    for keyed in (False, True)
]


@proves("charge.hang-up")
@pytest.mark.parametrize(("face", "way", "cold", "keyed"), a_share(CASES, 5))
async def test_nobody_is_charged_for_an_answer_that_did_not_leave(
    tmp_path: Path, face: str, way: str, cold: bool, keyed: bool
) -> None:
    async with shop(tmp_path) as s:
        app = gated(s)
        await s.buy()
        owed = await give_up_everywhere(s, app, face, way, cold=cold, keyed=keyed)
        assert len(owed) > 2
        await settle(s)
        for token, price in owed.items():
            # what was charged and did not leave is released at the next start, if it was not at once
            assert await charged(s, token) in {price, PRICE}, "charged more than once"
        assert await s.ledger.holds() == []
    async with shop(tmp_path) as s:
        assert {token: await charged(s, token) for token in owed} == owed
        assert await s.ledger.check() == []


@proves("charge.hang-up")
@pytest.mark.parametrize("face", ["MCP", "REST"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cold", [False, True], ids=["cached", "cold"])
async def test_who_asks_again_with_the_same_key_is_answered_and_pays_once_at_most(
    tmp_path: Path, face: str, way: str, cold: bool
) -> None:
    async with shop(tmp_path) as s:
        app = gated(s)
        await s.buy()
        owed = await give_up_everywhere(s, app, face, way, cold=cold, keyed=True, again=True)
        await settle(s)
        assert {token: await charged(s, token) for token in owed} == owed
        assert await s.ledger.holds() == []
    async with shop(tmp_path) as s:  # what was cut while it was sent is given back, though it was asked for again
        at_most = {token: await charged(s, token) for token in owed}
        assert set(at_most.values()) <= ({PRICE} if way == "client" else {0, PRICE})
        assert await s.ledger.check() == []


@proves("charge.killed")
@pytest.mark.parametrize("face", ["MCP", "REST"])
@pytest.mark.parametrize("cold", [False, True], ids=["cached", "cold"])
async def test_killed_at_any_await_a_call_with_a_key_is_charged_once_when_it_is_repeated(
    tmp_path: Path, face: str, cold: bool
) -> None:
    folders: dict[int, Path] = {}
    (tmp_path / "data").mkdir()
    async with shop(tmp_path / "data") as s:
        app = gated(s)
        await s.buy()
        await settle(s)  # that its answer was sent is written with the next group
        before = await charged(s, RICH)
        for n in range(1, MOST):
            if cold:
                s.clock.advance(TTL_S)
            scope, body = asking(face, RICH, f"key {n}")
            exchange = Exchange(body)

            def leave_disk(n: int = n) -> None:  # what a killed process leaves behind
                folders[n] = tmp_path / str(n)
                shutil.copytree(tmp_path / "data", folders[n], ignore=shutil.ignore_patterns("*-shm"))

            before = await charged(s, RICH)
            await drive(app, scope, exchange, n, leave_disk)
            assert exchange.is_whole
            if exchange.awaits < n:
                break
            await settle(s)
            async with shop(folders[n], clock=s.clock) as after:
                await repeat_once(after, face, f"key {n}", before)
    assert len(folders) > 2


async def repeat_once(s: Shop, face: str, key: str, before: int) -> None:
    """After a start on what a killed process left: nothing is owed for its call, and the same key is charged once."""
    aside = PRICE * len(await s.ledger.holds())  # for the call that is to be repeated; it expires in five minutes
    assert await charged(s, RICH) == before + aside
    scope, body = asking(face, RICH, key)
    answers = []
    for _ in range(2):
        exchange = Exchange(body)
        await drive(gated(s), scope, exchange, MOST, "client")
        answers.append(paid_answer(exchange))
    assert answers[0] == answers[1]
    await settle(s)
    assert await charged(s, RICH) == before + PRICE
    assert await s.ledger.holds() == []
    assert await s.ledger.check() == []


def gated(s: Shop) -> RequestGate:
    """The service behind the gate that knows when an answer has left, as it is served."""
    return RequestGate(s.app, FACTS)
