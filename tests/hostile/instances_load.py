"""Callers of several instances: what each of them was told, and which answers they hold in the end.

Kinds of calls: free and paid ones over REST and MCP, and paid ones with an Idempotency-Key, which are repeated, at any
instance, until there is an answer. A client that meets a closed connection at an instance says so, and goes on.
"""

import asyncio
import hashlib
import itertools
import json
import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import httpx

from tests.live.buying import read_core
from toolserver.mcp import messages

FREE = ("btc-price", "earthquake", "fear-greed", "forex", "briefing", "predictions", "service-status", "gas")
FREE_TOOLS = ("btc_price", "earthquakes", "fear_greed", "forex")
PAID = ("/api/pro/briefing", "/api/pro/macro", "/api/pro/sentiment", "/api/pro/crypto-deep")
KINDS = ("free", "free, MCP", "paid", "paid, key", "paid, MCP")
CUT = ("refused", "cut")  # no answer at all
SPENT = frozenset({"402 insufficient_credits", "error insufficient_credits"})
PAUSE_S, ANSWER_S, KEYS_S = 0.03, 20.0, 90.0


class Place(Protocol):
    """An instance: its address changes when it is started again."""

    @property
    def url(self) -> str: ...


class Call(NamedTuple):
    """One request: its kind, the number of the instance, when it was begun and how long it took, in seconds, and what
    the client was told: a status, with the code of a refusal, or that the connection was refused or cut."""

    kind: str
    at: int
    began: float
    took_s: float
    said: str

    @property
    def is_good(self) -> bool:
        return self.said == "200"


@dataclass
class Record:
    """What the callers know: every request, and the credits that each answer they hold says it cost, by call_id."""

    calls: list[Call] = field(default_factory=list)
    whole: dict[str, int] = field(default_factory=dict)
    keyed: dict[str, str] = field(default_factory=dict)  # call_id by Idempotency-Key
    wrong: list[str] = field(default_factory=list)

    def hold(self, jws: str, content: bytes | None) -> str:
        """Keep what a receipt says, after comparing it with the bytes that came; its call_id."""
        core = read_core(jws)
        call, credits = str(core["call_id"]), int(core["credits_charged"])
        if content is not None and core["response_sha256"] != hashlib.sha256(content).hexdigest():
            self.wrong.append(f"cut short, and taken for whole: {call}")
        if self.whole.setdefault(call, credits) != credits:
            self.wrong.append(f"two prices: {call}")
        return call

    def hold_keyed(self, key: str, call: str) -> None:
        """Keep which call a key bought: always the same one."""
        if self.keyed.setdefault(key, call) != call:
            self.wrong.append(f"two calls for one key: {self.keyed[key]}, {call}")

    def has_spent_all(self) -> bool:
        """Whether a buyer was told lately that nothing is left to pay with."""
        return any(call.said in SPENT for call in self.calls[-200:])

    def between(self, begin: float, end: float) -> list[Call]:
        """The requests that were on their way at some moment of a time."""
        latest = itertools.takewhile(lambda call: call.began + call.took_s >= begin, reversed(self.calls))
        return [call for call in latest if call.began < end]  # they stand in the order in which they ended


class Callers:
    """Some callers of each kind for each instance, on a thread with an event loop of its own.

    `verify` is what they trust where a place speaks TLS.
    """

    def __init__(
        self,
        places: Sequence[Place],
        tokens: Sequence[str],
        *,
        each: int = 1,
        seed: int = 1,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self.record, self._verify = Record(), verify
        self._places, self._tokens, self._each = places, tokens, each
        self._rng = random.Random(seed)
        self._numbers = itertools.count()
        self._ends = threading.Event()
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Let every caller end its call, and every key get its answer. Raises what a caller has raised."""
        self._ends.set()
        self._thread.join(KEYS_S + 3 * ANSWER_S)
        assert not self._thread.is_alive(), "callers do not end"
        if self._failed:
            raise self._failed[0]

    def _run(self) -> None:
        try:
            asyncio.run(self._call_all())
        except BaseException as failure:
            self._failed.append(failure)

    async def _call_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tokens = itertools.cycle(self._tokens)  # each pays for as many callers as any other
            for at, kind, _ in itertools.product(range(len(self._places)), KINDS, range(self._each)):
                tasks.create_task(self._repeat(at, kind, next(tokens) if kind.startswith("paid") else None))

    async def _repeat(self, at: int, kind: str, payer: str | None) -> None:
        token = {} if payer is None else {"authorization": f"Bearer {payer}"}
        about: dict[str, Any] = {"headers": token, "timeout": ANSWER_S, "trust_env": False, "verify": self._verify}
        async with httpx.AsyncClient(**about) as client:
            while not self._ends.is_set():
                if kind == "paid, key":
                    await self._insist(client, at)
                else:
                    await self._call(client, at, kind)
                await asyncio.sleep(PAUSE_S * self._rng.uniform(0.5, 1.5))

    async def _insist(self, client: httpx.AsyncClient, at: int) -> None:
        """Repeat a call with a key until there is an answer, at another instance each time."""
        key, path = f"key-{next(self._numbers)}", self._rng.choice(PAID)
        until = time.monotonic() + KEYS_S
        while (call := await self._ask(client, at, "paid, key", path=path, key=key)) is None:
            if time.monotonic() > until:
                self.record.wrong.append(f"no answer for {key} within {KEYS_S:.0f} s")
                return
            at = self._rng.randrange(len(self._places))
            await asyncio.sleep(self._rng.uniform(0.05, 0.3))
        self.record.hold_keyed(key, call)

    async def _call(self, client: httpx.AsyncClient, at: int, kind: str) -> None:
        if kind == "free":
            await self._ask(client, at, kind, path=f"/api/{self._rng.choice(FREE)}")
        elif kind == "paid":
            await self._ask(client, at, kind, path=self._rng.choice(PAID))
        else:
            await self._ask(
                client, at, kind, tool="premium_briefing" if "paid" in kind else self._rng.choice(FREE_TOOLS)
            )

    async def _ask(
        self, client: httpx.AsyncClient, at: int, kind: str, *, path: str = "", tool: str = "", key: str = ""
    ) -> str | None:
        """One request; the call_id of the answer that was paid for, or "" of a free one. None when it is no answer."""
        began, call = time.monotonic(), None
        try:
            url = self._places[at].url
            if tool:
                headers = {**_ACCEPT, **_NAMED, "mcp-name": tool}
                said, call = self._read_mcp(await client.post(f"{url}/api/mcp", json=_message(tool), headers=headers))
            else:
                answer = await client.get(url + path, headers={"idempotency-key": key} if key else {})
                said, call = self._read_rest(answer)
        except httpx.ConnectError:
            said = "refused"
        except httpx.TimeoutException:
            said = f"no answer in {ANSWER_S:.0f} s"
        except httpx.TransportError:
            said = "cut"
        self.record.calls.append(Call(kind, at, began, time.monotonic() - began, said))
        return call

    def _read_rest(self, answer: httpx.Response) -> tuple[str, str | None]:
        if answer.status_code != 200:
            is_ours = "json" in answer.headers.get("content-type", "")  # else a proxy said it
            return f"{answer.status_code} {answer.json().get('error')}" if is_ours else str(answer.status_code), None
        jws = answer.headers.get("x-service-receipt")
        return "200", "" if jws is None else self.record.hold(jws, answer.content)

    def _read_mcp(self, answer: httpx.Response) -> tuple[str, str | None]:
        """What a result says; a failure of a call is told as its status over REST is."""
        if answer.status_code != 200:
            return f"{answer.status_code}", None
        result = answer.json().get("result")
        if result is None:
            return f"200 {answer.json()['error']['code']}", None
        if result["isError"]:
            return f"error {json.loads(result['content'][0]['text']).get('error')}", None
        jws = result.get("_meta", {}).get("receipt")
        return "200", "" if jws is None else self.record.hold(jws, None)


_ACCEPT = {"accept": "application/json, text/event-stream"}
_META = {messages.VERSION_KEY: messages.MODERN, messages.CAPABILITIES_KEY: {}}
_NAMED = {"mcp-protocol-version": messages.MODERN, "mcp-method": "tools/call"}  # proxies read such headers


def _message(tool: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": {}, "_meta": _META}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def describe_calls(calls: Sequence[Call]) -> str:
    """What clients were told, by kind: each status and how often, the good ones first."""
    parts = []
    for kind in KINDS:
        said = Counter(call.said for call in calls if call.kind == kind)
        parts.append(f"{kind}: " + ", ".join(f"{count} {what}" for what, count in sorted(said.items())))
    return "; ".join(parts)
