"""The bridge: what it sends to the service, what it makes of the answers, and what becomes of tokens."""

import json

import httpx
import pytest

from tests.mcp.service import asked
from toolserver.core.http import HttpClient
from toolserver.mcp import messages
from toolserver.mcp.credentials import FILE, CredentialsFile
from toolserver.mcp.stdio_bridge import ANSWER_BYTES, ANSWER_S, CONNECT_S, SENT_ALONG, StdioBridge, TokenPurse

URL = "https://data.example"
FIRST, SECOND = f"svc_live_{'1' * 64}", f"svc_live_{'2' * 64}"


def result(value=1, *, failed=False, **structured):
    text = json.dumps(structured)
    more = {} if failed else {"structuredContent": structured}
    return {
        "jsonrpc": "2.0",
        "id": value,
        "result": {"content": [{"type": "text", "text": text}], "isError": failed, **more},
    }


class Bridged:
    """A bridge to a service that answers what is arranged, in order, the last again and again."""

    def __init__(self, folder, *answers, given=None, **chosen):
        self._answers, self.requests = list(answers), []
        self.file = CredentialsFile(folder / FILE)
        http = HttpClient(URL, transport=httpx.MockTransport(self._handle))
        self.bridge = StdioBridge(URL, http, TokenPurse(URL, self.file, given), chosen)

    async def _handle(self, request):
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    async def ask(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        answer = await self.bridge.answer(line, messages.read_message(line))
        return None if answer is None else json.loads(answer)

    @property
    def tokens(self):
        return [request.headers.get("authorization", "").removeprefix("Bearer ") for request in self.requests]


async def test_a_message_goes_to_the_service_as_it_is_with_the_choice_of_tools(tmp_path):
    bridged = Bridged(tmp_path, {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}, tools="forex,gas")
    message = asked("tools/list", value=1)
    assert await bridged.ask(message) == {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
    (sent,) = bridged.requests
    assert (sent.method, str(sent.url)) == ("POST", f"{URL}/api/mcp?tools=forex%2Cgas")
    assert json.loads(sent.content) == message
    assert sent.headers["mcp-protocol-version"] == "2025-11-25"
    assert "mcp-method" not in sent.headers


async def test_a_modern_message_is_repeated_in_its_headers(tmp_path):
    bridged = Bridged(tmp_path, result())
    await bridged.ask(asked("tools/call", {"name": "gas"}, value=1, modern=True))
    (sent,) = bridged.requests
    told = [sent.headers[name] for name in ("mcp-protocol-version", "mcp-method", "mcp-name")]
    assert told == [messages.MODERN, "tools/call", "gas"]


async def test_a_refusal_without_an_id_answers_the_message_that_was_sent(tmp_path):
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "too long"}}
    bridged = Bridged(tmp_path, httpx.Response(413, json=refusal))
    assert await bridged.ask(asked("tools/list", value=7)) == {**refusal, "id": 7}


async def test_a_token_goes_along_with_calls_only_and_the_given_one_first(tmp_path):
    bridged = Bridged(tmp_path, result(), given=FIRST)
    bridged.file.add(URL, SECOND)
    await bridged.ask(asked("tools/list", value=1))
    await bridged.ask(asked("tools/call", {"name": "gas"}, value=2))
    assert bridged.tokens == ["", FIRST]


async def test_a_purchase_keeps_the_token_and_shows_its_fingerprint(tmp_path):
    step = {"tool": "premium_briefing", "how": "Call it with the header."}
    bridged = Bridged(tmp_path, result(token=FIRST, credits=50, next=step))
    told = (await bridged.ask(asked("tools/call", {"name": "payment_confirm"}, value=1)))["result"]
    assert bridged.file.read_tokens(URL) == [FIRST]
    assert FIRST not in json.dumps(told)
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
    assert told["structuredContent"]["token"].startswith("kept for you")
    assert told["structuredContent"]["token"].endswith("fingerprint 4b8c3db3c159edba")  # 16 hex of its SHA-256
    assert told["structuredContent"]["next"] == {"tool": "premium_briefing", "how": SENT_ALONG}
    await bridged.ask(asked("tools/call", {"name": "premium_briefing"}, value=2))
    assert bridged.tokens == ["", FIRST]


async def test_a_second_purchase_overwrites_nothing(tmp_path):
    bridged = Bridged(tmp_path, result(token=SECOND, credits=50))
    bridged.file.add(URL, FIRST)
    await bridged.ask(asked("tools/call", {"name": "payment_confirm"}, value=1))
    assert bridged.file.read_tokens(URL) == [FIRST, SECOND]


async def test_tokens_in_answers_of_other_tools_are_the_owners_to_see(tmp_path):
    bridged = Bridged(tmp_path, result(token=SECOND))
    told = (await bridged.ask(asked("tools/call", {"name": "account_allowance_create"}, value=1)))["result"]
    assert told["structuredContent"]["token"] == SECOND
    assert bridged.file.read_tokens(URL) == []


async def test_when_a_token_is_spent_the_next_one_is_tried_and_stays_first(tmp_path):
    bridged = Bridged(tmp_path, result(failed=True, error="insufficient_credits"), result(data=1))
    bridged.file.add(URL, FIRST)
    bridged.file.add(URL, SECOND)
    assert (await bridged.ask(asked("tools/call", {"name": "premium_macro"}, value=1)))["result"]["isError"] is False
    assert bridged.tokens == [FIRST, SECOND]
    assert bridged.file.read_tokens(URL) == [SECOND, FIRST]


@pytest.mark.parametrize("code", ["rate_limited", "invalid_arguments", "billing_unavailable"])
async def test_other_refusals_are_told_and_not_tried_again(tmp_path, code):
    bridged = Bridged(tmp_path, result(failed=True, error=code))
    bridged.file.add(URL, FIRST)
    bridged.file.add(URL, SECOND)
    assert (await bridged.ask(asked("tools/call", {"name": "premium_macro"}, value=1)))["result"]["isError"] is True
    assert bridged.tokens == [FIRST]


async def test_what_has_no_answer_has_none(tmp_path):
    bridged = Bridged(tmp_path, httpx.Response(202))
    assert await bridged.ask({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}) is None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx.ConnectError("refused"), "ConnectError"),
        (httpx.Response(502, text="<html>bad gateway</html>"), "status 502; not an MCP service"),
        (
            httpx.Response(301, text="moved", headers={"location": "https://new.example/"}),
            "moved to https://new.example/",
        ),
        (httpx.Response(500), "status 500 without a body"),
    ],
)
async def test_a_service_that_does_not_answer_is_told_to_the_model_and_to_the_host(tmp_path, answer, told):
    bridged = Bridged(tmp_path, answer)
    called = await bridged.ask(asked("tools/call", {"name": "gas"}, value=1))
    listed = await bridged.ask(asked("tools/list", value=2))
    assert called["result"]["isError"] is True
    assert told in called["result"]["content"][0]["text"]
    assert (listed["id"], listed["error"]["code"]) == (2, -32603)
    assert told in listed["error"]["message"]


async def test_a_damaged_credentials_file_is_told_and_no_call_is_sent(tmp_path):
    bridged = Bridged(tmp_path, result())
    bridged.file.path.write_text("{")
    told = await bridged.ask(asked("tools/call", {"name": "gas"}, value=1))
    assert "repair it or move it away" in told["result"]["content"][0]["text"]
    assert bridged.requests == []


async def test_an_answer_on_one_line_is_passed_on_as_it_was_written(tmp_path):
    written = json.dumps(result(data=1), separators=(" , ", " : ")).encode()
    bridged = Bridged(tmp_path, httpx.Response(200, content=written))
    line = json.dumps(asked("tools/call", {"name": "gas"}, value=1)).encode()
    assert await bridged.bridge.answer(line, messages.read_message(line)) == written


async def test_an_answer_over_several_lines_becomes_one(tmp_path):
    written = json.dumps(result(data=1), indent=1)
    bridged = Bridged(tmp_path, httpx.Response(200, text=written))
    line = json.dumps(asked("tools/call", {"name": "gas"}, value=1)).encode()
    answer = await bridged.bridge.answer(line, messages.read_message(line))
    assert b"\n" not in answer
    assert json.loads(answer) == json.loads(written)


def test_an_answer_has_these_bounds():
    assert (ANSWER_BYTES, ANSWER_S, CONNECT_S) == (16_777_216, 120, 5)


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("payment_confirm", result(failed=True, token=FIRST)),
        ("payment_confirm", result(token="svc_live_short")),
        ("payment_confirm", result(token=5)),
        ("payment_confirm", result(credits=5)),
        ("payment_balance", result(token=FIRST)),
    ],
)
async def test_only_a_token_that_was_sold_is_kept(tmp_path, tool, answer):
    bridged = Bridged(tmp_path, answer)
    assert await bridged.ask(asked("tools/call", {"name": tool}, value=1)) == answer
    assert bridged.file.read_tokens(URL) == []


async def test_a_token_bought_by_a_topup_is_kept_and_the_given_one_is_not_written_down(tmp_path):
    bridged = Bridged(tmp_path, result(token=FIRST), result(token=SECOND), given=SECOND)
    for _ in range(2):
        told = await bridged.ask(asked("tools/call", {"name": "payment_topup"}, value=1))
        assert told["result"]["structuredContent"]["token"].startswith("kept for you")
    assert bridged.file.read_tokens(URL) == [FIRST]


@pytest.mark.parametrize("code", ["insufficient_credits", "invalid_token", "expired"])
async def test_when_every_token_is_refused_the_last_refusal_is_told(tmp_path, code):
    bridged = Bridged(tmp_path, result(failed=True, error=code), given=FIRST)
    bridged.file.add(URL, FIRST)
    bridged.file.add(URL, SECOND)
    told = await bridged.ask(asked("tools/call", {"name": "premium_macro"}, value=1))
    assert told == result(failed=True, error=code)
    assert bridged.tokens == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        (asked("initialize", modern=True), {"mcp-protocol-version": "2025-11-25"}),
        (b"{", {"mcp-protocol-version": "2025-11-25"}),
        (b"[]", {"mcp-protocol-version": "2025-11-25"}),
        (
            asked("resources/read", {"uri": "test://a"}, modern=True),
            {"mcp-protocol-version": messages.MODERN, "mcp-method": "resources/read", "mcp-name": "test://a"},
        ),
        (
            asked("tools/list", {"_meta": {messages.VERSION_KEY: "2099-01-01"}}, modern=True),
            {"mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list"},
        ),
    ],
)
async def test_headers_repeat_what_the_message_says_of_itself(tmp_path, message, headers):
    bridged = Bridged(tmp_path, result())
    await bridged.ask(message)
    (sent,) = bridged.requests
    assert {name: value for name, value in sent.headers.items() if name.startswith("mcp-")} == headers


async def test_an_address_that_a_header_cannot_have_is_sent_in_base64(tmp_path):
    bridged, uri = Bridged(tmp_path, result()), "toolserver://answers/weather?place=Zürich"
    await bridged.ask(asked("resources/read", {"uri": uri}, modern=True))
    name = bridged.requests[0].headers["mcp-name"]
    assert name == "=?base64?dG9vbHNlcnZlcjovL2Fuc3dlcnMvd2VhdGhlcj9wbGFjZT1aw7xyaWNo?="
    assert messages.decode_header(name.encode()) == uri.encode()


async def test_a_receipt_is_read_with_the_token_that_paid_and_other_resources_without_one(tmp_path):
    unknown = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Resource not found"}}
    receipt = {"jsonrpc": "2.0", "id": 1, "result": {"contents": []}}
    bridged = Bridged(tmp_path, unknown, receipt, given=FIRST)
    bridged.file.add(URL, SECOND)
    assert await bridged.ask(asked("resources/read", {"uri": "toolserver://receipts/rcpt_1"})) == receipt
    assert bridged.tokens == [FIRST, SECOND]
    assert bridged.bridge.purse.read_tokens() == [FIRST, SECOND], "nothing is wrong with the first token"
    await bridged.ask(asked("resources/read", {"uri": "toolserver://docs/receipts"}))
    assert bridged.tokens[2:] == [""]


@pytest.mark.parametrize(
    "asks",
    [{"resultType": "input_required"}, {"resultType": "payment_required", "paymentRequired": {"error": "expired"}}],
)
async def test_nobody_is_asked_to_pay_while_another_token_has_credits(tmp_path, asks):
    question = {"jsonrpc": "2.0", "id": 1, "result": asks}
    bridged = Bridged(tmp_path, question, result(answer=1))
    bridged.file.add(URL, SECOND)
    bridged.file.add(URL, FIRST)
    call = asked("tools/call", {"name": "premium_macro"}, value=1, modern=True)
    assert (await bridged.ask(call))["result"]["structuredContent"] == {"answer": 1}
    assert len(set(bridged.tokens)) == 2


async def test_a_call_that_waited_for_its_payment_goes_on_with_the_token_that_it_waited_for(tmp_path):
    refused = {"code": -32602, "message": "Invalid", "data": {"reason": messages.STATE_REFUSED}}
    bridged = Bridged(tmp_path, {"jsonrpc": "2.0", "id": 1, "error": refused}, result(answer=1), given=FIRST)
    bridged.file.add(URL, SECOND)
    again = {"name": "premium_macro", "requestState": "sealed", "inputResponses": {"buy": {"action": "accept"}}}
    told = await bridged.ask(asked("tools/call", again, value=1, modern=True))
    assert (told["result"]["structuredContent"], bridged.tokens) == ({"answer": 1}, [FIRST, SECOND])
    assert bridged.bridge.purse.read_tokens() == [FIRST, SECOND]
    unknown = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool"}}
    other = Bridged(tmp_path, unknown, given=FIRST)
    assert await other.ask(asked("tools/call", {"name": "none"}, value=1)) == unknown
    assert other.tokens == [FIRST]


async def test_a_failure_is_told_in_the_era_of_the_call_and_to_nobody_for_a_notification(tmp_path):
    bridged = Bridged(tmp_path, httpx.ConnectError("refused"))
    for modern in (False, True):
        told = await bridged.ask(asked("tools/call", {"name": "gas"}, value=1, modern=modern))
        assert ("resultType" in told["result"]) is modern
    assert await bridged.ask({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}) is None
    unread = await bridged.ask(b"{")
    assert (unread["id"], unread["error"]["code"]) == (None, -32603)


@pytest.mark.parametrize("as_ascii", [True, False])
async def test_what_a_terminal_would_obey_does_not_come_through(tmp_path, as_ascii):
    hostile = result(title="\x1b]52;c;ZXZpbA==\x07News\x9b2J", place="Köln\tand\nmore")
    hostile["result"]["content"][0]["text"] = "\x1b[31mNews\x9b0m from Köln"
    body = json.dumps(hostile, ensure_ascii=as_ascii)
    bridged = Bridged(tmp_path, httpx.Response(200, content=body.encode()))
    answer = await bridged.ask(asked("tools/call", {"name": "sights"}))

    assert answer["result"]["structuredContent"] == {"title": "News", "place": "Köln\tand\nmore"}
    assert answer["result"]["content"][0]["text"] == "News from Köln"


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"jsonrpc":"2.0","id":1,"result":[]}', b'{"jsonrpc":"2.0","result":{"structuredContent":[]}}'],
)
async def test_an_answer_of_any_form_raises_nothing(tmp_path, body):
    bridged = Bridged(tmp_path, httpx.Response(200, content=body), given=FIRST)

    assert (await bridged.ask(asked("tools/call", {"name": "payment_confirm"})))["id"] == 1
