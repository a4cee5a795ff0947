"""The tools of the conformance suite: each has a schema, and those that never change are well-formed results."""

from types import SimpleNamespace

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    TextContent,
)

from tests.conformance.fixtures import (
    FIXED,
    FIXTURES,
    SCHEMAS,
    an_object,
    ask,
    input_required,
    resource,
    said,
    sample,
)

NAMED = ElicitResult(action="accept", content={"name": "Ada"})
SPOKEN = CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m")
ROOTS = ListRootsResult(roots=[])


def call(name, responses=None, state=None, context=None, **arguments):
    """What a fixture answers; `name` is the end of its name."""
    params = CallToolRequestParams.model_construct(
        name="x", arguments=arguments or None, input_responses=responses, request_state=state
    )
    return FIXTURES[f"test_{name}"](context, params)


def client_with(**capabilities):
    """The context of a client that can do this."""
    stated = SimpleNamespace(**{"sampling": None, "elicitation": None} | capabilities)
    return SimpleNamespace(session=SimpleNamespace(client_capabilities=stated))


def asked_for(result):
    """What an interim result asks for, and its state."""
    assert result["resultType"] == "input_required"
    return list(result["inputRequests"]), result.get("requestState")


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_fixed_result_is_one_that_the_sdk_accepts(name):
    assert CallToolResult.model_validate(FIXED[name]).content


def test_every_fixture_has_a_schema_and_none_is_both_fixed_and_made():
    assert SCHEMAS.keys() == FIXED.keys() | FIXTURES.keys()
    assert not FIXED.keys() & FIXTURES.keys()
    assert all(schema["type"] == "object" for schema in SCHEMAS.values())


async def test_a_round_of_input_ends_when_the_state_comes_back():
    tool = FIXTURES["test_input_required_result_tampered_state"]
    first = await tool(None, CallToolRequestParams(name="x"))
    again = await tool(None, CallToolRequestParams(name="x", request_state=first["requestState"]))

    assert first["resultType"] == "input_required"
    assert again == said("state-ok")


def test_the_parts_of_results():
    assert an_object(["a"], a={"type": "string"})["required"] == ["a"]
    assert "required" not in an_object()
    assert said("x", failed=True)["isError"] is True
    assert ask("who?", {})["params"]["message"] == "who?"
    assert "requestState" not in input_required({})
    assert input_required({"a": {}}, "s") == {
        "resultType": "input_required",
        "inputRequests": {"a": {}},
        "requestState": "s",
    }
    assert said("x") == {"content": [{"type": "text", "text": "x"}], "isError": False}
    assert resource("u", "k", "t")["resource"] == {"uri": "u", "mimeType": "k", "text": "t"}
    assert sample("hi")["params"]["messages"][0]["content"]["text"] == "hi"


async def test_two_rounds_of_input_follow_each_other_and_neither_can_be_skipped():
    name = "input_required_result_multi_round"

    async def at(state, *steps):
        return await call(name, dict.fromkeys(steps, NAMED), state)

    first, second = (["step1"], "round 1"), (["step2"], "round 2")
    assert asked_for(await call(name)) == first
    assert asked_for(await at("round 1", "step1")) == second
    assert await at("round 2", "step2") == said("done")
    for state, *steps in (
        ("round 1",),
        ("round 1", "step2"),
        ("round 2",),
        ("round 2", "step1"),
        (None, "step1"),
        (None, "step2"),
    ):
        assert asked_for(await at(state, *steps)) == first


@pytest.mark.parametrize(
    ("name", "key", "answer", "text"),
    [
        ("elicitation", "user_name", NAMED, "Hello, Ada!"),
        ("sampling", "capital_question", SPOKEN, "Model said: Paris"),
        ("list_roots", "client_roots", ROOTS, "0 roots"),
    ],
)
async def test_a_tool_asks_until_it_has_the_answer_of_the_right_kind(name, key, answer, text):
    name = f"input_required_result_{name}"
    wrong = ROOTS if key != "client_roots" else NAMED
    for answers in (None, {}, {"other": answer}, {key: wrong}):
        assert asked_for(await call(name, answers)) == ([key], None)
    assert await call(name, {key: answer}) == said(text)


async def test_who_declines_is_asked_again():
    name = "input_required_result_elicitation"
    declined = ElicitResult(action="decline", content=None)
    assert asked_for(await call(name, {"user_name": declined})) == (["user_name"], None)


async def test_a_confirmation_counts_only_with_the_state_that_was_handed_out():
    name, confirmed = "input_required_result_request_state", {"confirm": NAMED}
    for answers, state in ((None, None), (confirmed, None), (confirmed, "other"), ({}, "nonce")):
        assert asked_for(await call(name, answers, state)) == (["confirm"], "nonce")
    assert await call(name, confirmed, "nonce") == said("state-ok: confirmation received")


async def test_several_answers_have_to_come_together():
    name, needed = "input_required_result_multiple_inputs", ["user_name", "greeting", "client_roots"]
    for answers in ({}, {"user_name": NAMED}, {"user_name": NAMED, "greeting": SPOKEN}):
        assert asked_for(await call(name, answers)) == (needed, "multi")
    for more in ({}, {"other": NAMED}):
        assert await call(name, dict.fromkeys(needed, NAMED) | more) == said("All inputs received.")


async def test_a_client_is_asked_only_for_what_it_can_do():
    name = "input_required_result_capabilities"
    unknown = SimpleNamespace(session=SimpleNamespace(client_capabilities=None))
    for context, kinds in (
        (unknown, ["sample", "ask"]),
        (client_with(), []),
        (client_with(sampling={}), ["sample"]),
        (client_with(elicitation={}), ["ask"]),
    ):
        assert asked_for(await call(name, context=context)) == (kinds, "gated")


async def test_a_client_that_cannot_sample_is_told_that_it_must():
    for context in (client_with(elicitation={}), SimpleNamespace(session=SimpleNamespace(client_capabilities=None))):
        with pytest.raises(MCPError) as refused:
            await call("missing_capability", context=context)
        assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
        assert refused.value.error.data == {"requiredCapabilities": {"sampling": {}}}
    assert await call("missing_capability", context=client_with(sampling={})) == said("It can sample.")


async def test_an_argument_that_is_mirrored_in_a_header_is_repeated():
    assert await call("x_mcp_header", region="eu") == said("region: eu")
    assert await call("x_mcp_header") == said("region: None")
    assert SCHEMAS["test_x_mcp_header"]["properties"]["region"]["x-mcp-header"] == "Region"


class Session:
    """Keeps what a tool sends to its client, and answers as told."""

    def __init__(self, answer=None):
        self.sent, self.answer = [], answer

    async def send_log_message(self, level, text, *, related_request_id):
        self.sent.append((level, text, related_request_id))

    async def report_progress(self, done, total, text):
        self.sent.append((done, total, text))

    async def create_message(self, messages, *, max_tokens, related_request_id):
        self.sent.append(([each.content.text for each in messages], max_tokens, related_request_id))
        return self.answer

    async def elicit_form(self, message, schema, related_request_id):
        self.sent.append((message, schema, related_request_id))
        return self.answer


async def test_a_tool_asks_the_model_and_the_user_of_a_legacy_client():
    model, user = Session(SPOKEN), Session(NAMED)
    said_by_model = await call("sampling", context=SimpleNamespace(session=model, request_id=7), prompt="Capital?")
    assert said_by_model == said("LLM response: Paris")
    assert model.sent == [(["Capital?"], 100, 7)]

    said_by_user = await call("elicitation", context=SimpleNamespace(session=user, request_id=7), message="Who?")
    assert said_by_user == said('User response: action=accept, content={"name": "Ada"}')
    assert user.sent == [("Who?", an_object(["response"], response={"type": "string"}), 7)]


async def test_fields_of_a_form_have_defaults_and_choices():
    user = Session(NAMED)
    context = SimpleNamespace(session=user, request_id=7)
    await call("elicitation_sep1034_defaults", context=context)
    await call("elicitation_sep1330_enums", context=context)
    (_, defaults, _), (_, choices, _) = user.sent

    presets = {name: field["default"] for name, field in defaults["properties"].items()}
    assert presets == {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    titled = choices["properties"]["titledSingle"]["oneOf"]
    assert titled == [
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]
    assert choices["properties"]["titledMulti"]["items"]["anyOf"] == titled


async def test_half_of_the_progress_is_told_before_the_user_is_asked():
    session = Session()
    result = await call("streaming_elicitation", context=SimpleNamespace(session=session))
    assert (asked_for(result), session.sent) == ((["user_name"], None), [(1, 2, "half")])
