"""The types of the tools. Written by `toolserver docs` from the registry: change a tool, not this file."""

from typing import Any, Literal, NotRequired, TypedDict

from toolserver.client.answer import ToolAnswer

class BriefingSectionsCrypto(TypedDict):
    price_usd: float
    change_24h_percent: float | None
    volume_24h_usd: float | None
    quote: Literal["USD", "USDT"]

class BriefingSectionsFearGreed(TypedDict):
    value: int
    label: str

class BriefingSectionsEarthquakesLatest(TypedDict):
    magnitude: float
    location: str
    time: str

class BriefingSectionsEarthquakes(TypedDict):
    count: int
    latest: BriefingSectionsEarthquakesLatest | None

class BriefingSectionsPredictions(TypedDict):
    question: str
    yes_percent: float
    no_percent: float
    volume_usd: float
    source: str
    url: str | None
    ends_at: str | None
    change_1h_points: float | None
    change_24h_points: float | None
    liquidity_usd: float | None

class BriefingSectionsNews(TypedDict):
    rank: int
    id: int
    title: str
    url: str
    score: int
    comments: int
    author: str | None
    time: str
    discussion_url: str

class BriefingSectionsServices(TypedDict):
    name: str
    status: Literal["operational", "maintenance", "degraded", "partial_outage", "major_outage", "unknown"]
    description: str
    url: str
    checked_at: str | None

class BriefingSections(TypedDict):
    crypto: BriefingSectionsCrypto | None
    fear_greed: BriefingSectionsFearGreed | None
    earthquakes: BriefingSectionsEarthquakes | None
    predictions: list[BriefingSectionsPredictions] | None
    news: list[BriefingSectionsNews] | None
    services: list[BriefingSectionsServices] | None

class Warning(TypedDict):
    section: str
    source: NotRequired[str]
    code: Literal["section_unavailable", "unproved_empty", "stale_data", "partial", "fallback_used", "degraded_fallback", "field_missing", "missing_symbols", "disagreement", "implausible_jump", "change_not_removed", "truncated", "rows_dropped", "own_network_suspect", "no_network", "licence_excluded", "insufficient_sample", "incomplete_window", "default_location", "low_balance"]
    message: str
    total: NotRequired[int]
    count: NotRequired[int]

class SourceUse(TypedDict):
    name: str
    section: str
    status: Literal["live", "cached", "fallback", "stale", "error"]
    fetched_at: NotRequired[str | None]
    reason: NotRequired[str]
    replaces: NotRequired[str]

class Meta(TypedDict):
    sources: NotRequired[list[SourceUse]]
    attribution: list[str]
    untrusted_text: bool
    sources_digest: NotRequired[str]
    stale: bool
    simulated: NotRequired[bool]
    credits_remaining: NotRequired[int]
    credits_charged: NotRequired[int]
    receipt_id: NotRequired[str]

class BriefingPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    generated_at: str | None
    summary: str | None
    sections: BriefingSections | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class BtcPriceData(TypedDict):
    price_usd: float
    change_24h_percent: float | None
    high_24h: float | None
    low_24h: float | None
    volume_24h_usd: float | None
    venue: str
    quote: Literal["USD", "USDT"]
    symbol: str
    name: str

class BtcPricePayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: BtcPriceData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class EarthquakesDataEarthquakes(TypedDict):
    magnitude: float
    location: str
    time: str
    depth_km: float | None
    lat: float | None
    lon: float | None
    id: str
    url: str | None

class EarthquakesData(TypedDict):
    count: int
    earthquakes: list[EarthquakesDataEarthquakes]

class EarthquakesPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: EarthquakesData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class FindToolsDataTools(TypedDict):
    name: str
    title: str
    description: str
    tier: Literal["free", "premium", "payment", "account"]
    cost_credits: int
    input_schema: dict[str, Any]
    rest: str
    arguments_in: dict[str, Literal["path", "query", "body"]]
    mcp: str

class FindToolsData(TypedDict):
    query: str | None
    tools: list[FindToolsDataTools]

class FindToolsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: FindToolsData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ForexDataPrevious(TypedDict):
    date: str
    rates: dict[str, float]

class ForexData(TypedDict):
    base: Literal["USD"]
    date: str
    rates: dict[str, float]
    previous: ForexDataPrevious | None
    change_percent: dict[str, float] | None
    kind: Literal["ecb_reference", "market_mid"]

class ForexPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: ForexData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ServiceStatusData(TypedDict):
    name: str
    status: Literal["operational", "maintenance", "degraded", "partial_outage", "major_outage", "unknown"]
    description: str
    url: str
    checked_at: str | None

class ServiceStatusPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[ServiceStatusData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class StocksQuote(TypedDict):
    symbol: str
    price: float
    change_percent: float
    change: float
    previous_close: float
    name: str | None
    as_of: str | None
    delayed: bool | None
    stale: bool

class StocksData(TypedDict):
    gainers: list[StocksQuote]
    losers: list[StocksQuote]
    indices: list[StocksQuote]
    quotes: list[StocksQuote]
    unknown_symbols: list[str]

class StocksPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: StocksData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class TechNewsData(TypedDict):
    rank: int
    id: int
    title: str
    url: str
    score: int
    comments: int
    author: str | None
    time: str
    discussion_url: str

class TechNewsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[TechNewsData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class WeatherDataCurrent(TypedDict):
    time: str
    temperature_f: float
    apparent_temperature_f: float | None
    weather_code: int | None
    condition: str
    wind_speed_mph: float
    wind_direction_deg: int | None
    humidity_percent: int
    precipitation_in: float | None
    local_time: str | None
    temperature_c: NotRequired[float | None]
    apparent_temperature_c: NotRequired[float | None]
    wind_speed_kph: NotRequired[float | None]
    precipitation_mm: NotRequired[float | None]

class WeatherDataHourly(TypedDict):
    time: str
    temperature_f: float
    weather_code: int | None
    condition: str
    wind_speed_mph: float
    humidity_percent: int | None
    precipitation_probability_percent: int | None
    local_time: str | None
    temperature_c: NotRequired[float | None]
    wind_speed_kph: NotRequired[float | None]

class WeatherData(TypedDict):
    lat: float
    lon: float
    place: str | None
    timezone: str
    default_location: bool
    current: WeatherDataCurrent
    hourly: list[WeatherDataHourly]
    units: dict[str, str]

class WeatherPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: WeatherData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class AiStatsDataAgents(TypedDict):
    name: str
    hits: int

class AiStatsDataRecentCalls(TypedDict):
    endpoint: str
    agent: str
    at: str
    status: int
    tier: str

class AiStatsData(TypedDict):
    window: Literal["24h"]
    total_hits: int
    unique_agents: int
    agents: list[AiStatsDataAgents]
    recent_calls: list[AiStatsDataRecentCalls]
    since: str

class AiStatsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: AiStatsData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class AirQualityDataStation(TypedDict):
    name: str
    distance_km: float
    pollutant: str

class AirQualityData(TypedDict):
    lat: float
    lon: float
    place: str | None
    default_location: bool
    time: str | None
    us_aqi: int | None
    us_aqi_method: Literal["24h_mean", "nowcast", None]
    us_aqi_band: Literal["good", "moderate", "unhealthy_sensitive", "unhealthy", "very_unhealthy", "hazardous", None]
    european_aqi: int | None
    pm2_5: float | None
    pm10: float | None
    ozone: float | None
    nitrogen_dioxide: float | None
    sulphur_dioxide: float | None
    carbon_monoxide: float | None
    unit: Literal["\u00b5g/m\u00b3"]
    station: AirQualityDataStation | None

class AirQualityPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: AirQualityData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ChainNetworkData(TypedDict):
    tps: float
    tpsAvg: float
    tpsTotal: float
    slot: int
    slotMs: float
    epoch: int
    epochProgress: float
    includesVotes: bool
    as_of: str

class ChainNetworkPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: ChainNetworkData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ClimateEarthquakesData(TypedDict):
    id: str
    magnitude: float | None
    place: str
    time: str
    depth_km: float | None
    lat: float | None
    lon: float | None
    type: str
    tsunami: bool | None
    url: str | None
    magnitude_type: str | None
    status: str | None

class ClimateEarthquakesFilters(TypedDict):
    magnitude: Literal["significant", "4.5", "2.5", "1.0", "all"]
    period: Literal["hour", "day", "week", "month"]

class ClimateEarthquakesPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[ClimateEarthquakesData] | None
    count: int | None
    next_cursor: str | None
    filters: ClimateEarthquakesFilters | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ClimateWeatherAlertsData(TypedDict):
    id: str
    event: str
    severity: Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown"]
    urgency: Literal["Immediate", "Expected", "Future", "Past", "Unknown"]
    certainty: Literal["Observed", "Likely", "Possible", "Unlikely", "Unknown"]
    message_type: str
    headline: str | None
    description: str | None
    areaDesc: str
    sent: str
    effective: str
    expires: str
    ends: str | None
    sender_name: str | None
    web: str | None

class ClimateWeatherAlertsFilters(TypedDict):
    area: str | None
    event: str | None
    severity: Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown", None]
    urgency: Literal["Immediate", "Expected", "Future", "Past", "Unknown", None]
    status: Literal["Actual", "Exercise", "System", "Test", "Draft"]
    limit: int

class ClimateWeatherAlertsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[ClimateWeatherAlertsData] | None
    count: int | None
    total_matching: int | None
    next_cursor: str | None
    filters: ClimateWeatherAlertsFilters | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class CodeHostTrendingData(TypedDict):
    name: str
    full_name: str
    description: str | None
    url: str
    language: str | None
    stars: int | None
    forks: int | None
    topics: list[str] | None
    license: str | None
    owner_type: str | None
    created_at: str | None
    age_days: float | None
    stars_per_day: float | None

class CodeHostTrendingPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[CodeHostTrendingData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class CryptoMoversData(TypedDict):
    symbol: str
    name: str
    price_usd: float
    change_24h_percent: float
    market_cap_usd: float | None
    volume_24h_usd: float | None
    rank: int
    image: str | None

class CryptoMoversPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[CryptoMoversData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class CyberThreatsData(TypedDict):
    source: Literal["URLhaus", "ThreatFox", "CISA KEV", "Feodo Tracker", "OpenPhish"]
    type: Literal["malware_url", "ioc", "exploited_vulnerability", "c2_server", "phishing_url"]
    indicator: str
    ioc_type: str | None
    threat: str | None
    date: str | None
    severity_note: str | None
    reference: str | None

class CyberThreatsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[CyberThreatsData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class DisasterAlertsData(TypedDict):
    id: str
    type: Literal["earthquake", "tropical_cyclone", "flood", "volcano", "wildfire", "drought", "tsunami", "storm"]
    name: str
    alert_level: Literal["green", "orange", "red", None]
    present_alert_level: Literal["green", "orange", "red", None]
    country: str | None
    severity_text: str | None
    started_at: str
    ended_at: str | None
    current: bool | None
    lat: float | None
    lon: float | None
    url: str | None
    source: str

class DisasterAlertsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[DisasterAlertsData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class EconomicDataFigure(TypedDict):
    value: float
    date: str
    unit: str
    previous: float | None
    previous_date: str | None
    change: float | None
    yoy_percent: float | None
    source: str

class EconomicDataData(TypedDict):
    fed_rate: EconomicDataFigure | None
    cpi: EconomicDataFigure | None
    unemployment: EconomicDataFigure | None
    gdp_growth: EconomicDataFigure | None
    treasury_10y: EconomicDataFigure | None
    treasury_2y: EconomicDataFigure | None
    mortgage_30y: EconomicDataFigure | None
    yield_curve_2s10s: EconomicDataFigure | None

class EconomicDataPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: EconomicDataData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ExposureLookupDataResults(TypedDict):
    ip: str
    name: str | None
    indexed: bool
    ports: list[int]
    cves: list[str]
    hostnames: list[str]
    tags: list[str]
    cpes: list[str]
    checked_at: str

class ExposureLookupData(TypedDict):
    mode: Literal["single", "curated"]
    results: list[ExposureLookupDataResults]

class ExposureLookupPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: ExposureLookupData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class FearGreedData(TypedDict):
    value: int
    label: str
    index: Literal["alternative.me", "coinmarketcap"]
    as_of: str
    previous_value: int | None
    next_update_at: str | None

class FearGreedPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: FearGreedData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class FundingRatesDataTop(TypedDict):
    venue: Literal["binance", "bybit", "hyperliquid", "dydx", "okx"]
    symbol: str
    period_rate: float
    period_hours: float
    annualized_percent: float
    mark_price: float | None
    next_funding_time: str | None
    predicted: bool
    settled: Literal[False]

class FundingRatesDataVenues(TypedDict):
    name: Literal["binance", "bybit", "hyperliquid", "dydx", "okx"]
    status: Literal["ok", "predicted", "replaced", "unavailable"]
    markets: int | None

class FundingRatesData(TypedDict):
    top: list[FundingRatesDataTop]
    venues: list[FundingRatesDataVenues]

class FundingRatesPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: FundingRatesData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class GamePlatformTopData(TypedDict):
    rank: int
    app_id: int
    name: str
    players_now: int | None
    peak_today: int | None
    peak_yesterday: int | None
    url: str

class GamePlatformTopPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[GamePlatformTopData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class GasData(TypedDict):
    low: float
    standard: float
    fast: float
    base_fee: float | None
    unit: Literal["gwei"]
    block: int | None
    as_of: str
    method: Literal["fee_history", "explorer"]

class GasPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: GasData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class HarnessesDataBenchmarksResults(TypedDict):
    id: str
    harness: str
    model: str | None
    score: float
    reported_at: str | None
    verified: bool | None
    source_url: str | None

class HarnessesDataBenchmarks(TypedDict):
    id: str
    name: str
    unit: str
    source_url: str
    licence: str
    as_of: str
    caveat: str
    results: list[HarnessesDataBenchmarksResults]

class HarnessesFreshness(TypedDict):
    checked_at: str | None
    newest_result: str | None

class HarnessesData(TypedDict):
    view: Literal["raw"]
    generated_at: str
    schema_version: Literal[2]
    benchmarks: list[HarnessesDataBenchmarks]
    freshness: HarnessesFreshness

class HarnessesDataBenchmarksTop(TypedDict):
    harness: str
    model: str | None
    score: float

class HarnessesDataBenchmarks2(TypedDict):
    id: str
    name: str
    unit: str
    top: HarnessesDataBenchmarksTop

class HarnessesCombined(TypedDict):
    harness: str
    model: str
    combined_score: float
    benchmarks: int
    coverage: float

class HarnessesScored(TypedDict):
    harness: str
    score: float

class HarnessesGap(TypedDict):
    benchmark: str
    model: str
    best: HarnessesScored
    worst: HarnessesScored
    delta: float

class HarnessesData2(TypedDict):
    view: Literal["summary"]
    generated_at: str
    benchmarks: list[HarnessesDataBenchmarks2]
    top_combined: list[HarnessesCombined]
    biggest_gaps: list[HarnessesGap]
    freshness: HarnessesFreshness

class HarnessesData3(TypedDict):
    view: Literal["gaps"]
    generated_at: str
    gaps: list[HarnessesGap]

class HarnessesData4(TypedDict):
    view: Literal["combined"]
    generated_at: str
    leaderboard: list[HarnessesCombined]

class HarnessesPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: HarnessesData | HarnessesData2 | HarnessesData3 | HarnessesData4 | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class HealthData(TypedDict):
    status: Literal["ok", "degraded"]
    version: str
    uptime: int
    ts: int

class HealthPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: HealthData | None
    status: Literal["ok", "degraded", None]
    version: str | None
    uptime: int | None
    ts: int | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class HumansInSpaceDataPeople(TypedDict):
    name: str
    craft: str
    agency: str | None

class HumansInSpaceData(TypedDict):
    count: int
    people: list[HumansInSpaceDataPeople]
    as_of: str
    as_of_kind: Literal["checked", "newest_launch"]

class HumansInSpacePayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: HumansInSpaceData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class InternetPulseData(TypedDict):
    name: str
    latency_ms: int

class InternetPulsePayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[InternetPulseData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class LaunchesData(TypedDict):
    id: str
    name: str
    provider: str | None
    vehicle: str | None
    mission: str | None
    mission_type: str | None
    status: str
    status_code: str | None
    scheduled_time: str | None
    time_precision: Literal["second", "minute", "hour", "day", "month", "unknown"]
    window_start: str | None
    window_end: str | None
    pad: str | None
    location: str | None
    lat: float | None
    lon: float | None
    url: str | None
    date_text: str | None

class LaunchesPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[LaunchesData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ModelHubTrendingData(TypedDict):
    id: str
    author: str | None
    name: str
    likes: int
    downloads: int | None
    pipeline: str | None
    url: str
    updated: str | None

class ModelHubTrendingPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[ModelHubTrendingData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class PaymentNoChargeStatsEvents(TypedDict):
    seq: int | None
    ts: str
    reason: str
    endpoint: str
    credits: int
    receipt_sha256: str | None

class PaymentNoChargeStatsLog(TypedDict):
    origin: str
    size: int
    root: str
    waiting: int

class PaymentNoChargeStatsDates(TypedDict):
    date: str
    count: int

class PaymentNoChargeStatsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    date: str | None
    count: int | None
    credits_skipped: int | None
    by_reason: dict[str, int] | None
    by_endpoint: dict[str, int] | None
    events: list[PaymentNoChargeStatsEvents] | None
    log: PaymentNoChargeStatsLog | None
    dates: list[PaymentNoChargeStatsDates] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class PredictionsData(TypedDict):
    question: str
    yes_percent: float
    no_percent: float
    volume_usd: float
    source: str
    url: str | None
    ends_at: str | None
    change_1h_points: float | None
    change_24h_points: float | None
    liquidity_usd: float | None

class PredictionsPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[PredictionsData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class ReceiptVerifyReceipt(TypedDict):
    signature: str
    key_id: str

class ReceiptVerifyChecks(TypedDict):
    format: bool | None
    key_known: bool | None
    signature: bool | None
    key_time: bool | None
    body: bool | None
    in_log: bool | None

class ReceiptVerifyPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    valid: bool | None
    checks: ReceiptVerifyChecks | None
    key_id: str | None
    core: dict[str, Any] | None
    error: NotRequired[str | None]
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class SevereWeatherDataCountsBySeverity(TypedDict):
    Extreme: int
    Severe: int
    Moderate: int
    Minor: int
    Unknown: int

class SevereWeatherDataTop(TypedDict):
    id: str
    event: str
    severity: Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown"]
    urgency: Literal["Immediate", "Expected", "Future", "Past", "Unknown"]
    certainty: Literal["Observed", "Likely", "Possible", "Unlikely", "Unknown"]
    score: float
    area: str
    headline: str | None
    effective: str
    expires: str
    ends: str | None
    sender: str | None
    category: str
    url: str | None

class SevereWeatherData(TypedDict):
    total_active: int
    counts_by_severity: SevereWeatherDataCountsBySeverity
    top: list[SevereWeatherDataTop]

class SevereWeatherPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: SevereWeatherData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class SpaceWeatherDataActiveAlerts(TypedDict):
    product_id: str
    code: str | None
    kind: Literal["alert", "warning", "watch", "summary"]
    title: str
    issued_at: str
    valid_to: str | None
    message: str

class SpaceWeatherData(TypedDict):
    kp_index: float | None
    kp_time: str | None
    kp_estimated: float | None
    kp_estimated_time: str | None
    storm_level: Literal["quiet", "minor", "moderate", "strong", "severe", "extreme", None]
    solar_wind_speed_kms: float | None
    solar_wind_density_cm3: float | None
    solar_wind_time: str | None
    flare_peak_class_24h: str | None
    flare_class_letter: Literal["A", "B", "C", "M", "X", None]
    flare_peak_time: str | None
    active_alerts: list[SpaceWeatherDataActiveAlerts] | None

class SpaceWeatherPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: SpaceWeatherData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class VolcanoesData(TypedDict):
    name: str
    country: str | None
    summary: str | None
    link: str
    category: str | None
    report_period: str | None
    published_at: str | None
    vnum: str | None
    lat: float | None
    lon: float | None
    us_alert_level: str | None
    us_color_code: str | None
    source: str

class VolcanoesPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: list[VolcanoesData] | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class WildfiresDataTop(TypedDict):
    lat: float
    lon: float
    frp_mw: float
    confidence: Literal["low", "nominal", "high"]
    detected_at: str
    satellite: str
    daynight: Literal["D", "N", None]
    approx_state: str | None

class WildfiresDataIncidents(TypedDict):
    name: str
    state: str | None
    acres: float | None
    contained_percent: float | None
    discovered_at: str | None

class WildfiresData(TypedDict):
    window_hours: Literal[24]
    total_detections: int
    by_satellite: dict[str, int]
    top: list[WildfiresDataTop]
    incidents: list[WildfiresDataIncidents] | None

class WildfiresPayload(TypedDict):
    source: str
    endpoint: str
    updated_at: str | None
    data: WildfiresData | None
    stale: bool
    warning: NotRequired[list[Warning]]
    _meta: Meta

class PremiumAgentContextContextDatetime(TypedDict):
    iso: str
    unix_ms: int
    human_readable_utc: str
    weekday: str

class PremiumAgentContextContextMarketsBtc(TypedDict):
    price_usd: float
    change_24h_percent: float | None
    volume_24h: float | None
    quote: Literal["USD", "USDT"]
    as_of: str

class PremiumAgentContextContextMarketsCryptoFearGreed(TypedDict):
    value: int
    label: str
    source: Literal["alternative.me", "coinmarketcap"]
    as_of: str

class PremiumAgentContextContextMarketsVix(TypedDict):
    value: float
    change_percent: float | None
    source: str
    freshness: Literal["delayed", "real_time", "previous_close"]
    as_of: str | None

class PremiumAgentContextContextMarketsFedFundsRate(TypedDict):
    value: float
    as_of: str
    target_from: float | None
    target_to: float | None

class PremiumAgentContextContextMarketsForexUsdBase(TypedDict):
    EUR: float | None
    JPY: float | None
    GBP: float | None
    CHF: float | None
    date: str
    kind: Literal["ecb_reference", "market_mid"]

class PremiumAgentContextContextMarkets(TypedDict):
    btc: PremiumAgentContextContextMarketsBtc | None
    crypto_fear_greed: PremiumAgentContextContextMarketsCryptoFearGreed | None
    vix: PremiumAgentContextContextMarketsVix | None
    fed_funds_rate: PremiumAgentContextContextMarketsFedFundsRate | None
    forex_usd_base: PremiumAgentContextContextMarketsForexUsdBase | None

class PremiumAgentContextContextWorldEventsSignificantEarthquakes24h(TypedDict):
    magnitude: float
    place: str
    time: str
    url: str | None

class PremiumAgentContextContextWorldEventsUpcomingSpaceLaunches(TypedDict):
    mission: str
    vehicle: str | None
    provider: str | None
    net: str | None
    time_precision: Literal["second", "minute", "hour", "day", "month", "unknown"]
    status: str

class PremiumAgentContextContextWorldEventsNewsFrontPageTop5(TypedDict):
    title: str
    points: int
    comments: int
    url: str

class PremiumAgentContextContextWorldEventsPredictionMarketsTop3(TypedDict):
    question: str
    yes_probability: float
    volume_24h: float
    url: str | None

class PremiumAgentContextContextWorldEvents(TypedDict):
    significant_earthquakes_24h: list[PremiumAgentContextContextWorldEventsSignificantEarthquakes24h] | None
    upcoming_space_launches: list[PremiumAgentContextContextWorldEventsUpcomingSpaceLaunches] | None
    news_front_page_top5: list[PremiumAgentContextContextWorldEventsNewsFrontPageTop5] | None
    prediction_markets_top3: list[PremiumAgentContextContextWorldEventsPredictionMarketsTop3] | None

class PremiumAgentContextContextInfrastructureDetails(TypedDict):
    GitHub: Literal["operational", "minor issues", "major issues", "critical", "maintenance", "unknown"]
    Cloudflare: Literal["operational", "minor issues", "major issues", "critical", "maintenance", "unknown"]
    OpenAI: Literal["operational", "minor issues", "major issues", "critical", "maintenance", "unknown"]
    Anthropic: Literal["operational", "minor issues", "major issues", "critical", "maintenance", "unknown"]

class PremiumAgentContextContextInfrastructure(TypedDict):
    summary: str
    details: PremiumAgentContextContextInfrastructureDetails
    all_operational: bool

class PremiumAgentContextContext(TypedDict):
    datetime: PremiumAgentContextContextDatetime
    markets: PremiumAgentContextContextMarkets
    world_events: PremiumAgentContextContextWorldEvents
    infrastructure: PremiumAgentContextContextInfrastructure

class PremiumAgentContextPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    context: PremiumAgentContextContext
    system_prompt: str
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumBriefingSectionsBtc(TypedDict):
    price_usd: float
    change_24h_percent: float | None
    volume_24h: float | None
    high_24h: float | None
    low_24h: float | None
    venue: str
    quote: Literal["USD", "USDT"]

class PremiumBriefingSectionsFearGreed(TypedDict):
    value: int
    label: str
    source: Literal["alternative.me", "coinmarketcap"]

class PremiumBriefingSectionsEarthquakesLatest(TypedDict):
    magnitude: float
    place: str
    time: int

class PremiumBriefingSectionsEarthquakes(TypedDict):
    count: int
    latest: PremiumBriefingSectionsEarthquakesLatest | None

class PremiumBriefingSectionsTechNews(TypedDict):
    top_story_count: int

class PremiumBriefingSectionsHumansInSpace(TypedDict):
    count: int
    names: list[str]

class PremiumBriefingSectionsPredictionsTopOutcomes(TypedDict):
    name: str
    price: float

class PremiumBriefingSectionsPredictionsTop(TypedDict):
    question: str
    volume_24hr: float
    outcomes: list[PremiumBriefingSectionsPredictionsTopOutcomes]

class PremiumBriefingSectionsPredictions(TypedDict):
    count: int
    top: list[PremiumBriefingSectionsPredictionsTop]

class PremiumBriefingSections(TypedDict):
    btc: NotRequired[PremiumBriefingSectionsBtc | None]
    fear_greed: NotRequired[PremiumBriefingSectionsFearGreed | None]
    earthquakes: NotRequired[PremiumBriefingSectionsEarthquakes | None]
    tech_news: NotRequired[PremiumBriefingSectionsTechNews | None]
    humans_in_space: NotRequired[PremiumBriefingSectionsHumansInSpace | None]
    predictions: NotRequired[PremiumBriefingSectionsPredictions | None]

class PremiumBriefingSeriesBtc24h(TypedDict):
    ts: int
    price: float

class PremiumBriefingSeries(TypedDict):
    btc_24h: list[PremiumBriefingSeriesBtc24h] | None

class PremiumBriefingPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    sections: PremiumBriefingSections
    series: NotRequired[PremiumBriefingSeries | None]
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumCorrelationMatrixAssets(TypedDict):
    symbol: str
    asset_class: Literal["commodity", "rates", "fx"]
    observations: int
    first_date: str | None
    last_date: str | None
    source: str | None

class PremiumCorrelationMatrixPairs(TypedDict):
    a: str
    b: str
    pearson_r: float
    n_observations: int
    relationship: Literal["negligible", "weak", "moderate", "strong"]
    direction: Literal["positive", "negative", "none"]
    pearson_r_yield_diff: float | None
    first_date: str
    last_date: str

class PremiumCorrelationMatrixSampleSize(TypedDict):
    assets_requested: int
    assets_with_data: int
    pairs_computed: int
    data_availability: dict[str, int]

class PremiumCorrelationMatrixPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    window: Literal["30d"]
    method: str
    assets: list[PremiumCorrelationMatrixAssets]
    pairs: list[PremiumCorrelationMatrixPairs]
    matrix: dict[str, dict[str, float | None]]
    sample_size: PremiumCorrelationMatrixSampleSize
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumCryptoDeepCoinsTop50(TypedDict):
    symbol: str
    name: str
    price_usd: float
    change_1h_percent: float | None
    change_24h_percent: float | None
    change_7d_percent: float | None
    market_cap: float | None
    volume_24h: float | None
    rank: int

class PremiumCryptoDeepExchangeTop20Usdt(TypedDict):
    pair: str
    price: float
    change_24h_percent: float | None
    volume_24h: float
    high_24h: float
    low_24h: float
    trades_24h: int | None
    venue: str

class PremiumCryptoDeepNetworkBtcFeesSatPerVb(TypedDict):
    fastest: int
    half_hour: int
    hour: int
    economy: int
    minimum: int
    fastest_exact: float | None
    half_hour_exact: float | None
    hour_exact: float | None
    economy_exact: float | None
    minimum_exact: float | None

class PremiumCryptoDeepNetworkBtcHashrate(TypedDict):
    current_eh_s: float
    current_difficulty: float
    mean_days: int

class PremiumCryptoDeepNetworkBtcMempool(TypedDict):
    count: int
    vsize: int
    total_fee_sat: int

class PremiumCryptoDeepNetworkBtc(TypedDict):
    block_height: int | None
    fees_sat_per_vb: PremiumCryptoDeepNetworkBtcFeesSatPerVb | None
    hashrate: PremiumCryptoDeepNetworkBtcHashrate | None
    mempool: PremiumCryptoDeepNetworkBtcMempool | None

class PremiumCryptoDeepEthGas(TypedDict):
    low_gwei: int
    standard_gwei: int
    fast_gwei: int
    base_fee_gwei: float | None
    last_block: int | None
    low_gwei_exact: float
    standard_gwei_exact: float
    fast_gwei_exact: float

class PremiumCryptoDeepSeriesBtc30d(TypedDict):
    ts: int
    low: float
    high: float
    open: float
    close: float
    volume: float | None

class PremiumCryptoDeepSeries(TypedDict):
    btc_30d: list[PremiumCryptoDeepSeriesBtc30d] | None

class PremiumCryptoDeepPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    coins_top50: list[PremiumCryptoDeepCoinsTop50] | None
    exchange_top20_usdt: list[PremiumCryptoDeepExchangeTop20Usdt] | None
    network_btc: PremiumCryptoDeepNetworkBtc | None
    eth_gas: PremiumCryptoDeepEthGas | None
    series: NotRequired[PremiumCryptoDeepSeries | None]
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumExchangeFlowsBlocksScanned(TypedDict):
    number: int
    time: str
    tx_count: int

class PremiumExchangeFlowsFlowsByExchange(TypedDict):
    exchange: str
    inflow_eth: float
    outflow_eth: float
    net_eth: float
    inflow_count: int
    outflow_count: int
    inflow_usd: int | None
    outflow_usd: int | None
    net_usd: int | None

class PremiumExchangeFlowsRecentTransfers(TypedDict):
    tx_hash: str
    direction: Literal["inflow", "outflow", "inter_exchange", "internal"]
    exchange: str
    counterparty: str | None
    counterparty_exchange: str | None
    value_eth: float
    value_usd: int | None
    block_number: int
    block_time: str
    explorer_url: str

class PremiumExchangeFlowsAggregate(TypedDict):
    transfer_count: int
    inter_exchange_count: int
    total_inflow_eth: float
    total_outflow_eth: float
    net_flow_eth: float
    net_flow_usd: int | None
    bias: Literal["inflow_dominant", "outflow_dominant", "balanced"]

class PremiumExchangeFlowsThreshold(TypedDict):
    min_eth: int
    balanced_rule: str
    rationale: str

class PremiumExchangeFlowsPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    spot_eth_usd: float | None
    blocks_scanned: list[PremiumExchangeFlowsBlocksScanned]
    flows_by_exchange: list[PremiumExchangeFlowsFlowsByExchange]
    recent_transfers: list[PremiumExchangeFlowsRecentTransfers]
    aggregate: PremiumExchangeFlowsAggregate
    threshold: PremiumExchangeFlowsThreshold
    exchanges_tracked: list[str]
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumMacroDatedValue(TypedDict):
    date: str
    value: float

class PremiumMacroEconomicFigure(TypedDict):
    value: float | None
    date: str
    source: str
    unit: str
    yoy_percent: NotRequired[float | None]
    series: NotRequired[list[PremiumMacroDatedValue] | None]

class PremiumMacroEconomic(TypedDict):
    fed_rate: PremiumMacroEconomicFigure | None
    cpi: PremiumMacroEconomicFigure | None
    unemployment: PremiumMacroEconomicFigure | None
    gdp_growth: PremiumMacroEconomicFigure | None
    treasury_10y: PremiumMacroEconomicFigure | None

class PremiumMacroForex(TypedDict):
    base: Literal["USD"]
    date: str
    rates: dict[str, float]
    kind: Literal["ecb_reference", "market_mid"]
    series: NotRequired[dict[str, list[PremiumMacroDatedValue]] | None]

class PremiumMacroGoldPriced(TypedDict):
    price_usd: float
    source: str
    as_of: str

class PremiumMacroCommodityPriced(TypedDict):
    price_usd: float
    date: str
    source: str

class PremiumMacroCommodities(TypedDict):
    gold: PremiumMacroGoldPriced | None
    silver: PremiumMacroGoldPriced | None
    oil: PremiumMacroCommodityPriced | None
    nat_gas: PremiumMacroCommodityPriced | None

class PremiumMacroMarketFigure(TypedDict):
    price: float
    change: float
    change_percent: float
    as_of: str | None
    source: str
    freshness: Literal["delayed", "real_time", "previous_close"]

class PremiumMacroMarkets(TypedDict):
    spy: PremiumMacroMarketFigure | None
    dia: PremiumMacroMarketFigure | None
    qqq: PremiumMacroMarketFigure | None
    vix: PremiumMacroMarketFigure | None

class PremiumMacroPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    economic: PremiumMacroEconomic
    forex: PremiumMacroForex | None
    commodities: PremiumMacroCommodities
    markets: PremiumMacroMarkets
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumSentimentMarketIndicesCryptoFearGreed(TypedDict):
    value: int
    label: str
    source: Literal["alternative.me", "coinmarketcap"]

class PremiumSentimentMarketIndicesStocksVix(TypedDict):
    value: float
    change_percent: float
    label: Literal["low_volatility", "normal", "elevated", "high_volatility", "unknown"]
    source: str

class PremiumSentimentMarketIndices(TypedDict):
    crypto_fear_greed: PremiumSentimentMarketIndicesCryptoFearGreed | None
    stocks_vix: PremiumSentimentMarketIndicesStocksVix | None

class PremiumSentimentTrendingSampleHeadlines(TypedDict):
    title: str
    url: str | None
    source: str
    sentiment_signal: Literal["+", "-", "neutral"]

class PremiumSentimentTrending(TypedDict):
    symbol: str
    asset_class: Literal["crypto", "equity", "crypto-equity"]
    mention_count_24h: int
    sources: dict[str, int]
    sentiment_score: float
    sentiment_label: Literal["negative", "moderately_negative", "neutral", "moderately_positive", "positive"]
    sample_headlines: list[PremiumSentimentTrendingSampleHeadlines]
    confidence: Literal["low", "medium", "high"]

class PremiumSentimentPredictionMarketsSignals(TypedDict):
    question: str
    yes_probability: float | None
    volume_24h: float
    url: str | None

class PremiumSentimentSampleSize(TypedDict):
    headlines_scanned: int
    tickers_with_mentions: int
    sources_ok: int
    sources_failed: int
    window_hours: int

class PremiumSentimentPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    market_indices: PremiumSentimentMarketIndices
    trending: list[PremiumSentimentTrending] | None
    prediction_markets_signals: list[PremiumSentimentPredictionMarketsSignals] | None
    sample_size: PremiumSentimentSampleSize
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumWhalesSpotPrices(TypedDict):
    btc_usd: float | None
    eth_usd: float | None

class PremiumWhalesBtcWhalesUnconfirmed(TypedDict):
    tx_hash: str
    value_btc: float
    value_btc_total: float
    value_usd: int | None
    fee_sats: int | None
    vsize: int | None
    fee_sat_per_vb: float | None
    first_seen: str
    confirmed: Literal[False]
    explorer_url: str

PremiumWhalesEthWhalesLatestBlock = TypedDict("PremiumWhalesEthWhalesLatestBlock", {"tx_hash": str, "from": str, "to": str | None, "from_label": str | None, "to_label": str | None, "value_eth": float, "value_usd": int | None, "block_number": int, "block_time": str, "confirmed": Literal[True], "explorer_url": str})

class PremiumWhalesEthBlock(TypedDict):
    number: int
    time: str

class PremiumWhalesEthBlocksScanned(TypedDict):
    number: int
    time: str
    tx_count: int

class PremiumWhalesAggregate(TypedDict):
    btc_whale_count: int | None
    btc_whale_total_btc: float | None
    btc_whale_total_usd: int | None
    eth_whale_count: int | None
    eth_whale_total_eth: float | None
    eth_whale_total_usd: int | None

class PremiumWhalesThresholds(TypedDict):
    btc_min_btc: int
    eth_min_eth: int
    btc_sample_txs: int
    btc_window_s: int
    rationale: str

class PremiumWhalesPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    spot_prices: PremiumWhalesSpotPrices
    btc_whales_unconfirmed: list[PremiumWhalesBtcWhalesUnconfirmed] | None
    eth_whales_latest_block: list[PremiumWhalesEthWhalesLatestBlock] | None
    eth_block: PremiumWhalesEthBlock | None
    eth_blocks_scanned: list[PremiumWhalesEthBlocksScanned]
    aggregate: PremiumWhalesAggregate
    thresholds: PremiumWhalesThresholds
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumWorldDeltasEventsData(TypedDict):
    id: str
    magnitude: float
    place: str
    depth_km: float | None
    lat: float | None
    lon: float | None
    tsunami: bool | None
    mag_type: str | None
    url: str | None
    updated: str | None

class PremiumWorldDeltasEventsData2(TypedDict):
    id: int
    title: str
    url: str
    points: int
    num_comments: int | None
    author: str | None
    created_at: str
    first_seen_at: str

class PremiumWorldDeltasEventsData3(TypedDict):
    id: str
    question: str
    yes_probability: float
    change_1h: float | None
    volume_24h: float
    url: str | None
    source: str

class PremiumWorldDeltasEventsData4(TypedDict):
    id: str
    name: str
    mission: str | None
    vehicle: str | None
    provider: str | None
    status: str
    net: str
    window: Literal["recent", "upcoming"]
    pad: str | None
    url: str | None

class PremiumWorldDeltasEvents(TypedDict):
    type: Literal["earthquake", "tech_news_story", "prediction_market_update", "space_launch"]
    timestamp: str
    severity: Literal["minor", "moderate", "major"]
    data: PremiumWorldDeltasEventsData | PremiumWorldDeltasEventsData2 | PremiumWorldDeltasEventsData3 | PremiumWorldDeltasEventsData4

class PremiumWorldDeltasSampleSize(TypedDict):
    events_in_rolling_hour: int
    events_after_since_filter: int
    sources_ok: int
    sources_failed: int

class PremiumWorldDeltasPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    since: str
    since_clamped: bool
    events: list[PremiumWorldDeltasEvents]
    counts: dict[str, int]
    sample_size: PremiumWorldDeltasSampleSize
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PremiumCodeHostVelocityWindow(TypedDict):
    created_within_days: int
    active_within_days: int

class PremiumCodeHostVelocityTrendingRepos(TypedDict):
    full_name: str
    description: str | None
    url: str
    language: str | None
    topics: list[str]
    license: str | None
    owner: str
    owner_type: Literal["User", "Organization", None]
    stars: int
    forks: int
    open_issues: int
    created_at: str
    pushed_at: str | None
    stars_24h: int | None
    is_ai_ml: bool
    age_days: float
    stars_per_day: float

class PremiumCodeHostVelocityAiMlReposActive30d(TypedDict):
    full_name: str
    description: str | None
    url: str
    language: str | None
    topics: list[str]
    license: str | None
    owner: str
    owner_type: Literal["User", "Organization", None]
    stars: int
    forks: int
    open_issues: int
    created_at: str
    pushed_at: str | None
    stars_24h: int | None
    is_ai_ml: bool

class PremiumCodeHostVelocityByLanguage(TypedDict):
    language: str
    count: int
    total_stars: int

class PremiumCodeHostVelocityByTopic(TypedDict):
    topic: str
    count: int

class PremiumCodeHostVelocityAggregate(TypedDict):
    trending_count: int | None
    total_stars_in_trending: int | None
    ai_ml_in_trending_count: int | None
    ai_ml_share_percent: float | None
    ai_ml_active_30d_count: int | None
    languages_in_trending: int | None
    auth_used: Literal["authenticated", "unauthenticated"]

class PremiumCodeHostVelocityPayload(TypedDict):
    source: str
    endpoint: str
    generated_at: str
    window: PremiumCodeHostVelocityWindow
    trending_repos: list[PremiumCodeHostVelocityTrendingRepos] | None
    ai_ml_repos_active_30d: list[PremiumCodeHostVelocityAiMlReposActive30d] | None
    by_language: list[PremiumCodeHostVelocityByLanguage] | None
    by_topic: list[PremiumCodeHostVelocityByTopic] | None
    aggregate: PremiumCodeHostVelocityAggregate
    notes: dict[str, str]
    warning: NotRequired[list[Warning]]
    captured_at: str | None
    stale: bool
    _meta: Meta

class PaymentBalancePayload(TypedDict):
    credits: int
    issued_at: str
    reissue_at: NotRequired[str | None]
    _meta: NotRequired[dict[str, Any]]

class PaymentBuyCreditsQuote(TypedDict):
    amount_usd: float
    credits: int
    chain: Literal["base"]

class PaymentBuyCreditsPayload(TypedDict):
    wallet: str
    memo: str
    quote: PaymentBuyCreditsQuote
    expires_at: str
    network: Literal["eip155:8453"]
    token_contract: str
    amount_atomic: int
    payment_uri: str
    memo_commitment: str
    instructions: str
    review: NotRequired[str | None]
    _meta: NotRequired[dict[str, Any]]

class PaymentConfirmNext(TypedDict):
    tool: str
    how: str

class PaymentConfirmPayload(TypedDict):
    token: str
    credits: int
    late: bool
    next: PaymentConfirmNext
    _meta: NotRequired[dict[str, Any]]

class PaymentTopupTransfer(TypedDict):
    wallet: str
    memo: str
    amount_atomic: int
    payment_uri: str
    expires_at: str
    review: str | None

class PaymentTopupNext(TypedDict):
    tool: str
    how: str

class PaymentTopupPayload(TypedDict):
    token: str
    credits: int
    transaction: str | None
    network: Literal["eip155:8453"]
    transfer: PaymentTopupTransfer | None
    next: PaymentTopupNext
    _meta: NotRequired[dict[str, Any]]

class AccountStatementEntries(TypedDict):
    at: str
    kind: Literal["purchase", "top_up", "grant", "credit", "call", "reversal", "refund", "taken_back", "withheld", "released", "earlier_calls"]
    credits: int
    call_id: str | None
    endpoint: str | None
    state: Literal["open", "posted", "voided", "reversed", None]
    receipt_id: str | None
    no_charge_reason: str | None
    allowance: str | None
    transaction: str | None

class AccountStatementPayments(TypedDict):
    at: str
    amount_usd: float
    way: Literal["transfer", "x402_topup", "x402_call", "other", "sent"]
    state: Literal["quoted", "pending", "credited", "second", "late", "short", "foreign", "held", "undone", "swept", "refunded"]
    state_since: str
    transaction: str

class AccountStatementPayload(TypedDict):
    credits: int
    entries: list[AccountStatementEntries]
    payments: list[AccountStatementPayments]
    next_cursor: str | None
    _meta: NotRequired[dict[str, Any]]

class AllowanceCreatePayload(TypedDict):
    id: str
    name: str
    credits: int
    spent: int
    spent_today: int
    credits_per_day: int | None
    expires_at: str | None
    tools: list[str] | None
    state: Literal["active", "exhausted", "expired", "revoked"]
    created_at: str
    last_used_at: str | None
    service: str | None
    token: str
    _meta: NotRequired[dict[str, Any]]

class AllowanceListAllowances(TypedDict):
    id: str
    name: str
    credits: int
    spent: int
    spent_today: int
    credits_per_day: int | None
    expires_at: str | None
    tools: list[str] | None
    state: Literal["active", "exhausted", "expired", "revoked"]
    created_at: str
    last_used_at: str | None
    service: str | None

class AllowanceListPayload(TypedDict):
    allowances: list[AllowanceListAllowances]
    count: int
    _meta: NotRequired[dict[str, Any]]

class AllowanceRevokePayload(TypedDict):
    id: str
    name: str
    credits: int
    spent: int
    spent_today: int
    credits_per_day: int | None
    expires_at: str | None
    tools: list[str] | None
    state: Literal["active", "exhausted", "expired", "revoked"]
    created_at: str
    last_used_at: str | None
    service: str | None
    _meta: NotRequired[dict[str, Any]]

class AllowanceUpdatePayload(TypedDict):
    id: str
    name: str
    credits: int
    spent: int
    spent_today: int
    credits_per_day: int | None
    expires_at: str | None
    tools: list[str] | None
    state: Literal["active", "exhausted", "expired", "revoked"]
    created_at: str
    last_used_at: str | None
    service: str | None
    _meta: NotRequired[dict[str, Any]]

class ReissueCancelPayload(TypedDict):
    cancelled: bool
    _meta: NotRequired[dict[str, Any]]

class TokenUpdatePayload(TypedDict):
    credits_per_day: int | None
    spent_today: int
    frozen: bool
    frozen_at: str | None
    alert_below: int | None
    alert_percent: int | None
    _meta: NotRequired[dict[str, Any]]

class WebhookDeliveriesDeliveries(TypedDict):
    id: str
    kind: Literal["data", "fired", "cleared", "no_data", "test"]
    state: Literal["open", "accepted", "charged", "free", "released", "skipped"]
    reason: str | None
    created_at: str
    finished_at: str | None
    attempts: int
    status: int | None
    error: str | None
    duration_ms: int | None
    credits: int
    receipt_id: str | None

class WebhookDeliveriesPayload(TypedDict):
    deliveries: list[WebhookDeliveriesDeliveries]
    next_cursor: str | None
    _meta: NotRequired[dict[str, Any]]

class WebhookListSubscriptions(TypedDict):
    id: str
    endpoint: str
    webhook_url: str
    state: Literal["active", "paused", "cancelled"]
    pause_reason: str | None
    created_at: str
    next_fire_at: str | None
    last_delivered_at: str | None
    last_status: int | None
    last_error: str | None
    consecutive_failures: int
    delivered_count: int
    failed_count: int
    params: dict[str, Any]
    when: dict[str, Any] | None
    description: str

class WebhookListPayload(TypedDict):
    subscriptions: list[WebhookListSubscriptions]
    count: int
    _meta: NotRequired[dict[str, Any]]

class WebhookResendPayload(TypedDict):
    id: str
    delivered: bool
    status: int | None
    error: str | None
    duration_ms: int
    _meta: NotRequired[dict[str, Any]]

class WebhookResumePayload(TypedDict):
    id: str
    endpoint: str
    webhook_url: str
    state: Literal["active", "paused", "cancelled"]
    pause_reason: str | None
    created_at: str
    next_fire_at: str | None
    last_delivered_at: str | None
    last_status: int | None
    last_error: str | None
    consecutive_failures: int
    delivered_count: int
    failed_count: int
    params: dict[str, Any]
    when: dict[str, Any] | None
    description: str
    _meta: NotRequired[dict[str, Any]]

class WebhookRotateSecretPayload(TypedDict):
    id: str
    secret: str
    overlap_hours: int
    _meta: NotRequired[dict[str, Any]]

class WebhookSubscribeWhen(TypedDict):
    path: str
    name: NotRequired[str]
    above: NotRequired[float]
    clear_below: NotRequired[float]
    below: NotRequired[float]
    clear_above: NotRequired[float]
    changed: NotRequired[bool]
    any_new: NotRequired[bool]
    for_s: NotRequired[int]

class WebhookSubscribePayload(TypedDict):
    id: str
    endpoint: str
    webhook_url: str
    state: Literal["active", "paused", "cancelled"]
    pause_reason: str | None
    created_at: str
    next_fire_at: str | None
    last_delivered_at: str | None
    last_status: int | None
    last_error: str | None
    consecutive_failures: int
    delivered_count: int
    failed_count: int
    params: dict[str, Any]
    when: dict[str, Any] | None
    description: str
    secret: str
    hmac_algorithm: Literal["sha256"]
    fire_cost_credits: int
    fire_interval: str
    signature_header: str
    timestamp_header: str
    _meta: NotRequired[dict[str, Any]]

class WebhookTestPayload(TypedDict):
    id: str
    kind: Literal["data", "fired", "cleared", "no_data", "test"]
    state: Literal["open", "accepted", "charged", "free", "released", "skipped"]
    reason: str | None
    created_at: str
    finished_at: str | None
    attempts: int
    status: int | None
    error: str | None
    duration_ms: int | None
    credits: int
    receipt_id: str | None
    delivered: bool
    _meta: NotRequired[dict[str, Any]]

class WebhookUnsubscribePayload(TypedDict):
    id: str
    endpoint: str
    webhook_url: str
    state: Literal["active", "paused", "cancelled"]
    pause_reason: str | None
    created_at: str
    next_fire_at: str | None
    last_delivered_at: str | None
    last_status: int | None
    last_error: str | None
    consecutive_failures: int
    delivered_count: int
    failed_count: int
    params: dict[str, Any]
    when: dict[str, Any] | None
    description: str
    _meta: NotRequired[dict[str, Any]]

class Tools:
    def briefing(self, *, limit: int | None = None) -> ToolAnswer[BriefingPayload]:
        """The state of the world in one call: bitcoin price, crypto fear & greed, earthquakes, prediction markets, tech news and the status of GitHub, Cloudflare, OpenAI and Anthropic, with a summary in words. Use it first; for more, use the tool of the topic. Free; fresh for 60 seconds."""
    def btc_price(self, *, coin: str | None = None) -> ToolAnswer[BtcPricePayload]:
        """The price now of bitcoin, or of any of the 250 largest coins as `coin`, with its change, high, low and traded volume of the past 24 hours, and which venue says so. For the biggest moves use crypto_movers. Free; fresh for 30 seconds."""
    def earthquakes(self, *, limit: int | None = None) -> ToolAnswer[EarthquakesPayload]:
        """Earthquakes of magnitude 2.5 and above in the past 24 hours, worldwide, newest first, with place, depth and coordinates. Use it for "any earthquakes today?". Free; fresh for 2 minutes."""
    def find_tools(self, *, q: str | None = None, limit: int | None = None) -> ToolAnswer[FindToolsPayload]:
        """The tools of this service that answer a question, best first, with arguments and prices. Use it when no listed tool fits. Free."""
    def forex(self) -> ToolAnswer[ForexPayload]:
        """Daily US dollar exchange rates to 16 major currencies (EUR, GBP, JPY, CAD, CNY, …): newest published day, the published day before it, and the change in percent. Use it to convert or compare currencies; not intraday. Free; fresh for 5 minutes."""
    def service_status(self, *, limit: int | None = None) -> ToolAnswer[ServiceStatusPayload]:
        """Whether 15 cloud and developer services are up right now, by their own status pages: GitHub, Cloudflare, OpenAI, Anthropic, Vercel, Discord, Atlassian, Reddit, Stripe, Zoom, Datadog, Slack, AWS, Google Cloud and Azure. Use it for "is GitHub down?". Free; fresh for 60 seconds."""
    def stocks(self, *, symbols: str | None = None, limit: int | None = None) -> ToolAnswer[StocksPayload]:
        """U.S. share prices with change since the last close: gainers and losers of those listed, quotes, and the main indices (S&P 500, Dow, Nasdaq, Russell 2000, VIX). Give `symbols` for particular shares: AAPL or Apple. Free; fresh for 15 seconds."""
    def tech_news(self, *, limit: int | None = None) -> ToolAnswer[TechNewsPayload]:
        """The stories on the front page of Hacker News right now, in page order, with score, number of comments and links. Use it for "what is the tech world talking about?". Free; fresh for 60 seconds."""
    def weather(self, *, lat: float | None = None, lon: float | None = None, place: str | None = None, units: Literal["us", "metric"] | None = None) -> ToolAnswer[WeatherPayload]:
        """Current weather anywhere on earth, and the next 24 hours: temperature in Fahrenheit or Celsius, wind, humidity, condition. Give `place`, or `lat` and `lon`. For warnings use climate_weather_alerts. Free; fresh for 10 minutes."""
    def ai_stats(self, *, limit: int | None = None) -> ToolAnswer[AiStatsPayload]:
        """How often this service was called in the past 24 hours, by which families of agents, and the last calls. Use it to see who uses the service; it says nothing about the world outside. Free; fresh for 30 seconds."""
    def air_quality(self, *, lat: float | None = None, lon: float | None = None, place: str | None = None) -> ToolAnswer[AirQualityPayload]:
        """Air quality at a place: US and European index, PM2.5, PM10, ozone, NO2, SO2, CO. Use it for "is the air good here?". Give `place`, or `lat` and `lon`; without them it answers for Los Angeles and says `default_location`. Free; fresh for 30 minutes."""
    def chain_network(self) -> ToolAnswer[ChainNetworkPayload]:
        """Solana's throughput right now: transactions a second, slot time, current slot, epoch and how far it is. Use it for "how busy is Solana?"; for Ethereum fees use gas. Free; fresh for 30 seconds."""
    def climate_earthquakes(self, *, magnitude: Literal["significant", "4.5", "2.5", "1.0", "all"] | None = None, period: Literal["hour", "day", "week", "month"] | None = None, limit: int | None = None, cursor: str | None = None) -> ToolAnswer[ClimateEarthquakesPayload]:
        """Earthquakes and blasts worldwide by smallest magnitude and period, from the past hour to the past month, newest first. Use it for any magnitude or period other than "2.5 and above today", which earthquakes answers. Free; fresh for at most 15 minutes."""
    def climate_weather_alerts(self, *, area: Literal["AK", "AL", "AM", "AN", "AR", "AS", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "FM", "GA", "GM", "GU", "HI", "IA", "ID", "IL", "IN", "KS", "KY", "LA", "LC", "LE", "LH", "LM", "LO", "LS", "MA", "MD", "ME", "MH", "MI", "MN", "MO", "MP", "MS", "MT", "NC", "ND", "NE", "NH", "NJ", "NM", "NV", "NY", "OH", "OK", "OR", "PA", "PH", "PK", "PM", "PR", "PS", "PW", "PZ", "RI", "SC", "SD", "SL", "TN", "TX", "UT", "VA", "VI", "VT", "WA", "WI", "WV", "WY"] | None = None, event: str | None = None, severity: Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown"] | None = None, urgency: Literal["Immediate", "Expected", "Future", "Past", "Unknown"] | None = None, status: Literal["Actual", "Exercise", "System", "Test", "Draft"] | None = None, text: Literal["short", "whole"] | None = None, limit: int | None = None, cursor: str | None = None) -> ToolAnswer[ClimateWeatherAlertsPayload]:
        """Weather alerts that the US National Weather Service lists as active, with their text, filtered by state, event name, severity, urgency or status. Use severe_weather for a ranking of the gravest; this one for a place. Free; fresh for 60 seconds."""
    def code_host_trending(self, *, limit: int | None = None) -> ToolAnswer[CodeHostTrendingPayload]:
        """The GitHub repositories created in the past 7 days that have the most stars, with language, topics, licence and stars per day. Use it for "what is new and popular on GitHub?". Free; fresh for 5 minutes."""
    def crypto_movers(self, *, limit: int | None = None) -> ToolAnswer[CryptoMoversPayload]:
        """The 15 coins, of the 100 largest, whose price moved most in the past 24 hours, up or down, biggest move first. Use it for "what is moving in crypto?"; for bitcoin alone use btc_price. Free; fresh for 30 seconds."""
    def cyber_threats(self, *, limit: int | None = None) -> ToolAnswer[CyberThreatsPayload]:
        """The newest malware URLs, indicators of compromise, exploited vulnerabilities (CISA KEV), botnet command servers and phishing pages, defanged. Use it for "what attacks are going on?"; for one address use exposure_lookup. Free; fresh for 60 seconds."""
    def disaster_alerts(self, *, limit: int | None = None) -> ToolAnswer[DisasterAlertsPayload]:
        """Natural disasters that are going on or ended within 48 hours, worldwide: earthquakes, cyclones, floods, volcanoes, wildfires and droughts with GDACS's alert colour. Use it for "any disasters now?"; for all earthquakes use earthquakes. Free; fresh for 5 minutes."""
    def economic_data(self) -> ToolAnswer[EconomicDataPayload]:
        """Latest U.S. macro figures: fed funds rate, CPI with yearly change, unemployment, real GDP growth, 2- and 10-year Treasury yields, 30-year mortgage rate and the 2s10s spread, each with its date and the value before. Free; fresh for 1 hour."""
    def exposure_lookup(self, *, ip: str | None = None) -> ToolAnswer[ExposureLookupPayload]:
        """Open ports, known vulnerabilities (CVE), host names, tags and products (CPE) that a weekly Internet-wide scan saw on a public IPv4 address. Without `ip`, six of 24 well-known resolvers and hosts, others every hour. Nothing is scanned by asking. Free; fresh for 1 hour."""
    def fear_greed(self) -> ToolAnswer[FearGreedPayload]:
        """The crypto market's Fear & Greed index, 0 (extreme fear) to 100 (extreme greed), with its label and the value before it. Use it for "how is the mood in crypto?"; for prices use btc_price or crypto_movers. Free; fresh for 5 minutes."""
    def funding_rates(self, *, limit: int | None = None) -> ToolAnswer[FundingRatesPayload]:
        """The 20 perpetual crypto futures with the largest funding rates, annualized, across Binance, Bybit, Hyperliquid and dYdX. Use it for "where is leverage most one-sided?" or to compare carry; for spot prices use crypto_movers. Free; fresh for 60 seconds."""
    def game_platform_top(self, *, limit: int | None = None) -> ToolAnswer[GamePlatformTopPayload]:
        """The 15 most played games on Steam right now, with how many play at this moment and today's peak. Use it for "what is everybody playing?". Free; fresh for 10 minutes."""
    def gas(self) -> ToolAnswer[GasPayload]:
        """What a unit of gas costs on Ethereum now, in gwei: low, standard, fast and the base fee. Use it for "are fees high?" or before sending a transaction; for Solana use chain_network. Free; fresh for 15 seconds."""
    def harnesses(self, *, view: Literal["raw", "summary", "gaps", "combined"] | None = None, limit: int | None = None) -> ToolAnswer[HarnessesPayload]:
        """How coding agents score on public benchmarks, by harness (the program) and model: SWE-bench Verified, Aider polyglot, METR time horizons, Terminal-Bench. Use it for "which coding agent is best?". Free; fresh for 12 hours."""
    def health(self) -> ToolAnswer[HealthPayload]:
        """Whether this service is up, its API version, its uptime in seconds and its clock. Never depends on upstreams: use service_status for the state of other services. Free."""
    def humans_in_space(self, *, limit: int | None = None) -> ToolAnswer[HumansInSpacePayload]:
        """Everyone who is in space right now, with craft and agency. Use it for "how many people are in space?". Free; fresh for 1 hour."""
    def internet_pulse(self, *, limit: int | None = None) -> ToolAnswer[InternetPulsePayload]:
        """How long this server takes to open a TCP connection to four cloud regions and two public DNS anycast addresses. Use it for "is the internet slow?"; for outages of named services use service_status. Free; fresh for 60 seconds."""
    def launches(self, *, limit: int | None = None) -> ToolAnswer[LaunchesPayload]:
        """The next rocket launches worldwide: provider, vehicle, mission, pad, status, and when, with how exact that time is. Use it for "when is the next launch?". Free; fresh for 10 minutes."""
    def model_hub_trending(self, *, limit: int | None = None) -> ToolAnswer[ModelHubTrendingPayload]:
        """The AI models on Hugging Face that gained the most likes in the past 7 days, in that order, with downloads and what they are for. Use it for "which models are popular right now?". Free; fresh for 10 minutes."""
    def payment_no_charge_stats(self, *, date: str | None = None, dates: bool | None = None) -> ToolAnswer[PaymentNoChargeStatsPayload]:
        """Paid calls of a day that were not charged, by reason and endpoint, with the last 200 of them and the state of the public log that holds them all. Use receipt_verify for a single call. Free; fresh for 30 seconds."""
    def predictions(self, *, limit: int | None = None) -> ToolAnswer[PredictionsPayload]:
        """The prediction markets most traded in the past 24 hours, with the probability of yes and no in percent and how it moved. Use it for "what are the odds that …?". Free; fresh for 60 seconds."""
    def receipt_verify(self, *, receipt: str | ReceiptVerifyReceipt, body_sha256: str | None = None) -> ToolAnswer[ReceiptVerifyPayload]:
        """Whether the receipt of a paid call is genuine, what it says, and whether it belongs to the body you have. Nothing is fetched: keys come from a fixed list. Use payment_no_charge_stats for all calls of a day. Free."""
    def severe_weather(self, *, limit: int | None = None) -> ToolAnswer[SevereWeatherPayload]:
        """The 15 gravest weather alerts now in force in the United States, ranked by severity x urgency x certainty, and how many there are of each severity. Use it for "any dangerous weather?"; to filter by state or event use climate_weather_alerts. Free; fresh for 60 seconds."""
    def space_weather(self, *, limit: int | None = None) -> ToolAnswer[SpaceWeatherPayload]:
        """Space weather now: geomagnetic activity (Kp and storm level), solar wind speed and density, the strongest solar flare of the past 24 hours, alerts in force. Use it for auroras, radio blackouts, satellites. Free; fresh for 5 minutes."""
    def volcanoes(self, *, limit: int | None = None) -> ToolAnswer[VolcanoesPayload]:
        """Volcanoes that erupt or are restless this week, worldwide, with a summary of what happened, and the alert level and aviation colour of those in the United States. Use it for "which volcanoes are erupting?". Free; fresh for 1 hour."""
    def wildfires(self, *, limit: int | None = None) -> ToolAnswer[WildfiresPayload]:
        """Fires burning in the United States in the past 24 hours as satellites see them, strongest first, and the largest wildfire incidents with acres and containment. For disasters worldwide use disaster_alerts. Free; fresh for 10 minutes."""
    def premium_agent_context(self) -> ToolAnswer[PremiumAgentContextPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. What is going on in the world right now, for a model to know: markets, Fed funds rate, dollar rates, large earthquakes, launches, top news, prediction markets and the state of four major services; as data and as a short `system_prompt` to paste verbatim."""
    def premium_briefing(self, *, include: str | None = None, history: Literal["24h"] | None = None) -> ToolAnswer[PremiumBriefingPayload]:
        """Costs 1 credit (0.02 USD) a call; fresh for 60 seconds. The state of the world as compact figures, one section a topic: bitcoin with its day, crypto fear & greed, earthquakes, tech news, people in space, prediction markets; with history=24h also hourly bitcoin prices. Use the free briefing for a summary in words."""
    def premium_correlation_matrix(self) -> ToolAnswer[PremiumCorrelationMatrixPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 30 minutes. 30-day Pearson correlations between oil (WTI), the 10- and 2-year Treasury yields and the broad dollar index, from daily returns aligned by date: ranked pairs with strength and direction, and a lookup matrix. Use it to see what moves together; it says nothing about causes."""
    def premium_crypto_deep(self, *, coins: str | None = None, history: Literal["30d"] | None = None, limit: int | None = None) -> ToolAnswer[PremiumCryptoDeepPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 60 seconds. Crypto in one call: the 50 largest coins with 1 h, 24 h and 7 d changes, an exchange's 20 most traded USDT pairs, Bitcoin's height, fees, hashrate and mempool, and Ethereum gas; `coins` picks symbols, history=30d adds daily bitcoin candles. For single figures use btc_price, crypto_movers or gas."""
    def premium_exchange_flows(self, *, limit: int | None = None) -> ToolAnswer[PremiumExchangeFlowsPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. Ether that moves to and from the hot wallets of eight exchanges in the newest blocks: inflow, outflow and net by exchange, the transfers themselves, and which way it leans. For any large transfer use premium_whales."""
    def premium_macro(self, *, history: Literal["30d"] | None = None) -> ToolAnswer[PremiumMacroPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. The macro picture in one call: U.S. fed funds rate, CPI, unemployment, GDP growth and 10-year yield, the dollar against EUR, JPY, GBP and CHF, gold, oil and natural gas, and SPY, DIA, QQQ and VIX; with history=30d also series."""
    def premium_sentiment(self, *, limit: int | None = None) -> ToolAnswer[PremiumSentimentPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. What is being said about markets: which of 26 crypto and stock tickers the headlines of the past 24 hours name and in what tone, with samples, crypto fear & greed, the VIX, and bets on the economy. For the one index use fear_greed, for prices stocks or premium_crypto_deep."""
    def premium_whales(self, *, limit: int | None = None) -> ToolAnswer[PremiumWhalesPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. Large transfers on chain right now: unconfirmed bitcoin transactions that pay 10 BTC or more to others, and Ether transfers of 100 ETH or more in the newest blocks, with dollar values and exchange labels. For what exchanges receive and pay use premium_exchange_flows."""
    def premium_world_deltas(self, *, since: str | None = None, limit: int | None = None) -> ToolAnswer[PremiumWorldDeltasPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 60 seconds. What changed in the world within the past hour, as one stream: earthquakes of M4+, stories that came to the front page of Hacker News, prediction markets that moved, and launches from an hour ago to 12 hours ahead. Poll it with `since` for what is new; for the state of the world use premium_agent_context."""
    def premium_code_host_velocity(self, *, limit: int | None = None) -> ToolAnswer[PremiumCodeHostVelocityPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 30 minutes. What gains stars on GitHub: the 30 most starred repositories of the past week with stars per day and in the last 24 hours, the 15 most starred active LLM repositories, and counts by language, topic and AI share. For a plain list use code_host_trending."""
    def payment_balance(self) -> ToolAnswer[PaymentBalancePayload]:
        """The credits left on the bearer token that this call is made with, and when the token was issued. Costs no credits."""
    def payment_buy_credits(self, *, amount_usd: float, claim_challenge: str | None = None, credits_per_day: int | None = None) -> ToolAnswer[PaymentBuyCreditsPayload]:
        """A quote for credits: the address to send USDC to on Base, and the memo that claims them. Nothing is charged until you pay. After paying, call payment_confirm with the transaction hash and the memo to get a token. Costs no credits."""
    def payment_confirm(self, *, tx_hash: str, nonce: str, claim_verifier: str | None = None, payer_signature: str | None = None) -> ToolAnswer[PaymentConfirmPayload]:
        """Turn a payment into a bearer token with credits: call it after sending USDC to the address of a quote. Waits some seconds for the chain; on payment_pending, call it again with the same arguments. Each payment counts once. Costs no credits."""
    def payment_topup(self, *, amount_usd: float | None = None, payer_signature: str | None = None, by_transfer: bool | None = None, tx_hash: str | None = None, nonce: str | None = None) -> ToolAnswer[PaymentTopupPayload]:
        """Add credits to the bearer token sent along. With an x402 wallet it takes one round trip, which without a token gives a new one. By a plain transfer it takes two calls: with amount_usd for what to pay, then with tx_hash and nonce. To buy a new token by transfer use payment_buy_credits. Costs no credits."""
    def account_statement(self, *, from_: str | None = None, to: str | None = None, cursor: str | None = None, limit: int | None = None) -> ToolAnswer[AccountStatementPayload]:
        """Everything that happened to the credits of this token, the latest first: calls with their receipts, purchases, and what was given back. Use payment_balance for the balance alone. Costs no credits."""
    def allowance_create(self, *, name: str, credits: int, credits_per_day: int | None = None, expires_at: str | Literal["never"] | None = None, tools: list[str] | None = None) -> ToolAnswer[AllowanceCreatePayload]:
        """A second token that spends the credits of this one, up to caps that are never crossed. Give it to an agent or a program instead of your own token. The credits stay yours until they are spent. Costs no credits."""
    def allowance_list(self) -> ToolAnswer[AllowanceListPayload]:
        """The allowances of this token: their caps, what each has spent in all and today, and whether they are still live. Use account_statement for the single calls. Costs no credits."""
    def allowance_revoke(self, *, id: str) -> ToolAnswer[AllowanceRevokePayload]:
        """End an allowance for good: its token is refused from the next call on. Safe to repeat. Calls that are running may still be charged. Costs no credits."""
    def allowance_update(self, *, id: str, name: str | None = None, credits: int | None = None, credits_per_day: int | None = None, expires_at: str | Literal["never"] | None = None, tools: list[str] | None = None) -> ToolAnswer[AllowanceUpdatePayload]:
        """Change the name, caps, end or tools of an allowance; what is not given stays. It holds from the next call on. A cap below what is spent stops it. Costs no credits."""
    def reissue_cancel(self) -> ToolAnswer[ReissueCancelPayload]:
        """Keep this token: cancel its replacement, which the account that paid for it has asked for as if it were lost. The balance shows such a request in `reissue_at` for 48 hours. Safe to repeat. Costs no credits."""
    def token_update(self, *, credits_per_day: int | None = None, frozen: bool | None = None, alert_below: int | None = None, alert_percent: int | None = None) -> ToolAnswer[TokenUpdatePayload]:
        """Set a cap per day on this token, freeze or thaw it, set alerts; what is not given stays. Without arguments it shows what is set. All of it binds the allowances of the token too, from the next call on. Costs no credits."""
    def webhook_deliveries(self, *, id: str, limit: int | None = None, cursor: str | None = None) -> ToolAnswer[WebhookDeliveriesPayload]:
        """The last deliveries of a webhook subscription, up to 50: when, how many attempts, how your server answered, what was charged and under which receipt. Costs no credits."""
    def webhook_list(self) -> ToolAnswer[WebhookListPayload]:
        """The webhook subscriptions of this token: their state, when they fire next, and how the last delivery went. Free of charge. Use webhook_deliveries for the log of one of them. Costs no credits."""
    def webhook_resend(self, *, id: str, delivery_id: str) -> ToolAnswer[WebhookResendPayload]:
        """Send an accepted delivery of the past hour again, for free: the same id and bytes, signed anew. Costs no credits."""
    def webhook_resume(self, *, id: str) -> ToolAnswer[WebhookResumePayload]:
        """Start a paused webhook subscription again, with its next slot. Safe to repeat; the token must hold at least 1 credit. An endpoint that failed for a day can be resumed five minutes after it was paused. Costs no credits."""
    def webhook_rotate_secret(self, *, id: str) -> ToolAnswer[WebhookRotateSecretPayload]:
        """Replace the signing secret of a webhook subscription. For 24 hours deliveries carry signatures of both secrets: Standard Webhooks in one header, ours in X-Service-Signature (new) and X-Service-Signature-Previous. Costs no credits."""
    def webhook_subscribe(self, *, endpoint: str, webhook_url: str, params: dict[str, Any] | None = None, when: WebhookSubscribeWhen | None = None, headers: dict[str, str] | None = None, description: str | None = None) -> ToolAnswer[WebhookSubscribePayload]:
        """Have a premium payload delivered to a URL of yours about every five minutes, or when a condition comes true. Subscribing is free, with at least 1 credit; each delivered fire costs 1 credit, and one that your server does not take costs nothing. Costs no credits."""
    def webhook_test(self, *, id: str, data: dict[str, Any] | None = None, state: Literal["fired", "cleared", "no_data"] | None = None) -> ToolAnswer[WebhookTestPayload]:
        """Send one signed test delivery with `"test": true` and see how your server answers it. It carries recorded or given values, never current ones. Costs no credits."""
    def webhook_unsubscribe(self, *, id: str) -> ToolAnswer[WebhookUnsubscribePayload]:
        """Cancel a webhook subscription for good: it never fires again. Safe to repeat. Costs no credits."""

class AsyncTools:
    async def briefing(self, *, limit: int | None = None) -> ToolAnswer[BriefingPayload]:
        """The state of the world in one call: bitcoin price, crypto fear & greed, earthquakes, prediction markets, tech news and the status of GitHub, Cloudflare, OpenAI and Anthropic, with a summary in words. Use it first; for more, use the tool of the topic. Free; fresh for 60 seconds."""
    async def btc_price(self, *, coin: str | None = None) -> ToolAnswer[BtcPricePayload]:
        """The price now of bitcoin, or of any of the 250 largest coins as `coin`, with its change, high, low and traded volume of the past 24 hours, and which venue says so. For the biggest moves use crypto_movers. Free; fresh for 30 seconds."""
    async def earthquakes(self, *, limit: int | None = None) -> ToolAnswer[EarthquakesPayload]:
        """Earthquakes of magnitude 2.5 and above in the past 24 hours, worldwide, newest first, with place, depth and coordinates. Use it for "any earthquakes today?". Free; fresh for 2 minutes."""
    async def find_tools(self, *, q: str | None = None, limit: int | None = None) -> ToolAnswer[FindToolsPayload]:
        """The tools of this service that answer a question, best first, with arguments and prices. Use it when no listed tool fits. Free."""
    async def forex(self) -> ToolAnswer[ForexPayload]:
        """Daily US dollar exchange rates to 16 major currencies (EUR, GBP, JPY, CAD, CNY, …): newest published day, the published day before it, and the change in percent. Use it to convert or compare currencies; not intraday. Free; fresh for 5 minutes."""
    async def service_status(self, *, limit: int | None = None) -> ToolAnswer[ServiceStatusPayload]:
        """Whether 15 cloud and developer services are up right now, by their own status pages: GitHub, Cloudflare, OpenAI, Anthropic, Vercel, Discord, Atlassian, Reddit, Stripe, Zoom, Datadog, Slack, AWS, Google Cloud and Azure. Use it for "is GitHub down?". Free; fresh for 60 seconds."""
    async def stocks(self, *, symbols: str | None = None, limit: int | None = None) -> ToolAnswer[StocksPayload]:
        """U.S. share prices with change since the last close: gainers and losers of those listed, quotes, and the main indices (S&P 500, Dow, Nasdaq, Russell 2000, VIX). Give `symbols` for particular shares: AAPL or Apple. Free; fresh for 15 seconds."""
    async def tech_news(self, *, limit: int | None = None) -> ToolAnswer[TechNewsPayload]:
        """The stories on the front page of Hacker News right now, in page order, with score, number of comments and links. Use it for "what is the tech world talking about?". Free; fresh for 60 seconds."""
    async def weather(self, *, lat: float | None = None, lon: float | None = None, place: str | None = None, units: Literal["us", "metric"] | None = None) -> ToolAnswer[WeatherPayload]:
        """Current weather anywhere on earth, and the next 24 hours: temperature in Fahrenheit or Celsius, wind, humidity, condition. Give `place`, or `lat` and `lon`. For warnings use climate_weather_alerts. Free; fresh for 10 minutes."""
    async def ai_stats(self, *, limit: int | None = None) -> ToolAnswer[AiStatsPayload]:
        """How often this service was called in the past 24 hours, by which families of agents, and the last calls. Use it to see who uses the service; it says nothing about the world outside. Free; fresh for 30 seconds."""
    async def air_quality(self, *, lat: float | None = None, lon: float | None = None, place: str | None = None) -> ToolAnswer[AirQualityPayload]:
        """Air quality at a place: US and European index, PM2.5, PM10, ozone, NO2, SO2, CO. Use it for "is the air good here?". Give `place`, or `lat` and `lon`; without them it answers for Los Angeles and says `default_location`. Free; fresh for 30 minutes."""
    async def chain_network(self) -> ToolAnswer[ChainNetworkPayload]:
        """Solana's throughput right now: transactions a second, slot time, current slot, epoch and how far it is. Use it for "how busy is Solana?"; for Ethereum fees use gas. Free; fresh for 30 seconds."""
    async def climate_earthquakes(self, *, magnitude: Literal["significant", "4.5", "2.5", "1.0", "all"] | None = None, period: Literal["hour", "day", "week", "month"] | None = None, limit: int | None = None, cursor: str | None = None) -> ToolAnswer[ClimateEarthquakesPayload]:
        """Earthquakes and blasts worldwide by smallest magnitude and period, from the past hour to the past month, newest first. Use it for any magnitude or period other than "2.5 and above today", which earthquakes answers. Free; fresh for at most 15 minutes."""
    async def climate_weather_alerts(self, *, area: Literal["AK", "AL", "AM", "AN", "AR", "AS", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "FM", "GA", "GM", "GU", "HI", "IA", "ID", "IL", "IN", "KS", "KY", "LA", "LC", "LE", "LH", "LM", "LO", "LS", "MA", "MD", "ME", "MH", "MI", "MN", "MO", "MP", "MS", "MT", "NC", "ND", "NE", "NH", "NJ", "NM", "NV", "NY", "OH", "OK", "OR", "PA", "PH", "PK", "PM", "PR", "PS", "PW", "PZ", "RI", "SC", "SD", "SL", "TN", "TX", "UT", "VA", "VI", "VT", "WA", "WI", "WV", "WY"] | None = None, event: str | None = None, severity: Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown"] | None = None, urgency: Literal["Immediate", "Expected", "Future", "Past", "Unknown"] | None = None, status: Literal["Actual", "Exercise", "System", "Test", "Draft"] | None = None, text: Literal["short", "whole"] | None = None, limit: int | None = None, cursor: str | None = None) -> ToolAnswer[ClimateWeatherAlertsPayload]:
        """Weather alerts that the US National Weather Service lists as active, with their text, filtered by state, event name, severity, urgency or status. Use severe_weather for a ranking of the gravest; this one for a place. Free; fresh for 60 seconds."""
    async def code_host_trending(self, *, limit: int | None = None) -> ToolAnswer[CodeHostTrendingPayload]:
        """The GitHub repositories created in the past 7 days that have the most stars, with language, topics, licence and stars per day. Use it for "what is new and popular on GitHub?". Free; fresh for 5 minutes."""
    async def crypto_movers(self, *, limit: int | None = None) -> ToolAnswer[CryptoMoversPayload]:
        """The 15 coins, of the 100 largest, whose price moved most in the past 24 hours, up or down, biggest move first. Use it for "what is moving in crypto?"; for bitcoin alone use btc_price. Free; fresh for 30 seconds."""
    async def cyber_threats(self, *, limit: int | None = None) -> ToolAnswer[CyberThreatsPayload]:
        """The newest malware URLs, indicators of compromise, exploited vulnerabilities (CISA KEV), botnet command servers and phishing pages, defanged. Use it for "what attacks are going on?"; for one address use exposure_lookup. Free; fresh for 60 seconds."""
    async def disaster_alerts(self, *, limit: int | None = None) -> ToolAnswer[DisasterAlertsPayload]:
        """Natural disasters that are going on or ended within 48 hours, worldwide: earthquakes, cyclones, floods, volcanoes, wildfires and droughts with GDACS's alert colour. Use it for "any disasters now?"; for all earthquakes use earthquakes. Free; fresh for 5 minutes."""
    async def economic_data(self) -> ToolAnswer[EconomicDataPayload]:
        """Latest U.S. macro figures: fed funds rate, CPI with yearly change, unemployment, real GDP growth, 2- and 10-year Treasury yields, 30-year mortgage rate and the 2s10s spread, each with its date and the value before. Free; fresh for 1 hour."""
    async def exposure_lookup(self, *, ip: str | None = None) -> ToolAnswer[ExposureLookupPayload]:
        """Open ports, known vulnerabilities (CVE), host names, tags and products (CPE) that a weekly Internet-wide scan saw on a public IPv4 address. Without `ip`, six of 24 well-known resolvers and hosts, others every hour. Nothing is scanned by asking. Free; fresh for 1 hour."""
    async def fear_greed(self) -> ToolAnswer[FearGreedPayload]:
        """The crypto market's Fear & Greed index, 0 (extreme fear) to 100 (extreme greed), with its label and the value before it. Use it for "how is the mood in crypto?"; for prices use btc_price or crypto_movers. Free; fresh for 5 minutes."""
    async def funding_rates(self, *, limit: int | None = None) -> ToolAnswer[FundingRatesPayload]:
        """The 20 perpetual crypto futures with the largest funding rates, annualized, across Binance, Bybit, Hyperliquid and dYdX. Use it for "where is leverage most one-sided?" or to compare carry; for spot prices use crypto_movers. Free; fresh for 60 seconds."""
    async def game_platform_top(self, *, limit: int | None = None) -> ToolAnswer[GamePlatformTopPayload]:
        """The 15 most played games on Steam right now, with how many play at this moment and today's peak. Use it for "what is everybody playing?". Free; fresh for 10 minutes."""
    async def gas(self) -> ToolAnswer[GasPayload]:
        """What a unit of gas costs on Ethereum now, in gwei: low, standard, fast and the base fee. Use it for "are fees high?" or before sending a transaction; for Solana use chain_network. Free; fresh for 15 seconds."""
    async def harnesses(self, *, view: Literal["raw", "summary", "gaps", "combined"] | None = None, limit: int | None = None) -> ToolAnswer[HarnessesPayload]:
        """How coding agents score on public benchmarks, by harness (the program) and model: SWE-bench Verified, Aider polyglot, METR time horizons, Terminal-Bench. Use it for "which coding agent is best?". Free; fresh for 12 hours."""
    async def health(self) -> ToolAnswer[HealthPayload]:
        """Whether this service is up, its API version, its uptime in seconds and its clock. Never depends on upstreams: use service_status for the state of other services. Free."""
    async def humans_in_space(self, *, limit: int | None = None) -> ToolAnswer[HumansInSpacePayload]:
        """Everyone who is in space right now, with craft and agency. Use it for "how many people are in space?". Free; fresh for 1 hour."""
    async def internet_pulse(self, *, limit: int | None = None) -> ToolAnswer[InternetPulsePayload]:
        """How long this server takes to open a TCP connection to four cloud regions and two public DNS anycast addresses. Use it for "is the internet slow?"; for outages of named services use service_status. Free; fresh for 60 seconds."""
    async def launches(self, *, limit: int | None = None) -> ToolAnswer[LaunchesPayload]:
        """The next rocket launches worldwide: provider, vehicle, mission, pad, status, and when, with how exact that time is. Use it for "when is the next launch?". Free; fresh for 10 minutes."""
    async def model_hub_trending(self, *, limit: int | None = None) -> ToolAnswer[ModelHubTrendingPayload]:
        """The AI models on Hugging Face that gained the most likes in the past 7 days, in that order, with downloads and what they are for. Use it for "which models are popular right now?". Free; fresh for 10 minutes."""
    async def payment_no_charge_stats(self, *, date: str | None = None, dates: bool | None = None) -> ToolAnswer[PaymentNoChargeStatsPayload]:
        """Paid calls of a day that were not charged, by reason and endpoint, with the last 200 of them and the state of the public log that holds them all. Use receipt_verify for a single call. Free; fresh for 30 seconds."""
    async def predictions(self, *, limit: int | None = None) -> ToolAnswer[PredictionsPayload]:
        """The prediction markets most traded in the past 24 hours, with the probability of yes and no in percent and how it moved. Use it for "what are the odds that …?". Free; fresh for 60 seconds."""
    async def receipt_verify(self, *, receipt: str | ReceiptVerifyReceipt, body_sha256: str | None = None) -> ToolAnswer[ReceiptVerifyPayload]:
        """Whether the receipt of a paid call is genuine, what it says, and whether it belongs to the body you have. Nothing is fetched: keys come from a fixed list. Use payment_no_charge_stats for all calls of a day. Free."""
    async def severe_weather(self, *, limit: int | None = None) -> ToolAnswer[SevereWeatherPayload]:
        """The 15 gravest weather alerts now in force in the United States, ranked by severity x urgency x certainty, and how many there are of each severity. Use it for "any dangerous weather?"; to filter by state or event use climate_weather_alerts. Free; fresh for 60 seconds."""
    async def space_weather(self, *, limit: int | None = None) -> ToolAnswer[SpaceWeatherPayload]:
        """Space weather now: geomagnetic activity (Kp and storm level), solar wind speed and density, the strongest solar flare of the past 24 hours, alerts in force. Use it for auroras, radio blackouts, satellites. Free; fresh for 5 minutes."""
    async def volcanoes(self, *, limit: int | None = None) -> ToolAnswer[VolcanoesPayload]:
        """Volcanoes that erupt or are restless this week, worldwide, with a summary of what happened, and the alert level and aviation colour of those in the United States. Use it for "which volcanoes are erupting?". Free; fresh for 1 hour."""
    async def wildfires(self, *, limit: int | None = None) -> ToolAnswer[WildfiresPayload]:
        """Fires burning in the United States in the past 24 hours as satellites see them, strongest first, and the largest wildfire incidents with acres and containment. For disasters worldwide use disaster_alerts. Free; fresh for 10 minutes."""
    async def premium_agent_context(self) -> ToolAnswer[PremiumAgentContextPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. What is going on in the world right now, for a model to know: markets, Fed funds rate, dollar rates, large earthquakes, launches, top news, prediction markets and the state of four major services; as data and as a short `system_prompt` to paste verbatim."""
    async def premium_briefing(self, *, include: str | None = None, history: Literal["24h"] | None = None) -> ToolAnswer[PremiumBriefingPayload]:
        """Costs 1 credit (0.02 USD) a call; fresh for 60 seconds. The state of the world as compact figures, one section a topic: bitcoin with its day, crypto fear & greed, earthquakes, tech news, people in space, prediction markets; with history=24h also hourly bitcoin prices. Use the free briefing for a summary in words."""
    async def premium_correlation_matrix(self) -> ToolAnswer[PremiumCorrelationMatrixPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 30 minutes. 30-day Pearson correlations between oil (WTI), the 10- and 2-year Treasury yields and the broad dollar index, from daily returns aligned by date: ranked pairs with strength and direction, and a lookup matrix. Use it to see what moves together; it says nothing about causes."""
    async def premium_crypto_deep(self, *, coins: str | None = None, history: Literal["30d"] | None = None, limit: int | None = None) -> ToolAnswer[PremiumCryptoDeepPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 60 seconds. Crypto in one call: the 50 largest coins with 1 h, 24 h and 7 d changes, an exchange's 20 most traded USDT pairs, Bitcoin's height, fees, hashrate and mempool, and Ethereum gas; `coins` picks symbols, history=30d adds daily bitcoin candles. For single figures use btc_price, crypto_movers or gas."""
    async def premium_exchange_flows(self, *, limit: int | None = None) -> ToolAnswer[PremiumExchangeFlowsPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. Ether that moves to and from the hot wallets of eight exchanges in the newest blocks: inflow, outflow and net by exchange, the transfers themselves, and which way it leans. For any large transfer use premium_whales."""
    async def premium_macro(self, *, history: Literal["30d"] | None = None) -> ToolAnswer[PremiumMacroPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. The macro picture in one call: U.S. fed funds rate, CPI, unemployment, GDP growth and 10-year yield, the dollar against EUR, JPY, GBP and CHF, gold, oil and natural gas, and SPY, DIA, QQQ and VIX; with history=30d also series."""
    async def premium_sentiment(self, *, limit: int | None = None) -> ToolAnswer[PremiumSentimentPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. What is being said about markets: which of 26 crypto and stock tickers the headlines of the past 24 hours name and in what tone, with samples, crypto fear & greed, the VIX, and bets on the economy. For the one index use fear_greed, for prices stocks or premium_crypto_deep."""
    async def premium_whales(self, *, limit: int | None = None) -> ToolAnswer[PremiumWhalesPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. Large transfers on chain right now: unconfirmed bitcoin transactions that pay 10 BTC or more to others, and Ether transfers of 100 ETH or more in the newest blocks, with dollar values and exchange labels. For what exchanges receive and pay use premium_exchange_flows."""
    async def premium_world_deltas(self, *, since: str | None = None, limit: int | None = None) -> ToolAnswer[PremiumWorldDeltasPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 60 seconds. What changed in the world within the past hour, as one stream: earthquakes of M4+, stories that came to the front page of Hacker News, prediction markets that moved, and launches from an hour ago to 12 hours ahead. Poll it with `since` for what is new; for the state of the world use premium_agent_context."""
    async def premium_code_host_velocity(self, *, limit: int | None = None) -> ToolAnswer[PremiumCodeHostVelocityPayload]:
        """Costs 2 credits (0.04 USD) a call; fresh for 30 minutes. What gains stars on GitHub: the 30 most starred repositories of the past week with stars per day and in the last 24 hours, the 15 most starred active LLM repositories, and counts by language, topic and AI share. For a plain list use code_host_trending."""
    async def payment_balance(self) -> ToolAnswer[PaymentBalancePayload]:
        """The credits left on the bearer token that this call is made with, and when the token was issued. Costs no credits."""
    async def payment_buy_credits(self, *, amount_usd: float, claim_challenge: str | None = None, credits_per_day: int | None = None) -> ToolAnswer[PaymentBuyCreditsPayload]:
        """A quote for credits: the address to send USDC to on Base, and the memo that claims them. Nothing is charged until you pay. After paying, call payment_confirm with the transaction hash and the memo to get a token. Costs no credits."""
    async def payment_confirm(self, *, tx_hash: str, nonce: str, claim_verifier: str | None = None, payer_signature: str | None = None) -> ToolAnswer[PaymentConfirmPayload]:
        """Turn a payment into a bearer token with credits: call it after sending USDC to the address of a quote. Waits some seconds for the chain; on payment_pending, call it again with the same arguments. Each payment counts once. Costs no credits."""
    async def payment_topup(self, *, amount_usd: float | None = None, payer_signature: str | None = None, by_transfer: bool | None = None, tx_hash: str | None = None, nonce: str | None = None) -> ToolAnswer[PaymentTopupPayload]:
        """Add credits to the bearer token sent along. With an x402 wallet it takes one round trip, which without a token gives a new one. By a plain transfer it takes two calls: with amount_usd for what to pay, then with tx_hash and nonce. To buy a new token by transfer use payment_buy_credits. Costs no credits."""
    async def account_statement(self, *, from_: str | None = None, to: str | None = None, cursor: str | None = None, limit: int | None = None) -> ToolAnswer[AccountStatementPayload]:
        """Everything that happened to the credits of this token, the latest first: calls with their receipts, purchases, and what was given back. Use payment_balance for the balance alone. Costs no credits."""
    async def allowance_create(self, *, name: str, credits: int, credits_per_day: int | None = None, expires_at: str | Literal["never"] | None = None, tools: list[str] | None = None) -> ToolAnswer[AllowanceCreatePayload]:
        """A second token that spends the credits of this one, up to caps that are never crossed. Give it to an agent or a program instead of your own token. The credits stay yours until they are spent. Costs no credits."""
    async def allowance_list(self) -> ToolAnswer[AllowanceListPayload]:
        """The allowances of this token: their caps, what each has spent in all and today, and whether they are still live. Use account_statement for the single calls. Costs no credits."""
    async def allowance_revoke(self, *, id: str) -> ToolAnswer[AllowanceRevokePayload]:
        """End an allowance for good: its token is refused from the next call on. Safe to repeat. Calls that are running may still be charged. Costs no credits."""
    async def allowance_update(self, *, id: str, name: str | None = None, credits: int | None = None, credits_per_day: int | None = None, expires_at: str | Literal["never"] | None = None, tools: list[str] | None = None) -> ToolAnswer[AllowanceUpdatePayload]:
        """Change the name, caps, end or tools of an allowance; what is not given stays. It holds from the next call on. A cap below what is spent stops it. Costs no credits."""
    async def reissue_cancel(self) -> ToolAnswer[ReissueCancelPayload]:
        """Keep this token: cancel its replacement, which the account that paid for it has asked for as if it were lost. The balance shows such a request in `reissue_at` for 48 hours. Safe to repeat. Costs no credits."""
    async def token_update(self, *, credits_per_day: int | None = None, frozen: bool | None = None, alert_below: int | None = None, alert_percent: int | None = None) -> ToolAnswer[TokenUpdatePayload]:
        """Set a cap per day on this token, freeze or thaw it, set alerts; what is not given stays. Without arguments it shows what is set. All of it binds the allowances of the token too, from the next call on. Costs no credits."""
    async def webhook_deliveries(self, *, id: str, limit: int | None = None, cursor: str | None = None) -> ToolAnswer[WebhookDeliveriesPayload]:
        """The last deliveries of a webhook subscription, up to 50: when, how many attempts, how your server answered, what was charged and under which receipt. Costs no credits."""
    async def webhook_list(self) -> ToolAnswer[WebhookListPayload]:
        """The webhook subscriptions of this token: their state, when they fire next, and how the last delivery went. Free of charge. Use webhook_deliveries for the log of one of them. Costs no credits."""
    async def webhook_resend(self, *, id: str, delivery_id: str) -> ToolAnswer[WebhookResendPayload]:
        """Send an accepted delivery of the past hour again, for free: the same id and bytes, signed anew. Costs no credits."""
    async def webhook_resume(self, *, id: str) -> ToolAnswer[WebhookResumePayload]:
        """Start a paused webhook subscription again, with its next slot. Safe to repeat; the token must hold at least 1 credit. An endpoint that failed for a day can be resumed five minutes after it was paused. Costs no credits."""
    async def webhook_rotate_secret(self, *, id: str) -> ToolAnswer[WebhookRotateSecretPayload]:
        """Replace the signing secret of a webhook subscription. For 24 hours deliveries carry signatures of both secrets: Standard Webhooks in one header, ours in X-Service-Signature (new) and X-Service-Signature-Previous. Costs no credits."""
    async def webhook_subscribe(self, *, endpoint: str, webhook_url: str, params: dict[str, Any] | None = None, when: WebhookSubscribeWhen | None = None, headers: dict[str, str] | None = None, description: str | None = None) -> ToolAnswer[WebhookSubscribePayload]:
        """Have a premium payload delivered to a URL of yours about every five minutes, or when a condition comes true. Subscribing is free, with at least 1 credit; each delivered fire costs 1 credit, and one that your server does not take costs nothing. Costs no credits."""
    async def webhook_test(self, *, id: str, data: dict[str, Any] | None = None, state: Literal["fired", "cleared", "no_data"] | None = None) -> ToolAnswer[WebhookTestPayload]:
        """Send one signed test delivery with `"test": true` and see how your server answers it. It carries recorded or given values, never current ones. Costs no credits."""
    async def webhook_unsubscribe(self, *, id: str) -> ToolAnswer[WebhookUnsubscribePayload]:
        """Cancel a webhook subscription for good: it never fires again. Safe to repeat. Costs no credits."""
