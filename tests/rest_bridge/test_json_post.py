"""POST requests of pages: an object in, an object out, and refusals as everywhere."""

import json

import pytest

from rest_bridge.json_post import MOST_BYTES, json_post
from tests.catalog.tiny import FACTS


async def echo(scope, found, given):
    if "broken" in given:
        raise RuntimeError("a secret detail")
    return {"given": given}


async def asked(body, method="POST"):
    said = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        said.append(message)

    await json_post(echo, FACTS)({"method": method, "path": "/x", "headers": []}, receive, send)
    headers, told = dict(said[0]["headers"]), json.loads(said[1]["body"])
    assert (headers[b"cache-control"], headers[b"x-content-type-options"]) == (b"no-store", b"nosniff")
    assert told.get("request_id", headers[b"x-request-id"].decode()) == headers[b"x-request-id"].decode()
    is_refused = said[0]["status"] != 200
    assert headers[b"content-type"] == (b"application/problem+json" if is_refused else b"application/json")
    return said[0]["status"], told


async def test_an_object_is_answered_by_an_object():
    assert await asked(b'{"a":1}') == (200, {"given": {"a": 1}})


@pytest.mark.parametrize(
    ("body", "method", "status", "code"),
    [
        (b"[]", "POST", 400, "invalid_json"),
        (b"{}", "PUT", 405, "method_not_allowed"),
        (b" " * (MOST_BYTES + 1), "POST", 413, "payload_too_large"),
    ],
)
async def test_anything_else_is_refused(body, method, status, code):
    found, problem = await asked(body, method)
    assert (found, problem["error"]) == (status, code)
    assert problem["type"] == f"https://data.example/problems/{code}"


async def test_a_failure_of_ours_is_told_without_its_words(caplog):
    status, problem = await asked(b'{"broken":1}')
    assert (status, problem["error"]) == (500, "internal_error")
    assert "secret" not in str(problem)
    assert "a request failed" in caplog.text


async def test_a_body_may_have_a_thousand_bytes():
    assert MOST_BYTES == 1000
    assert (await asked(b"{" + b" " * 998 + b"}"))[0] == 200


async def test_a_refusal_says_which_methods_are_taken_and_every_answer_how_long_it_is():
    said = []

    async def receive():
        return {"type": "http.request", "body": b"{}"}

    async def send(message):
        said.append(message)

    for method in ("GET", "POST"):
        await json_post(echo, FACTS)({"method": method, "path": "/x", "headers": []}, receive, send)
    refused, body, answered, _ = said
    assert (refused["status"], dict(refused["headers"])[b"allow"]) == (405, b"POST")
    assert dict(refused["headers"])[b"content-length"] == b"%d" % len(body["body"])
    assert dict(answered["headers"])[b"content-type"] == b"application/json"
    assert b"allow" not in dict(answered["headers"])


async def test_the_media_type_of_the_body_counts():
    async def receive():
        return {"type": "http.request", "body": b"{}"}

    said = []

    async def send(message):
        said.append(message)

    headers = [(b"content-type", b"text/plain")]
    await json_post(echo, FACTS)({"method": "POST", "path": "/x", "headers": headers}, receive, send)
    assert said[0]["status"] == 415
