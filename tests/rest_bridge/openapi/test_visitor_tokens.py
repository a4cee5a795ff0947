"""The description of the path for visitor tokens: what the path takes and gives fits it, and nothing else does."""

from rest_bridge.openapi.visitor_tokens import describe_visitor_tokens
from tests.json_schemas import prepare
from toolserver.registry.site_facts import VISITOR_TOKENS

POST = describe_visitor_tokens()[VISITOR_TOKENS]["post"]


def fits(value, part):
    schema = part["content"]["application/json"]["schema"]
    return prepare(schema).is_valid(value)


def test_nothing_or_a_solved_challenge_is_sent_and_a_token_comes_back():
    assert fits({}, POST["requestBody"])
    assert fits({"challenge": "20833-3-14", "solution": "9123"}, POST["requestBody"])
    for wrong in ({"challenge": "20833-3-14"}, {"solution": "1"}, {"amount": 1}, {"challenge": 1, "solution": "1"}):
        assert not fits(wrong, POST["requestBody"]), wrong
    answer = {"token": "svc_free_" + "0" * 64, "expires_at": "2027-02-14T08:00:00Z"}
    assert fits(answer, POST["responses"]["200"])
    assert POST["security"] == []
    assert {"400", "429"} <= POST["responses"].keys()
