"""Test the letter of the specification over the wire: points that its readers would try one by one."""

import json
import re
from datetime import datetime, timedelta

import pytest

from rest_bridge.openapi.document import openapi
from tests.arranged import FACTS
from tests.requirements import proves
from tests.served import all_tools, served
from tests.tools.premium.store import BEARER, FUNDS, T, store
from toolserver.app import _page_handlers
from toolserver.registry.site_pages import pages
from toolserver.settings import LimitSettings

NOT_DESCRIBED = re.compile(
    r"/problems/.*|/static/\*|/cards/\*|/t/.*|/docs/\*|/docs/search(\.json)?|.*\.md"
)  # for people, or another form of what is described


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path) as s:
        yield s


def described_path(path: str, described: dict) -> bool:
    """Whether a routed path is described; `/*` stands for what a template has there."""
    if not path.endswith("/*"):
        return path in described
    return any(known.startswith(path[:-1] + "{") for known in described)


async def test_every_path_that_is_routed_is_described_but_those_of_people(shop):
    service = shop.service
    described = openapi(service.registry, service.facts)["paths"]
    for_people = {page.path for page in pages(service.registry) if not page.described}
    routed = [path for path in _page_handlers(service) if not NOT_DESCRIBED.fullmatch(path)]

    assert [path for path in routed if path not in for_people and not described_path(path, described)] == []
    assert "get" in described["/api/receipt/verify"]
    assert "post" in described["/api/receipt/verify"]


async def test_what_is_described_without_arguments_answers_as_described(shop):
    described = openapi(shop.service.registry, shop.service.facts)["paths"]
    for path in ("/.well-known/service-receipt-keys.json", "/.well-known/service-receipt-key.json"):
        answer = await shop.client.get(path)
        assert answer.status_code == 200
        assert set(described[path]["get"]["responses"]["200"]["headers"]) <= {h.title() for h in answer.headers} | {
            "X-Request-Id", "Cache-Control",
        }  # fmt: skip
    assert (await shop.client.get("/api/receipt/verify?id=x")).status_code == 400
    assert (await shop.client.get("/api/receipt/verify?id=rcpt_" + "0" * 32)).status_code == 404
    assert (await shop.client.get("/api/receipt/rcpt_" + "0" * 32)).status_code == 402


async def test_free_answers_send_every_header_that_is_described_for_them():
    described = openapi(all_tools(), FACTS)["paths"]
    async with served(limits=True) as s:
        for operation in all_tools():
            if operation.tier != "free" or operation.method != "GET" or operation.input_schema.get("required"):
                continue
            answer = await s.client.get(operation.path)
            declared = described[operation.path]["get"]["responses"]["200"]["headers"]
            if answer.status_code == 200 and answer.json().get("data", 0) is not None:
                sent = {name.lower() for name in answer.headers}
                assert {name for name in declared if name.lower() not in sent} == set(), operation.name


async def test_the_site_facts_lead_to_receipt_keys_and_catalogue(shop):
    meta = (await shop.client.get("/api/meta")).json()

    for url in (meta["receipts"]["key_set"], meta["receipts"]["key"], meta["api_catalog"]):
        assert (await shop.client.get(url)).status_code == 200
    assert (await shop.client.get(meta["receipts"]["log"])).status_code == 200


async def test_the_licence_is_linked_on_mcp_too(shop):
    answer = await shop.client.post("/api/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    free = await shop.client.get("/api/health")
    described = await shop.client.get("/api/mcp")

    for response in (answer, free, described):
        assert 'rel="license"' in response.headers["link"]


@proves("tokens.malformed")
@pytest.mark.parametrize("header", ["Basic dXNlcjpwYXNz", "svc_live_" + "0" * 64, "Token abc"])
async def test_an_authorization_that_is_no_bearer_token_is_an_invalid_one(shop, header):
    for path in ("/api/pro/briefing", "/api/payment/balance", "/api/pro/subscriptions"):
        refused = await shop.client.get(path, headers={"authorization": header})
        assert (refused.status_code, refused.json()["error"]) == (402, "invalid_token"), path
    without = await shop.client.get("/api/pro/briefing")
    assert without.json()["error"] == "missing_token"
    assert (await shop.client.get("/api/fear-greed", headers={"authorization": header})).status_code == 200


@pytest.mark.parametrize("given", ["", "abc", "a.b.c", "e30.e30.e30", {}, {"signature": "x", "key_id": "y"}])
async def test_a_malformed_receipt_is_a_bad_request(shop, given):
    answer = await shop.client.post("/api/receipt/verify", json={"receipt": given})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments")
    assert answer.json()["errors"][0]["loc"].startswith("receipt")


@proves("receipt.verdict")
async def test_a_receipt_of_another_issuer_is_an_answer_not_an_error(shop):
    receipt = (await shop.buy("briefing", "include=btc")).headers["x-service-receipt"]
    head, payload, signature = receipt.split(".")
    forged = f"{head}.{payload}.{signature[:-4]}AAAA"
    answer = await shop.client.post("/api/receipt/verify", json={"receipt": forged})
    assert (answer.status_code, answer.json()["valid"]) == (200, False)


@proves("charge.nothing-chosen")
async def test_an_empty_choice_of_sections_is_refused_and_costs_nothing(shop):
    for query in ("include=", "include=,", "include=%20"):
        refused = await shop.buy("briefing", query)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_arguments"), query
    assert await shop.balance() == FUNDS


async def test_upcoming_launches_are_ahead(shop):
    for name, rows, time in (
        ("agent-context", lambda body: body["context"]["world_events"]["upcoming_space_launches"], "net"),
        ("launches", lambda body: body["data"], "scheduled_time"),
    ):
        path = f"/api/pro/{name}" if time == "net" else f"/api/{name}"
        body = (await shop.client.get(path, headers=BEARER)).json()
        exact = [row for row in rows(body) if row["time_precision"] in ("second", "minute", "hour")]
        assert exact
        assert all(datetime.fromisoformat(row[time]).timestamp() > T for row in exact)


async def test_a_month_of_monthly_and_quarterly_series_says_what_it_spans(shop):
    body = (await shop.buy("macro", "history=30d")).json()
    told = body["notes"]["history"]
    for name, figure in body["economic"].items():
        days = [point["date"] for point in figure["series"]]
        assert f"{name} {len(days)} from {days[0]} to {days[-1]}" in told
    quarters = [point["date"] for point in body["economic"]["gdp_growth"]["series"]]
    assert datetime.fromisoformat(quarters[-1]) - datetime.fromisoformat(quarters[0]) > timedelta(days=6 * 365)


async def test_thirty_repositories_are_listed(shop):
    body = (await shop.buy("code-host-velocity")).json()
    assert (len(body["trending_repos"]), body["aggregate"]["trending_count"]) == (30, 30)


async def test_failed_sources_are_counted_as_they_stand_in_meta(shop):
    shop.down("USGS.earthquakes_feed", "CoinDesk.rss")
    for name, section in (("world-deltas", ""), ("sentiment", "trending")):
        body = (await shop.buy(name)).json()
        told = [source for source in body["_meta"]["sources"] if source["section"].startswith(section)]
        failed = {source["name"] for source in told if source["status"] == "error"}
        good = {source["name"] for source in told if source["status"] != "error"}
        assert failed - good
        assert body["sample_size"]["sources_failed"] == len(failed - good)
        assert body["sample_size"]["sources_ok"] == len(good)


async def test_changes_are_known_where_kraken_stands_in(shop):
    shop.down("Binance.ticker_24h")
    rows = (await shop.buy("crypto-deep")).json()["exchange_top20_usdt"]
    assert {row["venue"] for row in rows} == {"kraken"}
    assert None not in {row["change_24h_percent"] for row in rows}


async def test_other_addresses_are_told_every_hour():
    async with served() as s:
        seen = []
        for _ in range(3):
            answer = (await s.get("exposure-lookup")).json()["data"]
            seen.append({result["ip"] for result in answer["results"]})
            s.engine.clock.advance(3600)
        assert all(seen)
        assert len(set.union(*seen)) == sum(map(len, seen))


# --- spacing ---

PLACES = [
    "lat=48.86&lon=2.35",
    "lat=51.51&lon=-0.13",
    "lat=40.71&lon=-74.01",
    "lat=35.68&lon=139.69",
    "lat=52.52&lon=13.4",
]


@proves("limits.questions")
async def test_weather_for_five_cities_is_answered_with_a_token_whose_balance_is_0(shop):
    broke = "svc_live_" + "0b" * 32
    await shop.service.money.ledger.mint(broke, 1, cause="a coin")
    headers = {"authorization": f"Bearer {broke}"}
    assert (await shop.client.get("/api/pro/briefing?include=btc", headers=headers)).status_code == 200

    five = [await shop.client.get(f"/api/weather?{place}", headers=headers) for place in PLACES]
    twice = await shop.client.get(f"/api/weather?{PLACES[0]}", headers=headers)
    scan = [await shop.client.get(f"/api/weather?lat={n / 100}&lon=1", headers=headers) for n in range(1000)]

    assert [answer.status_code for answer in five] == [200] * 5
    assert (twice.status_code, twice.json()["limit"]) == (429, "spacing")
    assert "other arguments are answered now" in twice.json()["detail"]
    assert [answer.status_code for answer in scan] == [200] * 7 + [429] * 993
    assert "12 different questions" in scan[-1].json()["detail"]


@proves("limits.scope")
async def test_without_a_token_the_second_city_is_refused_and_told_what_helps(shop):
    first, second = [await shop.client.get(f"/api/weather?{place}") for place in PLACES[:2]]
    told = await shop.client.post(
        "/api/mcp",
        json={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "weather", "arguments": {"lat": 52.52, "lon": 13.4}},
        },
    )
    assert (first.status_code, second.status_code) == (200, 429)
    for said in (second.json()["detail"], told.json()["result"]["content"][0]["text"]):
        assert "weather is answered once in 30 s for a client, whatever the arguments" in said
        assert "With a bearer token (a balance of 0 is enough)" in said


@proves("limits.scope")
async def test_with_the_scope_of_a_question_five_cities_are_answered_to_anyone(tmp_path):
    async with store(tmp_path, limits=LimitSettings(spacing_scope="question")) as s:
        five = [(await s.client.get(f"/api/weather?{place}")).status_code for place in PLACES]
        twice = await s.client.get(f"/api/weather?{PLACES[0]}")
        defaults = [(await s.client.get("/api/weather")).status_code for _ in range(2)]
        scan = [(await s.client.get(f"/api/weather?lat={n / 100}&lon=1")).status_code for n in range(20)]
    assert five == [200] * 5
    assert twice.status_code == 429
    assert defaults == [200, 429]
    assert scan.count(200) == 6


@proves("headers.head", "headers.security")
async def test_head_answers_every_path_that_get_answers_and_every_answer_is_safe(tmp_path):
    async with store(tmp_path, limits=LimitSettings(enabled=False)) as s:
        described = (await s.client.get("/openapi.json")).json()["paths"]
        paths = [path for path, methods in described.items() if "get" in methods and "{" not in path]
        paths += [page.path for page in pages(s.service.registry) if page.path not in described]
        for path in paths:
            got, asked = await s.client.get(path), await s.client.head(path)
            assert (asked.status_code, asked.content) == (got.status_code, b""), path
            assert asked.headers["content-type"] == got.headers["content-type"], path
            for answer in (got, asked):
                assert answer.headers["x-content-type-options"] == "nosniff", path
                assert answer.headers["referrer-policy"] == "no-referrer", path
                assert answer.headers["x-request-id"], path
                assert 'rel="service-desc"' in answer.headers["link"], path
    assert len(paths) > 70


@proves("sister.own-bind")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_contract_between_services_is_not_at_the_public_address(shop, method):
    for route in ("validate", "commit", "allowances"):
        path = f"/api/internal/{route}"
        answer = await shop.client.request(method, path, headers=BEARER, json={"cost": 0})
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
    for document in ("/openapi.json", "/llms.txt", "/llms-full.txt", "/api/llm-tools", "/api/meta"):
        assert "/api/internal" not in (await shop.client.get(document)).text, document


@proves("operations.core")
async def test_a_client_sees_nine_free_nine_premium_and_three_payment_tools(shop):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    names = [tool["name"] for tool in (await shop.client.post("/api/mcp", json=message)).json()["result"]["tools"]]
    tiers = [shop.service.registry[name].tier.value for name in names]

    assert (tiers.count("free"), tiers.count("premium"), tiers.count("payment"), len(names)) == (9, 9, 3, 21)


# Known to stand there, and linked by nobody; /front.html is a part of the home page, which that page asks for.
BY_CONVENTION = {"/", "/llms.txt", "/robots.txt", "/sitemap.xml", "/front.html", "/changelog/code", "/design"}


@proves("discovery.llms")
@pytest.mark.parametrize("guide", ["/llms.txt", "/llms-full.txt"])
async def test_every_link_of_a_guide_is_answered_and_everything_there_is_is_linked_or_described(shop, guide):
    text = (await shop.client.get(guide)).text
    links = set(re.findall(r"https://data\.example(/[^\s)`#,;\"<>]*)", text))
    tools = shop.service.registry.chosen(toolset="all")
    by_path = {tool.path: tool for tool in shop.service.registry}
    for path in links:
        tool = by_path.get(path)
        if tool is not None and "{" in path:
            continue  # a template, which is among what is described
        answer = await shop.client.get(path)
        if tool is None:
            assert (answer.status_code, bool(answer.content)) == (200, True), path
        elif answer.status_code == 405:
            assert tool.method in answer.headers["allow"], path
        else:
            assert answer.json().get("error") in (None, "invalid_arguments", "missing_token"), path

    assert "/openapi.json" in links
    described = (await shop.client.get("/openapi.json")).json()["paths"].keys()
    there = {page.path for page in pages(shop.service.registry)} - BY_CONVENTION
    assert there - links - described == set()
    for tool in tools:
        assert f"`{tool.method} {tool.path}`" in text or f"`{tool.method} https://data.example{tool.path}`" in text
        assert tool.path in described
        assert tool.description in text


@proves("limits.payments", "limits.subscriptions")
async def test_the_balance_subscriptions_allowances_and_the_statement_share_sixty_calls_a_minute_of_a_token(shop):
    paths = [
        *("/api/payment/balance", "/api/pro/subscriptions"),
        *("/api/payment/statement", "/api/payment/allowances"),
    ]
    statuses = {(await shop.client.get(path, headers=BEARER)).status_code for path in paths * 15}
    over = [await shop.client.get(path, headers=BEARER) for path in paths]
    quote = await shop.client.post("/api/payment/buy-credits", json={"amount_usd": 5}, headers=BEARER)
    told = await shop.tell("webhook_list")
    of_the_address = await shop.client.get("/api/payment/balance")
    shop.clock.advance(60)
    again = {(await shop.client.get(path, headers=BEARER)).status_code for path in paths}

    assert statuses == again == {200}
    assert [answer.status_code for answer in [*over, quote]] == [429] * 5
    assert {answer.json()["limit"] for answer in [*over, quote]} == {"personal"}
    assert json.loads(told["content"][0]["text"])["error"] == "rate_limited"
    assert of_the_address.json()["error"] == "missing_token"


@proves("limits.receipts")
async def test_who_reads_receipts_has_sixty_calls_a_minute_with_the_payment_tools(shop):
    receipt, claim = "/api/receipt/rcpt_" + "0" * 32, {"tx_hash": "0x" + "0" * 64, "nonce": "svc_buy_" + "0" * 32}
    read = [(await shop.client.get(receipt)).status_code for _ in range(30)]
    claimed = [(await shop.client.post("/api/payment/confirm", json=claim)).status_code for _ in range(30)]
    over = [await shop.client.get(receipt), await shop.client.post("/api/payment/confirm", json=claim)]

    assert 429 not in {*read, *claimed}
    assert [(answer.status_code, answer.json()["limit"]) for answer in over] == [(429, "personal")] * 2
