"""Which requests are read: by host, origin and media types, and with which choice of tools."""

import pytest

from tests.mcp.service import registry
from toolserver.mcp import asgi
from toolserver.mcp.asgi import RequestGuard
from toolserver.mcp.definitions import ToolChoices
from toolserver.mcp.messages import MessageRefusal
from toolserver.settings import McpSettings

JSON = {b"content-type": b"application/json", b"host": b"127.0.0.1:8080"}


def guard(base_url="http://127.0.0.1:8080", **named):
    return RequestGuard(ToolChoices(registry()), base_url, McpSettings(**named))


def admit(made, query=b"", **headers):
    given = JSON | {name.replace("_", "-").encode(): value for name, value in headers.items()}
    lines = {name: value for name, value in given.items() if value is not None}
    return made.admit({"query_string": query}, lines, has_token=b"authorization" in lines)


def status_of(made, query=b"", **headers):
    with pytest.raises(MessageRefusal) as refused:
        admit(made, query, **headers)
    return refused.value.status


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:9", b"[::1]:8080", b"data.example"])
def test_a_server_on_this_machine_answers_to_its_own_names(host):
    assert admit(guard(allowed_hosts=["Data.example"]), host=host)


@pytest.mark.parametrize("host", [b"evil.example", b"", None, b"localhost.evil.example", b"[broken"])
def test_a_server_on_this_machine_answers_to_no_other_name(host):
    assert status_of(guard(), host=host) == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [(b"https://evil.example", 403), (b"null", 403), (b"http://localhost:3000", None), (b"https://app.example", None)],
)
def test_pages_of_other_origins_may_not_call_a_server_on_this_machine(origin, status):
    made = guard(allowed_origins=["https://App.example/"])
    if status is None:
        assert admit(made, origin=origin)
    else:
        assert status_of(made, origin=origin) == status


def test_a_public_server_answers_everyone():
    assert admit(guard("https://data.example"), host=b"any.example", origin=b"https://any.example")


@pytest.mark.parametrize("kind", [None, b"text/plain", b"", b"application/jsonx"])
def test_a_body_that_is_not_json_is_refused(kind):
    assert status_of(guard(), content_type=kind) == 415


@pytest.mark.parametrize(
    ("accept", "admitted"),
    [
        (None, True),
        (b"application/json, text/event-stream", True),
        (b"*/*", True),
        (b"application/*;q=0.1", True),
        (b"text/event-stream", False),
        (b"", False),
    ],
)
def test_the_answer_has_to_be_acceptable(accept, admitted):
    assert admit(guard(), accept=accept) if admitted else status_of(guard(), accept=accept) == 406


def test_the_tools_are_chosen_by_query_and_headers_and_an_unknown_one_is_named():
    made = guard()
    assert list(admit(made, b"tools=word").routes) == ["word"]
    assert list(admit(made, x_mcp_tools=b"coin").routes) == ["coin"]
    with pytest.raises(MessageRefusal) as refused:
        admit(made, b"tools=wurst")
    assert refused.value.status == 400
    assert "word" in refused.value.data["tools"]


def test_a_refused_request_is_refused_again_and_an_admitted_one_is_remembered():
    made = guard()
    assert [status_of(made, host=b"evil.example") for _ in range(2)] == [421, 421]
    assert admit(made) is admit(made)
    assert len(made.verdicts) == 1


def test_what_is_remembered_is_bounded_in_number_and_size(monkeypatch):
    monkeypatch.setattr(asgi, "VERDICTS", 3)
    made = guard()
    counts = []
    for number in range(5):
        admit(made, accept=b"*/*;q=0.%d" % number)
        counts.append(len(made.verdicts))
    assert counts == [1, 2, 3, 1, 2]
    shared = sum(map(len, JSON.values()))
    for size, kept in ((1025, 2), (1024, 3)):
        admit(made, accept=b"*/*,".ljust(size - shared, b"x"))
        assert len(made.verdicts) == kept


def test_so_many_verdicts_of_such_a_size_are_remembered():
    assert (asgi.VERDICTS, asgi.VERDICT_BYTES) == (512, 1024)


def test_whoever_sends_a_token_has_a_choice_of_its_own_whatever_the_token_is():
    made = guard()
    bare, one, other = admit(made), admit(made, authorization=b"Bearer a"), admit(made, authorization=b"Bearer b")
    assert one is other
    assert bare is not one
    assert len(made.verdicts) == 2


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        (b"", {"host": b"evil.example"}, 421, -32600),
        (b"", {"origin": b"https://evil.example"}, 403, -32600),
        (b"", {"content_type": b"text/plain"}, 415, -32600),
        (b"", {"accept": b"text/html"}, 406, -32600),
        (b"toolset=most", {}, 400, -32602),
    ],
)
def test_a_refusal_has_its_status_and_its_code(query, headers, status, code):
    with pytest.raises(MessageRefusal) as refused:
        admit(guard(), query, **headers)
    assert (refused.value.status, refused.value.code) == (status, code)
