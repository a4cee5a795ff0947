"""Strangers who begin sign-ins and never finish them, and people who sign in beside them.

`python -m tests.hostile.sign_ins --server uvicorn --proxy caddy --crowd several --seconds 60` runs until the time is
over, prints the figures and ends with 1 if an honest sign-in was not answered. What is left out runs each.

A stranger's sign-ins name documents that never arrive, each at another address, and clients that are registered. The
strangers are one address, the /64s of one /48, or several addresses. A proxy of ours passes on no address that a client
writes, and a machine has few of IPv6; the /48 therefore comes direct, with the attack in the place of the proxy.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from tests.deploy.proxies import TRUSTED, proxied
from tests.hostile.fronts import DIRECT, add_front_flags, list_fronts
from tests.hostile.unfinished import PATIENCE_S, Target
from tests.live.processes import started

AUTH, BACK = "/api/mcp/auth", "http://127.0.0.1:9/back"
CROWDS = {
    "one": ["127.1.0.1"],
    "network": [f"2001:db8:1:{n:x}::1" for n in range(1, 65)],
    "several": [f"127.1.{n // 250}.{n % 250 + 1}" for n in range(400)],
}
HONEST = [f"127.0.2.{n}" for n in range(1, 7)]
AT_ONCE = 64  # requests that the strangers have in progress together
THINKING_S = 1.0


@dataclass(slots=True)
class Figures:
    """What came of an attack: honest sign-ins by how they ended, and answers to strangers by status."""

    sign_ins: Counter[str] = field(default_factory=Counter)
    strangers: Counter[str] = field(default_factory=Counter)
    hanging: int = 0
    most_hanging: int = 0

    @property
    def unanswered(self) -> dict[str, int]:
        return {word: count for word, count in self.sign_ins.items() if word != "answered"}

    def __str__(self) -> str:
        answered = f"{self.sign_ins['answered']} of {self.sign_ins.total()} honest sign-ins answered"
        others = f"; the others: {self.unanswered}" if self.unanswered else ""
        theirs = ", ".join(f"{count} x {word}" for word, count in self.strangers.most_common())
        return f"{answered}{others}; strangers got {theirs}; up to {self.most_hanging} documents hung"


class Wrong(Exception):
    """An answer of the service that is none to an honest person."""


class Documents:
    """A host of client documents: those of honest clients arrive, all others never do."""

    def __init__(self, figures: Figures) -> None:
        self._figures, self._numbers, self._port = figures, itertools.count(), 0

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        tasks: set[asyncio.Task[None]] = set()
        is_over = False

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if is_over:  # accepted in the last moment: a task would be cancelled before it could close anything
                writer.transport.abort()
                return
            task = asyncio.create_task(answer(reader, writer))
            task.add_done_callback(lambda _: writer.transport.abort())
            tasks.add(task)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            is_over = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def url(self, kind: str) -> str:
        """Return the id of another client: an `honest` one, or one whose document never arrives."""
        return f"http://127.0.0.1:{self._port}/{kind}/{next(self._numbers)}.json"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
        if path.startswith("/honest/"):
            document = {"client_id": f"http://127.0.0.1:{self._port}{path}", "client_name": "Honest"}
            body = json.dumps(document | {"redirect_uris": [BACK]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
            return
        self._figures.hanging += 1
        self._figures.most_hanging = max(self._figures.most_hanging, self._figures.hanging)
        try:
            await reader.read()  # until the service gives up
        finally:
            self._figures.hanging -= 1


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    headers: dict[str, str]
    body: str


class Visitors:
    """Sends requests from any address: with its own socket, or in the place of a proxy."""

    def __init__(self, target: Target, *, is_proxied: bool) -> None:
        self._target, self._is_proxied = target, is_proxied

    async def ask(self, client: str, path: str, form: str | None = None, kind: str = "", cookie: str = "") -> Answer:
        """Send a request on a connection of its own and return the answer. Raises OSError, TimeoutError, Wrong."""
        lines = [f"{'GET' if form is None else 'POST'} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
        lines += [] if self._is_proxied else [f"X-Forwarded-For: {client}"]
        lines += [f"Cookie: {cookie}"] if cookie else []
        lines += [] if form is None else [f"Content-Type: {kind}", f"Content-Length: {len(form)}"]
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await self._target.connect(client if self._is_proxied else "127.0.0.1")
            try:
                writer.write("\r\n".join([*lines, "", form or ""]).encode())
                head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
            finally:
                writer.transport.abort()
        if not head:
            raise Wrong("no answer")
        first, *rest = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        return Answer(first.split(" ", 2)[1], headers, body)

    async def register(self, client: str) -> str:
        """Return the id of a new client."""
        body = json.dumps({"client_name": "Host", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"})
        answer = await self.ask(client, f"{AUTH}/register", body, "application/json")
        if answer.status != "201":
            raise Wrong(f"registration: {answer.status}")
        id: str = json.loads(answer.body[answer.body.index("{") : answer.body.rindex("}") + 1])["client_id"]
        return id

    async def begin(self, client: str, id: str) -> Answer:
        """Begin a sign-in with a client."""
        query = {"response_type": "code", "client_id": id, "redirect_uri": BACK, "state": "s"}
        query |= {"code_challenge": "x" * 43, "code_challenge_method": "S256"}
        return await self.ask(client, f"{AUTH}/authorize?{urlencode(query)}")


async def attack(visitors: Visitors, crowd: Sequence[str], seconds: float) -> Figures:
    """Begin sign-ins from every address of a crowd, sign in honestly beside them, and return the figures."""
    figures, over = Figures(), asyncio.Event()
    documents = Documents(figures)
    async with documents.serve():
        addresses = itertools.cycle(crowd)
        registered = await visitors.register(crowd[0])
        strangers = [
            asyncio.create_task(_press(visitors, documents, addresses, registered, figures, first))
            for first in range(AT_ONCE)
        ]
        people = [
            asyncio.create_task(_sign_in_until(visitors, documents, client, n, figures, over))
            for n, client in enumerate(HONEST)
        ]
        await asyncio.sleep(seconds)
        over.set()
        await asyncio.gather(*people)
        for stranger in strangers:
            stranger.cancel()
        ended = await asyncio.gather(*strangers, return_exceptions=True)
    for failure in ended:
        if isinstance(failure, Exception):
            raise failure
    return figures


async def _press(
    visitors: Visitors,
    documents: Documents,
    addresses: "itertools.cycle[str]",
    registered: str,
    figures: Figures,
    first: int,
) -> None:
    """Begin one sign-in after the other and finish none. Every other one is of a client whose document never comes."""
    for turn in itertools.count(first):
        id = documents.url("never") if turn % 2 else registered
        try:
            figures.strangers[(await visitors.begin(next(addresses), id)).status] += 1
        except (OSError, TimeoutError, Wrong) as failure:
            figures.strangers[type(failure).__name__] += 1
        await asyncio.sleep(0.01)


async def _sign_in_until(
    visitors: Visitors, documents: Documents, client: str, number: int, figures: Figures, over: asyncio.Event
) -> None:
    while not over.is_set():
        try:
            await sign_in(visitors, client, None if number % 2 else documents.url("honest"))
            figures.sign_ins["answered"] += 1
        except Wrong as wrong:
            figures.sign_ins[str(wrong)] += 1
        except (OSError, TimeoutError) as failure:
            figures.sign_ins[type(failure).__name__] += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 1.5)


async def sign_in(visitors: Visitors, client: str, id: str | None) -> float:
    """Sign in with a client that describes itself, or with one that registers now: begin, read the page, answer it.

    Return the seconds that it took, without those for thinking. Raises Wrong, OSError, TimeoutError.
    """
    started_at = time.monotonic()
    begun = await visitors.begin(client, id or await visitors.register(client))
    _expect("303", begun, "beginning")
    cookie = begun.headers["set-cookie"].partition(";")[0]
    page = await visitors.ask(client, begun.headers["location"], cookie=cookie)
    _expect("200", page, "page")
    request = re.search(r'name="request" value="([0-9a-f]+)"', page.body)
    if request is None:
        raise Wrong("page without a form")
    await asyncio.sleep(THINKING_S)
    form, kind = urlencode({"request": request[1], "do": "deny"}), "application/x-www-form-urlencoded"
    answered = await visitors.ask(client, f"{AUTH}/consent", form, kind, cookie)
    _expect("303", answered, "answer")
    if not answered.headers["location"].startswith(f"{BACK}?error=access_denied"):
        raise Wrong("the answer leads elsewhere")
    return time.monotonic() - started_at - THINKING_S


def _expect(status: str, answer: Answer, step: str) -> None:
    if answer.status != status:
        raise Wrong(f"{step}: {answer.status}")


def run(server: str, proxy: str, crowd: str, seconds: float, folder: Path) -> Figures:
    """Attack one server behind one proxy."""
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(started("demo", "--server", server, folder=folder, **TRUSTED))
        front = None
        if proxy != DIRECT:
            front = stack.enter_context(proxied(proxy, program.url.removeprefix("http://"), folder))
        visitors = Visitors(Target(program, front), is_proxied=front is not None)
        return asyncio.run(attack(visitors, CROWDS[crowd], seconds))


def main() -> int:
    """Run what the command line says. Return 1 if an honest sign-in was not answered."""
    parser = argparse.ArgumentParser(prog="tests.hostile.sign_ins")
    add_front_flags(parser)
    parser.add_argument("--crowd", choices=CROWDS)
    chosen = parser.parse_args()
    is_wrong = False
    crowds = [chosen.crowd] if chosen.crowd else CROWDS
    for (server, proxy), crowd in itertools.product(list_fronts(chosen), crowds):
        if proxy != DIRECT and crowd == "network":
            print(
                f"{server} behind {proxy}, {crowd}: left out, because a proxy passes on no address that a client wrote"
            )
            continue
        with tempfile.TemporaryDirectory() as folder:
            figures = run(server, proxy, crowd, chosen.seconds, Path(folder))
        print(f"{server} behind {proxy}, {crowd}: {figures}", flush=True)
        is_wrong = is_wrong or bool(figures.unanswered)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
