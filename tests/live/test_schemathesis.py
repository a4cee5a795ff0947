"""The live API description: valid by itself, and kept by every operation whatever is sent to it."""

import itertools
from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from rest_bridge.openapi.document import openapi
from tests.live.buying import bought
from tests.live.processes import Program
from tests.requirements import proves
from tests.size import sized
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

KEY = "Idempotency-Key"
KEYS = itertools.count()
EXAMPLES, FEW = sized(5, fast=5, long=100), 2  # FEW where nothing but headers can vary
LENIENT = {"/api/air-quality"}  # by the specification: invalid coordinates take the defaults
DECIMALS = "at most six decimals: for `multipleOf` 0.000001 validators divide binary fractions, and 1.1 fails"
VISIBLE = "which characters can be seen: Unicode's list grows, and patterns of JSON Schema cannot name all of it"
STRICTER: dict[str, dict[str, str]] = {
    "/api/air-quality": {"place": "which places there are, and that one is given by its name or by coordinates"},
    "/api/btc-price": {"coin": "which coins are among the 250 largest"},
    "/api/climate/earthquakes": {"cursor": "where the list can be continued"},
    "/api/climate/weather-alerts": {
        "cursor": "where the list can be continued",
        "event": "which events the service knows today: its list grows",
    },
    "/api/exposure-lookup": {"ip": "which addresses are public: a registry says so, and changes"},
    "/api/payment/allowances": {
        "expires_at": "which times are past",
        "name": VISIBLE,
        "tools": "which tools cost credits: packages of others add some",
    },
    "/api/payment/allowances/{id}": {
        "name": VISIBLE,
        "tools": "which tools cost credits: packages of others add some",
    },
    "/api/payment/buy-credits": {"amount_usd": DECIMALS},
    "/api/payment/topup": {"amount_usd": DECIMALS},
    "/api/pro/subscribe": {
        "endpoint": "which endpoints are sold here",
        "webhook_url": "which addresses are public, and what a name stands for",
        "params": "what the endpoint takes",
        "when": "what the endpoint's answers hold",
        "headers": "which names of headers are taken",
        "description": VISIBLE,
    },
    "/api/pro/world-deltas": {"since": "which times are ahead"},
    "/api/receipt/verify": {"receipt": "what is written inside the signed text"},
    "/api/weather": {
        "lat": "that it comes with lon: parameters of a query are described one by one",
        "lon": "that it comes with lat: parameters of a query are described one by one",
        "place": "which places there are, and that one is given by its name or by coordinates",
    },
}
"""The arguments, by path, that are refused for a reason no schema can express, and the reason."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    allow_header_conformance,
    unsupported_method,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
]


DESCRIBED = openapi(Registry.load("tools"), SiteFacts(base_url="https://data.example", source="data.example"))["paths"]
UNLISTED = {"/api/payment/topup"}  # by the demo, which takes no signed payments
OPERATIONS = [
    (path, method)
    for path, item in DESCRIBED.items()
    for method in item
    if method != "parameters" and path not in UNLISTED
]


@pytest.fixture(scope="module")
def auth(demo: Program) -> dict[str, str]:
    """The header of a token that can pay for every example."""
    return {"Authorization": f"Bearer {bought(demo, demo.ready['world_url'], usd=99)}"}


@pytest.fixture(scope="module")
def api(demo: Program, auth: dict[str, str]) -> schemathesis.BaseSchema:
    """The description. Every answer is composed once before, all side by side: some upstreams are asked slowly."""
    with httpx.Client(base_url=demo.url, timeout=60, headers=auth) as client, ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda operation: client.get(operation[0]), OPERATIONS))
    described = schemathesis.openapi.from_url(f"{demo.url}/openapi.json", timeout=20)
    checks = described.config.checks
    checks.negative_data_rejection.expected_statuses.append("402")  # what is wrong is the token
    checks.positive_data_acceptance.expected_statuses.append("402")  # bad calls bring no token, and some turn out good
    return described


def is_refused_for(arguments: Container[str], answer: schemathesis.Response) -> bool:
    """Whether a call is refused for these arguments and no other."""
    if answer.status_code != 400:
        return False
    said = answer.json() if answer.content else httpx.get(answer.request.url, headers=answer.request.headers).json()
    named = {error["loc"] for error in said.get("errors", [])}
    return bool(named) and all(name.split(".")[0] in arguments for name in named)


@proves("discovery.openapi", "errors.codes")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_operation_keeps_what_the_description_says(
    api: schemathesis.BaseSchema, demo: Program, auth: dict[str, str], path: str, method: str, mode: GenerationMode
) -> None:
    operation = api[path][method]
    varied = bool(operation.query or operation.path_parameters or operation.body)
    if mode is GenerationMode.NEGATIVE and not varied:
        return  # nothing could be wrong about it
    checks = [check for check in CHECKS if not (check is negative_data_rejection and path in LENIENT)]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES if varied and method != "head" else FEW,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: schemathesis.Case) -> None:
        paying = auth if mode is GenerationMode.POSITIVE else None  # a bad call is refused before it is to be paid
        if KEY in (case.headers or {}):  # one that no other example had: with other arguments it is a conflict
            case.headers[KEY] = f"{next(KEYS)} {case.headers[KEY]}"[:255]
        answer = case.call(base_url=demo.url, timeout=30, headers=paying)
        refused = mode is GenerationMode.POSITIVE and is_refused_for(STRICTER.get(path, {}), answer)
        kept = [check for check in checks if not (refused and check is positive_data_acceptance)]
        case.validate_response(answer, checks=kept)

    holds()


SECURED = [
    (path, method)
    for path, method in OPERATIONS
    if (needed := DESCRIBED[path][method].get("security")) and {} not in needed
]


BODIES = {
    ("/api/pro/subscribe", "post"): {"endpoint": "world-deltas", "webhook_url": "https://example.com/hook"},
    ("/api/payment/allowances", "post"): {"name": "n", "credits": 1},
    ("/api/payment/allowances/{id}", "patch"): {"credits": 2},
}
IDS = {"/api/payment/allowances": "alw_" + "0" * 16, "/api/receipt": "rcpt_" + "0" * 32}


@pytest.mark.parametrize("token", [None, "Bearer svc_live_" + "0" * 64, "Bearer x", "Basic eDp5"])
@pytest.mark.parametrize(("path", "method"), SECURED)
def test_what_is_described_as_secured_is_refused_without_a_valid_token(
    demo: Program, path: str, method: str, token: str | None
) -> None:
    kind = next((kind for start, kind in IDS.items() if path.startswith(start)), "wh_0000000000000000")
    answer = httpx.request(
        method,
        demo.url + path.replace("{id}", kind).replace("{delivery_id}", "msg_" + "0" * 32),
        headers={"Authorization": token} if token else {},
        json=BODIES.get((path, method)),
    )
    assert answer.status_code == 402


@proves("discovery.openapi")
def test_the_description_is_valid_and_of_this_server(demo: Program) -> None:
    document = httpx.get(f"{demo.url}/openapi.json").json()
    validate(document, cls=OpenAPIV31SpecValidator)
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.15.0"
    assert [server["url"] for server in document["servers"]] == [demo.url]
    schemes = document["components"]["securitySchemes"]
    assert {name: scheme["type"] for name, scheme in schemes.items()} == {"bearer": "http", "oauth": "oauth2"}
