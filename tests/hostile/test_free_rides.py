"""Nothing that is sold is had without a charge, by whatever trick, but what the contract gives; and that is bounded."""

import json
import re
import socket
import struct
from collections import Counter

import httpx
import pytest

from tests.hostile.free_rides import ATTEMPTS, REPEATS, find_free_rides
from tests.hostile.paid_shop import CHILD, call, list_premium, list_sold, paid_shop
from tests.live.processes import started
from tests.size import a_share
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.x402 import wire

FREE_AN_HOUR = 10  # answers, by docs/billing.md
BURSTS = 25  # a day of them: the bucket is full at the beginning, and full again each hour
LOG = ("log_checkpoint", "log_node", "no_charge", "no_charge_day", "uncharged_call")
TAKEN = ("premium_macro", "premium_briefing", "premium_code_host_velocity")
TOOLS = {operation.name: operation for operation in list_premium()}


@pytest.mark.parametrize("name", a_share(TOOLS, 5, first=1))
async def test_no_attempt_gets_what_is_sold_without_a_charge(tmp_path, name):
    tool = TOOLS[name]
    async with paid_shop(tmp_path) as shop:
        heard = [await shop.get(tool.path), await shop.tell(tool.name)]
        assert len(list_sold(heard)) == 2, "an answer that is paid for is recognised as one"
        wrong = [ride async for ride in find_free_rides(shop, tool, ATTEMPTS + REPEATS)]
    assert wrong == []


async def lose_the_world(shop):
    """Let every kept answer become stale."""
    for tool in TOOLS.values():
        await shop.get(tool.path)
    shop.upstreams.down = True
    shop.clock.advance(3 * 3600)
    shop.heard.clear()


async def ask_with_tokens(shop, tool):
    """In every way there is: with a token and its allowance, with keys, over MCP."""
    for number in range(6):
        await shop.get(tool.path)
        await shop.get(tool.path, token=CHILD, idempotency_key=f"{tool.name} {number} {'x' * 200}")
        await shop.get(f"{tool.path}?meta=short", prefer="receipt=reference")
        await shop.tell(tool.name, idempotency_key=f"mcp {tool.name} {number}")


async def ask_with_payments(shop, tool):
    """From one address, with payments of as many accounts."""
    for number in range(16):
        payer = checksum_address(bytes([number + 1]) * 20)
        await shop.get(tool.path, token=None, payment_signature=wire.header(shop.sign(tool, **{"from": payer})))


@pytest.mark.parametrize(
    ("ask", "uncharged"),
    [(ask_with_tokens, FREE_AN_HOUR * len(TOOLS)), (ask_with_payments, FREE_AN_HOUR)],
    ids=["a token", "an address by x402"],
)
async def test_what_stale_answers_give_and_leave_behind_is_bounded(tmp_path, ask, uncharged):
    """An attacker at the limits of an hour. A day is that 25 times."""
    async with paid_shop(tmp_path) as shop:
        await lose_the_world(shop)
        await shop.close_hours()
        paid, before = await shop.paid(), await shop.read_sizes()
        for tool in TOOLS.values():
            await ask(shop, tool)
        sold, refused = len(list_sold(shop.heard)), sum(b"rate_limited" in heard.body for heard in shop.heard)
        await shop.close_hours()
        after = await shop.read_sizes()
        assert await shop.paid() == paid
    assert (refused, 0 < sold <= uncharged) == (len(shop.heard) - uncharged, True)
    grown = Counter({name: size - before.get(name, 0) for name, size in after.items()})
    log, file = sum(grown[name] for name in LOG), grown.total()
    print(f"a day: {sold * BURSTS:,} answers, log {log * BURSTS:,} bytes, file {file * BURSTS:,}; {dict(+grown)}")
    assert 0 < log * BURSTS < 1_000_000
    assert file * BURSTS < 20_000_000, "with receipts, and answers that are kept for a day"


@pytest.mark.live
@pytest.mark.parametrize("server", ["hypercorn", "uvicorn"])
def test_all_but_the_last_byte_costs_what_the_whole_costs_also_after_a_restart(tmp_path, server):
    with started("demo", "--server", server, folder=tmp_path) as demo:
        token, credits = demo.ready["token"], demo.ready["credits"]
        asked = [(b"GET %s HTTP/1.1\r\n" % TOOLS[name].path.encode(), TOOLS[name].credits, b"") for name in TAKEN]
        body = json.dumps(call(TAKEN[0])).encode()
        head = b"POST /api/mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
        asked.append((head, TOOLS[TAKEN[0]].credits, body))
        for _ in range(2):  # made for it, and from the cache
            for line, price, body in asked:
                words = line + b"Host: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % token.encode() + body
                assert b"generated_at" in take_all_but_one_byte(demo.address, words)
                credits -= price
        bearer = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{demo.url}/api/payment/balance", headers=bearer).json()["credits"] == credits
    with started("demo", "--server", server, folder=tmp_path) as demo:
        assert httpx.get(f"{demo.url}/api/payment/balance", headers=bearer).json()["credits"] == credits


def take_all_but_one_byte(address, words):
    """Read an answer but for its last byte through a small window, and break the connection."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(address)
        sock.sendall(words)
        heard, size = b"", None
        while size is None or len(heard) < size - 1:
            heard += (got := sock.recv(2048 if size is None else min(2048, size - 1 - len(heard))))
            assert got, heard
            head, ended, _ = heard.partition(b"\r\n\r\n")
            if ended and size is None:
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                assert length, head
                size = len(head) + 4 + int(length[1])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return heard
