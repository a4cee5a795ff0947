"""The listener: upstreams on the wire, probes, and what HTTP asks of a server."""

import gzip
import json

import anyio
import httpx
import pytest

import tools.simulated.usgs  # noqa: F401 - fills ROUTES
from tests.world.toy import HOST, QUOTE, T, plain_get
from tools.free.earthquake import SHOWN
from toolserver.world.answers import Renderer
from toolserver.world.model import ROUTES, Ask, Reply, World
from toolserver.world.server import serve_world
from toolserver.world.state import KEPT, Entry, LoggedRequest, RequestLog, SimClock, WorldState
from toolserver.world.wire import BODY_MOST

DATE = "Fri, 15 Jan 2027 08:00:00 GMT"


async def test_an_upstream_answers_under_its_host_and_path_with_the_simulated_date(world):
    answer = await world.get()
    assert answer.status_code == 200
    assert answer.json()["symbol"] == "ABC"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["date"] == DATE


async def test_method_headers_body_and_query_reach_the_provider(world):
    path = f"/u/{HOST}/keyed?a=1&b=%20x"
    answer = await world.client.post(path, content=b"asked", headers={"X-Key": "sim-1"})
    assert answer.json() == {"method": "POST", "sent": "asked", "params": {"a": "1", "b": " x"}}
    assert (await world.get(path)).status_code == 401
    assert (await world.get(path, headers={"X-Key": "real"})).status_code == 401


async def test_escapes_in_a_path_are_read(world):
    answer = await world.get(f"/u/{HOST}/v1/quote/%5EVIX")
    assert answer.json()["symbol"] == "^VIX"


async def test_what_is_not_simulated_is_501_and_noted(world):
    for path in ("/u/other.example/x?q=1", f"/u/{HOST}/nothing", "/u/other.example"):
        assert (await world.get(path)).status_code == 501
    answer = await world.client.put(QUOTE)
    assert answer.json() == {"error": "not simulated", "url": f"https://{HOST}/v1/quote/ABC"}
    noted = await world.sim("GET", "/unmatched")
    assert [n["url"] for n in noted][:3] == [
        "https://other.example/x?q=1",
        f"https://{HOST}/nothing",
        "https://other.example/",
    ]
    assert {n["reason"] for n in noted} == {"not simulated"}
    assert (await world.sim("GET", ""))["unmatched"] == 4


async def test_a_provider_that_fails_is_500_and_noted_and_the_listener_lives(world):
    answer = await world.get(f"/u/{HOST}/broken")
    assert answer.status_code == 500
    assert answer.json()["reason"] == "KeyError: 'starttime'"
    assert (await world.sim("GET", "/unmatched"))[0]["reason"] == "KeyError: 'starttime'"
    assert (await world.get()).status_code == 200


async def test_a_header_that_cannot_be_sent_is_noted_and_the_listener_lives(world):
    route = world.toy.routes.serves("Toy.headers", HOST, "/headers")
    route(lambda world, ask: Reply.json({}, headers={"X-Bad": "a\r\nb"}))
    assert await world.raw(plain_get(f"/u/{HOST}/headers")) == b""
    assert (await world.sim("GET", "/unmatched"))[0]["reason"].startswith("LocalProtocolError")
    assert (await world.get()).status_code == 200


async def test_what_is_kept_is_bounded():
    renderer, world, pages = Renderer(most_bytes=1000), World(1, T), []

    def handler(world: World, ask: Ask) -> Reply:
        pages.append(ask.path)
        return Reply(b"x" * 150)

    asks = [Ask("GET", HOST, f"/{i}") for i in range(10)]
    for ask in (*asks, asks[-1], asks[0]):
        assert (await renderer.page(handler, world, ask)).reply.body == b"x" * 150
    assert pages == [*(a.path for a in asks), "/0"]


async def test_gzip_is_used_when_asked_for(world):
    answer = await world.raw(plain_get(f"/u/{HOST}/heavy", "Accept-Encoding: br, gzip;q=0.5", "Connection: close"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert len(json.loads(gzip.decompress(body))) == 100_000
    for accepted in ("Accept-Encoding: identity", "Accept-Encoding: gzip;q=0"):
        plain = await world.raw(plain_get(f"/u/{HOST}/heavy", accepted, "Connection: close"))
        assert json.loads(plain.partition(b"\r\n\r\n")[2])[:2] == [0, 1]


async def test_an_unchanged_body_is_304_and_a_changed_one_is_sent(world):
    first = await world.get()
    tag, modified = first.headers["etag"], first.headers["last-modified"]
    assert tag.startswith('"')
    same = await world.get(headers={"If-None-Match": f'"other", W/{tag}'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert (await world.get(headers={"If-Modified-Since": modified})).status_code == 304
    assert (await world.get(headers={"If-None-Match": '"other"', "If-Modified-Since": modified})).status_code == 200
    assert (await world.get(headers={"If-Modified-Since": "yesterday"})).status_code == 200
    world.state.clock.advance(1)
    assert (await world.get(headers={"If-None-Match": tag})).status_code == 200
    assert (await world.get(headers={"If-Modified-Since": modified})).status_code == 200


async def test_the_same_second_is_computed_once_and_another_is_not(world):
    for _ in range(3):
        await world.get()
    assert world.toy.calls["quote"] == 1
    world.state.clock.advance(0.5)
    await world.get()
    assert world.toy.calls["quote"] == 1
    world.state.clock.advance(0.5)
    await world.get()
    assert world.toy.calls["quote"] == 2
    await world.get(headers={"X-Key": "sim-1"})
    assert world.toy.calls["quote"] == 3


async def test_a_heavy_answer_is_made_once_for_all_and_lets_others_pass(world):
    done = []

    async def ask(path: str) -> None:
        await world.get(path)
        done.append(path)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ask, f"/u/{HOST}/heavy")
        group.start_soon(ask, QUOTE)
    assert world.toy.calls["heavy"] == 1
    assert done[0] == QUOTE


async def test_a_connection_serves_many_requests_and_pipelined_ones(world):
    two = await world.raw(plain_get() + plain_get(QUOTE, "Connection: close"))
    assert two.count(b"HTTP/1.1 200 OK") == 2


async def test_what_is_not_http_is_400_and_too_much_body_413(world):
    assert (await world.raw(b"hello\r\n\r\n")).startswith(b"HTTP/1.1 400")
    huge = b"POST /u/x/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (BODY_MOST + 1)
    assert (await world.raw(huge + b"x" * (BODY_MOST + 1))).startswith(b"HTTP/1.1 413")
    assert (await world.get()).status_code == 200


async def test_a_client_that_leaves_early_disturbs_nobody(world):
    for sent in (b"", b"GET / HT", plain_get(f"/u/{HOST}/heavy")):
        async with await anyio.connect_tcp("127.0.0.1", world.port) as stream:
            if sent:
                await stream.send(sent)
    assert (await world.get()).status_code == 200


@pytest.mark.parametrize("limits", [{"idle_s": 0.05}])
async def test_a_connection_on_which_nothing_comes_is_closed(world):
    assert await world.raw(b"GET / HT") == b""


async def test_expect_100_continue_is_answered(world):
    head = plain_get(
        f"/u/{HOST}/keyed", "Expect: 100-continue", "Content-Length: 2", "X-Key: sim-1", "Connection: close"
    )
    async with await anyio.connect_tcp("127.0.0.1", world.port) as stream:
        await stream.send(head.replace(b"GET", b"POST", 1))
        assert (await stream.receive()).startswith(b"HTTP/1.1 100")
        await stream.send(b"ok")
        assert b'"sent":"ok"' in await stream.receive()


@pytest.mark.parametrize("limits", [{"connections_most": 1}])
async def test_more_connections_than_allowed_are_turned_away(world):
    await world.get()  # holds the one
    assert (await world.raw(plain_get())).startswith(b"HTTP/1.1 503")


async def test_probes_give_a_latency_that_can_be_pinned_or_taken_away(world):
    path = "/probe/dynamodb.us-east-1.amazonaws.com"
    usual = (await world.get(path)).json()
    assert 1 <= usual["latency_ms"] < 200
    assert (await world.get(path)).json() == usual
    await world.sim("PUT", "/values", {"key": "probe.dynamodb.us-east-1.amazonaws.com", "value": 42})
    assert (await world.get(path)).json() == {"latency_ms": 42}
    await world.sim("PUT", "/values", {"key": "probe.dynamodb.us-east-1.amazonaws.com", "value": -1})
    assert (await world.get(path)).json() == {"unreachable": True}
    await world.fault("latency", "Probe.tcp_connect", ms=500)
    assert (await world.get("/probe/1.1.1.1")).json()["latency_ms"] > 500
    await world.fault("timeout", "8.8.8.8", id="first")
    await world.sim("DELETE", "/faults/f1")
    assert (await world.get("/probe/8.8.8.8")).json() == {"unreachable": True}
    assert "latency_ms" in (await world.get("/probe/1.1.1.1")).json()
    assert (await world.get("/probe/")).status_code == 400


async def test_requests_are_logged_with_time_source_status_and_fault(world):
    await world.get(headers={"If-None-Match": '"x"'})
    world.state.clock.advance(10)
    await world.fault("auth", "Toy.rows")
    await world.get(f"/u/{HOST}/rows.csv?x=1")
    first, second = await world.sim("GET", "/requests")
    assert (first["t"], first["source"], first["method"], first["status"]) == (T, "Toy.quote", "GET", 200)
    assert (first["conditional"], first["fault"], first["url"]) == (True, None, f"https://{HOST}/v1/quote/ABC")
    assert first["ms"] >= 0
    assert (second["t"], second["source"], second["status"], second["fault"]) == (T + 10, "Toy.rows", 401, "f1")
    assert second["url"].endswith("/rows.csv?x=1")
    assert [r["source"] for r in await world.sim("GET", "/requests?source=Toy.quote")] == ["Toy.quote"]
    assert [r["source"] for r in await world.sim("GET", f"/requests?since={T + 5}")] == ["Toy.rows"]
    assert [r["source"] for r in await world.sim("GET", "/requests?since=2027-01-15T08:00:05Z")] == ["Toy.rows"]
    assert (await world.sim("GET", ""))["served"] == {"Toy.quote": 1, "Toy.rows": 1}
    await world.sim("DELETE", "/requests")
    assert await world.sim("GET", "/requests") == []


def test_the_log_keeps_the_newest_and_counts_all():
    log = RequestLog()
    for i in range(KEPT + 5):
        log.add(Entry(LoggedRequest(float(i), "GET", "https://x.example/" + "y" * 5000), "Toy.quote"))
        log.miss(LoggedRequest(float(i), "GET", "https://x.example/"), "not simulated")
    assert len(log.entries()) == KEPT
    assert log.entries()[0]["t"] == 5
    assert len(log.entries()[0]["url"]) == 2000
    assert log.served["Toy.quote"] == KEPT + 5
    assert (len(log.unmatched()), log.unmatched_count) == (1000, KEPT + 5)


async def test_earthquakes_are_served_as_the_world_holds_them():
    state = WorldState(clock=SimClock(T, frozen=True))
    async with anyio.create_task_group() as group:
        port = await group.start(serve_world, state, ROUTES)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            feed = await client.get("/u/earthquake.usgs.gov/earthquakes/feed/v1.0/summary/2.5_day.geojson")
            expected = (await client.get("/_sim/expect/earthquake")).json()
            await client.post("/_sim/events", json={"kind": "earthquake", "magnitude": 7.7, "place": "Here"})
            more = await client.get("/u/earthquake.usgs.gov/earthquakes/feed/v1.0/summary/2.5_day.geojson")
        group.cancel_scope.cancel()
    listed = [f for f in feed.json()["features"] if f["properties"]["type"] == "earthquake"]
    assert expected == ROUTES.expectations["earthquake"](World(1, T), {})
    assert len(listed) == expected["count"] > len(expected["earthquakes"]) == SHOWN
    assert [f["id"] for f in listed][:SHOWN] == [e["id"] for e in expected["earthquakes"]]
    assert more.json()["features"][0]["properties"]["mag"] == 7.7
