"""Test the specification as a caller sees it, where no other test makes the same check."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.calls.parts import POOR, RICH, START
from tests.calls.toy import FIRST, REGISTRY, SECOND
from tests.json_schemas import validate
from tests.requirements import named, proves
from tests.served import FACTS, Served, all_tools, documents, served
from tests.size import a_share
from tests.specified import ABOUT_CALLS, ENDPOINTS, SHAPES, SPECIFIED
from tools.payment.receipt_verify import receipt_verify
from toolserver.app import Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses, Caller
from toolserver.registry.registry import Registry, operation_of
from toolserver.settings import Settings, UpstreamSettings

CORE = "briefing btc_price earthquakes find_tools forex service_status stocks tech_news weather".split()
UNCACHED = {"health", "find-tools"}
ADDED = {"limit", "cursor", "place", "units", "coin", "text"}  # by us: lists and their texts, cities by name, coins
OWN = {"health", "ai-stats", "find-tools"}  # made of nothing but the service itself


@pytest.fixture
async def service() -> AsyncIterator[Served]:
    async with served() as s:
        yield s


@pytest.fixture
async def toy() -> AsyncIterator[Served]:
    """Four small tools on two sources that answer 3 and 4."""
    async with served(REGISTRY) as s:
        for url, value in ((FIRST, 3), (SECOND, 4)):
            s.upstreams.serves(url, {"value": value})
        yield s


# --- the free endpoints, each by its row of the table ---


@proves("shape.*")
@pytest.mark.parametrize("name", a_share(named("shape."), 3))
async def test_the_data_of_an_endpoint_have_the_documented_shape(service, name):
    answer = (await service.get(name, ENDPOINTS[name].example)).json()

    validate(answer["data"], SHAPES[name])
    assert answer["stale"] is False


@proves("endpoint.*")
@pytest.mark.parametrize("name", a_share(named("endpoint."), 3, first=1))
async def test_an_endpoint_takes_its_arguments_and_is_cached_as_long_as_documented(service, name):
    row = ENDPOINTS[name]
    plain, example = await service.get(name), await service.get(name, row.example)
    described = json.loads(documents()["/openapi.json"].body)["paths"][f"/api/{name}"]["get"]
    parameters = [p for p in described.get("parameters", []) if p.get("in") == "query"]

    assert plain.status_code == 200
    names = [p["name"] for p in parameters]
    assert tuple(name for name in names if name in row.parameters or name not in ADDED) == row.parameters
    assert not any(p["required"] for p in parameters)
    kept = re.search(r"max-age=(\d+)", example.headers["cache-control"])
    kept_s = int(kept[1]) if kept else 0  # what is made anew for every call is not to be stored
    assert kept_s > 0 if row.ttl_s is None else kept_s == row.ttl_s
    for query in row.good:
        assert (await service.get(name, query)).status_code == 200, query


@proves("errors.enums", "errors.exposure", "errors.weather", "exposure.private", "limits.alerts")
@pytest.mark.parametrize(("name", "query"), a_share(((name, q) for name, row in ENDPOINTS.items() for q in row.bad), 3))
async def test_what_is_out_of_range_or_not_in_the_list_is_400_and_asks_nobody(service, name, query):
    refused = await service.get(name, query)

    assert refused.status_code == 400
    assert refused.json()["error"] == "invalid_arguments"
    assert refused.json()["errors"]
    assert service.upstreams.asked == []


@proves("endpoints.exactly")
async def test_the_free_endpoints_are_those_of_the_table(service):
    free = {o.endpoint for o in service.engine.registry if o.tier == "free"}

    assert len(SPECIFIED) == 34
    assert free - ABOUT_CALLS == set(ENDPOINTS), (
        "a new free endpoint needs its contract: tests/test_contracts.py writes it"
    )


@proves("endpoints.period-ttl")
@pytest.mark.parametrize(("period", "seconds"), [("hour", 60), ("month", 900)])
async def test_the_earthquake_catalogue_is_kept_by_its_period(service, period, seconds):
    answer = await service.get("climate/earthquakes", f"period={period}")

    assert f"max-age={seconds}," in answer.headers["cache-control"]


@proves("endpoints.per-location")
@pytest.mark.parametrize("name", ["weather", "air-quality"])
async def test_a_place_is_cached_by_coordinates_of_two_decimals(service, name):
    here = await service.get(name, "lat=52.5201&lon=13.4049")
    asked = len(service.upstreams.asked)
    near, elsewhere = [await service.get(name, f"lat={lat}&lon=13.4") for lat in ("52.5199", "52.53")]

    assert near.content == here.content != elsewhere.content
    assert (here.json()["data"]["lat"], here.json()["data"]["lon"]) == (52.52, 13.4)
    assert len(service.upstreams.asked) > asked


@proves("air-quality.defaults")
@pytest.mark.parametrize("query", ["", "lat=91&lon=0", "lat=52.5", "lat=north&lon=13.4"])
async def test_air_quality_of_an_impossible_place_is_that_of_los_angeles(service, query):
    data = (await service.get("air-quality", query)).json()["data"]

    assert (data["lat"], data["lon"]) == (34.05, -118.24)


@proves("errors.weather")
async def test_weather_of_no_place_is_that_of_los_angeles(service):
    data = (await service.get("weather")).json()["data"]

    assert (data["lat"], data["lon"], data["default_location"]) == (34.05, -118.24, True)


@proves("movers.top-15")
async def test_movers_are_fifteen_by_the_size_of_their_change(service):
    changes = [abs(coin["change_24h_percent"]) for coin in (await service.get("crypto-movers")).json()["data"]]

    assert len(changes) == 15
    assert changes == sorted(changes, reverse=True)


@proves("models.top-15")
async def test_at_most_fifteen_models_are_asked_for_by_their_likes_of_a_week(service):
    models = (await service.get("model-hub-trending")).json()["data"]
    asked = [request.url.params["sort"] for request in service.upstreams.asked]

    assert 10 <= len(models) <= 15
    assert asked.count("likes7d") == 1


@proves("limits.alerts")
async def test_weather_alerts_are_fifty_unless_another_number_is_asked_for(service):
    plain = (await service.get("climate/weather-alerts")).json()
    three = (await service.get("climate/weather-alerts", "limit=3")).json()

    assert len(plain["data"]) == plain["filters"]["limit"] == 50
    assert len(three["data"]) == 3
    assert plain["total_matching"] > 50


# --- what all free answers share ---


@proves("envelope.free", "envelope.source", "answers.envelope", "answers.short-name")
@pytest.mark.parametrize("name", a_share(ENDPOINTS, 3, first=0))
async def test_an_answer_says_whose_and_which_it_is_and_from_when(service, name):
    body = (await service.get(name)).json()

    assert (body["source"], body["endpoint"], body["stale"]) == ("data.example", name, False)
    assert body["updated_at"].startswith("2027-01-15T08:0")
    assert name == "briefing" or "data" in body
    assert list(body)[-1] == "_meta"


@proves("envelope.briefing")
async def test_the_free_briefing_has_its_own_envelope(service):
    body = (await service.get("briefing")).json()

    assert body["generated_at"] == "2027-01-15T08:00:00Z"
    assert isinstance(body["summary"], str)
    assert list(body["sections"]) == ["crypto", "fear_greed", "earthquakes", "predictions", "news", "services"]
    assert [type(body["sections"][name]) for name in ("predictions", "news", "services")] == [list] * 3


@proves("free.open", "free.cors", "free.cached")
@pytest.mark.parametrize("name", a_share(ENDPOINTS, 3, first=1))
async def test_anyone_may_call_from_anywhere_and_a_second_call_asks_nobody(service, name):
    first = await service.get(name, authorization="Bearer svc_live_nonsense", origin="https://app.example")
    asked = len(service.upstreams.asked)
    second = await service.get(name)

    assert first.status_code == second.status_code == 200
    assert first.headers["access-control-allow-origin"] == "*"
    assert len(service.upstreams.asked) == asked
    assert first.content == second.content or name in UNCACHED


PASSING = ("launches", "climate/earthquakes")  # rows of a list leave by themselves when their time is over


def longest_fresh_s(name: str, used: set[str]) -> float:
    """From then on neither the answer nor any of the sources that it was made of is fresh any more."""
    operation = all_tools().by_route["GET", f"/api/{name}"]
    fresh = [source.fresh_s for source in operation.sources if source.name in used]
    return max([operation.longest_ttl, operation.sla_s or 0, *fresh])


def said(body: dict[str, Any]) -> Any:
    """What an answer claims, without what follows from the time it was composed at."""
    claims = body.get("data", body.get("sections"))
    for part in claims if isinstance(claims, list) else [claims]:
        for derived in ("age_days", "stars_per_day", "generated_at"):
            part.pop(derived, None)
    return claims


@proves("free.stale", "answers.never-5xx", "answers.never-invented")
@pytest.mark.parametrize("name", a_share(ENDPOINTS, 3, first=2))
async def test_when_the_upstreams_fail_the_last_good_answer_is_given_as_stale(service, name):
    query = ENDPOINTS[name].example
    before = (await service.get(name, query)).json()
    service.upstreams.down = True
    used = {source["name"] for source in before["_meta"]["sources"]}
    service.engine.clock.advance(longest_fresh_s(name, used) + 1)
    after = await service.get(name, query)
    body = after.json()

    assert after.status_code == 200
    if name in OWN:
        assert body["stale"] is False
    elif name == "internet-pulse":
        assert {target["latency_ms"] for target in body["data"]} <= {20, -1}  # unreachable is what it measures
    else:
        if name in PASSING:  # what has passed makes room for the next
            left = [row for row in said(before) if row in said(body)]
            assert left
            assert said(body)[: len(left)] == left
        else:
            assert said(body) == said(before)
        assert (body["stale"], body["updated_at"]) == (True, before["updated_at"])
        assert body["warning"]


@proves("free.stale")
@pytest.mark.parametrize("name", ["weather", "air-quality"])
async def test_a_place_that_was_found_within_the_week_is_answered_for_in_an_outage(service, name):
    before = (await service.get(name, "place=Berlin")).json()
    service.upstreams.down = True
    service.engine.clock.advance(5 * 3600)  # the weather is kept for six hours, and where the place is for weeks
    after = (await service.get(name, "place=Berlin")).json()
    service.engine.clock.advance(500_000)
    late = (await service.get(name, "place=Berlin")).json()

    assert after["data"] | {"hourly": None} == before["data"] | {"hourly": None}  # the hours that have passed go
    assert (after["data"]["place"], after["stale"]) == ("Berlin, State of Berlin, Germany", True)
    assert (late["data"], late["stale"]) == (None, True)


@proves("answers.nothing-ever", "answers.never-5xx", "answers.never-invented", "answers.warning")
@pytest.mark.parametrize("name", a_share(ENDPOINTS, 3, first=0))
async def test_with_nothing_ever_fetched_an_answer_says_so_and_claims_nothing(service, name):
    service.upstreams.down = True
    answer = await service.get(name, ENDPOINTS[name].example)
    body = answer.json()

    assert answer.status_code == 200
    if name not in OWN | {"harnesses"}:  # which has one board of its own
        assert body.get("data") is None
        assert body.get("sections") is None
        assert (body["updated_at"], body["stale"]) == (None, True)
        assert body["warning"][0]["code"]
        assert answer.headers["cache-control"] == "no-store"


@proves("answers.meta-sources", "answers.source-names", "operating.via")
@pytest.mark.parametrize("name", a_share(ENDPOINTS, 3, first=1))
async def test_each_source_is_named_as_published_with_its_times_and_licence(service, name):
    licences = {s["name"]: s["licence"] for s in json.loads(documents()["/api/sources"].body)["sources"]}
    answer = (await service.get(name)).json()
    used = answer["_meta"]["sources"]

    assert {source["name"] for source in used} <= licences.keys()
    assert bool(used) != (name in OWN)
    for source in used:
        assert source["status"] in ("live", "cached", "fallback"), source
        assert licences[source["name"]]["class"]
        fetched_at = source.get("fetched_at", answer["updated_at"])
        assert (fetched_at is None) == source["name"].startswith("Bundled."), "what ships with us was never fetched"
    assert all(str(request.url).startswith("https://") for request in service.upstreams.asked)


# --- limits ---


@proves("places.refused-at-once")
@pytest.mark.parametrize("name", ["weather", "air-quality"])
async def test_a_place_that_is_refused_takes_no_time_from_the_corrected_one(name):
    async with served(limits=True) as s:
        refused = [await s.get(name, f"place={place}") for place in ("Springfield", "Texas", "Paris, Atlantis")]
        asked = list(s.upstreams.asked)
        candidate = refused[0].json()["candidates"][0]
        answer = await s.get(name, f"place={candidate['place']}")

    assert [each.status_code for each in refused] == [400] * 3
    assert asked == []
    assert (answer.status_code, answer.json()["data"]["lat"]) == (200, candidate["lat"])


@proves("limits.spacing", "limits.no-penalty", "errors.rate_limited")
async def test_a_second_call_in_thirty_seconds_is_refused_and_waiting_is_all_it_takes():
    async with served(limits=True) as s:
        statuses = [(await s.get("btc-price")).status_code for _ in range(3)]
        other = await s.get("forex")
        refused = await s.get("btc-price")
        s.engine.clock.advance(int(refused.headers["retry-after"]))
        again = await s.get("btc-price")

    assert statuses == [200, 429, 429]
    assert (other.status_code, again.status_code) == (200, 200)
    assert refused.json()["limit"] == "spacing"
    assert refused.json()["retry_after_seconds"] == int(refused.headers["retry-after"])


@proves("limits.daily")
async def test_a_client_has_a_hundred_thousand_calls_a_day_over_all_endpoints():
    async with served(limits=True) as s:
        daily = s.engine.limits.daily
        for _ in range(99_998):
            daily.take("192.0.2.1")
        last = await s.get("forex")
        daily.take("192.0.2.1")
        over = await s.get("btc-price")
        s.engine.clock.advance(int(over.headers["retry-after"]))
        again = await s.get("btc-price")

    assert daily.quota.quota == 100_000
    assert (last.status_code, again.status_code) == (200, 200)
    assert (over.status_code, over.json()["limit"]) == (429, "daily")


async def test_the_hundred_thousandth_call_is_one_of_them():
    async with served(limits=True) as s:
        assert all(s.engine.limits.daily.take("192.0.2.1").allowed for _ in range(100_000))


@proves("limits.premium", "charge.limited")
async def test_a_token_has_six_hundred_premium_calls_a_minute_over_both_faces():
    async with served(REGISTRY, limits=True) as s:
        for url, value in ((FIRST, 3), (SECOND, 4)):
            s.upstreams.serves(url, {"value": value})
        s.engine.ledger.fund(RICH, 2000)
        s.engine.ledger.fund(POOR, 2)
        s.client.headers["authorization"] = f"Bearer {RICH}"
        statuses = {(await s.get("pro/report")).status_code for _ in range(599)}
        last = await s.rpc("tools/call", {"name": "premium_report", "arguments": {}})
        over = await s.get("pro/report")
        twin = await s.rpc("tools/call", {"name": "premium_report", "arguments": {}})
        another = await s.get("pro/report", authorization=f"Bearer {POOR}")
        s.engine.clock.advance(int(over.headers["retry-after"]))
        again = await s.get("pro/report")
        left = await s.engine.ledger.balance(RICH)

    assert (statuses, last["isError"]) == ({200}, False)
    assert (over.status_code, over.json()["limit"], twin["isError"]) == (429, "premium", True)
    assert (another.status_code, again.status_code) == (200, 200)
    assert left == 2010 - 601 * 2


@proves("limits.shared")
async def test_rest_and_mcp_take_from_one_budget():
    async with served(limits=True) as s:
        rest = await s.get("forex")
        twin = await s.rpc("tools/call", {"name": "forex", "arguments": {}})

    assert rest.status_code == 200
    assert twin["isError"] is True
    assert json.loads(twin["content"][0]["text"])["error"] == "rate_limited"


@proves("limits.unspaced")
@pytest.mark.parametrize("path", ["/api/health", "/api/llm-tools", "/api/meta", "/openapi.json", "/llms.txt", "/docs"])
async def test_health_and_documents_may_be_asked_for_at_any_time(path):
    async with served(limits=True) as s:
        assert [(await s.client.get(path)).status_code for _ in range(3)] == [200, 200, 200]


@proves("operating.no-limits")
async def test_without_limits_nothing_is_counted_and_nothing_said(service):
    answers = [await service.get("forex") for _ in range(3)]

    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit" not in answers[0].headers


@proves("limits.address")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_a_client_is_an_address_or_a_network_of_64_bits(one, other, same):
    assert (Addresses(()).client(one) == Addresses(()).client(other)) is same


# --- errors ---


@proves("errors.problem", "errors.type", "errors.not_found", "errors.method_not_allowed")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/btc-prise", 404, "not_found"),
        ("POST", "/api/btc-price", 405, "method_not_allowed"),
        ("GET", "/api/weather?lat=91&lon=0", 400, "invalid_arguments"),
    ],
)
async def test_an_error_is_a_problem_whose_type_is_a_page(service, method, path, status, code):
    answer = await service.client.request(method, path)
    body = answer.json()

    assert (answer.status_code, body["status"], body["error"]) == (status, status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "detail", "request_id"} <= body.keys()
    assert body["request_id"] == answer.headers["x-request-id"]
    page = await service.client.get(httpx.URL(body["type"]).path)
    assert page.status_code == 200
    assert code in page.text
    if status == 404:
        assert body["did_you_mean"][0] == "/api/btc-price"
        assert (await service.client.get(httpx.URL(body["catalog"]).path)).status_code == 200
    if status == 405:
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@proves("errors.invalid_json", "errors.unsupported_media_type", "errors.payload_too_large")
@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b"[1]", "application/json", 400, "invalid_json"),
        (b"[" * 60_000, "application/json", 400, "invalid_json"),
        (b'{"a": "\xff"}', "application/json", 400, "invalid_json"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b" " * 65_537, "application/json", 413, "payload_too_large"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused_for_what_it_is(body, kind, status, code):
    async with served(Registry([operation_of(receipt_verify)])) as s:
        answer = await s.client.post("/api/receipt/verify", content=body, headers={"content-type": kind})

    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert status != 413 or answer.json()["limit_bytes"] == 65_536


@proves("errors.upstream_unavailable", "charge.all-failed", "no-charge.5xx")
async def test_a_premium_call_for_which_nothing_could_be_composed_says_when_to_come_back(toy):
    toy.upstreams.down = True
    answer = await toy.client.get("/api/pro/report", headers={"authorization": f"Bearer {RICH}"})

    assert (answer.status_code, answer.json()["error"]) == (503, "upstream_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert await toy.engine.ledger.balance(RICH) == 10


# --- money ---


@proves("premium.bearer", "auth.shape")
@pytest.mark.parametrize("token", [None, "nonsense", RICH[:-1], RICH.upper(), "svc_live_" + "0" * 64])
async def test_without_a_valid_token_nothing_premium_is_fetched(toy, token):
    refused = await toy.client.get("/api/pro/report", headers={"authorization": f"Bearer {token}"} if token else {})

    assert refused.status_code == 402
    assert refused.json()["error"] == ("invalid_token" if token else "missing_token")
    assert toy.upstreams.asked == []


@proves("charge.cached", "charge.remaining")
async def test_an_answer_from_the_cache_costs_the_same(toy):
    bearer = {"authorization": f"Bearer {RICH}"}
    first, second = [await toy.client.get("/api/pro/report", headers=bearer) for _ in range(2)]

    assert first.content == second.content
    assert [answer.headers["x-credits-remaining"] for answer in (first, second)] == ["8", "6"]
    assert await toy.engine.ledger.balance(RICH) == 6


@proves("charge.arguments-first")
async def test_wrong_arguments_are_named_before_the_token_is_looked_at(toy):
    bearer = {"authorization": f"Bearer {RICH}"}
    answers = [await toy.client.get("/api/pro/report?history=31d", headers=headers) for headers in (bearer, {})]

    assert {answer.status_code for answer in answers} == {400}
    assert await toy.engine.ledger.balance(RICH) == 10


@proves("answers.premium-envelope")
async def test_a_premium_answer_has_its_members_and_no_receipt(toy):
    answer = await toy.client.get("/api/pro/report", headers={"authorization": f"Bearer {RICH}"})

    assert list(answer.json()) == [
        *("source", "endpoint", "generated_at", "one", "two", "notes", "captured_at", "stale", "_meta")
    ]
    assert "receipt" not in answer.text


# --- documents ---


@proves("operations.documents")
@pytest.mark.parametrize(
    "path",
    "/ /docs /problems /changelog /openapi.json /llms.txt /llms-full.txt /api/llm-tools /api/meta"
    " /api/mcp /readyz /robots.txt /.well-known/api-catalog".split(),
)
async def test_a_document_stands_at_its_address_for_get_and_head(service, path):
    got, asked = await service.client.get(path), await service.client.head(path)

    assert got.status_code == asked.status_code == 200
    assert got.content
    assert asked.content == b""
    assert got.headers["content-type"] == asked.headers["content-type"]


@proves("headers.head", "headers.security", "headers.request-id")
@pytest.mark.parametrize("path", ["/api/forex", "/", "/docs", "/api/meta", "/api/mcp", "/readyz", "/api/nothing"])
async def test_every_answer_has_what_all_answers_have(service, path):
    got, asked = await service.client.get(path), await service.client.head(path)

    for answer in (got, asked):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "max-age" in answer.headers["strict-transport-security"]
        assert 'rel="service-desc"' in answer.headers["link"]
        assert answer.headers["x-request-id"]
    assert asked.status_code == got.status_code
    assert asked.content == b""


@proves("version.api", "discovery.meta")
async def test_the_api_version_is_the_same_wherever_it_is_said(service):
    health = (await service.get("health")).json()
    meta = (await service.client.get("/api/meta")).json()
    description = (await service.client.get("/openapi.json")).json()

    assert health["data"]["version"] == meta["api_version"] == description["info"]["version"] == "1.15.0"


@proves("definitions.free", "definitions.all", "definitions.body")
@pytest.mark.parametrize("form", ["raw", "openai", "anthropic"])
async def test_definitions_are_free_and_there_is_one_for_every_endpoint(service, form):
    document = (await service.client.get(f"/api/llm-tools?format={form}")).json()

    assert list(document)[:6] == ["source", "generated_at", "docs", "auth", "count", form]
    assert document["count"] == len(document[form]) == len(service.engine.registry.listed)


@proves("discovery.changelog", "version.changelog")
async def test_the_changelog_is_for_people_and_markdown_for_who_asks(service):
    page = await service.client.get("/changelog", headers={"accept": "text/html"})
    text = await service.client.get("/changelog", headers={"accept": "text/markdown"})

    assert page.headers["content-type"].startswith("text/html")
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith("# What changed for users")
    assert "Accept" in page.headers["vary"]


@proves("discovery.licence", "premium.licence")
@pytest.mark.parametrize("path", ["/openapi.json", "/api/meta", "/docs", "/llms.txt"])
async def test_the_licence_of_the_data_is_said(service, toy, path):
    free, answer = await service.client.get(path), await toy.client.get(path)

    assert "may be used for any purpose" in free.text
    assert "inference and reasoning only" in answer.text
    assert 'rel="license"' in answer.headers["link"]


@proves("discovery.pricing")
async def test_a_refused_payment_points_at_a_page_that_is_there(toy):
    refused = await toy.client.get("/api/pro/report")

    assert refused.headers["x-service-pricing"] == refused.json()["signup"] == "https://data.example/docs/payments"
    assert (await toy.client.get("/docs/payments")).status_code == 200


@proves("operations.core-free")
async def test_the_nine_free_core_tools_are_listed_by_default(service):
    listed = [tool["name"] for tool in (await service.rpc("tools/list"))["tools"]]

    assert [name for name in listed if service.engine.registry[name].tier == "free"] == sorted(CORE)


@proves("operations.one-registry")
async def test_every_operation_is_on_rest_in_mcp_and_in_the_catalogue(service):
    operations = {(o.name, o.method.lower(), o.path) for o in service.engine.registry}
    paths = (await service.client.get("/openapi.json")).json()["paths"]
    listed = await service.rpc("tools/list", query="?toolset=all")
    raw = (await service.client.get("/api/llm-tools?format=raw")).json()["raw"]

    described = {
        (o["operationId"], method, path)
        for path, item in paths.items()
        for method, o in item.items()
        if method != "head" and "x-credits" in o
    }
    assert operations == described
    works = {(o.name, o.path) for o in service.engine.registry.listed}  # without the top-up by x402, which is off
    assert {name for name, _, _ in operations} - {"payment_topup"} == {tool["name"] for tool in listed["tools"]}
    assert {(d["name"], d["url"].removeprefix(FACTS.base_url)) for d in raw} == works
    assert {name for name, _ in works} == {tool["name"] for tool in listed["tools"]}


@proves("answers.public-url")
async def test_a_host_header_changes_no_url_that_is_given_out():
    facts = replace(FACTS, base_url="https://data.example/below")
    lies = {"host": "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "ftp"}
    async with served(facts=facts) as s:
        for path in ("/", "/openapi.json", "/llms.txt", "/api/llm-tools", "/api/meta", "/api/nothing", "/api/mcp"):
            answer = await s.client.get(path, headers=lies)
            assert "evil.example" not in answer.text + str(answer.headers), path
            assert "https://data.example/below" in answer.text, path


@proves("operating.via")
async def test_a_service_on_a_simulated_world_says_so(tmp_path):
    settings = Settings(data_dir=tmp_path, upstream=UpstreamSettings(via="http://127.0.0.1:9"))
    registry = Registry([all_tools()["health"]])
    parts = ServiceParts(base_url=FACTS.base_url, registry=registry, clock=ManualClock(START))
    async with Service.build(settings, parts) as service:
        outcome = await service.pipeline.call(registry["health"], {}, Caller("192.0.2.1"))

    assert json.loads(outcome.rendered.payload)["_meta"]["simulated"] is True
