"""The pages in the API description: which of them are described, and what each says of itself."""

import pytest

from rest_bridge.openapi.pages import describe_pages
from rest_bridge.openapi.parts import failure
from tests.catalog.tiny import FREE, TINY
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.site_facts import TOOL_FORMATS, TOOL_TIERS

DESCRIBED = describe_pages(TINY)


def test_pages_for_programs_are_described_and_pages_for_people_and_crawlers_are_not():
    assert DESCRIBED.keys() == {
        *("/openapi.json", "/llms.txt", "/llms-full.txt", "/api/llm-tools", "/api/mcp", "/api/meta", "/api/meta/pro"),
        "/api/sources",
        *("/live.json", "/status.json", "/status.atom"),
        *("/changelog", "/readyz", "/livez", "/healthz/ledger", "/.well-known/api-catalog", "/problems/{code}"),
        *("/.well-known/ai-catalog.json", "/api/mcp/server-card"),
    }


def test_premium_facts_are_described_only_where_something_is_sold():
    assert DESCRIBED.keys() - describe_pages(FREE).keys() == {"/api/meta/pro"}


@pytest.mark.parametrize(
    ("path", "media_types"),
    [
        ("/llms.txt", ["text/plain"]),
        ("/openapi.json", ["application/json"]),
        ("/changelog", ["text/html", "text/markdown"]),
        ("/.well-known/api-catalog", ["application/linkset+json"]),
        ("/problems/{code}", ["text/html"]),
    ],
)
def test_a_page_is_described_in_every_form_that_it_is_served_in(path, media_types):
    assert list(DESCRIBED[path]["get"]["responses"]["200"]["content"]) == media_types


def test_mcp_names_the_tools_that_may_be_chosen_and_takes_no_null_for_an_id():
    post = DESCRIBED["/api/mcp"]["post"]
    (tools,) = (each["schema"] for each in post["parameters"] if each["name"] == "tools")
    assert tools["items"]["enum"] == [operation.name for operation in TINY]
    assert post["requestBody"]["content"]["application/json"]["schema"]["properties"]["id"]["type"] == [
        "string",
        "integer",
    ]


def test_the_query_of_the_tool_definitions_lists_the_valid_words():
    get = DESCRIBED["/api/llm-tools"]["get"]
    schemas = {parameter["name"]: parameter["schema"] for parameter in get["parameters"]}

    assert schemas == {
        "format": {"type": "string", "enum": list(TOOL_FORMATS), "default": "both"},
        "tier": {"type": "string", "enum": list(TOOL_TIERS)},
        "toolset": {"type": "string", "enum": ["core", "all"], "default": "all"},
        "tools": {"type": "array", "items": {"type": "string", "enum": [o.name for o in TINY]}, "minItems": 1},
    }
    assert "400" in get["responses"]


def test_readiness_has_the_same_body_whether_the_service_is_ready_or_not():
    responses = DESCRIBED["/readyz"]["get"]["responses"]
    assert responses["503"]["content"] == responses["200"]["content"]
    assert responses["503"]["description"] == "Not ready"
    schema = responses["200"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["ready", "checks", "degraded"]


def test_operation_ids_are_words_from_the_path():
    named = {path: item["get"]["operationId"] for path, item in DESCRIBED.items()}
    assert named["/.well-known/api-catalog"] == "well_known_api_catalog"
    assert named["/api/meta/pro"] == "meta_pro"


def test_the_page_of_an_error_takes_every_code_there_is():
    (code,) = DESCRIBED["/problems/{code}"]["get"]["parameters"]
    assert (code["in"], code["required"], code["schema"]["enum"]) == ("path", True, list(PROBLEMS))
    responses = DESCRIBED["/problems/{code}"]["get"]["responses"]
    assert {status: responses[status] for status in ("404", "500")} == {"404": failure(404), "500": failure(500)}


def test_mcp_is_posted_with_or_without_a_token_and_has_no_event_stream():
    post, get = DESCRIBED["/api/mcp"]["post"], DESCRIBED["/api/mcp"]["get"]
    assert post["security"] == [{}, {"bearer": []}]
    assert [parameter["name"] for parameter in post["parameters"]] == ["toolset", "tools", "output_schema", "meta"]
    assert {"200", "202", "400", "403", "404", "413", "415"} == post["responses"].keys()
    assert [post["responses"][status] for status in ("413", "415")] == [failure(413), failure(415)]
    assert get["responses"]["405"]["headers"] == {"Allow": {"$ref": "#/components/headers/Allow"}}
    assert "head" not in DESCRIBED["/api/mcp"]


def test_only_the_tool_definitions_and_mcp_take_parameters_and_only_health_can_be_refused():
    taking = {path for path, item in DESCRIBED.items() if any("parameters" in one for one in item.values())}
    assert taking == {"/api/llm-tools", "/api/mcp", "/problems/{code}"}
    statuses = {path: set(item["get"]["responses"]) for path, item in DESCRIBED.items()}
    assert {path for path, found in statuses.items() if "400" in found} == {"/api/llm-tools"}
    assert {path for path, found in statuses.items() if "503" in found} == {"/readyz", "/healthz/ledger"}
    assert all("500" in found for path, found in statuses.items() if path != "/api/mcp")


def test_a_body_in_json_has_the_members_that_it_must_have():
    required = {}
    for path in ("/api/llm-tools", "/live.json", "/status.json"):
        schema = DESCRIBED[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert set(schema["required"]) <= set(schema["properties"])
        required[path] = " ".join(schema["required"])
    assert required == {
        "/api/llm-tools": "source generated_at docs auth count base_url calling routes",
        "/live.json": "generated_at values",
        "/status.json": "generated_at status checks service ledger chain counts sources changes",
    }


def test_the_definitions_in_every_layout_are_lists_and_the_routes_stand_by_name():
    schema = DESCRIBED["/api/llm-tools"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    lists = {name for name, member in schema["properties"].items() if member["type"] == "array"}
    assert lists == {"raw", "openai", "anthropic", "openai-responses", "gemini", "bedrock"}
    route = schema["properties"]["routes"]["additionalProperties"]
    assert route["required"] == ["method", "path", "auth", "credits", "arguments"] == list(route["properties"])


def test_names_of_tools_are_separated_by_commas():
    for path, method in (("/api/llm-tools", "get"), ("/api/mcp", "post")):
        (tools,) = (each for each in DESCRIBED[path][method]["parameters"] if each["name"] == "tools")
        assert (tools["style"], tools["explode"], tools["in"]) == ("form", False, "query")


def test_the_choices_of_mcp_have_their_defaults_and_its_body_is_required():
    post = DESCRIBED["/api/mcp"]["post"]
    schemas = {each["name"]: each["schema"] for each in post["parameters"]}
    assert {name: schema["default"] for name, schema in schemas.items() if "default" in schema} == {
        "toolset": "core",
        "output_schema": "on",
        "meta": "full",
    }
    assert post["requestBody"]["required"] is True
    request = post["requestBody"]["content"]["application/json"]["schema"]
    assert request["required"] == ["jsonrpc", "method"]
    assert post["responses"]["200"]["content"]["application/json"]["schema"]["required"] == ["jsonrpc", "id"]
