"""A call that is refused writes one line of the log at most, over each face, and that line names its request."""

import json
import logging
from collections.abc import Iterator

import pytest

from tests.calls.parts import POOR, RICH
from tests.calls.shop import BEARER, DOWN, shop
from tests.calls.toy import FIRST, SECOND
from toolserver.core.logging import JsonLines

NO_TOKEN, BAD, SPENT = {}, {"authorization": f"Bearer svc_live_{'0' * 64}"}, {"authorization": f"Bearer {POOR}"}
REFUSED_BY_REST = {
    "no such path": ("/api/nowhere", NO_TOKEN),
    "no token": ("/api/pro/report", NO_TOKEN),
    "unknown token": ("/api/pro/report", BAD),
    "no token was entered": ("/api/pro/report", {"authorization": "Bearer null"}),
    "too few credits": ("/api/pro/report", SPENT),
    "wrong argument": ("/api/number?factor=many", NO_TOKEN),
    "broken tool": ("/api/broken", NO_TOKEN),
    "broken paid tool": ("/api/pro/broken", BEARER),
    "a result that its schema forbids": ("/api/pro/liar", BEARER),
}
REFUSED_BY_MCP = {
    "no such tool": ("numbre", NO_TOKEN),
    "no token": ("premium_report", NO_TOKEN),
    "unknown token": ("premium_report", BAD),
    "too few credits": ("premium_report", SPENT),
    "broken tool": ("broken", NO_TOKEN),
    "broken paid tool": ("premium_broken", BEARER),
    "a result that its schema forbids": ("premium_liar", BEARER),
}


class Lines(logging.Handler):
    """The lines of the log as they are written."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(JsonLines())
        self.written: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("httpx"):  # the client of the test
            self.written.append(json.loads(self.format(record)))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, root = Lines(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


@pytest.mark.parametrize("kind", REFUSED_BY_REST)
async def test_a_call_that_rest_refuses_is_one_line_at_most_with_its_request(tmp_path, lines, kind):
    path, headers = REFUSED_BY_REST[kind]
    async with shop(tmp_path) as open_shop:
        lines.written.clear()
        answer = await open_shop.rest.get(path, headers=headers)
        assert answer.status_code >= 400
        require_one(lines, answer.headers["x-request-id"], kind)


@pytest.mark.parametrize("kind", REFUSED_BY_MCP)
async def test_a_call_that_mcp_refuses_is_one_line_at_most_with_its_request(tmp_path, lines, kind):
    name, headers = REFUSED_BY_MCP[kind]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    async with shop(tmp_path) as open_shop:
        lines.written.clear()
        answer = await open_shop.mcp.post("/api/mcp?toolset=all", json=message, headers=headers)
        body = answer.json()
        assert "error" in body or body["result"]["isError"]
        require_one(lines, answer.headers["x-request-id"], kind)


async def test_what_is_logged_beneath_a_call_names_its_request_too(tmp_path, lines):
    """The source that goes down is a line of another room, which knows nothing of requests."""
    async with shop(tmp_path) as open_shop:
        open_shop.internet.serves(FIRST, DOWN)
        open_shop.internet.serves(SECOND, DOWN)
        lines.written.clear()
        for number in range(4):
            answer = await open_shop.rest.get("/api/number", headers={"x-request-id": f"mine-{number:08}"})
            assert answer.headers["x-request-id"] == f"mine-{number:08}"
            open_shop.clock.advance(3600)
    told = [line for line in lines.written if line["event"] == "source is down"]
    assert told
    assert all(str(line["request_id"]).startswith("mine-") for line in told), told


def require_one(lines: Lines, request_id: str, kind: str) -> None:
    assert len(lines.written) <= 1, lines.written
    assert len(lines.written) == ("broken" in kind or "schema" in kind), lines.written
    assert {line["request_id"] for line in lines.written} <= {request_id}
    assert not any(token in json.dumps(lines.written) for token in (RICH, POOR))
