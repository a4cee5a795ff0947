"""Each kind of fault on the first source of each section of the nine tools, before and after a good answer.

No answer may hold a value that nobody gave. What a tool says under a fault must be, to the last digit, what it says
without the fault, what it says when that source is simply down, what it said before (then it is marked stale), or
nothing (then it says so).
"""

from collections import Counter
from typing import Any, NamedTuple

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

import toolserver.upstream.fetcher
from tests.calls.parts import START, engine
from tests.live.faulty import FaultyWorld
from tests.live.processes import CORE
from tests.requirements import proves
from tests.size import sized
from tests.tools.faulty.reading import parsed_once
from toolserver.clock import ManualClock
from toolserver.registry.registry import Registry
from toolserver.upstream.source import MIB, Source
from toolserver.world.answers import Renderer
from toolserver.world.faults import KINDS

REGISTRY = Registry.load("tools")
FIRST = {
    "briefing": ("Coinbase.product_stats", "HackerNewsAlgolia.front_page"),  # its other sections are tools of their own
    "btc_price": ("Coinbase.product_stats",),
    "crypto_movers": ("CoinGecko.markets",),
    "earthquakes": ("USGS.earthquakes_feed",),
    "economic_data": (
        "NYFed.effr",
        "BLS.timeseries",
        "DBnomics.us_real_gdp_growth",
        "Treasury.par_yield_curve",
        "FreddieMac.pmms_30y",
    ),
    "fear_greed": ("AlternativeMe.fear_greed",),
    "forex": ("Frankfurter.usd_timeseries",),
    "predictions": ("Polymarket.markets_by_volume",),
    "service_status": ("Statuspage.GitHub",),
}
SOUND, BELIEVED, LESS = "as without the fault", "as the source says", "less of the same"
DRIFTS = ("extra", "strings", "numbers", "renamed", "columns", "utf16", "bom")
SOURCES = [(tool, source) for tool, sources in FIRST.items() for source in sources]
CASES = [
    *((*source, kind, warm) for source in SOURCES for kind in KINDS for warm in (False, True)),
    *((*source, f"drift:{form}", False) for source in SOURCES for form in DRIFTS),
]
TAKEN = sized(3, fast=3, long=1)  # of the cases every third: other ones of each source
STEP = 123  # the fast set has every 123rd case: another kind of fault for each source
COUNTED = Counter[str]()
pytestmark = pytest.mark.timeout(300)


class Told(NamedTuple):
    """What one call came to."""

    body: dict[str, Any]
    fired: int = 0  # how often the fault struck


class Story(NamedTuple):
    """A good call, if there was one, and the one that counts."""

    before: Told | None
    after: Told


def source_of(tool: str, name: str) -> Source[Any, Any]:
    return next(source for source in REGISTRY[tool].sources if source.name == name)


def parameters(kind: str, source: Source[Any, Any]) -> dict[str, Any]:
    """A fault strong enough to matter."""
    if kind.startswith("drift:"):
        return {"form": kind.removeprefix("drift:")}
    return {
        "oversize": {"mib": source.max_bytes / MIB + 0.5},
        "slow_drip": {"bytes_per_s": 1},
        "latency": {"ms": 600_000},
        "rate_limit": {"n": 0},
        "old": {"seconds": 30 * 86_400},
        "jump": {"factor": 3},
    }.get(kind, {})


def match(source: Source[Any, Any]) -> str:
    """The stand-ins of this one."""
    return "USGS.earthquakes_*" if source.name.startswith("USGS.earthquakes") else source.name


def step_s(kind: str, source: Source[Any, Any], ttl_s: float) -> float:
    """Long enough that the source has to be asked anew; for a frozen one, that its items are too old."""
    frozen = source.newest_max_s or 0 if kind in ("frozen", "conditional_stuck") else 0
    return max(ttl_s, source.fresh_s, frozen) + 60


class Unhurried(ManualClock):
    """A clock whose date pauses do not change, so that two stories told at one instant agree on it."""

    async def sleep(self, seconds: float) -> None:
        self._monotonic += seconds
        await checkpoint()


RENDERED = Renderer()


async def told(kind: str | None, tool: str, source: Source[Any, Any], *, warm_s: float | None) -> Story:
    """Call a tool under a fault; with `warm_s`, so many seconds after a call without."""
    world = FaultyWorld(START.timestamp(), RENDERED)
    clock = Unhurried(START)
    before = None
    async with engine(REGISTRY, internet=world, clock=clock) as e:  # type: ignore[arg-type]
        if warm_s is not None:
            before = Told(msgspec.json.decode((await e.call(tool)).rendered.payload))
        if kind is not None:
            rule = {"match": match(source), "kind": kind.partition(":")[0], **parameters(kind, source)}
            world.state.faults.add(rule, world.state.world())
        if warm_s is not None:
            clock.advance(warm_s)
            world.state.clock.advance(warm_s)
        begun = anyio.current_time()
        outcome = await e.call(tool)
        assert anyio.current_time() - begun <= REGISTRY[tool].deadline_s
        fired = sum(rule.uses.fired for rule in world.state.faults.rules)
        return Story(before, Told(msgspec.json.decode(outcome.rendered.payload), fired))


@pytest.fixture(autouse=True)
def _parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read twice is parsed once: hundreds of stories are told of the same bodies."""
    monkeypatch.setattr(toolserver.upstream.fetcher, "read_body", parsed_once)


KNOWN: dict[tuple[Any, ...], Story] = {}


async def known(kind: str | None, tool: str, source: Source[Any, Any], warm_s: float | None) -> Story:
    """The same, worked out once."""
    key = (kind, tool, source.name if kind else None, warm_s)
    if key not in KNOWN:
        KNOWN[key] = await told(kind, tool, source, warm_s=warm_s)
    return KNOWN[key]


def parts(told: Told) -> dict[str, Any]:
    """What was said, by the parts that stand or fall alone."""
    content = told.body.get("data", told.body.get("sections"))
    if content is None:
        return {"data": None}
    if told.body["endpoint"] == "service-status":
        return {service["name"]: service for service in content}
    return dict(content) if told.body["endpoint"] in ("briefing", "economic-data") else {"data": content}


def believable(kind: str, source: Source[Any, Any], *, warm: bool) -> bool:
    """Faults that nobody who asks this source alone could notice: it says so, and nothing contradicts it."""
    if kind == "hostile":
        return True  # a text says whatever its author wrote: that pages show it as text is tested with them
    if kind == "jump":
        return source.gauge is None or not warm
    return kind in ("frozen", "old", "conditional_stuck") and source.newest_max_s is None


def verdict(part: str, story: Story, sound: dict[str, Any], down: dict[str, Any], *, believed: bool) -> str:
    """Whose word a part of an answer is; "" when it is nobody's."""
    said, before = parts(story.after).get(part), story.before and parts(story.before).get(part)
    stale = story.after.body["stale"]
    found = {
        SOUND: said == sound.get(part),
        "nothing": said is None,
        "as if the source were down": said == down.get(part),
        "as before, marked stale": stale and said == before,
        BELIEVED: believed,
        LESS: less(said, sound.get(part)),
    }
    return next((verdict for verdict, true in found.items() if true), "")


def less(said: Any, sound: Any) -> bool:
    """Whether only members are missing."""
    if isinstance(said, dict) and isinstance(sound, dict):
        return all(value is None or less(value, sound.get(name)) for name, value in said.items())
    if isinstance(said, list) and isinstance(sound, list):
        return len(said) == len(sound) and all(map(less, said, sound))
    return bool(said == sound)


@proves("answers.never-invented", "answers.never-5xx", "answers.warning", "answers.fallback")
@pytest.mark.parametrize(
    ("tool", "name", "kind", "warm"),
    [
        pytest.param(*case, marks=[pytest.mark.slow("the whole matrix of faults")] if number % STEP else [])
        for number, case in enumerate(CASES)
        if number % TAKEN == 0
    ],
)
async def test_no_fault_makes_a_tool_say_what_nobody_said(tool: str, name: str, kind: str, warm: bool) -> None:
    source = source_of(tool, name)
    warm_s = step_s(kind, source, REGISTRY[tool].longest_ttl) if warm else None
    story = await told(kind, tool, source, warm_s=warm_s)
    sound, down = [parts((await known(k, tool, source, warm_s)).after) for k in (None, "status")]
    believed = believable(kind, source, warm=warm)
    verdicts = {part: verdict(part, story, sound, down, believed=believed) for part in {*parts(story.after), *sound}}
    COUNTED.update(f"{'warm' if warm else 'cold'}, {found}" for found in set(verdicts.values()))

    assert story.after.fired or (kind == "conditional_stuck" and not (warm and source.conditional))
    assert all(verdicts.values()), [(p, parts(story.after)[p], sound.get(p)) for p, v in verdicts.items() if not v]
    told_of = [w for w in story.after.body.get("warning", []) if name in (w.get("source"), *w["message"].split())]
    assert told_of or {*verdicts.values()} <= {SOUND, BELIEVED, LESS}
    assert story.after.body["stale"] or parts(story.after) != {"data": None}


def test_the_size_of_the_matrix() -> None:
    print(f"\n{len(CASES)} faults; parts of answers were")
    print("\n".join(f"  {count:5} {found}" for found, count in sorted(COUNTED.items())))
    assert set(FIRST) == set(CORE)
    assert len(CASES) == 14 * (2 * len(KINDS) + len(DRIFTS))
