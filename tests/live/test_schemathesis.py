"""The live API description: valid by itself, and kept by every operation whatever is sent to it."""

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

from rest_bridge.openapi import openapi
from tests.live.buying import bought
from tests.live.processes import Program
from tests.requirements import proves
from toolserver.documents import Facts
from toolserver.registry import Registry

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

EXAMPLES, FEW = 20, 3  # FEW where nothing but headers can vary
LENIENT = {"/api/air-quality"}  # by the specification: invalid coordinates take the defaults
STRICTER = {  # what a schema cannot say in words that every client understands
    "/api/climate/weather-alerts",  # which two letters are a state
    "/api/exposure-lookup",  # which addresses are public
    "/api/mcp",  # which names are tools
    "/api/payment/buy-credits",  # how many decimals
    "/api/payment/topup",  # how many decimals
    "/api/payment/confirm",  # what a hash and a memo look like
    "/api/pro/briefing",  # a list inside a text
    "/api/pro/crypto-deep",  # a list inside a text
    "/api/pro/world-deltas",  # which times are past
    "/api/stocks",  # a list inside a text
    "/api/weather",  # both coordinates or neither
}
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


DESCRIBED = openapi(Registry.load("tools"), Facts(base_url="https://data.example", source="data.example"))["paths"]
OPERATIONS = [(path, method) for path, item in DESCRIBED.items() for method in item if method != "parameters"]


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
    checks.positive_data_acceptance.expected_statuses.append("422")  # a key that another example had
    return described


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
    left_out = [positive_data_acceptance] * (path in STRICTER) + [negative_data_rejection] * (path in LENIENT)
    checks = [check for check in CHECKS if check not in left_out]

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
        case.call_and_validate(base_url=demo.url, checks=checks, timeout=30, headers=paying)

    holds()


SECURED = [
    (path, method)
    for path, method in OPERATIONS
    if (needed := DESCRIBED[path][method].get("security")) and {} not in needed
]


@pytest.mark.parametrize("token", [None, "Bearer svc_live_" + "0" * 64, "Bearer x", "Basic eDp5"])
@pytest.mark.parametrize(("path", "method"), SECURED)
def test_what_is_described_as_secured_is_refused_without_a_valid_token(
    demo: Program, path: str, method: str, token: str | None
) -> None:
    answer = httpx.request(method, demo.url + path, headers={"Authorization": token} if token else {})
    assert answer.status_code == 402


@proves("discovery.openapi")
def test_the_description_is_valid_and_of_this_server(demo: Program) -> None:
    document = httpx.get(f"{demo.url}/openapi.json").json()
    validate(document, cls=OpenAPIV31SpecValidator)
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.15.0"
    assert [server["url"] for server in document["servers"]] == [demo.url]
    assert {scheme["scheme"] for scheme in document["components"]["securitySchemes"].values()} == {"bearer"}
