"""One worker: the orders that it reads, whom it follows, and what its log says."""

import json
import logging
import os
import re
import subprocess
import sys

import anyio
import pytest

from toolserver.cli.worker import Orders, name_worker, read_orders, work
from toolserver.serving.listeners import Listeners
from toolserver.serving.supervisor import REPLACED, STOP
from toolserver.settings import Settings


@pytest.fixture
def pipe():
    """The two ends of a pipe; a test may close the one that is written to."""
    read, write = os.pipe()
    ends = {"read": read, "write": write}
    yield ends
    for file in ends.values():
        if file is not None:
            os.close(file)


def close(pipe):
    os.close(pipe["write"])
    pipe["write"] = None


def test_the_first_line_is_read_and_not_a_byte_more(pipe):
    os.write(pipe["write"], b'{"number": 3}\nstop\n')
    assert read_orders(pipe["read"]) == {"number": 3}
    assert os.read(pipe["read"], 10) == STOP


@pytest.mark.parametrize("line", [b"[]\n", b"hello\n", b""])
def test_other_orders_are_refused(pipe, line):
    os.write(pipe["write"], line)
    close(pipe)
    with pytest.raises(ValueError, match=r".+"):
        read_orders(pipe["read"])


@pytest.mark.parametrize("said", [STOP, b"", REPLACED + STOP])
async def test_a_word_or_the_end_of_the_pipe_ends_it(pipe, said):
    stop, orders = anyio.Event(), Orders(pipe["read"])
    os.write(pipe["write"], said)
    close(pipe)
    with anyio.fail_after(10):
        await orders.follow(stop)
    assert stop.is_set()
    assert not orders.is_replaced()


async def test_one_that_is_replaced_refuses_nothing_until_the_whole_service_ends(pipe):
    stop, orders = anyio.Event(), Orders(pipe["read"])
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(orders.follow, stop)
            os.write(pipe["write"], REPLACED)
            await stop.wait()
            assert orders.is_replaced()
            close(pipe)
    assert not orders.is_replaced()


async def test_it_serves_on_the_sockets_that_it_was_given_until_it_is_to_end(pipe, tmp_path):
    settings = Settings(port=0, data_dir=tmp_path)
    opened = Listeners.open(settings)
    seen = []

    async def serve_until(settings, stop, notice, **named):
        seen.append({"notice": notice, **named})
        os.write(pipe["write"], STOP)
        await stop.wait()

    files = {name: None if file is None else os.dup(file) for name, file in opened.files.items()}
    with anyio.fail_after(20):
        await work(settings, {"number": 0, "files": files, "world": None}, pipe["read"], serve=serve_until)
    (named,) = seen
    assert named["listeners"].addresses == opened.addresses
    assert (named["notice"].as_json, named["is_replaced"]()) == (True, False)
    await named["prepare"](None)
    assert (tmp_path / "keys" / "webhooks.key").exists(), "two workers would make two"
    for each in (opened, named["listeners"]):
        each.main.close()
        each.metrics.close()


def test_every_line_of_the_log_names_the_worker(monkeypatch):
    before = logging.getLogRecordFactory()
    try:
        name_worker(4)
        record = logging.getLogRecordFactory()("a", logging.INFO, "path", 1, "hello", (), None)
    finally:
        logging.setLogRecordFactory(before)
    from toolserver.core.logging import JsonLines

    assert json.loads(JsonLines().format(record))["worker"] == 4


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": 70_000}, r"invalid settings: port: .*\n\Z"),
        ({"data_dir": "file/data"}, "the data directory cannot be created: .*file/data: a part of the path is a file"),
    ],
)
def test_one_that_cannot_begin_says_why_in_one_sentence(tmp_path, flags, message):
    (tmp_path / "file").write_text("")
    orders = {"number": 0, "flags": flags, "files": {}, "world": None}
    begun = subprocess.run(
        [sys.executable, "-m", "toolserver.cli.worker"],
        input=json.dumps(orders) + "\n",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (begun.returncode, begun.stdout) == (1, "")
    assert re.match(message, begun.stderr), begun.stderr
