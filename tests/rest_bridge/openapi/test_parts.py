"""The shared parts of the API description: headers, failures, frames, and references that lead to components."""

from dataclasses import replace

import pytest

from rest_bridge.openapi.parts import FAILURES, anchor_schema, components, failure, head, headers
from tests.catalog.tiny import FACTS
from tests.json_schemas import prepare
from toolserver.mcp.oauth.metadata import describe_server
from toolserver.registry.error_codes import PROBLEMS, with_status
from toolserver.registry.response_schema import SHARED

COMPONENTS = components(FACTS)
SHARED_NAME = next(iter(SHARED))


def test_every_status_that_an_error_code_has_is_a_response():
    assert {problem.status for problem in PROBLEMS.values()} <= {*FAILURES, 405}


@pytest.mark.parametrize("status", FAILURES)
def test_a_failure_lists_every_code_of_its_status_with_an_example_that_fits_the_schema(status):
    response = COMPONENTS["responses"][failure(status)["$ref"].rsplit("/", 1)[1]]
    content = response["content"]["application/problem+json"]
    codes = [problem.code for problem in with_status(status)]

    assert list(content["examples"]) == codes
    assert [line.split("`")[1] for line in response["description"].splitlines()] == codes
    for example in content["examples"].values():
        schema = {**content["schema"], "components": COMPONENTS}
        prepare(schema).validate(example["value"])


@pytest.mark.parametrize(
    ("status", "named"),
    [
        (402, ["X-Request-Id", "X-Service-Pricing", "Retry-After"]),
        (429, ["X-Request-Id", "Retry-After", "RateLimit-Policy", "RateLimit"]),
        (503, ["X-Request-Id", "Retry-After"]),
        (400, ["X-Request-Id"]),
    ],
)
def test_a_failure_names_its_headers(status, named):
    name = failure(status)["$ref"].rsplit("/", 1)[1]
    assert list(COMPONENTS["responses"][name]["headers"]) == named


def test_every_header_has_a_description_and_an_example_of_its_type():
    types = {"string": str, "integer": int}
    for name, header in COMPONENTS["headers"].items():
        assert header["description"], name
        assert isinstance(header["example"], types[header["schema"]["type"]]), name


def test_headers_are_references():
    assert headers(["Age", "ETag"]) == {
        "Age": {"$ref": "#/components/headers/Age"},
        "ETag": {"$ref": "#/components/headers/ETag"},
    }


def test_a_head_request_is_the_get_without_a_body_and_with_an_id_of_its_own():
    get = {
        "operationId": "sights",
        "summary": "Sights",
        "description": "Long",
        "tags": ["free"],
        "security": [],
        "parameters": [{"name": "lat"}],
        "responses": {"200": {"description": "ok", "headers": {}, "content": {"a": 1}}, "400": {"$ref": "x"}},
    }

    assert head(get) == {
        "operationId": "sights_head",
        "summary": "Sights: headers only",
        "tags": ["free"],
        "security": [],
        "parameters": [{"name": "lat"}],
        "responses": {"200": {"description": "ok", "headers": {}}, "400": {"$ref": "x"}},
    }
    assert "content" in get["responses"]["200"]


def test_references_lead_to_components_under_the_prefix_unless_every_tool_shares_them():
    schema = {"items": [{"$ref": "#/$defs/Sight"}, {"$ref": f"#/$defs/{SHARED_NAME}"}], "other": {"$ref": "#/else"}}

    assert anchor_schema(schema, "sights.") == {
        "items": [
            {"$ref": "#/components/schemas/sights.Sight"},
            {"$ref": f"#/components/schemas/{SHARED_NAME}"},
        ],
        "other": {"$ref": "#/else"},
    }


def test_the_402_body_is_not_the_problem_of_the_others():
    schemas = COMPONENTS["schemas"]
    paid = {problem.code for problem in with_status(402)}
    assert set(schemas["PremiumPaymentRequired"]["properties"]["error"]["enum"]) == paid
    assert paid.isdisjoint(schemas["Problem"]["properties"]["error"]["enum"])


def test_signing_in_is_described_only_where_hosts_can():
    assert components(FACTS)["securitySchemes"].keys() == {"bearer"}
    flow = components(replace(FACTS, oauth=True))["securitySchemes"]["oauth"]["flows"]["authorizationCode"]
    server = describe_server(FACTS)
    assert flow["authorizationUrl"] == server["authorization_endpoint"]
    assert flow["tokenUrl"] == flow["refreshUrl"] == server["token_endpoint"]


def test_a_bearer_is_the_way_to_pay_and_the_shapes_of_ids_are_told():
    assert COMPONENTS["securitySchemes"]["bearer"] == {
        "type": "http",
        "scheme": "bearer",
        "description": "svc_live_<64 hex>",
    }
    key = COMPONENTS["parameters"]["Idempotency-Key"]
    assert key["schema"] == {"type": "string", "minLength": 1, "maxLength": 255}
    assert COMPONENTS["parameters"]["meta"]["schema"] == {
        "type": "string",
        "enum": ["full", "short"],
        "default": "full",
    }


def test_every_failure_but_the_402_has_the_body_of_a_problem():
    for status in FAILURES:
        response = COMPONENTS["responses"][failure(status)["$ref"].rsplit("/", 1)[1]]
        schema = response["content"]["application/problem+json"]["schema"]["$ref"].rsplit("/", 1)[1]
        assert schema == ("PremiumPaymentRequired" if status == 402 else "Problem")
    assert COMPONENTS["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail", "error", "request_id"]
    named = {error for error, problem in PROBLEMS.items() if problem.status != 402}
    assert set(COMPONENTS["schemas"]["Problem"]["properties"]["error"]["enum"]) == named
    assert COMPONENTS["schemas"]["PremiumPaymentRequired"]["required"] == ["error", "signup", "pricing"]


def test_a_failure_in_conflict_says_when_to_try_again():
    assert list(COMPONENTS["responses"]["Conflict"]["headers"]) == ["X-Request-Id", "Retry-After"]


def test_a_reference_without_a_prefix_leads_to_the_name_itself_and_a_value_stays():
    assert anchor_schema({"$ref": "#/$defs/Own", "a": 1}) == {"$ref": "#/components/schemas/Own", "a": 1}
    assert anchor_schema({"properties": {"$ref": {"type": "string"}}}) == {"properties": {"$ref": {"type": "string"}}}


def test_a_get_without_parameters_has_a_head_without_any():
    get = {"operationId": "x", "summary": "X", "responses": {"200": {"description": "ok"}}}
    assert head(get) == {"operationId": "x_head", "summary": "X: headers only", "responses": get["responses"]}
