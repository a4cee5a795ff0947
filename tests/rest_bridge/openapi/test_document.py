"""The API description: valid, complete, and true to the schemas it is made from."""

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from rest_bridge.documents import documents
from rest_bridge.openapi.document import openapi
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.json_schemas import prepare
from tests.requirements import proves
from toolserver.registry.deprecations import Deprecation
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.response_schema import answer_schema
from toolserver.registry.site_pages import pages

PROJECT = Registry.load("tools")
SIGHTS = {
    "source": "data.example",
    "endpoint": "sights",
    "updated_at": "2027-01-15T08:00:00Z",
    "data": {"seen": [], "best": None, "at": "2027-01-15T08:00:00Z"},
    "stale": False,
    "_meta": {
        "sources": [],
        "attribution": [],
        "untrusted_text": False,
        "generated_at": "2027-01-15T08:00:00Z",
        "stale": False,
        "oldest_fetched_at": None,
        "newest_item_at": None,
    },
}
DOCUMENT = openapi(TINY, FACTS, {"sights": SIGHTS})

registries = pytest.mark.parametrize("registry", [TINY, FREE, PROJECT], ids=["tiny", "free", "project"])


def followed(node, document=DOCUMENT):
    """The node itself, or what it refers to."""
    if "$ref" not in node:
        return node
    for part in node["$ref"].removeprefix("#/").split("/"):
        document = document[part]
    return document


def judge(schema, document):
    """A validator for a schema of the document."""
    return prepare({**schema, "components": document["components"]})


def nodes(node, path=""):
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from nodes(value, f"{path}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from nodes(value, f"{path}/{index}")


@proves("version.openapi")
@registries
def test_the_description_is_valid_openapi_3_1(registry):
    document = openapi(registry, FACTS)
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.15.0"
    validate(document, cls=OpenAPIV31SpecValidator)


@proves("discovery.openapi")
@registries
def test_every_operation_stands_at_its_path_and_method_with_its_price_and_sources(registry):
    document = openapi(registry, FACTS)
    for operation in registry:
        described = document["paths"][operation.path][operation.method.lower()]
        assert described["operationId"] == operation.name
        assert described["x-credits"] == operation.credits
        assert described["x-cache-ttl"] == operation.longest_ttl
        assert described["x-sources"] == list(dict.fromkeys(s.name for s in operation.sources))
        assert described["x-license"]


@registries
def test_operation_ids_are_unique_and_head_goes_with_get(registry):
    document = openapi(registry, FACTS)
    identifiers = [o["operationId"] for item in document["paths"].values() for o in item.values()]
    assert len(identifiers) == len(set(identifiers))
    for path, item in document["paths"].items():
        if "get" in item and path != "/api/mcp":
            assert item["head"]["responses"].keys() == item["get"]["responses"].keys()
            assert "content" not in item["head"]["responses"]["200"]


@registries
def test_every_reference_leads_somewhere_and_every_component_is_referred_to(registry):
    document = openapi(registry, FACTS)
    used = {node["$ref"] for _, node in nodes(document) if isinstance(node.get("$ref"), str)}
    for ref in used:
        followed({"$ref": ref}, document)
    there = {
        f"#/components/{kind}/{name}"
        for kind, components in document["components"].items()
        if kind == "schemas"
        for name in components
    }
    unused = there - used
    assert unused <= {"#/components/schemas/PremiumAnswer"}  # only where something is sold


def merged(schema, document):
    """An answer component as the one object schema it stands for."""
    if "allOf" not in schema:
        return schema
    parts = [followed(part, document) for part in schema["allOf"]]
    properties = {name: value for part in parts for name, value in part["properties"].items()}
    return {"properties": properties, "required": [name for part in parts for name in part["required"]]}


@registries
def test_answers_have_the_members_that_the_answer_schema_says(registry):
    document = openapi(registry, FACTS)
    for operation in registry:
        whole = answer_schema(operation, full=True)
        found = merged(document["components"]["schemas"][operation.name], document)
        assert found["properties"].keys() == whole["properties"].keys()
        assert set(found["required"]) == set(whole["required"])


@proves("discovery.openapi")
def test_all_examples_fit_their_schemas():
    seen = 0
    for path, node in nodes(DOCUMENT):
        if "schema" not in node or not path.startswith(("/paths", "/components/responses")):
            continue
        given = [node["example"]] if "example" in node else []
        given += [example["value"] for example in node.get("examples", {}).values()]
        for example in given:
            judge(node["schema"], DOCUMENT).validate(example)
            seen += 1
    assert seen > len(PROBLEMS) - 2  # the one given, and one per code that an operation can fail with


def test_an_example_that_was_given_is_shown_and_judged_by_a_schema_that_can_say_no():
    content = DOCUMENT["paths"]["/api/sights"]["get"]["responses"]["200"]["content"]["application/json"]
    assert content["example"] == SIGHTS
    for broken in (
        {**SIGHTS, "stale": "no"},
        {**SIGHTS, "data": {}},
        {k: v for k, v in SIGHTS.items() if k != "_meta"},
    ):
        assert not judge(content["schema"], DOCUMENT).is_valid(broken)


def test_arguments_of_a_get_are_query_parameters_with_their_bounds():
    found = {p["name"]: p for p in map(followed, DOCUMENT["paths"]["/api/sights"]["get"]["parameters"])}
    assert found["lat"] == {
        "name": "lat",
        "in": "query",
        "required": True,
        "description": "Latitude",
        "schema": {"type": "number", "minimum": -90, "maximum": 90},
    }
    assert found["kind"]["schema"]["default"] == "tower"
    assert (found["names"]["style"], found["names"]["explode"]) == ("form", False)
    assert found["If-None-Match"]["in"] == "header"


def test_arguments_of_a_post_are_its_json_body():
    post = DOCUMENT["paths"]["/api/payment/buy-credits"]["post"]
    schema = followed(post["requestBody"]["content"]["application/json"]["schema"])
    assert schema["required"] == ["amount_usd"]
    assert post["parameters"] == [{"$ref": "#/components/parameters/Idempotency-Key"}]


def test_an_argument_named_in_the_path_is_a_path_parameter():
    (parameter,) = DOCUMENT["paths"]["/api/pro/subscribe/{id}"]["delete"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("id", "path", True)


@pytest.mark.parametrize(
    ("path", "method", "statuses"),
    [
        ("/api/sights", "get", "200 304 400 429 500"),
        ("/api/pro/deep", "get", "200 400 402 422 429 500 503"),
        ("/api/payment/buy-credits", "post", "200 400 402 404 409 413 415 422 429 500 503"),
        ("/api/payment/balance", "get", "200 400 402 429 500"),
        ("/api/pro/subscribe/{id}", "delete", "200 400 402 404 429 500 501"),
    ],
)
def test_each_operation_names_every_status_it_can_answer(path, method, statuses):
    responses = DOCUMENT["paths"][path][method]["responses"]
    assert sorted(responses) == statuses.split()
    for status, response in responses.items():
        described = followed(response)
        assert described["description"]
        if status not in ("200", "304"):
            assert "application/problem+json" in described["content"]
        for name, header in described.get("headers", {}).items():
            assert followed(header)["description"], name


def test_headers_tell_free_answers_from_paid_ones():
    free = DOCUMENT["paths"]["/api/sights"]["get"]["responses"]
    paid = DOCUMENT["paths"]["/api/pro/deep"]["get"]["responses"]
    assert {"ETag", "Age", "Cache-Control", "Cache-Status", "RateLimit", "RateLimit-Policy"} <= free["200"][
        "headers"
    ].keys()
    assert {"X-Credits-Remaining", "X-Service-Receipt", "Content-Digest"} <= paid["200"]["headers"].keys()
    assert "ETag" not in paid["200"]["headers"]
    assert "Retry-After" in followed(free["429"])["headers"]
    assert "X-Service-Pricing" in followed(paid["402"])["headers"]


@proves("payment-error.body")
def test_the_402_body_is_the_one_of_the_specification():
    schema = DOCUMENT["components"]["schemas"]["PremiumPaymentRequired"]
    assert schema["required"] == ["error", "signup", "pricing"]
    assert set(schema["properties"]["error"]["enum"]) == {
        *("missing_token", "invalid_token", "insufficient_credits", "expired"),
        *("billing_unavailable", "payment_required"),
    }


@proves("version.openapi", "auth.none", "payment.open")
def test_only_calls_that_need_a_token_ask_for_one():
    assert DOCUMENT["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    asked = {
        o["operationId"]
        for item in DOCUMENT["paths"].values()
        for o in item.values()
        if o.get("security") == [{"bearer": []}]
    }
    assert {name.removesuffix("_head") for name in asked} == {
        *("premium_deep", "payment_balance", "webhook_unsubscribe", "receipt")
    }


@registries
def test_every_document_for_programs_is_described(registry):
    described = openapi(registry, FACTS)["paths"]
    for page in pages(registry):
        assert page.path in described or page.media_type == "text/html" or page.path in ("/robots.txt", "/sitemap.xml")
    assert "/problems/{code}" in described
    assert {"get", "post"} == described["/api/mcp"].keys()


def test_a_simulated_world_is_called_one_and_the_licence_is_stated():
    assert "invented" in openapi(TINY, replace(FACTS, simulated=True))["info"]["description"]
    assert "inference" in DOCUMENT["x-license"]["premium"]
    assert openapi(FREE, FACTS)["x-license"].keys() == {"free"}
    assert {o.tier for o in FREE} == {Tier.FREE}


@proves("answers.public-url")
@registries
def test_urls_are_public_and_lead_to_what_is_there(registry):
    text = json.dumps(openapi(registry, FACTS))
    there = {*documents(registry, FACTS), "/api/llm-tools", ""} | {"/docs/payments"}
    found = re.findall(r"https://data\.example([^\"\s)`#]*)", text)
    assert found
    assert set(found) <= there
    assert str(Path(__file__).resolve().parents[2]) not in text


FREE_HEADERS = [
    *("Cache-Control", "Age", "ETag", "Last-Modified", "Cache-Status", "RateLimit-Policy", "RateLimit", "X-Request-Id")
]
PAID_HEADERS = [
    *("Cache-Control", "Idempotency-Replayed", "X-Credits-Alert", "X-Credits-Remaining"),
    *("X-Service-Receipt-Id", "X-Service-Receipt"),
    *("Content-Digest", "Preference-Applied", "X-Request-Id"),
]


@pytest.mark.parametrize(
    ("path", "method", "named"),
    [
        ("/api/sights", "get", FREE_HEADERS),
        ("/api/pro/deep", "get", PAID_HEADERS),
        ("/api/payment/balance", "get", ["Cache-Control", "Cache-Status", "X-Request-Id"]),
        ("/api/payment/buy-credits", "post", ["Cache-Control", "Cache-Status", "Idempotency-Replayed", "X-Request-Id"]),
        ("/api/pro/subscribe/{id}", "delete", ["Cache-Control", "Cache-Status", "X-Request-Id"]),
    ],
)
def test_an_answer_has_exactly_the_headers_of_its_kind(path, method, named):
    assert list(DOCUMENT["paths"][path][method]["responses"]["200"]["headers"]) == named


def test_an_unchanged_answer_has_the_headers_of_its_freshness_and_a_tool_without_spacing_tells_no_limit():
    unchanged = DOCUMENT["paths"]["/api/sights"]["get"]["responses"]["304"]
    assert list(unchanged["headers"]) == [*FREE_HEADERS[:5], "X-Request-Id"]
    paths = openapi(PROJECT, FACTS)["paths"]
    for operation in PROJECT:
        if operation.tier is Tier.FREE:
            named = paths[operation.path]["get"]["responses"]["200"]["headers"]
            assert ("RateLimit" in named) == operation.spaced, operation.name


@pytest.mark.parametrize(
    ("path", "method", "named"),
    [
        ("/api/digest", "get", ["meta", "If-None-Match"]),
        ("/api/pro/deep", "get", ["history", "meta", "Idempotency-Key", "Prefer"]),
        ("/api/payment/balance", "get", []),
        ("/api/pro/subscribe/{id}", "delete", ["id"]),
    ],
)
def test_a_call_takes_exactly_the_parameters_of_its_kind(path, method, named):
    described = DOCUMENT["paths"][path][method]
    assert [followed(each)["name"] for each in described.get("parameters", [])] == named
    assert "requestBody" not in described


def test_what_an_operation_says_of_itself_is_told_whole():
    described = DOCUMENT["paths"]["/api/pro/deep"]["get"]
    assert {name: value for name, value in described.items() if name not in ("parameters", "responses")} == {
        "operationId": "premium_deep",
        "tags": ["premium"],
        "summary": "Deep look",
        "description": "Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. A deep look at a place, window by"
        " window, for decisions that depend on it.",
        "externalDocs": {"url": "https://data.example/t/premium_deep"},
        "security": [{"bearer": []}],
        "x-credits": 2,
        "x-price": "2 credits",
        "x-cache-ttl": 300,
        "x-sources": ["Sample.place"],
        "x-license": "inference-only",
    }
    licences = {
        item[method]["x-license"]
        for item in DOCUMENT["paths"].values()
        for method in item
        if "x-license" in item[method]
    }
    assert licences == {"inference-only", "permissive, with the attribution that each source requires", "yours"}


def test_a_body_is_required_where_one_of_its_members_is_and_has_only_those_that_are_not_in_the_path():
    paths, schemas = openapi(PROJECT, FACTS)["paths"], openapi(PROJECT, FACTS)["components"]["schemas"]
    for operation in PROJECT:
        body = paths[operation.path][operation.method.lower()].get("requestBody")
        if body is None:
            assert f"{operation.name}.arguments" not in schemas
            continue
        schema = schemas[f"{operation.name}.arguments"]
        in_path = set(re.findall(r"{(\w+)}", operation.path))
        assert set(schema["properties"]) == set(operation.input_schema["properties"]) - in_path
        required = set(operation.input_schema.get("required", [])) - in_path
        assert (body["required"], set(schema.get("required", []))) == (bool(required), required)


def test_tags_are_those_that_are_used_and_the_service():
    assert [tag["name"] for tag in DOCUMENT["tags"]] == ["free", "premium", "payment", "account", "service"]
    assert [tag["name"] for tag in openapi(FREE, FACTS)["tags"]] == ["free", "service"]


def test_what_is_announced_to_go_is_deprecated_as_a_whole_only_if_the_whole_goes():
    going = (
        Deprecation("field", "sights.data.best", date(2027, 1, 1), date(2027, 4, 1), "none"),
        Deprecation("tool", "digest", date(2027, 1, 1), date(2027, 4, 1), "none"),
    )
    paths = openapi(TINY, FACTS, deprecations=going)["paths"]
    marked = {path for path, item in paths.items() if any(one.get("deprecated") for one in item.values())}
    assert marked == {"/api/digest"}
    assert all("deprecated" not in one for item in DOCUMENT["paths"].values() for one in item.values())


def test_the_head_of_the_document_says_whose_it_is():
    info = DOCUMENT["info"]
    assert (info["title"], info["contact"]) == ("toolserver", {"name": "ops@data.example"})
    assert info["license"]["url"] == "https://data.example/docs#licence"
    assert "invented" not in info["description"]
    assert "contact" not in openapi(TINY, replace(FACTS, contact=None))["info"]
    assert DOCUMENT["servers"] == [{"url": "https://data.example"}]


def test_receipts_are_described_only_where_something_is_sold():
    about = {path for path in DOCUMENT["paths"] if "receipt" in path or "log" in path.split("/")}
    assert "/api/receipt/{id}" in about
    assert not any("receipt" in path for path in openapi(FREE, FACTS)["paths"])


def test_an_answer_is_its_frame_and_only_what_it_adds_to_it():
    schema = DOCUMENT["components"]["schemas"]["sights"]
    frame, own = schema["allOf"]
    assert frame == {"$ref": "#/components/schemas/FreeAnswer"}
    assert own["required"] == ["data"]
    assert "source" not in own["properties"]
    assert "allOf" not in DOCUMENT["components"]["schemas"]["payment_balance"]
