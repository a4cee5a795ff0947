"""Attempts to get what is sold without paying for it. Each is a function of a shop and a tool; it must not work.

`ATTEMPTS` are judged by `find_free_rides`: every answer that holds anything of what is sold has its price. `REPEATS`
get an answer again which was paid for: there each different answer has its price once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel

from tests.hostile.paid_shop import CHILD, GONE, POOR, RICH, Heard, PaidShop, call, list_sold, stay
from toolserver.money.x402 import wire
from toolserver.registry.registry import Operation

Attempt = Callable[[PaidShop, Operation], Awaitable[None]]
CHOICES = (
    *("coins=zzz", "coins=ZZZ,QQQ&history=30d", "coins=", "symbols=", "symbols=zzz", "include=", "include=zzz"),
    *("include=btc,zzz", "limit=0", "limit=-1", "limit=00", "history=", "history=1d", "history=30d&history=30d"),
    *("since=2030-01-01T00:00:00Z", "since=zzz", "fields=", "meta=none", "tools=", "dry_run=1", "example=1"),
)
SPELLINGS = ("{}/", "/{}", "{}%2f", "{};a=b", "{}.json", "/api/pro/..{}", "{}?", "{}#x", "{}%00", "{}/../macro")
METHODS = ("POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get", "OPTIONS")


# --- over REST: what the request says


async def choose_nothing(shop: PaidShop, tool: Operation) -> None:
    now = f"since={_time(shop)}"
    for choice in (*CHOICES, now, f"{now}&limit=1"):
        await shop.get(f"{tool.path}?{choice}")


async def ask_with_head(shop: PaidShop, tool: Operation) -> None:
    for path in (tool.path, f"{tool.path}?meta=short"):
        for token in (RICH, CHILD, POOR, GONE, None):
            heard = await shop.get(path, "HEAD", token)
            assert heard.body == b""
    await shop.get(tool.path, "HEAD", idempotency_key=f"head {tool.name}")
    await shop.get(tool.path, "HEAD", None, payment_signature=wire.header(shop.sign(tool)))


async def ask_by_other_methods(shop: PaidShop, tool: Operation) -> None:
    for method in METHODS:
        await shop.get(tool.path, method)
        await shop.get(tool.path, method, x_http_method_override="GET")
    await shop.get(tool.path, "HEAD", x_http_method_override="GET")


async def ask_for_a_part(shop: PaidShop, tool: Operation) -> None:
    for part in ("bytes=0-", "bytes=0-600", "bytes=-600", "bytes=0-1,2-3", "lines=1-2"):
        await shop.get(tool.path, range=part)
        await shop.get(tool.path, range=part, if_range='"x"')


async def say_that_it_is_known(shop: PaidShop, tool: Operation) -> None:
    bought = await shop.get(tool.path)
    digest = bought.headers["content-digest"].removeprefix("sha-256=").strip(":")
    for tag in ("*", f'"{digest}"', f'W/"{digest}"', f'"{bought.headers.get("etag", "x")}"'):
        await shop.get(tool.path, if_none_match=tag)
    await shop.get(tool.path, if_modified_since="Fri, 15 Jan 2100 08:00:00 GMT")
    await shop.get(tool.path, if_match='"none"')


async def ask_for_another_form(shop: PaidShop, tool: Operation) -> None:
    await shop.get(f"{tool.path}?meta=short")
    for wish in (
        "receipt=reference",
        "receipt=none",
        "return=minimal",
        "respond-async",
        "wait=0",
        "receipt=reference;x",
    ):
        await shop.get(tool.path, prefer=wish)
    for accept in ("text/html", "text/event-stream", "application/x-ndjson", "*/*;q=0"):
        await shop.get(tool.path, accept=accept)
    await shop.get(tool.path, accept_encoding="gzip, br, zstd, identity;q=0")
    await shop.get(tool.path, expect="100-continue")


async def spell_the_path_otherwise(shop: PaidShop, tool: Operation) -> None:
    for form in SPELLINGS:
        for token in (RICH, None):
            await shop.get(form.format(tool.path), token=token)
    _, _, sold = (await shop.get(tool.path)).body.partition(b',"generated_at":"')
    bought = sold[len("2027-01-18T08:20:34Z") :][:200]  # a time alone may be that of a free answer
    assert len(bought) == 200
    short = tool.path.removeprefix("/api/pro/")
    await shop.get(f"/api/{short}", token=None)
    for free in (f"/t/{tool.name}", f"/t/{tool.name}.json", f"/docs/tools/{tool.name}", "/live.json"):
        assert bought not in (await shop.get(free, token=None)).body, free


async def pay_with_what_is_no_token(shop: PaidShop, tool: Operation) -> None:
    for token in (None, POOR, GONE, RICH.upper(), RICH + "0", RICH[:-1], f"{RICH} {RICH}", "", "null"):
        await shop.get(tool.path, token=token)
        await shop.get(f"{tool.path}?meta=short", token=token)
    for given in (f"token={RICH}", f"authorization={RICH}", f"api_key={RICH}"):
        await shop.get(f"{tool.path}?{given}", token=None)
    for line in (f"Basic {RICH}", RICH, f"bearer  {RICH}", f"Bearer {POOR}, Bearer {RICH}"):
        await shop.get(tool.path, token=None, authorization=line)


# --- clients that go away


async def hang_up(shop: PaidShop, tool: Operation) -> None:
    """Go away at once, after each of the first steps of the loop, and before the last byte."""
    for headers in ({}, {"prefer": "receipt=reference"}):
        for steps in (0, 1, 2, 3, 5, 8, 13, 21, 34):
            await shop.send_raw(tool.path, partial(_leave, steps), **headers)
        for moment in ("http.response.start", "http.response.body"):
            await shop.send_raw(tool.path, stay, fail_at=moment, **headers)


async def hang_up_while_it_is_made(shop: PaidShop, tool: Operation) -> None:
    """The same while the answer is composed, so that others may wait for it too."""
    shop.clock.advance(2 * tool.ttl_s + 1)
    async with anyio.create_task_group() as tasks:
        for steps in (1, 5, 20, 60, 120):
            tasks.start_soon(shop.send_raw, tool.path, partial(_leave, steps))
        tasks.start_soon(shop.get, tool.path)


async def _leave(steps: int) -> dict[str, Any]:
    for _ in range(steps):
        await anyio.lowlevel.checkpoint()
    return {"type": "http.disconnect"}


# --- keys of one's own choice


async def use_a_key_of_others(shop: PaidShop, tool: Operation) -> None:
    """The key of a paid call, with the tokens of others, with other arguments, and for other tools."""
    key = f"mine {tool.name}"
    await shop.get(tool.path, idempotency_key=key)
    for token in (POOR, GONE, CHILD, None):
        await shop.get(tool.path, token=token, idempotency_key=key)
    for choice in ("limit=1", "history=30d", "history=24h", "coins=BTC", "include=btc", f"since={_time(shop)}"):
        await shop.get(f"{tool.path}?{choice}", idempotency_key=key)
    for other in ("macro", "whales", "briefing"):
        await shop.get(f"/api/pro/{other}", token=POOR, idempotency_key=key)
    await shop.tell(tool.name, token=POOR, idempotency_key=key)


async def use_a_key_twice(shop: PaidShop, tool: Operation) -> None:
    """The same call with its key, at once and later, over both faces."""
    key = f"twice {tool.name}"
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(partial(shop.get, tool.path, idempotency_key=key))
    await shop.get(f"{tool.path}?meta=short", idempotency_key=key)
    await shop.get(tool.path, prefer="receipt=reference", idempotency_key=key)
    await shop.get(tool.path, "HEAD", idempotency_key=key)
    await shop.tell(tool.name, idempotency_key=key)
    await shop.get(tool.path, idempotency_key="x" * 256)


async def use_a_key_of_a_call_that_was_left(shop: PaidShop, tool: Operation) -> None:
    key = f"left {tool.name}"
    for steps in (0, 3, 13):
        await shop.send_raw(tool.path, partial(_leave, steps), idempotency_key=key)
    await shop.get(tool.path, idempotency_key=key)
    await shop.get(tool.path, idempotency_key=key)


# --- signed payments


async def pay_once_for_several(shop: PaidShop, tool: Operation) -> None:
    """One authorisation for the same call again, over both faces, for other paths and arguments, and changed."""
    signed = shop.sign(tool)
    header = wire.header(signed)
    await shop.get(tool.path, token=None, payment_signature=header)
    await shop.get(tool.path, token=None, payment_signature=header)
    await shop.get(tool.path, "HEAD", None, payment_signature=header)
    first = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": signed["payload"]}
    await shop.get(tool.path, token=None, x_payment=wire.header(first))
    await shop.get(f"{tool.path}?meta=short", token=None, payment_signature=header)
    for choice in ("limit=1", "history=30d", "history=24h", "coins=BTC"):
        await shop.get(f"{tool.path}?{choice}", token=None, payment_signature=header)
    for other in ("macro", "whales", "sentiment", "briefing"):
        if not tool.path.endswith(other):
            await shop.get(f"/api/pro/{other}", token=None, payment_signature=header)
    await shop.tell(tool.name, token=None, **{"x402/payment": signed})
    other = "premium_macro" if tool.name != "premium_macro" else "premium_whales"
    await shop.tell(other, token=None, **{"x402/payment": signed})
    await shop.post("/api/payment/topup", {"amount_usd": 1}, None, payment_signature=header)
    signed["payload"]["signature"] = "0x" + "ab" * 65
    await shop.get(tool.path, token=None, payment_signature=wire.header(signed))


async def pay_once_at_the_same_time(shop: PaidShop, tool: Operation) -> None:
    header = wire.header(shop.sign(tool))
    ask = partial(shop.get, token=None, payment_signature=header)
    async with anyio.create_task_group() as tasks:
        for path in (tool.path, f"{tool.path}?limit=1", "/api/pro/macro", tool.path, "/api/pro/whales", tool.path):
            tasks.start_soon(ask, path)


async def pay_too_little(shop: PaidShop, tool: Operation) -> None:
    other, past = "0x" + "11" * 20, str(int(shop.clock.time()) - 5)
    for changed in (
        {"to": other},
        {"payTo": other},
        {"value": "1"},
        {"validBefore": past},
        {"network": "eip155:84532"},
    ):
        await shop.get(tool.path, token=None, payment_signature=wire.header(shop.sign(tool, **changed)))
    for text in ("", "e30=", "null", "x"):
        await shop.get(tool.path, token=None, payment_signature=text)


# --- over MCP


async def ask_over_mcp(shop: PaidShop, tool: Operation) -> None:
    for token in (None, POOR, GONE):
        await shop.tell(tool.name, token=token)
        await shop.tell(tool.name, {"token": token} if token else {}, None)
    await shop.tell(tool.name, {"token": POOR}, RICH)
    await shop.tell(tool.name, receipt="reference")
    await shop.tell(tool.name, query="&meta=short")
    for choice in ({"coins": "zzz"}, {"include": ""}, {"limit": 0}, {"since": _time(shop)}, {"symbols": []}):
        await shop.tell(tool.name, choice)
    for name in (tool.name.upper(), f"{tool.name} ", tool.path, tool.title):
        await shop.tell(name)


async def send_other_messages(shop: PaidShop, tool: Operation) -> None:
    """Batches, notifications, tasks, and the address that wants a sign-in."""
    pair = [call(tool.name, id=1), call(tool.name, id=2)]
    await shop.post("/api/mcp", pair)
    await shop.post("/api/mcp?toolset=all", pair, None)
    await shop.post("/api/mcp?toolset=all", call(tool.name, id=None))
    await shop.post("/api/mcp?toolset=all", call(tool.name) | {"method": "tools/get"})
    await shop.post("/api/mcp/auth", call(tool.name))
    await shop.post("/api/mcp?tools=premium_macro", call(tool.name) if tool.name != "premium_macro" else pair)
    task = call(tool.name)
    task["params"]["task"] = {"ttl": 60_000}
    await shop.post("/api/mcp?toolset=all", task)
    await shop.get(f"/api/mcp?toolset=all&message={tool.name}", accept="text/event-stream")


# --- deliveries


async def try_a_webhook(shop: PaidShop, tool: Operation) -> None:
    """Have tests delivered to oneself. What they carry counts as heard, unless it is the recorded example."""
    given = {"endpoint": tool.path.removeprefix("/api/pro/"), "webhook_url": shop.inbox.url}
    made = (await shop.post("/api/pro/subscribe", given)).json
    if made.get("endpoint") is None:  # no webhooks of this tool
        return
    path, now = f"/api/pro/subscribe/{made['id']}", (await shop.get(tool.path)).json["generated_at"]
    for body in (None, {}, {"data": {"a": 1}}, {"state": "fired"}):
        await shop.post(f"{path}/test", body)
    await shop.get(path, "DELETE")
    shop.heard += [Heard(200, {}, body) for _, body in shop.inbox.requests if now.encode() in body]
    assert shop.inbox.requests
    shop.inbox.requests.clear()


ATTEMPTS: tuple[Attempt, ...] = (
    *(choose_nothing, ask_with_head, ask_by_other_methods, ask_for_a_part, say_that_it_is_known, ask_for_another_form),
    *(spell_the_path_otherwise, pay_with_what_is_no_token, hang_up, hang_up_while_it_is_made),
    *(pay_too_little, ask_over_mcp, send_other_messages, try_a_webhook),
)
REPEATS: tuple[Attempt, ...] = (
    *(use_a_key_of_others, use_a_key_twice, use_a_key_of_a_call_that_was_left),
    *(pay_once_for_several, pay_once_at_the_same_time),
)


async def find_free_rides(shop: PaidShop, tool: Operation, attempts: tuple[Attempt, ...]) -> AsyncIterator[str]:
    """Make the attempts, and describe each that got more than it paid for."""
    for attempt in attempts:
        shop.heard.clear()
        before = await shop.paid()
        with suppress(TimeoutError):
            await attempt(shop, tool)
        sold = list_sold(shop.heard, once=attempt in REPEATS)
        paid = await shop.paid() - before
        if paid < len(sold) * tool.credits:
            told = [f"{each.status} {len(each.body)}" for each in shop.heard]
            yield f"{attempt.__name__} {tool.name}: {len(sold)} answers for {paid} credits; {told}"


def _time(shop: PaidShop) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(shop.clock.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
