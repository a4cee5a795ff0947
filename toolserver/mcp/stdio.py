"""Serve MCP over standard input and output: one JSON-RPC message per line, both eras, many calls at once.

`initialize` is answered at once. The service is loaded after the first message, so that a
host that starts its servers one by one never waits for imports. Lines are read and written
without threads that could outlive us. File descriptor 0 then reads nothing and 1 is standard
error, so that other code in this process does not disturb the conversation.
"""

import logging
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, suppress
from typing import Protocol

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup
from click import ClickException

from toolserver.calls.response import sending
from toolserver.errors import ToolserverError
from toolserver.mcp import messages
from toolserver.mcp.messages import INTERNAL_ERROR, INVALID_REQUEST, UNSET, ClientFacts, Id, Message

CHUNK = 65_536
SLICE = 4_096  # how much a pipe that is reported writable takes without blocking


@contextmanager
def claim_stdio() -> Iterator[tuple[int, int]]:
    """Yield private descriptors of the real standard input and output."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    sys.stdout.flush()
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield source, sink
    finally:
        sys.stdout.flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
        for descriptor in (source, sink, nothing):
            os.close(descriptor)


async def read_lines(source: int, limit: int, *, chunk_bytes: int = CHUNK) -> AsyncGenerator[bytes | None, None]:
    """Yield the lines that arrive, without their line ends; None for a line that is longer than the limit."""
    rest, skipping = b"", False
    while chunk := await _read(source, chunk_bytes):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield None if skipping or len(line) > limit else line
            skipping = False
        if len(rest) > limit:
            rest, skipping = b"", True
    if rest or skipping:
        yield None if skipping else rest


async def write_all(sink: int, data: bytes) -> None:
    """Write everything. Raises BrokenPipeError if nobody reads any more."""
    view = memoryview(data)
    while view:
        if not _writable(sink):
            await _ready(sink, anyio.wait_writable)
        view = view[os.write(sink, view[:SLICE]) :]


def _writable(sink: int) -> bool:
    """Return True if a slice can be written without blocking, as far as that is known now."""
    if sys.platform == "win32":
        return True
    poller = select.poll()
    poller.register(sink, select.POLLOUT)
    return bool(poller.poll(0))


async def _read(source: int, most: int) -> bytes:
    if sys.platform == "win32":
        return await anyio.to_thread.run_sync(os.read, source, most, abandon_on_cancel=True)
    await _ready(source, anyio.wait_readable)
    return os.read(source, most)


async def _ready(descriptor: int, wait: Callable[[int], Awaitable[None]]) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a regular file: always ready
        await anyio.lowlevel.checkpoint()


log = logging.getLogger(__name__)


class Conversation(Protocol):
    """Answers messages in the order in which they finish: a service in this process, or a bridge to a remote one."""

    def answer_from_cache(self, message: Message, *, modern: bool) -> bytes | None:
        """Return the core of a result that needs no waiting, or None."""

    async def answer(self, line: bytes, message: Message | None) -> bytes | None:
        """Return the answer to a message; None if it needs no answer."""


Load = Callable[[ClientFacts], AbstractAsyncContextManager[Conversation]]
"""Opens the conversation that answers a client, of which this is what its first message says."""

BOM = b"\xef\xbb\xbf"  # some programs and shells of Windows begin what they write with it
LINE_LIMIT = 4 * 1024 * 1024
AT_ONCE = 64
LAST_ANSWERS_S = 15.0
CLOSING_S = 8.0


async def serve_stdio(load: Load) -> None:
    """Serve until the input ends or a signal says stop. Calls in progress when the input ends are still answered.

    Raises:
        Exception: `load` failed. Until the input ended, every call was answered with this error.
    """
    with claim_stdio() as (source, sink):
        await Stdio(load, source=source, sink=sink).run()


class Stdio:
    """One conversation over a pair of file descriptors."""

    def __init__(self, load: Load, *, source: int, sink: int) -> None:
        self._load, self._source, self._sink = load, source, sink
        self._talking = anyio.CancelScope()
        self._awake, self._loaded, self._over, self._closed = (anyio.Event() for _ in range(4))
        self._writing, self._places = anyio.Lock(), anyio.Semaphore(AT_ONCE)
        self._running: dict[Id, anyio.CancelScope] = {}
        self._client = ClientFacts()
        self._conversation: Conversation | None = None
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Serve until the input ends, a signal arrives or the reader is gone. Raises the error of a failed load."""
        async with anyio.create_task_group() as background:
            background.start_soon(self._watch_signals)
            background.start_soon(self._keep_service)
            with self._talking:
                async with anyio.create_task_group() as calls:
                    await self._listen(calls)
                    calls.cancel_scope.deadline = anyio.current_time() + LAST_ANSWERS_S
            self._over.set()
            self._awake.set()
            with anyio.move_on_after(CLOSING_S):
                await self._closed.wait()
            background.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure

    async def _watch_signals(self) -> None:
        with suppress(NotImplementedError), anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                self._talking.cancel()

    async def _keep_service(self) -> None:
        """Load the service once there is a client to serve, and close it at the end."""
        await self._awake.wait()
        try:
            if not self._over.is_set():
                async with self._load(self._client) as self._conversation:
                    self._loaded.set()
                    await self._over.wait()
        except Exception as error:
            self._failure = _plain(error)
            log.exception("the service could not start")
        finally:
            self._loaded.set()
            self._closed.set()

    async def _listen(self, calls: TaskGroup) -> None:
        async with aclosing(read_lines(self._source, LINE_LIMIT)) as lines:
            is_first = True
            async for line in lines:
                if is_first and line is not None:
                    line = line.removeprefix(BOM)
                is_first = False
                if line is None:
                    refusal = f"A line is longer than {LINE_LIMIT} bytes."
                    await self._send(messages.failure(None, INVALID_REQUEST, refusal))
                elif line.strip():
                    await self._take(line, calls)
                    self._awake.set()

    async def _take(self, line: bytes, calls: TaskGroup) -> None:
        """Answer messages that need no service at once, and start a task for each of the others."""
        message = messages.read_message(line)
        if not self._awake.is_set():
            self._client = messages.client_of(message)
        if message is not None and message.id is UNSET:
            if message.method == "notifications/cancelled" and message.params.requestId is not None:
                self._cancel(message.params.requestId)
            return
        quick = None if message is None else self._answer_at_once(message)
        if quick is not None:
            await self._send(quick)
            return
        await self._places.acquire()
        value = message.id if message is not None and message.id is not UNSET else None
        scope = anyio.CancelScope()
        if value is not None:
            self._running[value] = scope
        calls.start_soon(self._answer, line, message, value, scope)

    def _answer_at_once(self, message: Message) -> bytes | None:
        """Return the answer if it needs no waiting."""
        modern = messages.is_modern_message(message)
        if modern is None or message.id is UNSET:
            return None
        core = messages.STDIO.answer(message, modern=modern)
        if core is None and self._conversation is not None:
            core = self._conversation.answer_from_cache(message, modern=modern)
        return None if core is None else messages.response(message.id, core, messages.end(modern=modern))

    def _cancel(self, value: Id) -> None:
        scope = self._running.get(value)
        if scope is not None:
            scope.cancel()

    async def _answer(self, line: bytes, message: Message | None, value: Id | None, scope: anyio.CancelScope) -> None:
        answer: bytes | None = None
        try:
            with sending():
                with scope:  # a client may cancel the work, but a line is written in full or not at all
                    answer = await self._compute_answer(line, message, value)
                if answer is not None:
                    await self._send(answer)
        finally:
            if value is not None and self._running.get(value) is scope:
                del self._running[value]
            self._places.release()

    async def _compute_answer(self, line: bytes, message: Message | None, value: Id | None) -> bytes | None:
        await self._loaded.wait()
        if self._failure is not None or self._conversation is None:
            return messages.failure(value, INTERNAL_ERROR, f"The service could not start. {_cause(self._failure)}")
        try:
            return await self._conversation.answer(line, message)
        except Exception:
            log.exception("an MCP message could not be answered")
            return messages.failure(value, INTERNAL_ERROR, "Something went wrong on our side; the log says more.")

    async def _send(self, answer: bytes) -> None:
        """Write one line. Lines never mix. If nobody reads them any more, the conversation ends."""
        try:
            async with self._writing:
                await write_all(self._sink, answer + b"\n")
        except OSError as error:
            log.info("the client no longer reads our answers: %s", error)
            self._talking.cancel()


def _cause(failure: Exception | None) -> str:
    """Return our own message about the failure. An unexpected error may quote secrets, so only the log has it."""
    if isinstance(failure, (ClickException, ToolserverError)):
        return str(failure)
    return "Its standard error says why."


def _plain(error: Exception) -> Exception:
    """Return the single error inside nested groups of one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
