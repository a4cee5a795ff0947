"""The world at an instant: every value follows from seed, key and time."""

import itertools

import pytest

from toolserver.world.model import Ask, Edits, Reply, Routes, World

T = 1_800_000_000.0


def test_a_value_is_fixed_by_seed_key_and_number():
    assert World(1, T).u("x", 3) == World(1, T + 999).u("x", 3)
    assert len({World(seed, T).u(key, k) for seed in (1, 2) for key in ("x", "y") for k in (1, 2)}) == 8
    assert all(0 <= World(1, T).u("x", k) < 1 for k in range(1000))


def test_noise_is_smooth_and_bounded():
    world = World(1, T)
    values = [world.noise("x", step / 100) for step in range(1000)]

    assert all(-1 <= value <= 1 for value in values)
    assert max(abs(a - b) for a, b in itertools.pairwise(values)) <= 2 / 100 + 1e-9


def test_picks_and_ranges_stay_within_what_is_offered():
    world = World(1, T)

    assert {world.pick("x", k, "abc") for k in range(100)} == set("abc")
    assert all(5 <= world.between("x", k, 5, 6) < 6 for k in range(100))


def test_events_of_a_process_are_the_same_however_the_time_is_cut():
    world = World(1, T)
    whole = list(world.slots("quake", since=T - 86_400, slot_s=60, rate=1 / 600))
    halves = [
        *world.slots("quake", since=T - 86_400, until=T - 43_200, slot_s=60, rate=1 / 600),
        *world.slots("quake", since=T - 43_200, slot_s=60, rate=1 / 600),
    ]

    assert whole == halves
    assert 100 < len(whole) < 190  # 144 are to be expected
    assert all(T - 86_400 < at <= T for _, at in whole)


def test_a_demo_is_never_empty():
    events = list(World(1, T).slots("rare", since=T - 7200, slot_s=60, rate=0, at_least_every_s=600))

    assert 11 <= len(events) <= 13


def test_injected_events_are_seen_from_their_time_on():
    edits = Edits(events=[{"kind": "a", "at": T + 1}, {"kind": "a", "at": T - 1}, {"kind": "b", "at": T}])

    assert [event["at"] for event in World(1, T, edits).injected("a")] == [T - 1]
    assert [event["at"] for event in World(1, T, edits).at(T + 1).injected("a")] == [T - 1, T + 1]
    assert World(1, T, edits).injected("a", since=T - 1) == []


@pytest.fixture
def routes() -> Routes:
    routes = Routes()

    @routes.serves("A.keyed", "a.example", "/v1/{name}.json", when=lambda ask: "key" in ask.params)
    def keyed(world: World, ask: Ask) -> Reply:
        return Reply.json({"keyed": ask.parts["name"]})

    @routes.serves("A.plain", "a.example", "/v1/{name}.json", "GET", "POST")
    def plain(world: World, ask: Ask) -> Reply:
        return Reply.json({"plain": ask.parts["name"]})

    return routes


@pytest.mark.parametrize(
    ("ask", "source"),
    [
        (Ask("GET", "a.example", "/v1/btc.json", "key=1"), "A.keyed"),
        (Ask("GET", "a.example", "/v1/btc.json"), "A.plain"),
        (Ask("POST", "a.example", "/v1/btc.json", "key=1"), "A.plain"),
        (Ask("DELETE", "a.example", "/v1/btc.json"), None),
        (Ask("GET", "a.example", "/v1/b/tc.json"), None),
        (Ask("GET", "a.example", "/v1/btcxjson"), None),
        (Ask("GET", "b.example", "/v1/btc.json"), None),
    ],
)
def test_a_route_is_found_by_host_method_path_and_condition(routes, ask, source):
    match = routes.find(ask)

    assert (match[0].source if match else None) == source
    if match:
        assert match[1].parts == {"name": "btc"}


def test_only_keys_of_the_simulation_are_accepted():
    ask = Ask("GET", "a.example", "/")

    assert [ask.key_ok(key) for key in ("sim-x", "real", None)] == [True, False, False]


def test_json_is_compact_and_keeps_its_letters():
    assert Reply.json({"a": ["ü"]}).body == '{"a":["ü"]}'.encode()
