"""The mutants of truth: proofs removed, filters dropped, times taken from the clock, degraded answers that live long.

Those of the engine are seen by the test file of their module. Those of the tools are seen by the oracle: the test is
then `oracle:TOOL`, which judges the named cases of that tool.
"""

from tests.mutants.faults import Mutant, fault

ALIVE = 'proof=Proof.harmless("a mutant that takes every answer for the truth")'
NEVER = "if False:"


def lie(file: str, name: str, text: str, becomes: str, tool: str) -> Mutant:
    """A mutant that the named cases of a tool must see."""
    return Mutant(name, file, text, becomes, f"oracle:{tool}")


PROOF, FRESHNESS, CACHE = (
    "toolserver/upstream/source.py",
    "toolserver/upstream/freshness.py",
    "toolserver/upstream/cache.py",
)
FETCHER = "toolserver/upstream/fetcher.py"
SIZES, LENGTHS = "toolserver/upstream/outlier_guard.py", "tests/upstream/test_size_guard.py"
PROVENANCE = "toolserver/context/provenance.py"

ENGINE = (
    fault(PROOF, "a proof may be of any age", "if (now - time).total_seconds() > (self.within_s or 0):", NEVER),
    fault(PROOF, "what has no time proves itself", 'raise SourceUnproved(f"no {self.how} proves it")', "return"),
    fault(
        PROOF, "one provider's nothing is believed", 'raise SourceUnproved("nothing in the answer proves it")', "return"
    ),
    fault(
        PROOF,
        "a record of no rows counts as something",
        'value[0] if hasattr(value, "_fields") and value else value',
        "value",
    ),
    fault(PROOF, "an item stands for a missing stamp", 'stamp if self.how == "stamp" else newest', "stamp or newest"),
    fault(PROOF, "a proof without a limit", 'if self.how in ("stamp", "newest") and not self.within_s:', NEVER),
    fault(
        "toolserver/upstream/source.py",
        "an empty source without proof",
        "if self.least == 0 and self.proof is None:",
        NEVER,
    ),
    fault(FETCHER, "no proof is asked for", "if source.proof is not None:", NEVER),
    fault(FETCHER, "how old a document is does not matter", "        judge_times(source, parsed.dated, now)\n", ""),
    fault(
        FRESHNESS,
        "a kept answer of old things is fresh",
        "SourceFreshness(age, too_old or frozen)",
        "SourceFreshness(age, too_old)",
    ),
    fault(FRESHNESS, "no answer is too old", 'raise SourceFrozen(f"newest is from {dated:%Y-%m-%d %H:%M}")', "return"),
    fault(
        FRESHNESS,
        "what stands still is always new",
        "if standing is None or standing.value != moving:",
        "if True:",
    ),
    fault(FRESHNESS, "what moves may stand for an hour", "STILL_S = 300.0", "STILL_S = 3600.0"),
    fault(SIZES, "three rows of fifty are a list", "and count < SHARE * usual", "and False", LENGTHS),
    fault(
        SIZES,
        "two of usually three are too few",
        "usual is not None and usual >= LEAST_USUAL and",
        "usual is not None and",
        LENGTHS,
    ),
    fault(SIZES, "any other provider agrees", "listed == source.lists and name != source.name and", "", LENGTHS),
    fault(SIZES, "a short list is the usual one at once", "CHANGED_S = 2 * 86400.0", "CHANGED_S = 0.0", LENGTHS),
    fault(
        CACHE,
        "nobody counts the rows",
        "        if is_usual:\n            self.size_guard",
        "        if False:\n            self.size_guard",
    ),
    fault(CACHE, "nobody learns which members are usual", "            if is_usual:\n", "            if False:\n"),
    fault(
        CACHE,
        "jumps are not looked for",
        "        self.outlier_guard.check(source, answer.value, answer.fetched_at)\n",
        "",
    ),
    fault(
        "toolserver/context/context.py",
        "unproved is called unavailable",
        'code = "unproved_empty"',
        'code = "section_unavailable"',
    ),
    fault(
        PROVENANCE,
        "an unproved answer lives long",
        '"section_unavailable",\n        "unproved_empty",\n        "stale_data",\n        "partial"',
        '"section_unavailable",\n        "stale_data",\n        "partial"',
    ),
    fault(
        "toolserver/calls/response_cache.py",
        "max-age is not shortened",
        "DEGRADED_S if notes.degraded else ttl_s",
        "ttl_s",
    ),
    fault(
        "toolserver/context/fallback.py",
        "a proof that fails is not noted",
        "        reading.note_failure(answers[1])\n",
        "",
        "tests/context/test_gather.py",
    ),
)

QUAKES, SPOT, GAS = "tools/shared/quakes.py", "tools/shared/spot.py", "tools/shared/gas.py"
DISASTERS = "tools/shared/disasters.py"

TOOLS = (
    lie(
        "tools/shared/alerts.py",
        "alerts that are over are listed",
        '"Cancel" and (a.ends or a.expires) > now',
        '"Cancel"',
        "climate_weather_alerts",
    ),
    lie(
        "tools/sources/nws.py",
        "the national list may be of any day",
        "newest_max_s=STAMP_S,\n        least=0,\n        proof=Proof.by_stamp(STAMP_S)",
        f"least=0,\n        {ALIVE}",
        "climate_weather_alerts",
    ),
    lie(
        "tools/sources/noaa.py",
        "the map of warnings may be a day old",
        "Proof.by_newest(HOUR)",
        "Proof.by_newest(24 * HOUR)",
        "severe_weather",
    ),
    lie(
        "tools/sources/usgs.py",
        "the feed of earthquakes may be of any day",
        "newest_max_s=STAMP_S[period],\n        least=0,\n        proof=Proof.by_stamp(STAMP_S[period])",
        f"least=0,\n        {ALIVE}",
        "premium_world_deltas",
    ),
    lie(GAS, "a block of yesterday is the newest", "if now - mined_at > OLDEST:", NEVER, "gas"),
    lie(
        GAS,
        "as_of is the time of the read",
        "living(time_of(history.newest_block, header), obtained_at(reading))",
        "obtained_at(reading)",
        "gas",
    ),
    lie(
        SPOT,
        "candles that stand still prove a price",
        "    if isinstance(candles, SourceFrozen):\n        reading",
        "    if False:\n        reading",
        "btc_price",
    ),
    lie(
        SPOT,
        "a ticker needs no candles of its time",
        "if not is_of_today(ticker.last, ticker.volume, candles):",
        NEVER,
        "btc_price",
    ),
    lie(
        "tools/shared/front_page.py",
        "a front page may be of any day",
        "if now is None or newest is None or now - newest > YOUNG:",
        NEVER,
        "tech_news",
    ),
    lie(
        DISASTERS,
        "the grave disasters may be of any day",
        "require_living(await reading.read(EVENT_LIST, grave), now, GRAVE_SEEN)",
        "await reading.read(EVENT_LIST, grave)",
        "disaster_alerts",
    ),
)

LIES = (
    *ENGINE,
    *TOOLS,
    Mutant(
        "a day may be without earthquakes",
        QUAKES,
        "if len(of_the_day) < LEAST_A_DAY:",
        NEVER,
        "tests/tools/shared/test_quakes.py",
    ),
    Mutant(
        "the other catalogue may be hours old",
        QUAKES,
        "if newest is None or newest < now - NEWEST:",
        NEVER,
        "tests/tools/shared/test_quakes.py",
    ),
)
