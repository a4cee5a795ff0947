"""The control interface: what it does, and that it refuses politely."""

import json
import re
from html.parser import HTMLParser

import pytest

from tests.world.toy import HOST, T, plain_get, toy
from toolserver.world.control import COMMANDS, EVENT_KINDS, FROM, ControlRequest, control, page
from toolserver.world.model import Routes
from toolserver.world.request_checks import ControlRefused
from toolserver.world.state import CRASHED_BTC, PRIMARIES, SimClock, WorldState, next_weekend, scenarios
from toolserver.world.wire import Received


async def test_the_overview_says_what_is_going_on(world):
    await world.get()
    await world.fault("geo", "Toy.rows")
    seen = await world.sim("GET", "")
    assert (seen["version"], seen["seed"], seen["scenario"]) == ("1", 1, "normal")
    assert seen["clock"] == {"now": T, "time": "2027-01-15T08:00:00Z", "speed": 1, "frozen": True} | {
        "offset_s": seen["clock"]["offset_s"]
    }
    assert [rule["id"] for rule in seen["faults"]] == ["f1"]
    assert (seen["served"], seen["unmatched"]) == ({"Toy.quote": 1}, 0)
    assert "Toy.feed" in seen["sources"]
    assert seen["expectations"] == ["toy/price"]


async def test_the_clock_is_set_advanced_sped_up_and_stopped(world):
    assert (await world.sim("PUT", "/clock", {"now": "2027-02-01T00:00:00Z"}))["time"] == "2027-02-01T00:00:00Z"
    assert (await world.sim("PUT", "/clock", {"now": T, "advance_s": 60}))["now"] == T + 60
    running = await world.sim("PUT", "/clock", {"freeze": False, "speed": 600})
    assert (running["frozen"], running["speed"]) == (False, 600)
    assert (await world.sim("PUT", "/clock", {"freeze": True}))["frozen"] is True
    assert (await world.sim("GET", "/clock"))["now"] == world.state.clock.now()


async def test_a_new_seed_is_a_new_world(world):
    before = (await world.get()).json()
    await world.sim("PUT", "/seed", {"seed": 2})
    assert (await world.get()).json() != before
    await world.sim("PUT", "/seed", {"seed": 1})
    assert (await world.get()).json() == before


async def test_rules_are_added_listed_and_removed(world):
    rule = await world.fault("status", "Toy.quote", code=500, count=1, id="once")
    assert (rule["id"], rule["code"], rule["count"], rule["set_at"]) == ("once", 500, 1, T)
    assert [(await world.get()).status_code for _ in range(2)] == [500, 200]
    listed = await world.sim("GET", "/faults")
    assert (listed[0]["seen"], listed[0]["fired"]) == (2, 1)
    await world.sim("DELETE", "/faults/once")
    await world.sim("DELETE", "/faults/once", status=404)
    await world.fault("geo")
    await world.sim("DELETE", "/faults")
    assert await world.sim("GET", "/faults") == []


async def test_pins_hold_between_their_instants_and_can_be_taken_away(world):
    await world.sim("PUT", "/values", {"key": "price.TOY", "value": 5, "from": T + 10, "to": "2027-01-15T08:00:20Z"})
    seen = []
    for _ in range(3):
        seen.append((await world.sim("GET", "/expect/toy/price"))["price"])
        world.state.clock.advance(10)
    assert seen == [None, 5, None]
    await world.sim("PUT", "/values", {"key": "price.TOY", "value": 9})
    assert (await world.get()).json()["last"] == 9
    assert (await world.sim("GET", "/values"))["price.TOY"][1] == {"value": 9, "from": None, "to": None}
    await world.sim("PUT", "/values", {"key": "price.TOY", "value": None})
    assert await world.sim("GET", "/values") == {}


async def test_events_get_the_time_of_now_unless_they_bring_one(world):
    event = await world.sim("POST", "/events", {"kind": "story", "title": "x"})
    assert event == {"kind": "story", "title": "x", "at": T}
    late = await world.sim("POST", "/events", {"kind": "launch", "at": "2027-01-15T09:00:00Z"})
    assert late["at"] == T + 3600
    assert [e["kind"] for e in await world.sim("GET", "/events")] == ["story", "launch"]
    assert world.state.world().injected("launch") == []
    assert len(world.state.world().at(T + 3600).injected("launch")) == 1


async def test_a_world_handed_out_is_not_changed_by_later_edits(world):
    before = world.state.world()
    await world.sim("POST", "/events", {"kind": "story"})
    await world.sim("PUT", "/values", {"key": "price.TOY", "value": 5})
    assert before.injected("story") == []
    assert before.pinned("price.TOY") is None


async def test_expectations_take_parameters_and_refuse_bad_ones(world):
    expected = await world.sim("GET", "/expect/toy/price?limit=7")
    assert expected == {"price": None, "at": "2027-01-15T08:00:00Z", "limit": 7}
    refused = await world.sim("GET", "/expect/toy/price?limit=x", status=400)
    assert refused["error"].startswith("ValueError")
    await world.sim("GET", "/expect/nothing", status=404)


async def test_reset_goes_back_to_the_start(world):
    start = (await world.get()).json()
    await world.sim("PUT", "/scenario", {"name": "all_down"})
    await world.sim("PUT", "/seed", {"seed": 9})
    await world.sim("PUT", "/clock", {"advance_s": 999, "freeze": False, "speed": 7})
    await world.sim("POST", "/events", {"kind": "fire"})
    await world.get("/u/none.example/")
    await world.sim("POST", "/reset")
    seen = await world.sim("GET", "")
    assert (seen["seed"], seen["scenario"], seen["faults"], seen["served"], seen["unmatched"]) == (
        1,
        "normal",
        [],
        {},
        0,
    )
    assert (seen["clock"]["now"], seen["clock"]["speed"], seen["clock"]["frozen"]) == (T, 1, True)
    assert await world.sim("GET", "/events") == []
    assert await world.sim("GET", "/requests") == []
    assert (await world.get()).json() == start


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/clock", {"now": "soon"}, 400),
        ("PUT", "/clock", {"now": True}, 400),
        ("PUT", "/clock", {"speed": -1}, 400),
        ("PUT", "/clock", {"freeze": "yes"}, 400),
        ("PUT", "/clock", {"advance_s": 1e300}, 400),
        ("PUT", "/clock", {"advance_s": -3e9}, 400),
        ("PUT", "/clock", {"then": 1}, 400),
        ("PUT", "/clock", [], 400),
        ("PUT", "/seed", {}, 400),
        ("PUT", "/seed", {"seed": 1.5}, 400),
        ("POST", "/faults", {"match": "*"}, 400),
        ("POST", "/faults", "html200", 400),
        ("POST", "/events", {"kind": "party"}, 400),
        ("POST", "/events", {"kind": ["fire"]}, 400),
        ("POST", "/events", {"kind": "fire", "at": -5}, 400),
        ("POST", "/events", {"kind": "fire", "text": "x" * 20_000}, 400),
        ("PUT", "/values", {"key": "a"}, 400),
        ("PUT", "/values", {"value": 1}, 400),
        ("PUT", "/values", {"key": "a", "value": "1"}, 400),
        ("PUT", "/values", {"key": "a", "value": 1, "from": 20, "to": 10}, 400),
        ("PUT", "/scenario", {"name": "party"}, 400),
        ("PUT", "/scenario", {"name": None}, 400),
        ("PUT", "/replay/Toy.quote", {"file": "../x"}, 400),
        ("PUT", "/replay/Toy.quote", {"file": 3}, 400),
        ("PUT", "/replay/Toy.nothing", {"file": "toy/a.json"}, 404),
        ("DELETE", "/replay/Toy.quote", None, 404),
        ("GET", "/requests?since=soon", None, 400),
        ("GET", "/nothing", None, 404),
        ("DELETE", "/clock", None, 405),
    ],
)
async def test_what_is_not_understood_is_refused_as_json_and_changes_nothing(world, method, path, body, status):
    before = await world.sim("GET", "")
    refused = await world.sim(method, path, body, status=status)
    assert list(refused) == ["error"]
    assert "Traceback" not in refused["error"]
    after = await world.sim("GET", "")
    assert after | {"clock": before["clock"]} == before
    assert world.state.clock.now() == T


@pytest.mark.parametrize("body", [b"{", b"", b"\xff", b'{"now": NaN}', b"[" * 100_000])
async def test_a_body_that_is_no_json_is_refused(world, body):
    answer = await world.client.put("/_sim/clock", content=body)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("header", ["Origin: https://evil.example", "Host: evil.example"])
async def test_web_pages_of_others_cannot_control_it(world, header):
    sent = plain_get("/_sim", header, "Connection: close")
    if header.startswith("Host"):
        sent = sent.replace(b"Host: 127.0.0.1\r\n", b"", 1)
    assert (await world.raw(sent)).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("peer", ["203.0.113.9", "fe80::1%eth0", "nobody"])
async def test_callers_elsewhere_cannot_control_it(peer):
    request = Received("GET", "/_sim", {"host": "127.0.0.1"}, peer=peer)
    assert (await control(WorldState(), Routes(), request)).status == 403


async def test_edits_are_bounded(world):
    world.state.edits_most = 2
    for _ in range(2):
        await world.sim("POST", "/events", {"kind": "fire"})
    assert "too many" in (await world.sim("POST", "/events", {"kind": "fire"}, status=400))["error"]


async def test_every_scenario_can_be_played_and_normal_takes_it_back(world):
    usual = (await world.get()).json()
    overview = await world.sim("GET", "/scenario")
    assert overview["name"] == "normal"
    for name in overview["scenarios"]:
        if name != "weekend":
            assert (await world.sim("PUT", "/scenario", {"name": name}))["name"] == name
    await world.sim("PUT", "/scenario", {"name": "normal"})
    assert (await world.get()).json() == usual
    assert await world.sim("GET", "/values") == {}


@pytest.mark.parametrize(
    ("name", "status", "other"),
    [
        ("primary_down", 503, 200),
        ("rate_limited", 418, 429),
        ("html_storm", 200, 200),
        ("cold_start_offline", 599, 599),
        ("drifted", 200, 200),
        ("keys_present", 200, 200),
    ],
)
async def test_scenarios_strike_whom_they_say(world, name, status, other):
    await world.sim("PUT", "/scenario", {"name": name})
    assert (await world.get()).status_code == status
    assert (await world.get(f"/u/{HOST}/rows.csv")).status_code == other


async def test_quiet_pins_busy_injects_and_frozen_stands_still(world):
    await world.sim("PUT", "/scenario", {"name": "quiet"})
    assert world.state.world().pinned("quakes.quiet") == 1
    await world.sim("PUT", "/scenario", {"name": "busy"})
    assert world.state.world().pinned("quakes.quiet") is None
    assert world.state.world().injected("earthquake")[0]["magnitude"] == 7.1
    assert world.state.world().pinned("price.BTC") == CRASHED_BTC
    assert world.state.world().at(T - 1).pinned("price.BTC") is None
    before = (await world.get()).json()
    await world.sim("PUT", "/scenario", {"name": "frozen_world"})
    world.state.clock.advance(86_400)
    assert (await world.get()).json() == before


async def test_the_weekend_is_the_next_one(world):
    moved = await world.sim("PUT", "/scenario", {"name": "weekend"})
    assert moved["clock"]["time"] == "2027-01-16T15:00:00Z"
    for at, day in ((T + 86_400, 86_400 + 7 * 3600), (T + 3 * 86_400, 8 * 86_400 + 7 * 3600)):
        assert next_weekend(at) == T + day
    assert next_weekend(T + 2 * 86_400) == T + 2 * 86_400  # a Sunday


def test_presets_are_rules_that_are_understood_and_events_of_known_kinds():
    state = WorldState()
    for name, scenario in scenarios().items():
        state.play(name)
        assert len(state.faults.rules) == len(scenario.rules)
        assert {e["kind"] for e in scenario.events} <= EVENT_KINDS
    assert len(scenarios()["primary_down"].rules) == len(PRIMARIES)


TO = "0x" + "Ab" * 20


@pytest.fixture
def state(tmp_path):
    return WorldState(clock=SimClock(T, frozen=True), samples=tmp_path, primaries=[])


async def ask(state, method, body=None, rest="transfer"):
    return await COMMANDS[method, "chain"](ControlRequest(state, toy().routes, rest, {}, json.dumps(body).encode()))


@pytest.mark.parametrize(("usd", "atomic"), [(5, 5_000_000), (0.000001, 1), ("12.345678", 12_345_678)])
async def test_a_transfer_is_an_event_of_so_many_millionths(state, usd, atomic):
    sent = await ask(state, "POST", {"to": TO, "amount_usd": usd})

    assert {name: sent[name] for name in ("from", "to", "amount")} == {"from": FROM, "to": TO.lower(), "amount": atomic}
    (event,) = await ask(state, "GET")
    assert (event["hash"], event["at"], event["amount"]) == (sent["tx_hash"], T, atomic)


async def test_each_transfer_is_a_transaction_of_its_own(state):
    hashes = {(await ask(state, "POST", {"to": TO, "amount_usd": 1}))["tx_hash"] for _ in range(3)}
    assert len(hashes) == len(await ask(state, "GET")) == 3


@pytest.mark.parametrize("usd", [0, -1, True, None, "many", 0.0000001, 10**10, "NaN", [1]])
async def test_an_amount_that_cannot_be_sent_is_refused(state, usd):
    with pytest.raises(ControlRefused, match="amount_usd"):
        await ask(state, "POST", {"to": TO, "amount_usd": usd})
    assert await ask(state, "GET") == []


@pytest.mark.parametrize("to", [None, "0x", TO[:-1], f"{TO}0", 7])
async def test_an_address_that_is_none_is_refused(state, to):
    with pytest.raises(ControlRefused, match="to must be an address"):
        await ask(state, "POST", {"to": to, "amount_usd": 1})


async def test_a_transfer_can_be_undone_once_and_leaves_the_others(state):
    first, second = [await ask(state, "POST", {"to": TO, "amount_usd": usd}) for usd in (1, 2)]

    assert await ask(state, "DELETE", rest=first["tx_hash"].upper().replace("0X", "0x")) == {"undone": first["tx_hash"]}
    assert [each["hash"] for each in await ask(state, "GET")] == [second["tx_hash"]]
    with pytest.raises(ControlRefused, match="no such transfer"):
        await ask(state, "DELETE", rest=first["tx_hash"])


async def test_the_newest_blocks_are_replaced_to_a_depth_that_makes_sense(state):
    paid = await ask(state, "POST", {"to": TO, "amount_usd": 1})
    assert await ask(state, "POST", {"depth": 3, "again": [paid["tx_hash"]]}, rest="reorganise") == {
        "undone": [],
        "again": [paid["tx_hash"]],
    }
    assert await ask(state, "POST", {"depth": 3}, rest="reorganise") == {"undone": [paid["tx_hash"]], "again": []}
    for body in ({}, {"depth": 0}, {"depth": 65}, {"depth": 1, "again": "0x1"}):
        with pytest.raises(ControlRefused):
            await ask(state, "POST", body, rest="reorganise")


async def test_only_transfers_are_made_here(state):
    with pytest.raises(ControlRefused, match="POST /_sim/chain/transfer"):
        await ask(state, "POST", {"to": TO, "amount_usd": 1}, rest="mint")


class Balanced(HTMLParser):
    """Notes the open elements and every text."""

    VOID = frozenset({"meta", "br", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.words.append(data)


async def test_the_page_shows_clock_scenarios_rules_and_counts(world):
    await world.get()
    await world.fault("latency", "Toy.*", ms=5)
    answer = await world.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    read = Balanced(answer.text)
    assert (read.open, read.wrong) == ([], [])
    words = " ".join(read.words)
    for shown in ("Fri 2027-01-15 08:00:00 UTC", "frozen", "primary_down", "Toy.*", "latency ms 5", "Toy.quote"):
        assert shown in words


async def test_every_button_of_the_page_does_something(world):
    await world.fault("geo", "Toy.rows")
    buttons = re.findall(
        r'data-method="(\w+)" data-path="([^"]+)"(?: data-body="([^"]*)")?', (await world.get("/")).text
    )
    assert len(buttons) > 20
    for method, path, body in buttons:
        content = body.replace("&quot;", '"')
        answer = await world.client.request(method, f"/_sim/{path}", content=content)
        assert answer.status_code in (200, 404), (path, answer.text)


def test_nothing_on_the_page_is_taken_for_markup():
    state = WorldState(clock=SimClock(T, frozen=True))
    state.faults.add({"match": "<script>alert(1)</script>", "kind": "drift", "form": "<b>&"}, state.world())
    text = page(state).body.decode()
    assert "<script>alert" not in text
    assert "<b>&" not in text


async def test_the_page_allows_only_its_own_style_and_script(world):
    policy = (await world.get("/")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (await world.get("/other")).status_code == 404
