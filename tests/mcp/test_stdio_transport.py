"""Lines over file descriptors: whole, bounded, in order, and with nothing else between them."""

import os
from contextlib import suppress

import anyio
import pytest

from toolserver.mcp import stdio
from toolserver.mcp.stdio import CHUNK, SLICE, claim_stdio, read_lines, write_all


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


async def read_all(source, limit=100):
    with anyio.fail_after(10):
        return [line async for line in read_lines(source, limit)]


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


async def test_a_long_line_is_not_kept_while_it_arrives(pipe, monkeypatch):
    monkeypatch.setattr(stdio, "CHUNK", 10)
    source, sink = pipe
    os.write(sink, b"x" * 95 + b"\nshort\n")
    os.close(sink)

    assert await read_all(source, 20) == [None, b"short"]


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
