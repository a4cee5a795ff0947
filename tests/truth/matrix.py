"""The cases: the ones with names, and tool × source × fault × warm or cold × scenario."""

import random
from collections.abc import Iterator
from itertools import pairwise, product

from tests.served import all_tools
from tests.truth.stage import SCENARIOS, Case, Fault

HOUR, DAY = 3600, 86400
FROZEN_S = 21 * HOUR
KINDS: tuple[tuple[str, tuple[tuple[str, object], ...], float], ...] = (
    ("empty", (), 0),
    ("zeros", (), 0),
    ("zeros", (("keep_times", True),), 0),
    ("old", (("seconds", 2 * HOUR),), 0),
    ("old", (("seconds", DAY),), 0),
    ("old", (("seconds", 3 * DAY),), 0),
    ("old", (("seconds", 20 * DAY),), 0),
    ("frozen", (), FROZEN_S),
    ("jump", (("factor", 0.1),), 0),
    ("jump", (("factor", 1.5),), 0),
    ("jump", (("factor", 10),), 0),
    ("error200", (), 0),
    ("status", (("code", 503),), 0),
    ("status", (("code", 404),), 0),
    ("rate_limit", (("n", 0),), 0),
    ("drift", (), 0),
    ("drift", (("form", "renamed"),), 0),
    ("drift", (("form", "strings"),), 0),
    ("malformed", (), 0),
    ("truncated", (), 0),
    ("html200", (), 0),
    ("geo", (), 0),
    ("auth", (), 0),
    ("dns", (), 0),
    ("timeout", (), 0),
    ("reset", (), 0),
    ("conditional_stuck", (), 0),
)
WRONG = {"empty", "zeros", "old", "frozen", "jump"}  # answers of a sort; the others are none
UNTOLD = {"health", "ai_stats"}
VARIANTS: dict[str, tuple[tuple[tuple[str, object], ...], ...]] = {
    "climate_earthquakes": ((), (("magnitude", "4.5"),), (("magnitude", "significant"),), (("period", "hour"),)),
    "climate_weather_alerts": (
        (),
        (("area", "OK"),),
        (("severity", "Extreme"),),
        (("event", "Tornado Warning"),),
    ),
}


def fault(match: str, kind: str, since: float = 0, **parameters: object) -> Fault:
    return Fault(match, kind, tuple(parameters.items()), since)


def named_cases() -> Iterator[Case]:
    """What was found once, by name, in each scenario and with and without a kept answer."""
    for scenario, warm in product(SCENARIOS, (False, True)):
        for tool, arguments, faults in _named():
            yield Case(tool, tuple(arguments.items()), faults, warm, scenario)


def _named() -> Iterator[tuple[str, dict[str, object], tuple[Fault, ...]]]:
    usgs, emsc = "USGS.earthquakes_*", "EMSC.earthquakes_query"
    wrong = (
        fault(usgs, "old", seconds=2 * HOUR),
        fault(usgs, "old", seconds=DAY),
        fault(usgs, "zeros"),
        fault(usgs, "zeros", keep_times=True),
        fault(usgs, "empty"),
        fault(usgs, "frozen", FROZEN_S),
        fault(usgs, "frozen", 2 * HOUR),
        fault(usgs, "jump", factor=0.1),
    )
    for each in wrong:
        for tool in ("premium_world_deltas", "earthquakes"):
            yield tool, {}, (each,)
        for asked in ({"magnitude": "4.5"}, {"magnitude": "significant"}, {"magnitude": "4.5", "period": "hour"}):
            yield "climate_earthquakes", asked, (each,)
    yield "premium_world_deltas", {}, (fault("HackerNewsAlgolia.*", "old", seconds=DAY),)
    for days, tool in product((20, 30), ("launches", "premium_world_deltas", "premium_agent_context")):
        yield tool, {}, (fault("LaunchLibrary.*", "old", seconds=days * DAY),)
        yield tool, {}, (fault("LaunchLibrary.*", "old", seconds=days * DAY), fault("RocketLaunchLive.*", "dns"))
    for kind in (fault(emsc, "zeros"), fault(emsc, "empty"), *(fault(emsc, "old", seconds=s) for s in (7200, 3 * DAY))):
        for tool in ("premium_agent_context", "premium_world_deltas", "earthquakes", "climate_earthquakes"):
            yield tool, {}, (fault(usgs, "status", code=503), kind)
    for asked in ({"area": "OK"}, {"severity": "Extreme"}, {"event": "Tornado Warning"}, {}):
        for each in (
            *(fault("NWS.alerts_active", "old", seconds=s) for s in (900, 3 * DAY)),
            fault("NWS.alerts_active", "empty"),
        ):
            yield "climate_weather_alerts", asked, (each,)
    yield "model_hub_trending", {}, (fault("HuggingFace.*", "frozen", FROZEN_S),)
    yield "gas", {}, (fault("Ethereum.*", "frozen", FROZEN_S),)
    yield "gas", {}, (fault("Ethereum.fee_history", "frozen", FROZEN_S),)
    yield "chain_network", {}, (fault("Solana.*", "frozen", FROZEN_S),)
    yield "btc_price", {}, (fault("Coinbase.*", "frozen", FROZEN_S),)
    yield "btc_price", {}, (fault("Coinbase.*", "frozen", FROZEN_S), fault("Kraken.*", "frozen", FROZEN_S))
    for tool in ("btc_price", "briefing"):
        yield tool, {}, (fault("Coinbase.candles", "dns"), fault("Kraken.ticker", "old", seconds=DAY))
    for old_s in (2 * HOUR, DAY):
        yield "severe_weather", {}, tuple(fault(name, "old", seconds=old_s) for name in ("NWS.*", "NOAA.watch*"))
        yield (
            "tech_news",
            {},
            tuple(fault(name, "old", seconds=old_s) for name in ("HackerNews.*", "HackerNewsAlgolia.*")),
        )
    yield "disaster_alerts", {}, (fault("GDACS.event_list", "old", seconds=20 * DAY),)
    yield "disaster_alerts", {}, (fault("GDACS.event_list", "old", seconds=20 * DAY, count=1),)  # the grave ones alone
    for kind_ in ("dns", "empty", "status"):
        yield "volcanoes", {}, (fault("SmithsonianGVP.*", kind_),)
        gone = tuple(fault(name, "dns") for name in ("NASA.*", "GDACS.*"))
        yield "volcanoes", {}, (fault("SmithsonianGVP.*", kind_), *gone)
        yield "volcanoes", {}, (fault("SmithsonianGVP.*", kind_), *gone, fault("USGS.elevated_volcanoes", "empty"))


def all_cases() -> Iterator[Case]:
    """Every case: the named ones, one source at fault, two, and all."""
    yield from named_cases()
    for operation in all_tools():
        if not operation.sources or operation.name in UNTOLD:
            continue
        names = list(dict.fromkeys(source.name for source in operation.sources))
        for arguments in VARIANTS.get(operation.name, ((),)):
            for scenario, warm in product(SCENARIOS, (False, True)):
                for faults in _combinations(names, warm):
                    yield Case(operation.name, arguments, faults, warm, scenario)


def _combinations(names: list[str], warm: bool) -> Iterator[tuple[Fault, ...]]:
    """Each source, each two in a row, and all of them.

    A number that is wrong by a factor is known by what it was before, or by what others say: there is no such case on
    an engine that has heard nothing yet, and none in which everybody says the same.
    """
    every = [[Fault(name, kind, given, since) for name in names] for kind, given, since in KINDS if is_told(kind, warm)]
    for of_kind in every:
        yield from ((each,) for each in of_kind)
    for of_kind in (each for each in every if each[0].kind in WRONG):
        if of_kind[0].kind != "jump":
            yield tuple(of_kind)
        yield from ((Fault(first.match, "dns"), second) for first, second in pairwise(of_kind))
    yield tuple(every[-4])


def is_told(kind: str, warm: bool) -> bool:
    return warm or kind != "jump"


def seeded_cases(seed: int, share: float = 0.1) -> list[Case]:
    """A share of all cases, chosen by a seed; the named ones are always among them."""
    named = dict.fromkeys(named_cases())
    rest = [case for case in dict.fromkeys(all_cases()) if case not in named]
    return [*named, *random.Random(seed).sample(rest, int(len(rest) * share))]
