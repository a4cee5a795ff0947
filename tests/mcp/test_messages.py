"""Messages as bytes: which are common, which protocol they speak, and what closes an answer."""

import json
from dataclasses import replace

import pytest

from tests.requirements import proves
from toolserver.core.caller import Caller
from toolserver.mcp import messages
from toolserver.mcp.messages import (
    CAPABILITIES_KEY,
    LEGACY,
    MODERN,
    NEWEST_LEGACY,
    TOOLS_ONLY,
    VERSION_KEY,
    MessageRefusal,
    is_modern_message,
    parse_message,
    read_message,
)

ENVELOPE = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}


def read(method="ping", **params):
    return read_message(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","skipped":"\xff"}',
    ],
)
def test_anything_unusual_is_no_common_message(body):
    assert read_message(body) is None


def test_a_request_and_a_notification_are_told_apart_by_the_id():
    assert read().id == 1
    assert read_message(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').id is messages.UNSET


def test_arguments_stay_as_they_were_written():
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{ "a" : 1.0 }}}'
    assert bytes(read_message(body).params.arguments) == b'{ "a" : 1.0 }'


def test_the_protocol_is_known_by_the_envelope():
    assert is_modern_message(read()) is False
    assert is_modern_message(read(_meta=ENVELOPE)) is True
    assert is_modern_message(read(_meta={VERSION_KEY: MODERN})) is None
    assert is_modern_message(read(_meta=ENVELOPE | {VERSION_KEY: "1999-01-01"})) is None
    assert is_modern_message(read("initialize", _meta=ENVELOPE)) is False


@pytest.mark.parametrize("member", ["cursor", "task", "inputResponses", "requestState"])
def test_params_that_ask_for_more_than_an_answer_are_not_plain(member):
    assert read().params.plain
    assert not read(**{member: None}).params.plain


@pytest.mark.parametrize(("meta", "payment"), [({}, None), ({"x402/payment": None}, None)])
def test_a_payment_that_is_null_is_none(meta, payment):
    assert read(_meta=meta).params.meta.paid is payment


def test_a_payment_is_its_json():
    assert read(_meta={messages.META_PAYMENT: {"a": 1}}).params.meta.paid == '{"a": 1}'


@pytest.mark.parametrize("value", [0, -5, 2**70, "a", 'ü"'])
@pytest.mark.parametrize("modern", [True, False])
def test_an_answer_is_closed_as_its_protocol_wants(value, modern):
    plain = json.loads(messages.response(value, b'{"a":1', messages.end(modern=modern)))
    told = json.loads(messages.response(value, b'{"a":1', messages.end_with({"m": 2}, modern=modern)))

    assert (plain["jsonrpc"], plain["id"], plain["result"]["a"]) == ("2.0", value, 1)
    assert told["result"]["_meta"]["m"] == 2
    assert ("resultType" in plain["result"], "resultType" in told["result"]) == (modern, modern)
    assert (messages.SERVER_KEY in told["result"]["_meta"]) is modern


def test_a_failure_has_data_only_when_there_are_some():
    assert json.loads(messages.failure(1, -32600, "no"))["error"] == {"code": -32600, "message": "no"}
    assert json.loads(messages.failure(None, -32600, "no", {"a": 1}))["error"]["data"] == {"a": 1}


def test_initialize_agrees_on_a_version_that_we_serve():
    asked = {"capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    for version in (*LEGACY, "1999-01-01"):
        core = TOOLS_ONLY.answer(read("initialize", protocolVersion=version, **asked), modern=False)
        expected = version if version in LEGACY else NEWEST_LEGACY
        assert json.loads(core + b"}")["protocolVersion"] == expected
    assert TOOLS_ONLY.answer(read("initialize", protocolVersion=MODERN), modern=False) is None


def test_a_handshake_tells_who_we_are_and_needs_all_that_the_protocol_wants():
    asked = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    told = json.loads(TOOLS_ONLY.answer(read("initialize", **asked), modern=False) + b"}")
    assert told == {
        "protocolVersion": LEGACY[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": messages.SERVER_INFO,
        "instructions": messages.INSTRUCTIONS,
    }
    assert TOOLS_ONLY.answer(read("initialize", **asked), modern=True) is None
    for left_out in asked:
        given = {name: value for name, value in asked.items() if name != left_out}
        assert TOOLS_ONLY.answer(read("initialize", **given), modern=False) is None


@proves("terms.instructions")
def test_the_instructions_begin_with_the_topics_because_some_hosts_show_no_more():
    text = messages.INSTRUCTIONS
    topics, key_facts = text[:250], text[250:512]
    for topic in (
        *(
            "weather",
            "air quality",
            "earthquakes",
            "storms",
            "wildfires",
            "volcanoes",
            "crypto",
            "stocks",
            "currencies",
        ),
        *("interest rates", "gas fees", "tech news", "prediction markets", "service outages", "cyber threats"),
        *("space launches", "auroras", "AI models", "GitHub"),
    ):
        assert topic in topics
        assert text.count(topic) == 1  # a word that stands twice makes every tool match a search for it
    for fact in ("than are listed", "?toolset=all", "payment_buy_credits", "payment_confirm", "`token`"):
        assert fact in key_facts
    assert len(text.encode()) <= 900


def test_versions_and_the_time_for_which_answers_may_be_kept():
    assert (MODERN, NEWEST_LEGACY, len(LEGACY)) == ("2026-07-28", "2025-11-25", 4)
    assert (messages.LIST_TTL_MS, messages.DISCOVER_TTL_MS) == (300_000, 3_600_000)
    discovered = json.loads(TOOLS_ONLY.answer(read("server/discover"), modern=True) + b"}")
    assert (discovered["ttlMs"], discovered["cacheScope"]) == (3_600_000, "public")
    assert discovered["capabilities"] == {"tools": {"listChanged": False}}


def test_a_message_adds_to_its_caller_what_its_meta_says():
    caller = Caller(client="c", token="t", nonce="own")
    plain = read(_meta={}).params.meta.add_to(caller)
    told = {"idempotency_key": "k", "agent_nonce": "n", "receipt": "reference", messages.META_PAYMENT: {"a": 1}}
    said = read(_meta=told).params.meta.add_to(caller)

    assert plain == caller
    wanted = {"idempotency_key": "k", "nonce": "n", "receipt_reference": True, "payment": '{"a": 1}'}
    assert said == replace(caller, **wanted)
    assert not read(_meta={"receipt": "whole"}).params.meta.add_to(caller).receipt_reference


def test_a_person_who_opens_the_address_reads_what_it_is():
    told = json.loads(messages.description("https://x/api/mcp", "https://x/docs", {"core": 3}))
    assert (told["url"], told["docs"], told["tools"]) == ("https://x/api/mcp", "https://x/docs", {"core": 3})
    assert told["protocol_versions"] == [*LEGACY, MODERN]


def test_each_protocol_has_its_own_fixed_results():
    assert TOOLS_ONLY.answer(read("ping"), modern=False) == b"{"
    assert TOOLS_ONLY.answer(read("ping"), modern=True) is None
    assert json.loads(TOOLS_ONLY.answer(read("server/discover"), modern=True) + b"}")["supportedVersions"] == [MODERN]
    assert TOOLS_ONLY.answer(read("server/discover"), modern=False) is None
    assert TOOLS_ONLY.answer(read("tools/list"), modern=False) is None


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ('"ping"', 400, "not a JSON-RPC message"),
        ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', 400, "not a JSON-RPC message"),
        ('{"jsonrpc": "2.0", "id": 1}', 400, "is not a response"),
        (
            '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": []}}',
            200,
            "object",
        ),
    ],
)
def test_what_is_no_message_is_refused_with_its_reason(body, status, words):
    with pytest.raises(MessageRefusal, match=words) as refusal:
        parse_message(body.encode())
    assert refusal.value.status == status


@pytest.mark.parametrize("arguments", ["", ', "arguments": null', ', "arguments": {"a": 1}'])
def test_a_call_may_leave_its_arguments_out(arguments):
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "x"{arguments}}}}}'
    assert parse_message(body.encode())["params"]["name"] == "x"
