"""What `tools/list` says about the real tools: small enough to be read by a model, plain enough for every host."""

import json
import re
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from tests.mcp import service
from tests.requirements import proves
from toolserver.context.context import ToolContext
from toolserver.mcp import definitions, messages
from toolserver.mcp.definitions import (
    LONGEST_ENUM,
    ToolChoices,
    ToolRoute,
    UnknownToolChoice,
    annotations,
    definition,
)
from toolserver.registry.registry import Operation, Registry, Tier, operation_of, tool

KIB = 1024


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load("tools")


def size(operations: list[Operation], **named: Any) -> int:
    return len(messages.encode([definition(operation, **named) for operation in operations]))


def test_the_free_core_is_small(registry: Registry) -> None:
    free = [operation for operation in registry.chosen() if operation.tier is Tier.FREE]

    assert size(free) < 25 * KIB
    assert size(free, output_schema=False) < 6 * KIB


@proves("discovery.small")
def test_the_whole_core_is_small(registry: Registry) -> None:
    assert size(registry.chosen()) <= 30_000
    assert size(registry.chosen(), output_schema=False) <= 13_000


def test_definitions_are_the_same_every_time() -> None:
    once, again = (messages.encode([definition(o) for o in Registry.load("tools")]) for _ in range(2))

    assert once == again


@proves("terms.hints")
@pytest.mark.parametrize("query", [b"toolset=all", b"toolset=all&output_schema=off", b"toolset=all&hints=read"])
def test_every_tool_lists_all_four_hints(registry: Registry, query: bytes) -> None:
    listed = ToolChoices(registry).choose_by_request(query).definitions
    for operation, entry in zip(registry.chosen(toolset="all"), listed, strict=True):
        is_read = b"hints=read" in query
        assert entry["annotations"] == annotations(operation, is_read=is_read)
        if operation.credits and not is_read:
            assert list(entry["annotations"].values()) == [False, False, False, True]
    for operation in registry:
        hints = annotations(operation)
        assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert not (hints["destructiveHint"] and hints["readOnlyHint"])
        assert not (hints["idempotentHint"] and operation.credits)


def test_priced_tools_name_their_price_and_no_other_does(registry: Registry) -> None:
    for operation in registry:
        told = {name: value for name, value in definition(operation)["_meta"].items() if name.startswith("toolserver/")}
        if operation.credits:
            assert told == {"toolserver/tier": operation.tier.value, "toolserver/cost_credits": operation.credits}
        else:
            assert told == {}


def test_hosts_that_search_tools_are_told_other_words_and_what_to_show_always() -> None:
    searched = replace(operation_of(service.echo), search_hint="say repeat", always_loaded=True, longest_chars=90_000)
    assert definition(searched)["_meta"] == {
        "anthropic/searchHint": "say repeat",
        "anthropic/alwaysLoad": True,
        "anthropic/maxResultSizeChars": 90_000,
    }
    assert "_meta" not in definition(searched, output_schema=False)


def nodes(schema: Any) -> Any:
    """Every object inside a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from nodes(item)
    elif isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)


def test_schemas_are_portable(registry: Registry) -> None:
    for operation in registry:
        entry = definition(operation)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", entry["name"])
        assert 20 <= len(entry["description"]) <= 400
        for schema in (entry["inputSchema"], entry["outputSchema"]):
            assert schema["type"] == "object"
            assert not schema.keys() & {"anyOf", "oneOf", "allOf", "not", "enum"}
            assert all("const" not in node or isinstance(node["const"], dict) for node in nodes(schema))
            referred = set(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))
            assert referred <= set(schema.get("$defs", {}))
        assert "$ref" not in json.dumps(entry["inputSchema"])


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """The listing module of the engine is used by the server; the SDK only by what is not common."""
    import subprocess
    import sys

    script = (
        "import sys, toolserver.mcp.stdio as s\n"
        "light = not {'pydantic', 'mcp', 'toolserver.registry.registry'} & set(sys.modules)\n"
        "import toolserver.mcp.endpoint\n"
        "print(light, not {'mcp', 'mcp_types', 'web3', 'fastmcp', 'fastapi'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "True"]


def test_a_listed_argument_has_what_a_model_reads_and_the_api_description_has_the_rest() -> None:
    @tool(path="/api/name", title="Name", ttl_s=60, toolset="core")
    async def name(
        ctx: ToolContext,
        short: Annotated[str, Field(pattern="x" * 20, min_length=2, max_length=80, examples=["xx"])],
        many: Annotated[str, Field(json_schema_extra={"enum": [f"{n}" for n in range(LONGEST_ENUM + 1)]})],
        few: Annotated[str, Field(json_schema_extra={"enum": [f"{n}" for n in range(LONGEST_ENUM)]})],
        inner: Annotated[dict[str, Any] | None, Field(examples=[{"pattern": "kept"}])] = None,
    ) -> service.Echo:
        """Names with patterns, lengths and words."""
        raise NotImplementedError

    listed = definition(operation_of(name))["inputSchema"]["properties"]
    assert listed["short"] == {"type": "string", "examples": ["xx"]}
    assert listed["many"] == {"type": "string"}
    assert len(listed["few"]["enum"]) == LONGEST_ENUM
    assert listed["inner"]["examples"] == [{"pattern": "kept"}]
    assert operation_of(name).input_schema["properties"]["short"]["pattern"] == "x" * 20


@proves("terms.open")
def test_no_listed_schema_is_closed_because_our_refusal_says_more_than_a_host_s(registry: Registry) -> None:
    for operation in registry:
        assert operation.input_schema["additionalProperties"] is False
        for token_argument in (False, True):
            listed = definition(operation, token_argument=token_argument)["inputSchema"]
            assert not [node for node in nodes(listed) if node.get("additionalProperties") is False]
            assert listed["properties"].keys() - {"token", "call"} == operation.input_schema["properties"].keys() - {
                "token"
            }


def test_hints_say_what_a_call_does() -> None:
    echo, oracle = operation_of(service.echo), operation_of(service.oracle)

    def hints(operation: Operation, **named: bool) -> list[bool]:
        told = annotations(operation, **named)
        return [told[f"{name}Hint"] for name in ("readOnly", "destructive", "idempotent", "openWorld")]

    assert hints(echo) == [True, False, True, False]
    assert hints(oracle) == hints(replace(oracle, sources=())) == [False, False, False, True]
    assert hints(oracle, is_read=True) == [True, False, False, True]
    assert hints(replace(oracle, credits=0, method="POST", changes_nothing=True))[:2] == [True, False]
    assert hints(replace(oracle, method="POST")) == [False, False, False, True]
    assert hints(replace(oracle, method="PUT", sources=())) == [False, False, True, True]
    assert hints(replace(oracle, method="DELETE")) == [False, True, True, True]


def test_without_output_schemas_an_entry_has_what_a_model_reads_and_the_hints() -> None:
    free = definition(operation_of(service.echo), output_schema=False)
    priced = definition(operation_of(service.oracle), output_schema=False)

    assert free.keys() == priced.keys() == {"name", "description", "inputSchema", "annotations"}
    assert free["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert priced["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    }


@proves("mcp.confirmed")
def test_hosts_ask_before_a_call_that_spends_and_not_before_a_quote_a_balance_or_a_list(registry: Registry) -> None:
    asks = {operation.name for operation in registry if not annotations(operation)["readOnlyHint"]}
    assert asks == {operation.name for operation in registry if operation.credits} | {
        *("payment_confirm", "payment_topup", "allowance_create", "allowance_update", "allowance_revoke"),
        *("webhook_subscribe", "webhook_unsubscribe", "webhook_resume", "webhook_test", "webhook_rotate_secret"),
        "webhook_resend",
        *("reissue_cancel", "token_update"),
    }
    choice = ToolChoices(registry).choose_by_request(b"toolset=all&hints=read")
    listed = {entry["name"]: entry["annotations"]["readOnlyHint"] for entry in choice.definitions}
    assert all(listed[operation.name] for operation in registry if operation.credits)
    with pytest.raises(UnknownToolChoice, match="`hints` must be spend or read"):
        ToolChoices(registry).choose_by_request(b"hints=no")


@proves("terms.price", "terms.fresh")
def test_the_terms_of_a_call_stand_in_the_description(registry: Registry) -> None:
    for operation in registry:
        told = definition(operation)["description"]
        price = re.match(r"Costs (\d+) credits? \((\d+\.\d\d) USD\) a call; fresh for [^.]+\. ", told)
        assert bool(price) == (operation.tier is Tier.PREMIUM)
        if price:
            assert (int(price[1]), round(float(price[2]) * 50)) == (operation.credits, operation.credits)
        else:
            assert re.search(r" (Free|Costs no credits)(; fresh for [^.]+)?\.$", told), told
        assert ("; fresh for " in told) == (operation.longest_ttl > 0)


@proves("mcp.not-required")
def test_no_member_of_an_answer_is_required_so_that_strict_clients_show_refusals(registry: Registry) -> None:
    assert not [o.name for o in registry if "required" in definition(o)["outputSchema"]]


def test_a_token_is_an_argument_only_where_the_connection_carries_none() -> None:
    oracle = operation_of(service.oracle)

    assert "token" in definition(oracle, token_argument=True)["inputSchema"]["properties"]
    assert "token" not in definition(oracle)["inputSchema"]["properties"]


# --- what a client may call ---


@pytest.fixture
def choices() -> ToolChoices:
    return ToolChoices(service.registry())


def test_a_route_knows_the_key_of_a_free_answer_and_the_arguments_of_one_that_is_sold() -> None:
    free, needs, sold = (ToolRoute(operation_of(tool)) for tool in (service.word, service.echo, service.oracle))

    assert (free.free, free.default_key is None, free.sold) == (True, False, None)
    assert (needs.free, needs.default_key, needs.sold) == (True, None, None)
    assert (sold.free, sold.default_key) == (False, None)
    assert sold.sold is not None
    assert sold.sold[0].model_dump() == {"question": "why"}
    assert ToolRoute(replace(operation_of(service.oracle), method="POST")).sold is None


def test_spellings_of_arguments_are_remembered_up_to_a_size_and_a_number() -> None:
    route = ToolRoute(operation_of(service.echo))

    route.remember(b"x" * 513, "too long")
    assert route.keys == {}
    route.remember(b"x" * 512, "key")
    assert route.keys == {b"x" * 512: "key"}
    for number in range(255):
        route.remember(b"%d" % number, number)
    assert len(route.keys) == 256
    route.remember(b"another", "new")
    assert route.keys == {b"another": "new"}


def test_spellings_are_not_remembered_where_each_call_has_to_be_looked_at() -> None:
    for operation in (operation_of(service.oracle), replace(operation_of(service.echo), distinct=(("text",), 5, 60.0))):
        route = ToolRoute(operation)
        route.remember(b"{}", "key")
        assert route.keys == {}


def test_an_unknown_tool_is_told_what_it_may_be_called_or_where_it_is(choices: ToolChoices) -> None:
    core = choices.choose(toolset="core")

    message, near = core.describe_unknown("coin")
    assert near == ["coin"]
    assert "connect with ?toolset=all or ?tools=coin to call it" in message
    assert core.describe_unknown("wrd") == (
        "Unknown tool: wrd. Did you mean word? tools/list has the names.",
        ["word"],
    )
    assert core.describe_unknown("parot")[1] == ["parrot"]
    assert core.describe_unknown("zzz") == ("Unknown tool: zzz. tools/list has the names.", [])
    assert core.describe_unknown("z" * 65) == (f"Unknown tool: {'z' * 64}. tools/list has the names.", [])


def test_without_a_choice_the_core_is_listed_and_every_tool_can_be_called(choices: ToolChoices) -> None:
    everything = {"echo", "parrot", "word", "oracle", "coin", "broken"}
    whole, core, named = choices.choose(), choices.choose(toolset="core"), choices.choose(tools=["word"])

    assert [tool["name"] for tool in whole.definitions] == ["echo", "word", "oracle"]
    assert (whole.routes.keys(), whole.hidden) == (everything, {})
    assert core.routes.keys() == everything - {"coin", "broken"}
    assert core.hidden == {"coin": "all", "broken": "all"}
    assert named.routes.keys() == {"word"}
    assert named.hidden == {"echo": "core", "oracle": "core", "coin": "all", "broken": "all"}
    assert choices.choose(tools=["parrot"]).routes.keys() == {"echo", "parrot"}


def test_a_listing_is_ready_for_both_eras(choices: ToolChoices) -> None:
    choice = choices.choose(toolset="all")
    legacy = json.loads(choice.listed[False] + b"}")

    assert legacy == {"tools": choice.definitions}
    hinted = legacy | {"ttlMs": 300_000, "cacheScope": "private"}
    assert json.loads(choice.listed[True] + b"}") == hinted


def test_a_choice_is_made_once_and_each_way_to_list_it_is_another(choices: ToolChoices) -> None:
    same = choices.choose(toolset="core")
    assert choices.choose(tools=["echo", "word", "oracle"]) is same
    others = [
        choices.choose(),
        choices.choose(toolset="core", output_schema=False),
        choices.choose(toolset="core", short_meta=True),
        choices.choose(toolset="core", token_argument=True),
        choices.choose(tools=["word", "oracle"]),
    ]
    assert len({id(choice) for choice in (same, *others)}) == 6
    assert [choice.short_meta for choice in others] == [False, False, True, False, False]
    assert definitions.CHOICES == 64


def test_tools_outside_the_registry_are_in_every_choice_and_counted() -> None:
    extra, fixed = {"name": "extra"}, {"extra": b"{"}
    choices = ToolChoices(service.registry(), extra=[extra], fixed=fixed)

    assert (choices.count("core"), choices.count("all")) == (4, 6)
    assert ToolChoices(service.registry()).count("core") == 3
    choice = choices.choose(tools=["word"])
    assert [tool["name"] for tool in choice.definitions] == ["word", "extra"]
    assert choice.fixed == fixed


def test_an_unknown_choice_says_what_is_wrong_and_names_the_valid_ones(choices: ToolChoices) -> None:
    for named, said in (
        ({"toolset": "most"}, "There is no toolset called 'most'."),
        ({"tools": ["word", "x" * 65]}, f"There is no tool called '{'x' * 64}'."),
    ):
        with pytest.raises(UnknownToolChoice) as unknown:
            choices.choose(**named)
        assert str(unknown.value) == said
        assert unknown.value.data["toolsets"] == ["core", "all"]
        assert set(unknown.value.data["tools"]) == {"echo", "word", "oracle", "coin", "broken"}


def test_the_query_wins_over_the_headers_and_its_words_are_read_in_any_case(choices: ToolChoices) -> None:
    def chosen(query: bytes, *headers: bytes | None) -> list[str]:
        return [tool["name"] for tool in choices.choose_by_request(query, *headers).definitions]

    assert chosen(b"") == ["echo", "word", "oracle"]
    assert chosen(b"", b" ALL ") == ["echo", "word", "broken", "coin", "oracle"]
    assert chosen(b"toolset=core", b"all") == ["echo", "word", "oracle"]
    assert chosen(b"", None, b"coin,, Word ,") == ["word", "coin"]
    assert chosen(b"tools=word", None, b"coin") == ["word"]
    assert chosen(b"tools=", None, b"coin") == []


@pytest.mark.parametrize(
    ("query", "with_schemas", "short"),
    [
        (b"", True, False),
        (b"output_schema=on&meta=full", True, False),
        (b"output_schema=OFF", False, False),
        (b"meta=short", True, True),
    ],
)
def test_a_switch_has_two_words_and_is_on_without_any(
    choices: ToolChoices, query: bytes, with_schemas: bool, short: bool
) -> None:
    choice = choices.choose_by_request(query)
    assert all(("outputSchema" in tool) is with_schemas for tool in choice.definitions)
    assert choice.short_meta is short


@pytest.mark.parametrize(
    ("query", "said", "words"),
    [
        (b"output_schema=maybe", "`output_schema` must be on or off.", {"output_schema": ["on", "off"]}),
        (b"meta=", "`meta` must be full or short.", {"meta": ["full", "short"]}),
    ],
)
def test_another_word_is_refused_with_both(choices: ToolChoices, query: bytes, said: str, words: Any) -> None:
    with pytest.raises(UnknownToolChoice) as unknown:
        choices.choose_by_request(query)
    assert (str(unknown.value), unknown.value.data) == (said, words)


def test_the_argument_for_a_token_is_listed_if_the_request_says_that_there_is_none(choices: ToolChoices) -> None:
    for token_argument in (False, True):
        choice = choices.choose_by_request(b"tools=oracle", token_argument=token_argument)
        assert ("token" in choice.definitions[0]["inputSchema"]["properties"]) is token_argument
