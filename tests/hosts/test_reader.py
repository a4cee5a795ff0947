"""The little model of the conversations finds tools, arguments and next steps in what it is shown, and nowhere else."""

import json
from typing import Any

import pytest

from tests.hosts.model_server import Call, Result, ShownTool, Turn
from tests.hosts.reader import Reader, find_problem, proper_names


def tool(name: str, description: str, required: tuple[str, ...] = (), **properties: Any) -> ShownTool:
    return ShownTool(f"x__{name}", description, {"type": "object", "properties": properties, "required": required})


PLACE = {"type": "string", "examples": ["Paris"], "maxLength": 80}
UNITS = {"type": "string", "enum": ["us", "metric"], "description": "us: Fahrenheit and mph; metric: Celsius and km/h"}
WEATHER = tool("weather", "Current weather anywhere: temperature and wind.", place=PLACE, units=UNITS)
STOCKS = tool("stocks", "U.S. share prices.", symbols={"type": "string", "examples": ["AAPL,MSFT"]})
BUY = tool("buy_credits", "A quote to buy credits.", ("usd",), usd={"type": "number", "description": "US dollars"})
NONCE = {"type": "string", "description": "The memo of the quote"}
HASH = {"type": "string", "description": "Hash of the transfer"}
CONFIRM = tool("confirm", "Confirm a payment.", ("hash", "nonce"), hash=HASH, nonce=NONCE)
PAID = "0x" + "0123abcd" * 8
PREMIUM = tool(
    "premium",
    "A briefing with a receipt. Costs 1 credit a call.",
    token={"type": "string", "description": "Bearer token"},
)
FIND = tool("find", "Finds tools. Use it when no listed tool fits.", q={"type": "string"}, call={"type": "object"})
TOOLS = [WEATHER, STOCKS, BUY, CONFIRM, PREMIUM, ShownTool("Bash", "Anything: weather, prices, credits", {})]


def play(*said: str | Result, tools: list[ShownTool] = TOOLS) -> Call | str:
    return Reader(("x__",))(Turn(tools=tools, said=list(said)))


@pytest.mark.parametrize(
    ("sentence", "name", "arguments"),
    [
        ("What's the weather in San Francisco, CA, in Celsius?", "weather",
         {"place": "San Francisco, CA", "units": "metric"}),
        ("What is the price of a share of AAPL?", "stocks", {"symbols": "AAPL"}),
        ("What is Apple's last share price?", "stocks", {}),
        ("Buy 5 dollars of credits.", "buy_credits", {"usd": 5}),
    ],
)  # fmt: skip
def test_tools_and_arguments_come_from_the_sentence(sentence: str, name: str, arguments: dict[str, Any]) -> None:
    assert play(sentence) == Call(f"x__{name}", arguments)


def test_what_an_earlier_result_names_is_remembered() -> None:
    quote = Result(Call("x__buy_credits", {"usd": 5}), '{"wallet": "0x1", "memo": "memo_12ab"}')
    assert play("Buy 5 dollars of credits.", quote, f"I have sent the payment {PAID}: confirm it.") == Call(
        "x__confirm", {"hash": PAID, "nonce": "memo_12ab"}
    )
    token = f"svc_live_{'1a' * 32}"
    confirmed = Result(Call("x__confirm", {}), json.dumps({"token": token, "place": "Paris", "credits": 250}))
    assert play("Confirm it.", confirmed, "Give me the briefing.") == Call("x__premium", {"token": token})
    hidden = Result(Call("x__confirm", {}), '{"token": "kept for you", "credits": 250}')
    assert play("Confirm it.", hidden, "Give me the briefing.") == Call("x__premium", {})
    assert play("Confirm it.", confirmed, "What is the weather?") == Call("x__weather", {})


def test_what_the_user_says_and_what_an_answer_has_are_kept_apart_in_any_order_of_the_arguments() -> None:
    described = {"memo": NONCE | {"description": "The memo from buy_credits"}, "tx": HASH}
    sorted_by_a_host = tool("confirm", "Confirm a payment.", ("tx", "memo"), **described)
    quote = Result(Call("x__buy_credits", {"usd": 5}), '{"wallet": "0x1", "memo": "memo_12ab"}')
    assert play("Buy it.", quote, f"I paid {PAID}: confirm it.", tools=[sorted_by_a_host]) == Call(
        "x__confirm", {"memo": "memo_12ab", "tx": PAID}
    )


def test_the_search_of_the_host_is_asked_in_the_words_of_the_user_that_say_something() -> None:
    search = ShownTool("ToolSearch", "Finds tools", {"required": ["query"]})
    sentence = "What is the price of a share?"
    assert play(sentence, tools=[search]) == Call("ToolSearch", {"query": "price share"})
    found = Result(Call("ToolSearch", {"query": "price share"}), "x__stocks")
    assert play(sentence, found, tools=[search, *TOOLS]) == Call("x__stocks", {})


def test_where_no_listed_tool_fits_the_server_is_asked_for_one_and_runs_it() -> None:
    sentence = "Which volcanoes erupt?"
    assert play(sentence, tools=[*TOOLS, FIND]) == Call("x__find", {"q": sentence})
    tools = [{"name": "volcanoes", "input_schema": {"type": "object", "properties": {}}}]
    found = Result(Call("x__find", {"q": sentence}), json.dumps({"data": {"tools": tools}}))
    longer = tool("all_volcanoes", "Volcanoes.")
    assert play(sentence, found, tools=[*TOOLS, longer, FIND]) == play(sentence, found, tools=[*TOOLS, FIND])
    assert play(sentence, found, tools=[*TOOLS, FIND]) == Call(
        "x__find", {"call": {"name": "volcanoes", "arguments": {}}}
    )


def test_a_free_tool_is_chosen_before_one_with_a_price_unless_the_user_wants_that() -> None:
    free = tool("summary", "A briefing in words.")
    assert play("Give me a briefing.", tools=[PREMIUM, free]) == Call("x__summary", {})
    assert play("Give me the premium briefing.", tools=[free, PREMIUM]) == Call("x__premium", {})


def test_a_number_of_the_sentence_is_no_topic() -> None:
    fresh = tool("flows", "Costs 5 credits a call; fresh for 5 minutes.")
    assert play("Buy 5 dollars of credits.", tools=[fresh, BUY]) == Call("x__buy_credits", {"usd": 5})


def test_a_refusal_is_followed_where_it_says_what_to_send() -> None:
    call = Call("x__weather", {"place": "Springfield"})
    problem = {"error": "invalid_arguments", "errors": [{"loc": "place"}], "did_you_mean": ["Springfield, IL"]}
    refusal = Result(call, f"Error of the host: {json.dumps({'text': json.dumps(problem)})}")
    assert play("Weather in Springfield?", refusal) == Call("x__weather", {"place": "Springfield, IL"})
    other = Result(call, json.dumps(problem | {"did_you_mean": ["Summerfield"]}))
    assert play("Weather in Springfield?", other) == other.text
    hidden = Result(call, "the tool has failed")
    assert play("Weather in Springfield?", hidden) == "the tool has failed"


def test_a_problem_is_found_where_a_host_has_put_it() -> None:
    nested = "tool error: " + json.dumps([{"content": [{"text": json.dumps({"error": "expired"})}]}])
    assert find_problem(nested) == {"error": "expired"}
    assert find_problem('{"data": 1}') is None


def test_names_and_codes_of_a_sentence() -> None:
    assert proper_names("What is the weather in San Francisco, CA, in Celsius?") == ["San Francisco, CA", "Celsius"]
