"""MCP over standard input and output, as a host sees it: a program that is started, written to and read from.

Lines over file descriptors are whole, bounded, in order, and with nothing else between them.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.mcp.service import TOKEN, asked
from tests.mcp.stdio_server import load
from tests.requirements import proves
from tests.size import a_share
from toolserver.mcp import messages as wire
from toolserver.mcp import stdio
from toolserver.mcp.stdio import CHUNK, LINE_LIMIT, SLICE, Conversation, Stdio, claim_stdio, read_lines, write_all

ROOT = Path(__file__).resolve().parents[2]
HELLO = asked(
    "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
)


class Program:
    """A running program and what it says."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process = process
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def write(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            await self.process.stdin.send(line + b"\n")

    async def read(self) -> Any:
        with anyio.fail_after(20):
            return json.loads(await self._lines.receive_until(b"\n", 1_000_000))

    async def ask(self, message: Any) -> Any:
        await self.write(message)
        return await self.read()

    async def end(self) -> int:
        """Close its input and wait for its end; nothing more may have been written."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        return await self.ended()

    async def ended(self) -> int:
        with anyio.fail_after(20):
            with pytest.raises(anyio.IncompleteRead):
                await self._lines.receive_until(b"\n", 1_000_000)
            assert self._lines.buffer == b""
            return await self.process.wait()


@asynccontextmanager
async def program(*arguments: str, **environment: str) -> AsyncIterator[Program]:
    command = [sys.executable, "-m", "tests.mcp.stdio_server", *arguments]
    env = os.environ | {"TOOLSERVER_TOKEN": TOKEN} | environment
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=ROOT, env=env) as process:
        try:
            yield Program(process)
        finally:
            if process.returncode is None:
                process.kill()


@pytest.mark.parametrize("backend", a_share(["asyncio", "trio"], 2))
async def test_a_whole_legacy_conversation(backend: str) -> None:
    async with program(BACKEND=backend) as host:
        hello = await host.ask(HELLO)
        await host.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = await host.ask(asked("tools/list", value="list"))
        call = await host.ask(asked("tools/call", {"name": "word"}, value=3))
        ping = await host.ask(asked("ping", value=4))
        unusual = await host.ask(asked("prompts/list", value=5))
        again = await host.ask(asked("resources/list", value=6))
        assert await host.end() == 0

    assert hello["result"]["protocolVersion"] == "2025-11-25"
    assert hello["result"]["serverInfo"]["name"] == "toolserver"
    assert hello["result"]["capabilities"] == {"tools": {"listChanged": False}, **wire.RESOURCES_CAPABILITIES}
    assert [tool["name"] for tool in tools["result"]["tools"]] == ["echo", "word", "oracle"]
    assert call["result"]["structuredContent"]["data"]["word"] == 'gl"ück\\'
    assert ping == {"jsonrpc": "2.0", "id": 4, "result": {}}
    assert (unusual["id"], unusual["error"]["code"]) == (5, -32601)
    assert again["id"] == 6
    assert {one["uri"].partition(":")[0] for one in again["result"]["resources"]} == {"skill", "toolserver"}


@pytest.mark.slow("it starts a program for each case")
async def test_a_whole_modern_conversation() -> None:
    async with program() as host:
        about = await host.ask(asked("server/discover", modern=True))
        tools = await host.ask(asked("tools/list", modern=True))
        call = await host.ask(asked("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, modern=True))
        unusual = await host.ask(asked("tools/call", {"name": "nope"}, value=9, modern=True))
        removed = await host.ask(asked("ping", modern=True))
        incomplete = await host.ask(asked("ping", {"_meta": {wire.VERSION_KEY: wire.MODERN}}))
        assert await host.end() == 0

    assert about["result"]["supportedVersions"] == [wire.MODERN]
    assert tools["result"]["resultType"] == "complete"
    assert call["result"]["structuredContent"]["data"]["text"] == "hi"
    assert (unusual["id"], unusual["error"]["code"]) == (9, -32602)
    assert removed["error"]["code"] == -32601
    assert incomplete["error"]["code"] == -32602


@pytest.mark.slow("it starts a program for each case")
async def test_a_byte_order_mark_before_the_first_message_is_no_part_of_it() -> None:
    async with program() as host:
        hello = await host.ask(b"\xef\xbb\xbf" + json.dumps(HELLO).encode())
        again = await host.ask(b"\xef\xbb\xbf" + json.dumps(asked("ping", value=2)).encode())
        assert await host.end() == 0

    assert hello["result"]["serverInfo"]["name"] == "toolserver"
    assert again["error"]["code"] == wire.PARSE_ERROR


@pytest.mark.slow("it starts a program for each case")
async def test_both_eras_may_alternate() -> None:
    async with program() as host:
        answers = [await host.ask(asked("tools/call", {"name": "nope"}, value=n, modern=bool(n % 2))) for n in range(4)]
        assert await host.end() == 0

    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(n, -32602) for n in range(4)]


@pytest.mark.slow("it starts a program for each case")
@proves("limits.stdio", "tokens.stdio")
async def test_a_paid_call_uses_the_token_of_the_environment_and_no_limit_applies() -> None:
    async with program() as host:
        paid = [await host.ask(asked("tools/call", {"name": "oracle"})) for _ in range(3)]
        free = [await host.ask(asked("tools/call", {"name": "word"})) for _ in range(3)]
        assert await host.end() == 0
    async with program(TOOLSERVER_TOKEN="nonsense") as host:
        refused = await host.ask(asked("tools/call", {"name": "oracle"}))

    assert [answer["result"]["_meta"]["credits_remaining"] for answer in paid] == [98, 96, 94]
    assert not any(answer["result"]["isError"] for answer in free)
    assert json.loads(refused["result"]["content"][0]["text"])["error"] == "invalid_token"


@pytest.mark.slow("it starts a program for each case")
async def test_an_idempotency_key_is_charged_once() -> None:
    message = asked("tools/call", {"name": "oracle", "_meta": {"idempotency_key": "k"}})
    async with program() as host:
        first, second = await host.ask(message), await host.ask(message)

    assert first == second


@pytest.mark.slow("it starts a program for each case")
async def test_a_slow_call_does_not_hold_up_the_others() -> None:
    async with program() as host:
        await host.ask(asked("tools/list"))
        slow = asked("tools/call", {"name": "oracle", "arguments": {"question": "slow"}}, value="slow")
        await host.write(slow, asked("ping", value="quick"))
        order = [(await host.read())["id"], (await host.read())["id"]]
        assert await host.end() == 0

    assert order == ["quick", "slow"]


@pytest.mark.slow("it starts a program for each case")
async def test_a_cancelled_call_is_never_answered() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}
    async with program() as host:
        await host.ask(asked("tools/list"))
        slow = asked("tools/call", {"name": "oracle", "arguments": {"question": "slow"}}, value="slow")
        await host.write(slow, cancel)
        balance = await host.ask(asked("tools/call", {"name": "oracle"}, value="next"))
        assert await host.end() == 0

    assert balance["id"] == "next"
    assert balance["result"]["_meta"]["credits_remaining"] == 98


@pytest.mark.slow("it starts a program for each case")
async def test_calls_under_way_are_answered_when_the_input_ends() -> None:
    async with program() as host:
        await host.write(
            asked("tools/call", {"name": "oracle", "arguments": {"question": "slow"}}, value=1),
            asked("tools/list", value=2),
        )
        assert host.process.stdin is not None
        await host.process.stdin.aclose()
        ids = {(await host.read())["id"], (await host.read())["id"]}
        assert await host.ended() == 0

    assert ids == {1, 2}


@pytest.mark.slow("it starts a program for each case")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"word","arguments":[]}}', -32602),
        (b"x" * (LINE_LIMIT + 10), -32600),
    ],
)
@pytest.mark.slow("it starts a program for each case")
async def test_what_is_no_message_gets_a_clean_error_and_the_conversation_goes_on(line: bytes, code: int) -> None:
    async with program() as host:
        wrong = await host.ask(line)
        right = await host.ask(asked("ping", value="still here"))
        assert await host.end() == 0

    assert wrong["error"]["code"] == code
    assert right["id"] == "still here"


@pytest.mark.slow("it starts a program for each case")
async def test_blank_lines_responses_and_unknown_notifications_are_ignored() -> None:
    async with program() as host:
        await host.write(
            b"", b"  \r", {"jsonrpc": "2.0", "id": 5, "result": {}}, {"jsonrpc": "2.0", "method": "what/ever"}
        )
        assert (await host.ask(asked("ping")))["id"] == 1
        assert await host.end() == 0


@pytest.mark.slow("it starts a program for each case")
async def test_a_line_without_an_end_is_answered_when_the_input_ends() -> None:
    async with program() as host:
        assert host.process.stdin is not None
        await host.process.stdin.send(json.dumps(asked("ping")).encode())
        await host.process.stdin.aclose()
        assert (await host.read())["id"] == 1
        assert await host.ended() == 0


@pytest.mark.slow("it starts a program for each case")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("before", [None, HELLO, asked("tools/list")])
async def test_a_signal_ends_it_in_order(number: int, before: Any) -> None:
    async with program() as host:
        await host.write(asked("ping"))
        await host.read()
        if before is not None:
            await host.ask(before)
        host.process.send_signal(number)
        assert await host.ended() == 0


@pytest.mark.slow("it starts a program for each case")
def test_it_ends_when_nobody_reads_any_more() -> None:
    command = [sys.executable, "-m", "tests.mcp.stdio_server"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=ROOT, bufsize=0) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        host.stdin.write(json.dumps(asked("tools/list")).encode() + b"\n")
        assert host.stdout.read(10)
        host.stdout.close()
        host.stdin.write(json.dumps(asked("tools/list")).encode() + b"\n")
        assert host.wait(20) == 0


@pytest.mark.slow("it starts a program for each case")
async def test_an_end_of_input_before_any_message_loads_nothing() -> None:
    async with program() as host:
        assert await host.end() == 0


async def test_a_service_that_cannot_load_says_so_to_the_client_and_fails() -> None:
    async with program(BROKEN="1") as host:
        hello = await host.ask(HELLO)
        told = await host.ask(asked("tools/list", value=7))
        assert await host.end() != 0

    assert hello["result"]["protocolVersion"] == "2025-11-25"
    assert (told["id"], told["error"]["code"]) == (7, -32603)
    assert "arranged" not in told["error"]["message"]


@pytest.mark.slow("it starts a program for each case")
async def test_a_cause_that_we_have_words_for_is_told_in_every_answer() -> None:
    async with program(REFUSED="1") as host:
        hello = await host.ask(HELLO)
        listed = await host.ask(asked("tools/list", value=7))
        called = await host.ask(asked("tools/call", {"name": "word"}, value=8))
        assert await host.end() != 0

    assert hello["result"]["protocolVersion"] == "2025-11-25"
    assert listed["error"]["message"] == called["error"]["message"] == "The service could not start. no such server"


@pytest.mark.slow("it starts a program for each case")
async def test_an_unknown_tool_in_the_choice_is_an_error() -> None:
    async with program("core", "nope") as host:
        await host.ask(HELLO)
        assert (await host.ask(asked("tools/list")))["error"]["code"] == -32603
        assert await host.end() != 0


@pytest.mark.slow("it starts a program for each case")
@proves("operations.choice", "operations.outside")
async def test_a_choice_of_tools_holds_for_calls_too() -> None:
    async with program("core", "word,coin") as host:
        tools = await host.ask(asked("tools/list"))
        call = await host.ask(asked("tools/call", {"name": "echo", "arguments": {"text": "x"}}))

    assert [tool["name"] for tool in tools["result"]["tools"]] == ["word", "coin"]
    assert call["error"]["code"] == -32602


async def test_a_conversation_in_this_process() -> None:
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    messages = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        asked("tools/call", {"name": "word"}, value=2),
        asked("tools/call", {"name": "echo", "arguments": {"text": "x"}}, value=3, modern=True),
        asked("prompts/list", value=4),
        asked("tools/call", {"name": "nope"}, value=5, modern=True),
        asked("tools/list", value=6),
    ]
    os.write(their_out, b"".join(json.dumps(message).encode() + b"\n" for message in messages) + b"[]\n")
    os.close(their_out)
    try:
        with anyio.fail_after(20):
            await Stdio(load, source=our_in, sink=our_out).run()
        answers = [json.loads(line) for line in os.read(their_in, 1_000_000).splitlines()]
    finally:
        for descriptor in (their_in, our_out, our_in):
            os.close(descriptor)

    assert sorted(answer["id"] or 0 for answer in answers) == [0, 1, 2, 3, 4, 5, 6]


async def test_the_conversation_is_opened_for_the_client_that_the_first_message_names() -> None:
    opened = []

    @asynccontextmanager
    async def load_for(client: wire.ClientFacts) -> AsyncIterator[Conversation]:
        opened.append(client)
        async with load(client) as conversation:
            yield conversation

    modern = asked("tools/list", modern=True)
    modern["params"]["_meta"][wire.CLIENT_KEY] = {"name": "of today", "version": "1"}
    shows = {"extensions": {wire.VIEWS_KEY: {"mimeTypes": [wire.VIEW_TYPE]}}}
    greets = asked("initialize", HELLO["params"] | {"capabilities": shows})
    says = asked("server/discover", {"_meta": {wire.CAPABILITIES_KEY: shows}}, modern=True)
    for first in (HELLO, modern, asked("tools/list"), asked("tools/list", modern=True), greets, says):
        (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
        os.write(their_out, json.dumps(first).encode() + b"\n" + json.dumps(HELLO).encode() + b"\n")
        os.close(their_out)
        try:
            with anyio.fail_after(20):
                await Stdio(load_for, source=our_in, sink=our_out).run()
        finally:
            for descriptor in (their_in, our_out, our_in):
                os.close(descriptor)

    assert opened == [("t", False), ("of today", False), ("", False), ("", False), ("t", True), ("", True)]


@pytest.mark.slow("it starts a program for each case")
async def test_initialize_is_answered_while_the_service_is_still_being_loaded() -> None:
    async with program(NEVER_LOADS="1") as host:
        assert (await host.ask(HELLO))["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.slow("it starts a program for each case")
async def test_files_work_as_input_and_output(tmp_path: Path) -> None:
    messages = [HELLO, asked("tools/call", {"name": "word"}, value=2), asked("prompts/list", value=3)]
    (tmp_path / "in").write_text("".join(json.dumps(message) + "\n" for message in messages))
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
        command = [sys.executable, "-m", "tests.mcp.stdio_server"]
        await anyio.run_process(command, stdin=source, stdout=sink, cwd=ROOT)

    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert {answer["id"] for answer in answers} == {1, 2, 3}


@pytest.mark.slow("it starts a program for each case")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_client_talks_to_it(mode: Any) -> None:
    from mcp import Client as SdkClient
    from mcp import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.mcp.stdio_server"], cwd=ROOT, env={"TOOLSERVER_TOKEN": TOKEN}
    )
    async with SdkClient(stdio_client(server, errlog=sys.__stderr__), mode=mode) as client:
        tools = await client.list_tools()
        result = await client.call_tool("oracle", {"question": "x"})
        version = client.protocol_version
        documents = await client.list_resources()
        document = await client.read_resource("toolserver://docs/receipts")
        templates = await client.list_resource_templates()

    assert "receipts" in [one.name for one in documents.resources]
    assert document.contents[0].text.startswith("# Receipts")
    assert len(templates.resource_templates) == 3
    assert [tool.name for tool in tools.tools] == ["echo", "word", "oracle"]
    assert result.structured_content["meaning"] == "42"
    assert version == (wire.MODERN if mode == "auto" else "2025-11-25")


def test_lines_calls_and_the_end_have_these_bounds() -> None:
    assert (stdio.LINE_LIMIT, stdio.AT_ONCE) == (4_194_304, 64)
    assert (stdio.LAST_ANSWERS_S, stdio.CLOSING_S) == (15, 8)


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


async def read_all(source, limit=100, chunk_bytes=CHUNK):
    with anyio.fail_after(10):
        return [line async for line in read_lines(source, limit, chunk_bytes=chunk_bytes)]


async def test_lines_come_whole_however_they_were_cut(pipe):
    source, sink = pipe
    for part in (b"on", b"e\ntwo\n\nthr", b"ee"):
        os.write(sink, part)
    os.close(sink)

    assert await read_all(source) == [b"one", b"two", b"", b"three"]


async def test_a_line_beyond_the_limit_is_none_and_the_next_one_is_read(pipe):
    source, sink = pipe
    os.write(sink, b"x" * 101 + b"\n" + b"y" * 100 + b"\n" + b"z" * 500)
    os.close(sink)

    assert await read_all(source) == [None, b"y" * 100, None]


async def test_a_long_line_is_not_kept_while_it_arrives(pipe):
    source, sink = pipe
    os.write(sink, b"x" * 95 + b"\nshort\n")
    os.close(sink)

    assert await read_all(source, 20, chunk_bytes=10) == [None, b"short"]


async def test_an_empty_input_has_no_lines(pipe):
    source, sink = pipe
    os.close(sink)

    assert await read_all(source) == []


async def test_what_a_pipe_cannot_take_at_once_is_written_when_it_can(pipe):
    source, sink = pipe
    data = os.urandom(4 * CHUNK + SLICE // 2)
    got = bytearray()

    async def drain():
        while len(got) < len(data):
            await anyio.wait_readable(source)
            got.extend(os.read(source, CHUNK))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            await write_all(sink, data)
    assert bytes(got) == data


async def test_nobody_reading_is_said(pipe):
    source, sink = pipe
    os.close(source)
    with pytest.raises(BrokenPipeError):
        await write_all(sink, b"x")


async def test_a_regular_file_can_be_read_too(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"one\ntwo\n")
    source = os.open(path, os.O_RDONLY)
    try:
        assert await read_all(source) == [b"one", b"two"]
    finally:
        os.close(source)


async def test_reading_leaves_no_thread_behind(pipe, monkeypatch):
    monkeypatch.setattr("anyio.to_thread.run_sync", None)
    source, sink = pipe
    os.write(sink, b"one\n")
    os.close(sink)

    assert await read_all(source) == [b"one"]


def test_while_it_is_claimed_printing_goes_to_standard_error_and_reading_finds_nothing(capfd, pipe):
    there, typed = pipe
    before = os.dup(0)
    os.dup2(there, 0)
    try:
        os.write(typed, b"first")
        with claim_stdio() as (source, sink):
            os.write(1, b"stray\n")
            os.write(sink, b"message\n")
            assert os.read(0, 10) == b""
            assert os.read(source, 10) == b"first"
        os.write(1, b"after\n")
        os.write(typed, b"second")
        assert os.read(0, 10) == b"second"
    finally:
        os.dup2(before, 0)
        os.close(before)

    out, err = capfd.readouterr()
    assert (out, err) == ("message\nafter\n", "stray\n")
    for descriptor in (source, sink):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
