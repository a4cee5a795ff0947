"""The scripted provider reads and writes the protocols of hosts, and shows a model no more than the host does."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.hosts.model_server import Call, ModelServer, Result, Turn

SCHEMA = {"type": "object", "properties": {}}


def play(turn: Turn) -> Call | str:
    return f"It says {turn.results[-1].text}." if turn.results else Call("price", {"coin": "ETH"})


@pytest.fixture
def model() -> Iterator[ModelServer]:
    model = ModelServer(play)
    yield model
    model.close()


def post(model: ModelServer, path: str, body: dict[str, Any]) -> Any:
    return httpx.post(f"{model.url}{path}", json=body, trust_env=False).raise_for_status().json()


def test_anthropic(model: ModelServer) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": "What is ETH at?"}]
    tools = [{"name": "price", "description": "Prices.", "input_schema": SCHEMA}]
    asked = {"model": "m", "max_tokens": 1, "tools": tools, "messages": said}
    [use] = post(model, "/v1/messages", asked)["content"]
    assert (use["type"], use["name"], use["input"]) == ("tool_use", "price", {"coin": "ETH"})

    said += [{"role": "assistant", "content": [use]}]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "4,000"}
    said += [{"role": "user", "content": [result, {"type": "text", "text": "A remark of the host"}]}]
    [text] = post(model, "/v1/messages", asked)["content"]
    assert text == {"type": "text", "text": "It says 4,000."}
    assert model.turns[-1].said == ["What is ETH at?", Result(Call("price", {"coin": "ETH"}), "4,000")]
    assert "A remark of the host" in model.turns[-1].system


def test_a_deferred_tool_is_shown_when_a_search_has_found_it(model: ModelServer) -> None:
    tools = [{"name": name, "description": "", "input_schema": SCHEMA, "defer_loading": True} for name in ("a", "b")]
    search = {"name": "ToolSearch", "description": "", "input_schema": SCHEMA}
    use = {"type": "tool_use", "id": "1", "name": "ToolSearch", "input": {}}
    referred = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "tool_reference", "tool_name": "b"}]}
    said = [{"role": "user", "content": "Hello"}]
    asked = {"model": "m", "max_tokens": 1, "tools": [search, *tools], "messages": said}
    post(model, "/v1/messages", asked)
    post(model, "/v1/messages", asked | {"messages": [*said, {"role": "assistant", "content": [use]},
                                                      {"role": "user", "content": [referred]}]})  # fmt: skip

    assert [[tool.name for tool in turn.tools] for turn in model.turns] == [["ToolSearch"], ["ToolSearch", "b"]]


def test_responses_with_a_namespace_that_a_search_has_found(model: ModelServer) -> None:
    search = {"type": "tool_search", "description": "Finds tools", "parameters": SCHEMA}
    space = {"type": "namespace", "name": "mcp__x", "description": "Live data", "tools": [
        {"type": "function", "name": "price", "description": "Prices.", "parameters": SCHEMA}]}  # fmt: skip
    said = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is ETH at?"}]},
        {"type": "tool_search_call", "call_id": "1", "arguments": {"query": "ETH"}},
        {"type": "tool_search_output", "call_id": "1", "tools": [space]},
    ]
    post(model, "/v1/responses", {"model": "m", "input": said[:1], "tools": [search]})
    post(model, "/v1/responses", {"model": "m", "input": said, "tools": [search]})

    shown = model.turns[-1].tools
    assert [(tool.namespace, tool.name) for tool in shown] == [(None, "tool_search"), ("mcp__x", "price")]
    assert shown[-1].description_of_namespace == "Live data"
    assert model.turns[-1].results == [Result(Call("tool_search", {"query": "ETH"}), "price")]


def test_chat_completions(model: ModelServer) -> None:
    tools = [{"type": "function", "function": {"name": "price", "description": "Prices.", "parameters": SCHEMA}}]
    said: list[dict[str, Any]] = [{"role": "user", "content": "What is ETH at?"}]
    asked = {"model": "m", "tools": tools, "messages": said}
    message = post(model, "/v1/chat/completions", asked)["choices"][0]["message"]
    [call] = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"coin": "ETH"}
    said += [message, {"role": "tool", "tool_call_id": call["id"], "content": "4,000"}]

    assert post(model, "/v1/chat/completions", asked)["choices"][0]["message"]["content"] == "It says 4,000."


def test_gemini_streams(model: ModelServer) -> None:
    declared = {"functionDeclarations": [{"name": "price", "description": "Prices.", "parametersJsonSchema": SCHEMA}]}
    said: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "<context/>"}, {"text": "What is ETH at?"}]}]
    asked = {"contents": said, "tools": [declared]}
    path = "/v1beta/models/m:streamGenerateContent"
    response = httpx.post(f"{model.url}{path}?alt=sse", json=asked, trust_env=False)
    part = json.loads(response.text.removeprefix("data: "))["candidates"][0]["content"]["parts"][0]
    assert part == {"functionCall": {"name": "price", "args": {"coin": "ETH"}}}
    refusal = {"functionResponse": {"name": "price", "response": {"error": "no such coin"}}}
    said += [{"role": "model", "parts": [part]}, {"role": "user", "parts": [refusal]}]
    httpx.post(f"{model.url}{path}", json=asked, trust_env=False)

    assert model.turns[-1].results == [Result(Call("price", {"coin": "ETH"}), "no such coin", failed=True)]
    assert "<context/>" in model.turns[-1].system


def test_as_a_proxy_it_lets_nothing_through_and_says_what_was_asked_for(model: ModelServer) -> None:
    with pytest.raises(httpx.ProxyError), httpx.Client(proxy=model.url, trust_env=False) as client:
        client.get("https://data.example/")

    assert model.egress == ["data.example:443"]


def test_what_goes_wrong_in_the_model_is_told_to_the_test(model: ModelServer) -> None:
    answer = httpx.post(f"{model.url}/v1/messages", json={"messages": [{}]}, trust_env=False)

    assert answer.status_code == 400
    assert "KeyError" in model.faults[0]
