// Written by `toolserver docs` from the registry: change a tool, not this file.

export interface BriefingSectionsCrypto {
  price_usd: number;
  change_24h_percent: number | null;
  volume_24h_usd: number | null;
  /** USDT is not converted */ quote: "USD" | "USDT";
}

export interface BriefingSectionsFearGreed {
  value: number;
  label: string;
}

export interface BriefingSectionsEarthquakesLatest {
  magnitude: number;
  location: string;
  time: string;
}

export interface BriefingSectionsEarthquakes {
  /** Of M2.5 and above in 24 hours */ count: number;
  latest: BriefingSectionsEarthquakesLatest | null;
}

export interface BriefingSectionsPredictions {
  question: string;
  yes_percent: number;
  no_percent: number;
  /** Past 24 hours */ volume_usd: number;
  source: string;
  url: string | null;
  ends_at: string | null;
  /** Of yes_percent */ change_1h_points: number | null;
  change_24h_points: number | null;
  liquidity_usd: number | null;
}

export interface BriefingSectionsNews {
  /** Place on the page, from 1 */ rank: number;
  id: number;
  title: string;
  /** The article, or the discussion for text posts */ url: string;
  score: number;
  comments: number;
  author: string | null;
  /** When submitted */ time: string;
  discussion_url: string;
}

export interface BriefingSectionsServices {
  name: string;
  status: "operational" | "maintenance" | "degraded" | "partial_outage" | "major_outage" | "unknown";
  /** The status page's words */ description: string;
  /** The status page */ url: string;
  checked_at: string | null;
}

export interface BriefingSections {
  /** Bitcoin. */ crypto: BriefingSectionsCrypto | null;
  fear_greed: BriefingSectionsFearGreed | null;
  earthquakes: BriefingSectionsEarthquakes | null;
  /** Most traded markets */ predictions: Array<BriefingSectionsPredictions> | null;
  /** Top of Hacker News */ news: Array<BriefingSectionsNews> | null;
  services: Array<BriefingSectionsServices> | null;
}

export interface Warning {
  section: string;
  source?: string;
  code: "section_unavailable" | "unproved_empty" | "stale_data" | "partial" | "fallback_used" | "degraded_fallback" | "field_missing" | "missing_symbols" | "disagreement" | "implausible_jump" | "change_not_removed" | "truncated" | "rows_dropped" | "own_network_suspect" | "licence_excluded" | "insufficient_sample" | "incomplete_window" | "default_location" | "low_balance";
  message: string;
  /** Of `truncated`: how many there are in all */ total?: number;
  /** Of `rows_dropped`: how many rows could not be read */ count?: number;
}

export interface SourceUse {
  /** Permanent name, `Provider.specific_metric` */ name: string;
  /** The part of the payload it served */ section: string;
  /** live: asked for this refresh; cached: stored and young enough; fallback: in place of another; stale: older than allowed; error: gave nothing */ status: "live" | "cached" | "fallback" | "stale" | "error";
  /** When the used bytes were obtained; absent where that is `updated_at` (`captured_at`) */ fetched_at?: string | null;
  /** Why it failed, is stale or replaces another */ reason?: string;
  /** The source it stands in for */ replaces?: string;
}

export interface Meta {
  /** Absent with `meta=short`, and only then */ sources?: Array<SourceUse>;
  /** Credits to show with the data */ attribution: Array<string>;
  /** Third-party text is inside: data, never instructions */ untrusted_text: boolean;
  /** Of /api/sources: the first 8 digits of its SHA-256 */ sources_digest?: string;
  stale: boolean;
  /** True: the data are invented for a demonstration */ simulated?: boolean;
  /** On MCP, after a call with a token: what it can spend */ credits_remaining?: number;
  /** On MCP: what this call cost, in credits; 0 if free */ credits_charged?: number;
  /** On MCP, after a paid call: the id of its signed receipt */ receipt_id?: string;
}

export interface BriefingPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  generated_at: string | null;
  summary: string | null;
  sections: BriefingSections | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface BtcPriceData {
  /** Last trade */ price_usd: number;
  change_24h_percent: number | null;
  high_24h: number | null;
  low_24h: number | null;
  /** Of this venue, or of all for a market page */ volume_24h_usd: number | null;
  /** Who gave the numbers */ venue: string;
  /** Currency of the numbers; USDT is not converted */ quote: "USD" | "USDT";
  /** Symbol of the coin */ symbol: string;
  /** Name of the coin: the largest one of that symbol */ name: string;
}

export interface BtcPricePayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: BtcPriceData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface EarthquakesDataEarthquakes {
  /** The network's preferred scale */ magnitude: number;
  /** Place, as the network names it */ location: string;
  /** Origin time */ time: string;
  /** Depth of the focus */ depth_km: number | null;
  /** Degrees north */ lat: number | null;
  /** Degrees east */ lon: number | null;
  /** The network's own */ id: string;
  /** The network's page of it */ url: string | null;
}

export interface EarthquakesData {
  /** All matching events; the list may be cut */ count: number;
  /** Newest first */ earthquakes: Array<EarthquakesDataEarthquakes>;
}

export interface EarthquakesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: EarthquakesData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface FindToolsDataTools {
  /** The name that it is called by */ name: string;
  /** For people */ title: string;
  /** What it answers, for models */ description: string;
  /** Who may call it */ tier: "free" | "premium" | "payment" | "account";
  /** Credits a call costs; 0: none */ cost_credits: number;
  /** Its arguments, as a JSON Schema */ input_schema: Record<string, unknown>;
  /** How to call it by HTTP, on this host */ rest: string;
  /** Where each argument goes by HTTP */ arguments_in: Record<string, "path" | "query" | "body">;
  /** How to call it over MCP, also from a host that does not list it */ mcp: string;
}

export interface FindToolsData {
  /** The query as it was sent; null: none */ query: string | null;
  /** Best first; empty: no tool has any of the words */ tools: Array<FindToolsDataTools>;
}

export interface FindToolsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: FindToolsData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ForexDataPrevious {
  date: string;
  rates: Record<string, number>;
}

export interface ForexData {
  base: "USD";
  /** Newest published day; no weekends or holidays for ecb_reference */ date: string;
  /** Units of each of 16 currencies per dollar */ rates: Record<string, number>;
  /** The day published before `date` */ previous: ForexDataPrevious | null;
  /** From `previous` to `date`, by currency */ change_percent: Record<string, number> | null;
  /** Daily ECB fixing, or mid-market */ kind: "ecb_reference" | "market_mid";
}

export interface ForexPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: ForexData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ServiceStatusData {
  name: string;
  status: "operational" | "maintenance" | "degraded" | "partial_outage" | "major_outage" | "unknown";
  /** The status page's words */ description: string;
  /** The status page */ url: string;
  checked_at: string | null;
}

export interface ServiceStatusPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** In a fixed order. */ data: Array<ServiceStatusData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface StocksQuote {
  symbol: string;
  price: number;
  /** Against previous_close */ change_percent: number;
  change: number;
  previous_close: number;
  name: string | null;
  /** Time of the price, where the provider gives it */ as_of: string | null;
  delayed: boolean | null;
  /** Older than 12 minutes in market hours */ stale: boolean;
}

export interface StocksData {
  /** Risen, most first; at most 5 unless symbols are given */ gainers: Array<StocksQuote>;
  /** Fallen, most first; at most 5 unless symbols are given */ losers: Array<StocksQuote>;
  /** S&P 500, Dow, Nasdaq Composite, Russell 2000, VIX */ indices: Array<StocksQuote>;
  /** All, by symbol */ quotes: Array<StocksQuote>;
  /** Requested, and no source has them */ unknown_symbols: Array<string>;
}

export interface StocksPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: StocksData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface TechNewsData {
  /** Place on the page, from 1 */ rank: number;
  id: number;
  title: string;
  /** The article, or the discussion for text posts */ url: string;
  score: number;
  comments: number;
  author: string | null;
  /** When submitted */ time: string;
  discussion_url: string;
}

export interface TechNewsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** In page order */ data: Array<TechNewsData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface WeatherDataCurrent {
  time: string;
  temperature_f: number;
  apparent_temperature_f: number | null;
  /** WMO 4677 */ weather_code: number | null;
  condition: string;
  wind_speed_mph: number;
  wind_direction_deg: number | null;
  humidity_percent: number;
  /** In 15 minutes; of MET Norway: in the hour to come */ precipitation_in: number | null;
  /** `time` on the clocks of the place, with the offset from UTC */ local_time: string | null;
  /** Only with units=metric */ temperature_c?: number | null;
  /** Only with units=metric */ apparent_temperature_c?: number | null;
  /** Only with units=metric */ wind_speed_kph?: number | null;
  /** Only with units=metric */ precipitation_mm?: number | null;
}

export interface WeatherDataHourly {
  time: string;
  temperature_f: number;
  weather_code: number | null;
  condition: string;
  wind_speed_mph: number;
  humidity_percent: number | null;
  precipitation_probability_percent: number | null;
  /** `time` on the clocks of the place, with the offset from UTC */ local_time: string | null;
  /** Only with units=metric */ temperature_c?: number | null;
  /** Only with units=metric */ wind_speed_kph?: number | null;
}

export interface WeatherData {
  lat: number;
  lon: number;
  /** The place that a name was found to be */ place: string | null;
  /** Of the place, by name; UTC when not known */ timezone: string;
  default_location: boolean;
  current: WeatherDataCurrent;
  /** From the current hour */ hourly: Array<WeatherDataHourly>;
  units: Record<string, string>;
}

export interface WeatherPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: WeatherData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface AiStatsDataAgents {
  name: string;
  hits: number;
}

export interface AiStatsDataRecentCalls {
  endpoint: string;
  agent: string;
  /** To the minute */ at: string;
  status: number;
  tier: string;
}

export interface AiStatsData {
  window: "24h";
  /** Calls over REST and MCP */ total_hits: number;
  /** Families of User-Agents seen */ unique_agents: number;
  /** Most calls first */ agents: Array<AiStatsDataAgents>;
  /** Newest first */ recent_calls: Array<AiStatsDataRecentCalls>;
  /** Start of the counting, when less than 24 hours ago */ since: string;
}

export interface AiStatsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: AiStatsData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface AirQualityDataStation {
  /** Reporting area */ name: string;
  distance_km: number;
  /** The one the index is of */ pollutant: string;
}

export interface AirQualityData {
  lat: number;
  lon: number;
  /** The place that a name was found to be */ place: string | null;
  default_location: boolean;
  time: string | null;
  us_aqi: number | null;
  us_aqi_band: "good" | "moderate" | "unhealthy_sensitive" | "unhealthy" | "very_unhealthy" | "hazardous" | null;
  european_aqi: number | null;
  pm2_5: number | null;
  pm10: number | null;
  ozone: number | null;
  nitrogen_dioxide: number | null;
  sulphur_dioxide: number | null;
  carbon_monoxide: number | null;
  /** Of the six concentrations */ unit: "\u00b5g/m\u00b3";
  /** Only when measured there instead of modelled here */ station: AirQualityDataStation | null;
}

export interface AirQualityPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: AirQualityData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ChainNetworkData {
  /** User transactions a second in the newest sample of about a minute */ tps: number;
  /** The same over three samples */ tpsAvg: number;
  /** All transactions a second in the newest sample, validators' votes included */ tpsTotal: number;
  slot: number;
  /** Milliseconds a slot took in the newest sample */ slotMs: number;
  epoch: number;
  /** Percent */ epochProgress: number;
  /** True if the node did not count votes separately, so that they are included */ includesVotes: boolean;
  as_of: string;
}

export interface ChainNetworkPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: ChainNetworkData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ClimateEarthquakesData {
  id: string;
  /** Null until it is published */ magnitude: number | null;
  place: string;
  /** Origin time */ time: string;
  depth_km: number | null;
  lat: number | null;
  lon: number | null;
  /** earthquake, quarry blast, … */ type: string;
  /** Flagged as possibly causing one; null: not known */ tsunami: boolean | null;
  url: string | null;
  magnitude_type: string | null;
  /** automatic or reviewed */ status: string | null;
}

export interface ClimateEarthquakesFilters {
  magnitude: "significant" | "4.5" | "2.5" | "1.0" | "all";
  period: "hour" | "day" | "week" | "month";
}

export interface ClimateEarthquakesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Newest first */ data: Array<ClimateEarthquakesData> | null;
  /** All matching events; the list may be cut */ count: number | null;
  /** For `cursor`: where the list goes on */ next_cursor: string | null;
  filters: ClimateEarthquakesFilters | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ClimateWeatherAlertsData {
  id: string;
  event: string;
  severity: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown";
  urgency: "Immediate" | "Expected" | "Future" | "Past" | "Unknown";
  certainty: "Observed" | "Likely" | "Possible" | "Unlikely" | "Unknown";
  /** Alert, Update, or Cancel: called off */ message_type: string;
  headline: string | null;
  description: string | null;
  areaDesc: string;
  sent: string;
  effective: string;
  /** When the message is void */ expires: string;
  /** When the weather ends; null: not said, or `expires` in a long list */ ends: string | null;
  sender_name: string | null;
  web: string | null;
}

export interface ClimateWeatherAlertsFilters {
  area: string | null;
  event: string | null;
  severity: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown" | null;
  urgency: "Immediate" | "Expected" | "Future" | "Past" | "Unknown" | null;
  status: "Actual" | "Exercise" | "System" | "Test" | "Draft";
  limit: number;
}

export interface ClimateWeatherAlertsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Newest first */ data: Array<ClimateWeatherAlertsData> | null;
  /** Alerts listed */ count: number | null;
  /** Alerts that match; `limit` cuts the list */ total_matching: number | null;
  /** For `cursor`: where the list goes on */ next_cursor: string | null;
  /** As understood; null: any */ filters: ClimateWeatherAlertsFilters | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface CodeHostTrendingData {
  name: string;
  full_name: string;
  description: string | null;
  url: string;
  language: string | null;
  stars: number | null;
  forks: number | null;
  topics: Array<string> | null;
  /** SPDX identifier */ license: string | null;
  owner_type: string | null;
  created_at: string | null;
  /** At least 1 */ age_days: number | null;
  stars_per_day: number | null;
}

export interface CodeHostTrendingPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Most stars first */ data: Array<CodeHostTrendingData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface CryptoMoversData {
  symbol: string;
  name: string;
  price_usd: number;
  change_24h_percent: number;
  market_cap_usd: number | null;
  volume_24h_usd: number | null;
  /** By market value */ rank: number;
  image: string | null;
}

export interface CryptoMoversPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** The biggest move first. */ data: Array<CryptoMoversData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface CyberThreatsData {
  source: "URLhaus" | "ThreatFox" | "CISA KEV" | "Feodo Tracker" | "OpenPhish";
  type: "malware_url" | "ioc" | "exploited_vulnerability" | "c2_server" | "phishing_url";
  /** Defanged: hxxp://host[.]example, or a CVE id or hash */ indicator: string;
  ioc_type: string | null;
  threat: string | null;
  /** When listed: ISO 8601 time, or a date */ date: string | null;
  severity_note: string | null;
  /** The tracker's own page */ reference: string | null;
}

export interface CyberThreatsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Newest first, undated last. */ data: Array<CyberThreatsData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface DisasterAlertsData {
  id: string;
  type: "earthquake" | "tropical_cyclone" | "flood" | "volcano" | "wildfire" | "drought" | "tsunami" | "storm";
  name: string;
  /** GDACS's; null for NASA EONET */ alert_level: "green" | "orange" | "red" | null;
  country: string | null;
  severity_text: string | null;
  started_at: string;
  ended_at: string | null;
  current: boolean | null;
  lat: number | null;
  lon: number | null;
  url: string | null;
  source: string;
}

export interface DisasterAlertsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Gravest first */ data: Array<DisasterAlertsData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface EconomicDataFigure {
  value: number;
  /** The day, or the first day of the month or quarter, it is for */ date: string;
  unit: string;
  /** Published before it, on previous_date */ previous: number | null;
  previous_date: string | null;
  /** value - previous */ change: number | null;
  /** Against 12 months earlier; cpi only */ yoy_percent: number | null;
  /** provider:series */ source: string;
}

export interface EconomicDataData {
  /** Effective federal funds rate */ fed_rate: EconomicDataFigure | null;
  /** Consumer prices, all items, seasonally adjusted */ cpi: EconomicDataFigure | null;
  unemployment: EconomicDataFigure | null;
  /** Real GDP */ gdp_growth: EconomicDataFigure | null;
  treasury_10y: EconomicDataFigure | null;
  treasury_2y: EconomicDataFigure | null;
  mortgage_30y: EconomicDataFigure | null;
  /** 10 years less 2 years, same day and source */ yield_curve_2s10s: EconomicDataFigure | null;
}

export interface EconomicDataPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: EconomicDataData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ExposureLookupDataResults {
  ip: string;
  name: string | null;
  /** False: the scan has nothing on it */ indexed: boolean;
  ports: Array<number>;
  cves: Array<string>;
  hostnames: Array<string>;
  tags: Array<string>;
  cpes: Array<string>;
  checked_at: string;
}

export interface ExposureLookupData {
  mode: "single" | "curated";
  results: Array<ExposureLookupDataResults>;
}

export interface ExposureLookupPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: ExposureLookupData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface FearGreedData {
  /** 0 extreme fear, 100 extreme greed */ value: number;
  /** The publisher's word for it */ label: string;
  /** Which index: they are not comparable */ index: "alternative.me" | "coinmarketcap";
  as_of: string;
  /** The value before this one */ previous_value: number | null;
  next_update_at: string | null;
}

export interface FearGreedPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: FearGreedData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface FundingRatesDataTop {
  venue: "binance" | "bybit" | "hyperliquid" | "dydx" | "okx";
  symbol: string;
  /** Fraction paid per period; positive: longs pay */ period_rate: number;
  period_hours: number;
  annualized_percent: number;
  /** dYdX: its oracle's price */ mark_price: number | null;
  next_funding_time: string | null;
  /** As forecast by Hyperliquid, the venue itself being silent */ predicted: boolean;
}

export interface FundingRatesDataVenues {
  name: "binance" | "bybit" | "hyperliquid" | "dydx" | "okx";
  status: "ok" | "predicted" | "replaced" | "unavailable";
  /** Contracts compared; null when the venue gave none */ markets: number | null;
}

export interface FundingRatesData {
  /** Largest annualized rate of either sign first */ top: Array<FundingRatesDataTop>;
  venues: Array<FundingRatesDataVenues>;
}

export interface FundingRatesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: FundingRatesData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface GamePlatformTopData {
  rank: number;
  app_id: number;
  name: string;
  players_now: number | null;
  peak_today: number | null;
  peak_yesterday: number | null;
  url: string;
}

export interface GamePlatformTopPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Most played first */ data: Array<GamePlatformTopData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface GasData {
  /** Enough within minutes, base fee included */ low: number;
  standard: number;
  /** Enough for the next block */ fast: number;
  /** Of the next block */ base_fee: number | null;
  unit: "gwei";
  /** The newest block looked at */ block: number | null;
  as_of: string;
  /** From fees paid in the last 20 blocks, or an explorer's estimate */ method: "fee_history" | "explorer";
}

export interface GasPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: GasData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface HarnessesDataBenchmarksResults {
  /** harness:model */ id: string;
  harness: string;
  model: string | null;
  score: number;
  reported_at: string | null;
  /** Whether the board's makers checked it */ verified: boolean | null;
  source_url: string | null;
}

export interface HarnessesDataBenchmarks {
  id: string;
  name: string;
  unit: string;
  source_url: string;
  licence: string;
  /** Day of the newest result; of the copy where results carry other days or none */ as_of: string;
  caveat: string;
  /** Best first */ results: Array<HarnessesDataBenchmarksResults>;
}

export interface HarnessesFreshness {
  /** When the oldest of the boards was read */ checked_at: string | null;
  newest_result: string | null;
}

export interface HarnessesData {
  view: "raw";
  generated_at: string;
  schema_version: 2;
  benchmarks: Array<HarnessesDataBenchmarks>;
  freshness: HarnessesFreshness;
}

export interface HarnessesDataBenchmarksTop {
  harness: string;
  model: string | null;
  score: number;
}

export interface HarnessesDataBenchmarks2 {
  id: string;
  name: string;
  unit: string;
  top: HarnessesDataBenchmarksTop;
}

export interface HarnessesCombined {
  harness: string;
  model: string;
  /** Mean over its benchmarks of percent of the best score */ combined_score: number;
  benchmarks: number;
  /** Share of the benchmarks that count */ coverage: number;
}

export interface HarnessesScored {
  harness: string;
  score: number;
}

export interface HarnessesGap {
  benchmark: string;
  model: string;
  best: HarnessesScored;
  worst: HarnessesScored;
  delta: number;
}

export interface HarnessesData2 {
  view: "summary";
  generated_at: string;
  benchmarks: Array<HarnessesDataBenchmarks2>;
  top_combined: Array<HarnessesCombined>;
  biggest_gaps: Array<HarnessesGap>;
  freshness: HarnessesFreshness;
}

export interface HarnessesData3 {
  view: "gaps";
  generated_at: string;
  /** Widest first */ gaps: Array<HarnessesGap>;
}

export interface HarnessesData4 {
  view: "combined";
  generated_at: string;
  /** Best first */ leaderboard: Array<HarnessesCombined>;
}

export interface HarnessesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** One of four views on the same boards. */ data: HarnessesData | HarnessesData2 | HarnessesData3 | HarnessesData4 | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface HealthData {
  status: "ok" | "degraded";
  version: string;
  /** Seconds since the process started */ uptime: number;
  /** Now, Unix milliseconds */ ts: number;
}

export interface HealthPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  data: HealthData | null;
  status: "ok" | "degraded" | null;
  version: string | null;
  uptime: number | null;
  ts: number | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface HumansInSpaceDataPeople {
  name: string;
  craft: string;
  agency: string | null;
}

export interface HumansInSpaceData {
  count: number;
  /** By craft, then name */ people: Array<HumansInSpaceDataPeople>;
  as_of: string;
  /** What as_of is the time of */ as_of_kind: "checked" | "newest_launch";
}

export interface HumansInSpacePayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: HumansInSpaceData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface InternetPulseData {
  name: string;
  /** Median TCP connect time from this server; -1: unreachable */ latency_ms: number;
}

export interface InternetPulsePayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** The targets, in the order of the settings. */ data: Array<InternetPulseData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface LaunchesData {
  id: string;
  name: string;
  provider: string | null;
  vehicle: string | null;
  mission: string | null;
  mission_type: string | null;
  status: string;
  status_code: string | null;
  /** No earlier than */ scheduled_time: string | null;
  time_precision: "second" | "minute" | "hour" | "day" | "month" | "unknown";
  window_start: string | null;
  window_end: string | null;
  pad: string | null;
  location: string | null;
  /** Of the pad, in degrees; null from the fallback */ lat: number | null;
  /** Of the pad, in degrees; null from the fallback */ lon: number | null;
  url: string | null;
  /** The date in words, from the fallback only */ date_text: string | null;
}

export interface LaunchesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Soonest first */ data: Array<LaunchesData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ModelHubTrendingData {
  id: string;
  author: string | null;
  name: string;
  /** Of all time */ likes: number;
  /** Past 30 days */ downloads: number | null;
  pipeline: string | null;
  url: string;
  updated: string | null;
}

export interface ModelHubTrendingPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** As the hub orders */ data: Array<ModelHubTrendingData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface PaymentNoChargeStatsEvents {
  /** Its leaf in the log; null: its hour is not in the log yet */ seq: number | null;
  /** UTC, milliseconds */ ts: string;
  reason: string;
  endpoint: string;
  /** What it would have cost */ credits: number;
  /** SHA-256 of the receipt's core; null: no receipt was fetched */ receipt_sha256: string | null;
}

export interface PaymentNoChargeStatsLog {
  origin: string;
  size: number;
  /** Merkle root, base64 */ root: string;
  /** Calls that are booked and will be in the log when their hour is over */ waiting: number;
}

export interface PaymentNoChargeStatsDates {
  date: string;
  count: number;
}

export interface PaymentNoChargeStatsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  date: string | null;
  /** Calls not charged on that day */ count: number | null;
  credits_skipped: number | null;
  by_reason: Record<string, number> | null;
  by_endpoint: Record<string, number> | null;
  /** The last ones, newest first */ events: Array<PaymentNoChargeStatsEvents> | null;
  /** The log that gets every event when its hour is over, as it was last signed */ log: PaymentNoChargeStatsLog | null;
  /** Null unless asked for; the last day first */ dates: Array<PaymentNoChargeStatsDates> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface PredictionsData {
  question: string;
  yes_percent: number;
  no_percent: number;
  /** Past 24 hours */ volume_usd: number;
  source: string;
  url: string | null;
  ends_at: string | null;
  /** Of yes_percent */ change_1h_points: number | null;
  change_24h_points: number | null;
  liquidity_usd: number | null;
}

export interface PredictionsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Largest volume first */ data: Array<PredictionsData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ReceiptVerifyReceipt {
  /** The receipt as a JWS */ signature: string;
  /** Name of the key that signed it */ key_id: string;
}

export interface ReceiptVerifyChecks {
  /** It is written as a receipt is */ format: boolean | null;
  /** The key is one of those trusted here */ key_known: boolean | null;
  signature: boolean | null;
  /** The key was in use then, and is not revoked */ key_time: boolean | null;
  /** It is about the body whose hash was given; null: none was */ body: boolean | null;
  /** The log of uncharged calls has it; null: it names no place there */ in_log: boolean | null;
}

export interface ReceiptVerifyPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** No check failed */ valid: boolean | null;
  /** Null: not asked for, or an earlier one failed */ checks: ReceiptVerifyChecks | null;
  key_id: string | null;
  /** What the receipt says; null unless the signature is good */ core: Record<string, unknown> | null;
  /** Why it is not valid; absent when it is */ error?: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface SevereWeatherDataCountsBySeverity {
  Extreme: number;
  Severe: number;
  Moderate: number;
  Minor: number;
  Unknown: number;
}

export interface SevereWeatherDataTop {
  id: string;
  event: string;
  severity: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown";
  urgency: "Immediate" | "Expected" | "Future" | "Past" | "Unknown";
  certainty: "Observed" | "Likely" | "Possible" | "Unlikely" | "Unknown";
  /** Severity x urgency x certainty, 0.125 to 64 */ score: number;
  area: string;
  headline: string | null;
  effective: string;
  /** When the message is void */ expires: string;
  /** When the weather ends */ ends: string | null;
  sender: string | null;
  /** tornado, tropical, flood, thunderstorm, winter, fire, heat, wind, marine, other */ category: string;
  url: string | null;
}

export interface SevereWeatherData {
  /** Alerts in force; the list shows the gravest */ total_active: number;
  counts_by_severity: SevereWeatherDataCountsBySeverity;
  /** Highest score first */ top: Array<SevereWeatherDataTop>;
}

export interface SevereWeatherPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: SevereWeatherData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface SpaceWeatherDataActiveAlerts {
  product_id: string;
  code: string | null;
  kind: "alert" | "warning" | "watch" | "summary";
  title: string;
  issued_at: string;
  valid_to: string | null;
  message: string;
}

export interface SpaceWeatherData {
  /** Planetary K, 0-9, newest three hours */ kp_index: number | null;
  /** Start of them */ kp_time: string | null;
  /** Right now */ kp_estimated: number | null;
  /** Of kp_index: 5 is minor, 9 extreme */ storm_level: "quiet" | "minor" | "moderate" | "strong" | "severe" | "extreme" | null;
  solar_wind_speed_kms: number | null;
  solar_wind_density_cm3: number | null;
  solar_wind_time: string | null;
  flare_peak_class_24h: string | null;
  flare_class_letter: "A" | "B" | "C" | "M" | "X" | null;
  flare_peak_time: string | null;
  /** Newest first */ active_alerts: Array<SpaceWeatherDataActiveAlerts> | null;
}

export interface SpaceWeatherPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: SpaceWeatherData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface VolcanoesData {
  name: string;
  country: string | null;
  summary: string | null;
  link: string;
  category: string | null;
  report_period: string | null;
  published_at: string | null;
  /** Number in the Smithsonian catalogue */ vnum: string | null;
  lat: number | null;
  lon: number | null;
  us_alert_level: string | null;
  us_color_code: string | null;
  source: string;
}

export interface VolcanoesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Newest first */ data: Array<VolcanoesData> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface WildfiresDataTop {
  lat: number;
  lon: number;
  /** Fire radiative power */ frp_mw: number;
  confidence: "low" | "nominal" | "high";
  detected_at: string;
  satellite: string;
  daynight: "D" | "N" | null;
  /** U.S. state, by boxes */ approx_state: string | null;
}

export interface WildfiresDataIncidents {
  name: string;
  state: string | null;
  acres: number | null;
  contained_percent: number | null;
  discovered_at: string | null;
}

export interface WildfiresData {
  window_hours: 24;
  total_detections: number;
  /** Satellites that could be read */ by_satellite: Record<string, number>;
  /** Most radiative power first */ top: Array<WildfiresDataTop>;
  /** Largest first */ incidents: Array<WildfiresDataIncidents> | null;
}

export interface WildfiresPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Null only when no source has ever answered */ data: WildfiresData | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface PremiumAgentContextContextDatetime {
  iso: string;
  unix_ms: number;
  human_readable_utc: string;
  weekday: string;
}

export interface PremiumAgentContextContextMarketsBtc {
  price_usd: number;
  change_24h_percent: number | null;
  /** USD */ volume_24h: number | null;
  /** USDT is not converted */ quote: "USD" | "USDT";
  as_of: string;
}

export interface PremiumAgentContextContextMarketsCryptoFearGreed {
  value: number;
  label: string;
  source: "alternative.me" | "coinmarketcap";
  as_of: string;
}

export interface PremiumAgentContextContextMarketsVix {
  value: number;
  change_percent: number | null;
  source: string;
  freshness: "delayed" | "real_time" | "previous_close";
  as_of: string | null;
}

export interface PremiumAgentContextContextMarketsFedFundsRate {
  /** Effective rate, percent */ value: number;
  as_of: string;
  target_from: number | null;
  target_to: number | null;
}

export interface PremiumAgentContextContextMarketsForexUsdBase {
  EUR: number | null;
  JPY: number | null;
  GBP: number | null;
  CHF: number | null;
  date: string;
  kind: "ecb_reference" | "market_mid";
}

export interface PremiumAgentContextContextMarkets {
  btc: PremiumAgentContextContextMarketsBtc | null;
  crypto_fear_greed: PremiumAgentContextContextMarketsCryptoFearGreed | null;
  vix: PremiumAgentContextContextMarketsVix | null;
  fed_funds_rate: PremiumAgentContextContextMarketsFedFundsRate | null;
  forex_usd_base: PremiumAgentContextContextMarketsForexUsdBase | null;
}

export interface PremiumAgentContextContextWorldEventsSignificantEarthquakes24h {
  magnitude: number;
  place: string;
  time: string;
  url: string | null;
}

export interface PremiumAgentContextContextWorldEventsUpcomingSpaceLaunches {
  mission: string;
  vehicle: string | null;
  provider: string | null;
  /** No earlier than */ net: string | null;
  time_precision: "second" | "minute" | "hour" | "day" | "month" | "unknown";
  status: string;
}

export interface PremiumAgentContextContextWorldEventsNewsFrontPageTop5 {
  title: string;
  points: number;
  comments: number;
  url: string;
}

export interface PremiumAgentContextContextWorldEventsPredictionMarketsTop3 {
  question: string;
  yes_probability: number;
  /** USD */ volume_24h: number;
  url: string | null;
}

export interface PremiumAgentContextContextWorldEvents {
  /** M6+ or flagged significant by USGS, largest first */ significant_earthquakes_24h: Array<PremiumAgentContextContextWorldEventsSignificantEarthquakes24h> | null;
  /** Soonest first */ upcoming_space_launches: Array<PremiumAgentContextContextWorldEventsUpcomingSpaceLaunches> | null;
  /** Hacker News */ news_front_page_top5: Array<PremiumAgentContextContextWorldEventsNewsFrontPageTop5> | null;
  /** Most traded */ prediction_markets_top3: Array<PremiumAgentContextContextWorldEventsPredictionMarketsTop3> | null;
}

export interface PremiumAgentContextContextInfrastructureDetails {
  GitHub: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
  Cloudflare: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
  OpenAI: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
  Anthropic: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
}

export interface PremiumAgentContextContextInfrastructure {
  summary: string;
  details: PremiumAgentContextContextInfrastructureDetails;
  /** False when the state of one is unknown */ all_operational: boolean;
}

export interface PremiumAgentContextContext {
  datetime: PremiumAgentContextContextDatetime;
  markets: PremiumAgentContextContextMarkets;
  /** Null: no source answered. Empty: the source answered with none. */ world_events: PremiumAgentContextContextWorldEvents;
  infrastructure: PremiumAgentContextContextInfrastructure;
}

export interface PremiumAgentContextPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  context: PremiumAgentContextContext;
  /** Plain text of about 350 tokens */ system_prompt: string;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumBriefingSectionsBtc {
  price_usd: number;
  change_24h_percent: number | null;
  /** USD, past 24 hours */ volume_24h: number | null;
  high_24h: number | null;
  low_24h: number | null;
  venue: string;
  /** USDT is not converted */ quote: "USD" | "USDT";
}

export interface PremiumBriefingSectionsFearGreed {
  /** 0 extreme fear, 100 extreme greed */ value: number;
  label: string;
  source: "alternative.me" | "coinmarketcap";
}

export interface PremiumBriefingSectionsEarthquakesLatest {
  magnitude: number;
  place: string;
  /** Unix ms */ time: number;
}

export interface PremiumBriefingSectionsEarthquakes {
  /** Of M2.5 and above in 24 hours */ count: number;
  latest: PremiumBriefingSectionsEarthquakesLatest | null;
}

export interface PremiumBriefingSectionsTechNews {
  /** Stories on the front page of Hacker News, at most 30 */ top_story_count: number;
}

export interface PremiumBriefingSectionsHumansInSpace {
  count: number;
  names: Array<string>;
}

export interface PremiumBriefingSectionsPredictionsTopOutcomes {
  name: string;
  /** Probability */ price: number;
}

export interface PremiumBriefingSectionsPredictionsTop {
  question: string;
  /** USD */ volume_24hr: number;
  outcomes: Array<PremiumBriefingSectionsPredictionsTopOutcomes>;
}

export interface PremiumBriefingSectionsPredictions {
  /** Open yes/no markets seen */ count: number;
  /** Most traded */ top: Array<PremiumBriefingSectionsPredictionsTop>;
}

export interface PremiumBriefingSections {
  btc?: PremiumBriefingSectionsBtc | null;
  fear_greed?: PremiumBriefingSectionsFearGreed | null;
  earthquakes?: PremiumBriefingSectionsEarthquakes | null;
  tech_news?: PremiumBriefingSectionsTechNews | null;
  humans_in_space?: PremiumBriefingSectionsHumansInSpace | null;
  predictions?: PremiumBriefingSectionsPredictions | null;
}

export interface PremiumBriefingSeriesBtc24h {
  /** Start of the hour, Unix ms */ ts: number;
  /** Last price of the hour */ price: number;
}

export interface PremiumBriefingSeries {
  /** Hours that are over, oldest first */ btc_24h: Array<PremiumBriefingSeriesBtc24h> | null;
}

export interface PremiumBriefingPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Absent: not asked for. Null: no source answered. */ sections: PremiumBriefingSections;
  /** Only with history */ series?: PremiumBriefingSeries | null;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumCorrelationMatrixAssets {
  symbol: string;
  asset_class: "commodity" | "rates" | "fx";
  /** In the last 75 days */ observations: number;
  first_date: string | null;
  last_date: string | null;
  source: string | null;
}

export interface PremiumCorrelationMatrixPairs {
  a: string;
  b: string;
  pearson_r: number;
  /** Returns */ n_observations: number;
  relationship: "negligible" | "weak" | "moderate" | "strong";
  direction: "positive" | "negative" | "none";
  /** Yields by first differences; only for pairs with a yield */ pearson_r_yield_diff: number | null;
  /** Of the returns */ first_date: string;
  last_date: string;
}

export interface PremiumCorrelationMatrixSampleSize {
  assets_requested: number;
  assets_with_data: number;
  pairs_computed: number;
  /** Observations by symbol */ data_availability: Record<string, number>;
}

export interface PremiumCorrelationMatrixPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  window: "30d";
  method: string;
  assets: Array<PremiumCorrelationMatrixAssets>;
  /** Largest |r| first */ pairs: Array<PremiumCorrelationMatrixPairs>;
  /** pearson_r by symbol and symbol; null: no pair */ matrix: Record<string, Record<string, number | null>>;
  sample_size: PremiumCorrelationMatrixSampleSize;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumCryptoDeepCoinsTop50 {
  symbol: string;
  name: string;
  price_usd: number;
  change_1h_percent: number | null;
  change_24h_percent: number | null;
  change_7d_percent: number | null;
  /** USD */ market_cap: number | null;
  /** USD, all venues */ volume_24h: number | null;
  /** By market value */ rank: number;
}

export interface PremiumCryptoDeepExchangeTop20Usdt {
  pair: string;
  price: number;
  change_24h_percent: number | null;
  /** In the quote currency; of Kraken in USD over the coin's pairs */ volume_24h: number;
  high_24h: number;
  low_24h: number;
  trades_24h: number | null;
  venue: string;
}

export interface PremiumCryptoDeepNetworkBtcFeesSatPerVb {
  fastest: number;
  half_hour: number;
  hour: number;
  economy: number;
  minimum: number;
}

export interface PremiumCryptoDeepNetworkBtcHashrate {
  /** Exahashes a second */ current_eh_s: number;
  current_difficulty: number;
}

export interface PremiumCryptoDeepNetworkBtcMempool {
  count: number;
  vsize: number;
  total_fee_sat: number;
}

export interface PremiumCryptoDeepNetworkBtc {
  block_height: number | null;
  fees_sat_per_vb: PremiumCryptoDeepNetworkBtcFeesSatPerVb | null;
  hashrate: PremiumCryptoDeepNetworkBtcHashrate | null;
  mempool: PremiumCryptoDeepNetworkBtcMempool | null;
}

export interface PremiumCryptoDeepEthGas {
  low_gwei: number;
  standard_gwei: number;
  fast_gwei: number;
  base_fee_gwei: number | null;
  last_block: number | null;
  low_gwei_exact: number;
  standard_gwei_exact: number;
  fast_gwei_exact: number;
}

export interface PremiumCryptoDeepSeriesBtc30d {
  /** Start of the UTC day, Unix ms */ ts: number;
  low: number;
  high: number;
  open: number;
  close: number;
  /** BTC */ volume: number;
}

export interface PremiumCryptoDeepSeries {
  /** Days that are over, oldest first */ btc_30d: Array<PremiumCryptoDeepSeriesBtc30d> | null;
}

export interface PremiumCryptoDeepPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Largest first */ coins_top50: Array<PremiumCryptoDeepCoinsTop50> | null;
  /** Most traded first */ exchange_top20_usdt: Array<PremiumCryptoDeepExchangeTop20Usdt> | null;
  network_btc: PremiumCryptoDeepNetworkBtc | null;
  eth_gas: PremiumCryptoDeepEthGas | null;
  /** Only with history */ series?: PremiumCryptoDeepSeries | null;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumExchangeFlowsBlocksScanned {
  number: number;
  time: string;
  tx_count: number;
}

export interface PremiumExchangeFlowsFlowsByExchange {
  exchange: string;
  inflow_eth: number;
  outflow_eth: number;
  /** Inflow less outflow */ net_eth: number;
  inflow_count: number;
  outflow_count: number;
  inflow_usd: number | null;
  outflow_usd: number | null;
  net_usd: number | null;
}

export interface PremiumExchangeFlowsRecentTransfers {
  tx_hash: string;
  /** Internal ones are not listed */ direction: "inflow" | "outflow" | "inter_exchange" | "internal";
  /** The one that receives or pays; between two, the one that pays */ exchange: string;
  /** The other address; null: a contract was made */ counterparty: string | null;
  counterparty_exchange: string | null;
  value_eth: number;
  value_usd: number | null;
  block_number: number;
  block_time: string;
  explorer_url: string;
}

export interface PremiumExchangeFlowsAggregate {
  /** Inflows and outflows */ transfer_count: number;
  inter_exchange_count: number;
  total_inflow_eth: number;
  total_outflow_eth: number;
  net_flow_eth: number;
  net_flow_usd: number | null;
  bias: "inflow_dominant" | "outflow_dominant" | "balanced";
}

export interface PremiumExchangeFlowsThreshold {
  min_eth: number;
  balanced_rule: string;
  rationale: string;
}

export interface PremiumExchangeFlowsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  spot_eth_usd: number | null;
  /** Newest first */ blocks_scanned: Array<PremiumExchangeFlowsBlocksScanned>;
  /** All tracked, largest net flow first */ flows_by_exchange: Array<PremiumExchangeFlowsFlowsByExchange>;
  /** Newest block first, largest first in it */ recent_transfers: Array<PremiumExchangeFlowsRecentTransfers>;
  aggregate: PremiumExchangeFlowsAggregate;
  threshold: PremiumExchangeFlowsThreshold;
  exchanges_tracked: Array<string>;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumMacroDatedValue {
  date: string;
  value: number;
}

export interface PremiumMacroEconomicFigure {
  /** Newest published */ value: number | null;
  /** The day, or the first day of the month or quarter, it is for */ date: string;
  /** provider:series */ source: string;
  unit: string;
  /** Only with history: newest 30 at its own frequency, oldest first */ series?: Array<PremiumMacroDatedValue> | null;
}

export interface PremiumMacroEconomic {
  fed_rate: PremiumMacroEconomicFigure | null;
  cpi: PremiumMacroEconomicFigure | null;
  unemployment: PremiumMacroEconomicFigure | null;
  gdp_growth: PremiumMacroEconomicFigure | null;
  treasury_10y: PremiumMacroEconomicFigure | null;
}

export interface PremiumMacroForex {
  base: "USD";
  date: string;
  /** EUR, JPY, GBP, CHF per dollar */ rates: Record<string, number>;
  kind: "ecb_reference" | "market_mid";
  /** Only with history: newest 30 published days by currency, oldest first */ series?: Record<string, Array<PremiumMacroDatedValue>> | null;
}

export interface PremiumMacroGoldPriced {
  /** Troy ounce */ price_usd: number;
  source: string;
  as_of: string;
}

export interface PremiumMacroCommodityPriced {
  /** Barrel of oil, million Btu of gas */ price_usd: number;
  date: string;
  source: string;
}

export interface PremiumMacroCommodities {
  gold: PremiumMacroGoldPriced | null;
  /** Always null: there is no source */ silver: PremiumMacroGoldPriced | null;
  oil: PremiumMacroCommodityPriced | null;
  nat_gas: PremiumMacroCommodityPriced | null;
}

export interface PremiumMacroMarketFigure {
  price: number;
  /** Against the previous close */ change: number;
  change_percent: number;
  as_of: string | null;
  source: string;
  freshness: "delayed" | "real_time" | "previous_close";
}

export interface PremiumMacroMarkets {
  spy: PremiumMacroMarketFigure | null;
  dia: PremiumMacroMarketFigure | null;
  qqq: PremiumMacroMarketFigure | null;
  vix: PremiumMacroMarketFigure | null;
}

export interface PremiumMacroPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  economic: PremiumMacroEconomic;
  forex: PremiumMacroForex | null;
  commodities: PremiumMacroCommodities;
  markets: PremiumMacroMarkets;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumSentimentMarketIndicesCryptoFearGreed {
  /** 0 extreme fear, 100 extreme greed */ value: number;
  label: string;
  source: "alternative.me" | "coinmarketcap";
}

export interface PremiumSentimentMarketIndicesStocksVix {
  value: number;
  /** Against the close before */ change_percent: number;
  label: "low_volatility" | "normal" | "elevated" | "high_volatility" | "unknown";
  source: string;
}

export interface PremiumSentimentMarketIndices {
  crypto_fear_greed: PremiumSentimentMarketIndicesCryptoFearGreed | null;
  stocks_vix: PremiumSentimentMarketIndicesStocksVix | null;
}

export interface PremiumSentimentTrendingSampleHeadlines {
  title: string;
  url: string | null;
  source: string;
  sentiment_signal: "+" | "-" | "neutral";
}

export interface PremiumSentimentTrending {
  symbol: string;
  asset_class: "crypto" | "equity" | "crypto-equity";
  mention_count_24h: number;
  /** Mentions by publisher */ sources: Record<string, number>;
  /** Mean over the headlines that name it */ sentiment_score: number;
  sentiment_label: "negative" | "moderately_negative" | "neutral" | "moderately_positive" | "positive";
  sample_headlines: Array<PremiumSentimentTrendingSampleHeadlines>;
  /** By the number of mentions */ confidence: "low" | "medium" | "high";
}

export interface PremiumSentimentPredictionMarketsSignals {
  question: string;
  yes_probability: number | null;
  /** USD */ volume_24h: number;
  url: string | null;
}

export interface PremiumSentimentSampleSize {
  /** Of the window, each story once, with or without a ticker */ headlines_scanned: number;
  tickers_with_mentions: number;
  /** Headline feeds that answered */ sources_ok: number;
  /** Headline feeds that were asked and gave nothing, as in _meta */ sources_failed: number;
  window_hours: number;
}

export interface PremiumSentimentPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  market_indices: PremiumSentimentMarketIndices;
  /** Most named first; null: too few headlines to tell */ trending: Array<PremiumSentimentTrending> | null;
  /** Markets about money, most traded first */ prediction_markets_signals: Array<PremiumSentimentPredictionMarketsSignals> | null;
  sample_size: PremiumSentimentSampleSize;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumWhalesSpotPrices {
  btc_usd: number | null;
  eth_usd: number | null;
}

export interface PremiumWhalesBtcWhalesUnconfirmed {
  tx_hash: string;
  /** Paid to others, change removed unless a warning says otherwise */ value_btc: number;
  /** All outputs, change included */ value_btc_total: number;
  value_usd: number | null;
  fee_sats: number | null;
  vsize: number | null;
  fee_sat_per_vb: number | null;
  first_seen: string;
  /** It waited for a block when it was seen */ confirmed: false;
  explorer_url: string;
}

export interface PremiumWhalesEthWhalesLatestBlock {
  tx_hash: string;
  from: string;
  /** Null: it made a contract */ to: string | null;
  /** The exchange, where the wallet is a known one */ from_label: string | null;
  to_label: string | null;
  value_eth: number;
  value_usd: number | null;
  block_number: number;
  block_time: string;
  confirmed: true;
  explorer_url: string;
}

export interface PremiumWhalesEthBlock {
  number: number;
  time: string;
}

export interface PremiumWhalesEthBlocksScanned {
  number: number;
  time: string;
  tx_count: number;
}

export interface PremiumWhalesAggregate {
  btc_whale_count: number | null;
  btc_whale_total_btc: number | null;
  btc_whale_total_usd: number | null;
  eth_whale_count: number | null;
  eth_whale_total_eth: number | null;
  eth_whale_total_usd: number | null;
}

export interface PremiumWhalesThresholds {
  btc_min_btc: number;
  eth_min_eth: number;
  /** Transactions seen in the window */ btc_sample_txs: number;
  /** How long they have been watched, at most 1800 */ btc_window_s: number;
  rationale: string;
}

export interface PremiumWhalesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  spot_prices: PremiumWhalesSpotPrices;
  /** Largest first */ btc_whales_unconfirmed: Array<PremiumWhalesBtcWhalesUnconfirmed> | null;
  /** In the blocks scanned, largest first */ eth_whales_latest_block: Array<PremiumWhalesEthWhalesLatestBlock> | null;
  /** The newest one scanned */ eth_block: PremiumWhalesEthBlock | null;
  eth_blocks_scanned: Array<PremiumWhalesEthBlocksScanned>;
  /** Of all that was found, also where the list is cut. */ aggregate: PremiumWhalesAggregate;
  thresholds: PremiumWhalesThresholds;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumWorldDeltasEventsData {
  id: string;
  magnitude: number;
  place: string;
  depth_km: number | null;
  lat: number | null;
  lon: number | null;
  /** Null: the source has no such flag */ tsunami: boolean | null;
  mag_type: string | null;
  url: string | null;
  updated: string | null;
}

export interface PremiumWorldDeltasEventsData2 {
  id: number;
  title: string;
  url: string;
  points: number;
  num_comments: number | null;
  author: string | null;
  created_at: string;
  first_seen_at: string;
}

export interface PremiumWorldDeltasEventsData3 {
  id: string;
  question: string;
  yes_probability: number;
  /** Of yes_probability; null for some markets opened within the hour */ change_1h: number | null;
  /** USD */ volume_24h: number;
  url: string | null;
  source: string;
}

export interface PremiumWorldDeltasEventsData4 {
  id: string;
  name: string;
  mission: string | null;
  vehicle: string | null;
  provider: string | null;
  status: string;
  /** No earlier than */ net: string;
  window: "recent" | "upcoming";
  pad: string | null;
  url: string | null;
}

export interface PremiumWorldDeltasEvents {
  type: "earthquake" | "tech_news_story" | "prediction_market_update" | "space_launch";
  timestamp: string;
  severity: "minor" | "moderate" | "major";
  /** By type */ data: PremiumWorldDeltasEventsData | PremiumWorldDeltasEventsData2 | PremiumWorldDeltasEventsData3 | PremiumWorldDeltasEventsData4;
}

export interface PremiumWorldDeltasSampleSize {
  events_in_rolling_hour: number;
  events_after_since_filter: number;
  /** Sources that gave something */ sources_ok: number;
  /** Sources that were asked and gave nothing, as in _meta */ sources_failed: number;
}

export interface PremiumWorldDeltasPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  since: string;
  since_clamped: boolean;
  /** Latest first, launches ahead included */ events: Array<PremiumWorldDeltasEvents>;
  /** Events listed, by type; a type whose sources failed is absent */ counts: Record<string, number>;
  sample_size: PremiumWorldDeltasSampleSize;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumCodeHostVelocityWindow {
  created_within_days: number;
  active_within_days: number;
}

export interface PremiumCodeHostVelocityTrendingRepos {
  full_name: string;
  description: string | null;
  url: string;
  language: string | null;
  topics: Array<string>;
  /** SPDX identifier */ license: string | null;
  owner: string;
  owner_type: "User" | "Organization" | null;
  stars: number;
  forks: number;
  open_issues: number;
  created_at: string;
  pushed_at: string | null;
  /** Gained since a day ago, where it was counted then */ stars_24h: number | null;
  is_ai_ml: boolean;
  age_days: number;
  stars_per_day: number;
}

export interface PremiumCodeHostVelocityAiMlReposActive30d {
  full_name: string;
  description: string | null;
  url: string;
  language: string | null;
  topics: Array<string>;
  /** SPDX identifier */ license: string | null;
  owner: string;
  owner_type: "User" | "Organization" | null;
  stars: number;
  forks: number;
  open_issues: number;
  created_at: string;
  pushed_at: string | null;
  /** Gained since a day ago, where it was counted then */ stars_24h: number | null;
  is_ai_ml: boolean;
}

export interface PremiumCodeHostVelocityByLanguage {
  /** unknown: GitHub names none */ language: string;
  count: number;
  total_stars: number;
}

export interface PremiumCodeHostVelocityByTopic {
  topic: string;
  count: number;
}

export interface PremiumCodeHostVelocityAggregate {
  trending_count: number | null;
  total_stars_in_trending: number | null;
  ai_ml_in_trending_count: number | null;
  ai_ml_share_percent: number | null;
  ai_ml_active_30d_count: number | null;
  /** How many different ones are known */ languages_in_trending: number | null;
  auth_used: "authenticated" | "unauthenticated";
}

export interface PremiumCodeHostVelocityPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  window: PremiumCodeHostVelocityWindow;
  /** Most stars first */ trending_repos: Array<PremiumCodeHostVelocityTrendingRepos> | null;
  /** Most stars first */ ai_ml_repos_active_30d: Array<PremiumCodeHostVelocityAiMlReposActive30d> | null;
  /** Of trending_repos */ by_language: Array<PremiumCodeHostVelocityByLanguage> | null;
  /** Of trending_repos */ by_topic: Array<PremiumCodeHostVelocityByTopic> | null;
  aggregate: PremiumCodeHostVelocityAggregate;
  notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PaymentBalancePayload {
  /** What can still be spent */ credits: number;
  /** When the token was issued */ issued_at: string;
  /** When another token replaces this one, because the account that paid for it reported it lost; reissue_cancel prevents it. Null without such a request */ reissue_at?: string | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface PaymentBuyCreditsQuote {
  amount_usd: number;
  /** 50 for each US dollar, rounded down */ credits: number;
  chain: "base";
}

export interface PaymentBuyCreditsPayload {
  /** Send USDC here, in one transfer */ wallet: string;
  /** A secret: it claims the token. Never put it on the chain */ memo: string;
  quote: PaymentBuyCreditsQuote;
  expires_at: string;
  network: "eip155:8453";
  /** USDC on Base; no other token counts */ token_contract: string;
  /** The amount in 0.000001 USDC */ amount_atomic: number;
  /** The payment for wallets (EIP-681) */ payment_uri: string;
  /** A note to the payment, if you want one: this and not the memo */ memo_commitment: string;
  instructions: string;
  /** Why a person would have to approve the payment: it exceeds what is sold in an hour or a day */ review?: string | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface PaymentConfirmNext {
  tool: string;
  /** In one sentence */ how: string;
}

export interface PaymentConfirmPayload {
  /** Bearer token, a secret; shown once more only if it is not used yet */ token: string;
  /** Credits on it */ credits: number;
  /** Paid after the quote's end, and credited all the same */ late: boolean;
  /** The tool to call next, and how. */ next: PaymentConfirmNext;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface PaymentTopupNext {
  tool: string;
  /** In one sentence */ how: string;
}

export interface PaymentTopupPayload {
  /** Bearer token with the credits, a secret: a new one, or the one sent along */ token: string;
  /** Credits that this payment added */ credits: number;
  /** Hash of the USDC transfer */ transaction: string;
  network: "eip155:8453";
  /** The tool to call next, and how. */ next: PaymentTopupNext;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface AccountStatementEntries {
  at: string;
  /** earlier_calls: all calls before `at`, whose entries are not kept any more */ kind: "purchase" | "top_up" | "grant" | "credit" | "call" | "reversal" | "refund" | "taken_back" | "earlier_calls";
  /** What it changed of what you can spend; negative for a call */ credits: number;
  /** Null unless a call or its reversal, as are the three below */ call_id: string | null;
  endpoint: string | null;
  /** open: still running */ state: "open" | "posted" | "voided" | "reversed" | null;
  /** GET /api/receipt/{id} shows it; null: there is none */ receipt_id: string | null;
  /** Why nothing was charged, or why it was given back */ no_charge_reason: string | null;
  /** The allowance that made the call; null: this token did */ allowance: string | null;
  /** Hash of the USDC transfer of a purchase; null where there is none */ transaction: string | null;
}

export interface AccountStatementPayload {
  /** What you can spend now; without an allowance the sum of all entries */ credits: number;
  /** The latest first */ entries: Array<AccountStatementEntries>;
  /** Give it as cursor to read on; null: there is nothing older */ next_cursor: string | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface AllowanceCreatePayload {
  id: string;
  name: string;
  /** The cap in all */ credits: number;
  /** Charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** The cap per UTC day; null: none */ credits_per_day: number | null;
  expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  state: "active" | "exhausted" | "expired" | "revoked";
  created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
  /** Bearer token of the allowance, a secret; shown this once */ token: string;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface AllowanceListAllowances {
  id: string;
  name: string;
  /** The cap in all */ credits: number;
  /** Charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** The cap per UTC day; null: none */ credits_per_day: number | null;
  expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  state: "active" | "exhausted" | "expired" | "revoked";
  created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
}

export interface AllowanceListPayload {
  /** Live ones first, then ended ones */ allowances: Array<AllowanceListAllowances>;
  count: number;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface AllowanceRevokePayload {
  id: string;
  name: string;
  /** The cap in all */ credits: number;
  /** Charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** The cap per UTC day; null: none */ credits_per_day: number | null;
  expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  state: "active" | "exhausted" | "expired" | "revoked";
  created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface AllowanceUpdatePayload {
  id: string;
  name: string;
  /** The cap in all */ credits: number;
  /** Charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** The cap per UTC day; null: none */ credits_per_day: number | null;
  expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  state: "active" | "exhausted" | "expired" | "revoked";
  created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface ReissueCancelPayload {
  /** Whether a reissue was waiting, and is cancelled now */ cancelled: boolean;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface TokenUpdatePayload {
  /** The cap per UTC day; null: none */ credits_per_day: number | null;
  /** Charged and reserved this UTC day, by allowances too */ spent_today: number;
  /** Whether it pays for nothing */ frozen: boolean;
  /** Since when; null: it is not */ frozen_at: string | null;
  /** Paid answers warn below this many credits; null: never */ alert_below: number | null;
  /** They warn from this share of the cap on; null: never */ alert_percent: number | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookDeliveriesDeliveries {
  /** The webhook-id header: the same in every attempt */ id: string;
  kind: "data" | "fired" | "cleared" | "no_data" | "test";
  /** charged: delivered and paid; free: delivered; released: given up, not charged; skipped: not tried */ state: "open" | "accepted" | "charged" | "free" | "released" | "skipped";
  /** Why it was released or skipped */ reason: string | null;
  created_at: string;
  finished_at: string | null;
  attempts: number;
  /** HTTP status of the last attempt */ status: number | null;
  /** One word for how the last attempt failed */ error: string | null;
  duration_ms: number | null;
  /** What was charged */ credits: number;
  /** Null unless it was charged */ receipt_id: string | null;
}

export interface WebhookDeliveriesPayload {
  /** The latest first */ deliveries: Array<WebhookDeliveriesDeliveries>;
  /** Give it as cursor to read on; null: there is nothing older */ next_cursor: string | null;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookListSubscriptions {
  id: string;
  /** Short name of the premium endpoint */ endpoint: string;
  webhook_url: string;
  state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone or operator */ pause_reason: string | null;
  created_at: string;
  /** Null unless active */ next_fire_at: string | null;
  last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  consecutive_failures: number;
  delivered_count: number;
  failed_count: number;
  /** Query parameters of the endpoint */ params: Record<string, unknown>;
  /** The condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  description: string;
}

export interface WebhookListPayload {
  /** Active and paused ones, the oldest first */ subscriptions: Array<WebhookListSubscriptions>;
  count: number;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookResumePayload {
  id: string;
  /** Short name of the premium endpoint */ endpoint: string;
  webhook_url: string;
  state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone or operator */ pause_reason: string | null;
  created_at: string;
  /** Null unless active */ next_fire_at: string | null;
  last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  consecutive_failures: number;
  delivered_count: number;
  failed_count: number;
  /** Query parameters of the endpoint */ params: Record<string, unknown>;
  /** The condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  description: string;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookRotateSecretPayload {
  id: string;
  /** The new secret; shown this once */ secret: string;
  /** For so long deliveries are signed with the old secret too */ overlap_hours: number;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookSubscribeWhen {
  /** Where the value stands in the payload: names and list positions joined by dots */ path: string;
  /** Comes back in deliveries; the path by default */ name?: string;
  /** Fires when the value rises above this */ above?: number;
  /** With above: clears when the value falls below this */ clear_below?: number;
  /** Fires when the value falls below this */ below?: number;
  /** With below: clears when the value rises above this */ clear_above?: number;
  /** Fires whenever the value is another one than before */ changed?: boolean;
  /** For a list: fires when it holds an item that is new or was revised */ any_new?: boolean;
  /** With above or below: fires only once this has held for so many seconds */ for_s?: number;
}

export interface WebhookSubscribePayload {
  id: string;
  /** Short name of the premium endpoint */ endpoint: string;
  webhook_url: string;
  state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone or operator */ pause_reason: string | null;
  created_at: string;
  /** Null unless active */ next_fire_at: string | null;
  last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  consecutive_failures: number;
  delivered_count: number;
  failed_count: number;
  /** Query parameters of the endpoint */ params: Record<string, unknown>;
  /** The condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  description: string;
  /** Signs every delivery; shown this once */ secret: string;
  hmac_algorithm: "sha256";
  /** Credits for each delivered fire */ fire_cost_credits: number;
  fire_interval: string;
  signature_header: string;
  timestamp_header: string;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookTestPayload {
  /** The webhook-id header: the same in every attempt */ id: string;
  kind: "data" | "fired" | "cleared" | "no_data" | "test";
  /** charged: delivered and paid; free: delivered; released: given up, not charged; skipped: not tried */ state: "open" | "accepted" | "charged" | "free" | "released" | "skipped";
  /** Why it was released or skipped */ reason: string | null;
  created_at: string;
  finished_at: string | null;
  attempts: number;
  /** HTTP status of the last attempt */ status: number | null;
  /** One word for how the last attempt failed */ error: string | null;
  duration_ms: number | null;
  /** What was charged */ credits: number;
  /** Null unless it was charged */ receipt_id: string | null;
  /** Your server answered 2xx */ delivered: boolean;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface WebhookUnsubscribePayload {
  id: string;
  /** Short name of the premium endpoint */ endpoint: string;
  webhook_url: string;
  state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone or operator */ pause_reason: string | null;
  created_at: string;
  /** Null unless active */ next_fire_at: string | null;
  last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  consecutive_failures: number;
  delivered_count: number;
  failed_count: number;
  /** Query parameters of the endpoint */ params: Record<string, unknown>;
  /** The condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  description: string;
  /** Sources and their ages */ _meta?: Record<string, unknown>;
}

export interface Tools {
  /** The state of the world in one call: bitcoin price, crypto fear & greed, earthquakes, prediction markets, tech news and the status of GitHub, Cloudflare, OpenAI and Anthropic, with a summary in words. Use it first; for more, use the tool of the topic. Free; fresh for 60 seconds. */ briefing: { arguments: { /** Most items */ limit?: number | null; }; payload: BriefingPayload };
  /** The price now of bitcoin, or of any of the 250 largest coins as `coin`, with its change, high, low and traded volume of the past 24 hours, and which venue says so. For the biggest moves use crypto_movers. Free; fresh for 30 seconds. */ btc_price: { arguments: { /** Symbol, name or id; one of the 250 largest */ coin?: string | null; }; payload: BtcPricePayload };
  /** Earthquakes of magnitude 2.5 and above in the past 24 hours, worldwide, newest first, with place, depth and coordinates. Use it for "any earthquakes today?". Free; fresh for 2 minutes. */ earthquakes: { arguments: { /** Most items */ limit?: number | null; }; payload: EarthquakesPayload };
  /** The tools of this service that answer a question, best first, with arguments and prices. Use it when no listed tool fits. Free. */ find_tools: { arguments: { /** The question, in everyday words */ q?: string | null; /** Most items */ limit?: number | null; }; payload: FindToolsPayload };
  /** Daily US dollar exchange rates to 16 major currencies (EUR, GBP, JPY, CAD, CNY, …): newest published day, the published day before it, and the change in percent. Use it to convert or compare currencies; not intraday. Free; fresh for 5 minutes. */ forex: { arguments: Record<string, never>; payload: ForexPayload };
  /** Whether 15 cloud and developer services are up right now, by their own status pages: GitHub, Cloudflare, OpenAI, Anthropic, Vercel, Discord, Atlassian, Reddit, Stripe, Zoom, Datadog, Slack, AWS, Google Cloud and Azure. Use it for "is GitHub down?". Free; fresh for 60 seconds. */ service_status: { arguments: { /** Most items */ limit?: number | null; }; payload: ServiceStatusPayload };
  /** U.S. share prices with change against the previous close: top gainers and losers, all quotes, and the main indices (S&P 500, Dow, Nasdaq, Russell 2000, VIX). Give `symbols` for particular tickers. Free; fresh for 15 seconds. */ stocks: { arguments: { /** Tickers separated by commas, 1-35; default: 31 widely held ones */ symbols?: string | null; /** Most items */ limit?: number | null; }; payload: StocksPayload };
  /** The stories on the front page of Hacker News right now, in page order, with score, number of comments and links. Use it for "what is the tech world talking about?". Free; fresh for 60 seconds. */ tech_news: { arguments: { /** Most items */ limit?: number | null; }; payload: TechNewsPayload };
  /** Current weather anywhere on earth, and the next 24 hours: temperature in Fahrenheit or Celsius, wind, humidity, condition. Give `place`, or `lat` and `lon` together. For warnings use climate_weather_alerts. Free; fresh for 10 minutes. */ weather: { arguments: { /** Latitude */ lat?: number | null; /** Longitude */ lon?: number | null; /** City, with state or country where several have the name */ place?: string | null; /** metric adds °C, km/h, mm */ units?: "us" | "metric" | null; }; payload: WeatherPayload };
  /** How often this service was called in the past 24 hours, by which families of agents, and the last calls. Use it to see who uses the service; it says nothing about the world outside. Free; fresh for 30 seconds. */ ai_stats: { arguments: { /** Most items */ limit?: number | null; }; payload: AiStatsPayload };
  /** Air quality at a place: US and European index, PM2.5, PM10, ozone, NO2, SO2, CO. Use it for "is the air good here?". Give `place`, or `lat` and `lon`; without them it answers for Los Angeles and says `default_location`. Free; fresh for 30 minutes. */ air_quality: { arguments: { /** Latitude */ lat?: number | null; /** Longitude */ lon?: number | null; /** City, with state or country where several have the name */ place?: string | null; }; payload: AirQualityPayload };
  /** Solana's throughput right now: transactions a second, slot time, current slot, epoch and how far it is. Use it for "how busy is Solana?"; for Ethereum fees use gas. Free; fresh for 30 seconds. */ chain_network: { arguments: Record<string, never>; payload: ChainNetworkPayload };
  /** Earthquakes and blasts worldwide by smallest magnitude and period, from the past hour to the past month, newest first. Use it for any magnitude or period other than "2.5 and above today", which earthquakes answers. Free; fresh for at most 15 minutes. */ climate_earthquakes: { arguments: { /** Smallest magnitude; significant: as judged by USGS */ magnitude?: "significant" | "4.5" | "2.5" | "1.0" | "all" | null; /** The past hour, day, week or month */ period?: "hour" | "day" | "week" | "month" | null; /** Most items */ limit?: number | null; /** `next_cursor` of the page before */ cursor?: string | null; }; payload: ClimateEarthquakesPayload };
  /** Weather alerts that the US National Weather Service lists as active, with their text, filtered by state, event name, severity, urgency or status. Use severe_weather for a ranking of the gravest; this one for a place. Free; fresh for 60 seconds. */ climate_weather_alerts: { arguments: { /** State, territory or marine area of the US */ area?: "AK" | "AL" | "AM" | "AN" | "AR" | "AS" | "AZ" | "CA" | "CO" | "CT" | "DC" | "DE" | "FL" | "FM" | "GA" | "GM" | "GU" | "HI" | "IA" | "ID" | "IL" | "IN" | "KS" | "KY" | "LA" | "LC" | "LE" | "LH" | "LM" | "LO" | "LS" | "MA" | "MD" | "ME" | "MH" | "MI" | "MN" | "MO" | "MP" | "MS" | "MT" | "NC" | "ND" | "NE" | "NH" | "NJ" | "NM" | "NV" | "NY" | "OH" | "OK" | "OR" | "PA" | "PH" | "PK" | "PM" | "PR" | "PS" | "PW" | "PZ" | "RI" | "SC" | "SD" | "SL" | "TN" | "TX" | "UT" | "VA" | "VI" | "VT" | "WA" | "WI" | "WV" | "WY" | null; /** Name of an event of the NWS */ event?: string | null; /** How grave it is, in the words of the NWS */ severity?: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown" | null; /** How soon to act, in the words of the NWS */ urgency?: "Immediate" | "Expected" | "Future" | "Past" | "Unknown" | null; /** Actual, or one of those not to be acted on */ status?: "Actual" | "Exercise" | "System" | "Test" | "Draft" | null; /** whole: every text whole, with fewer alerts a page if need be */ text?: "short" | "whole" | null; /** Most items */ limit?: number | null; /** `next_cursor` of the page before */ cursor?: string | null; }; payload: ClimateWeatherAlertsPayload };
  /** The GitHub repositories created in the past 7 days that have the most stars, with language, topics, licence and stars per day. Use it for "what is new and popular on GitHub?". Free; fresh for 5 minutes. */ code_host_trending: { arguments: { /** Most items */ limit?: number | null; }; payload: CodeHostTrendingPayload };
  /** The 15 coins, of the 100 largest, whose price moved most in the past 24 hours, up or down, biggest move first. Use it for "what is moving in crypto?"; for bitcoin alone use btc_price. Free; fresh for 30 seconds. */ crypto_movers: { arguments: { /** Most items */ limit?: number | null; }; payload: CryptoMoversPayload };
  /** The newest malware URLs, indicators of compromise, exploited vulnerabilities (CISA KEV), botnet command servers and phishing pages, defanged. Use it for "what attacks are going on?"; for one address use exposure_lookup. Free; fresh for 60 seconds. */ cyber_threats: { arguments: { /** Most items */ limit?: number | null; }; payload: CyberThreatsPayload };
  /** Natural disasters that are going on or ended within 48 hours, worldwide: earthquakes, cyclones, floods, volcanoes, wildfires and droughts with GDACS's alert colour. Use it for "any disasters now?"; for all earthquakes use earthquakes. Free; fresh for 5 minutes. */ disaster_alerts: { arguments: { /** Most items */ limit?: number | null; }; payload: DisasterAlertsPayload };
  /** Latest U.S. macro figures: fed funds rate, CPI with yearly change, unemployment, real GDP growth, 2- and 10-year Treasury yields, 30-year mortgage rate and the 2s10s spread, each with its date and the value before. Free; fresh for 1 hour. */ economic_data: { arguments: Record<string, never>; payload: EconomicDataPayload };
  /** Open ports, known vulnerabilities (CVE), host names, tags and products (CPE) that a weekly Internet-wide scan saw on a public IPv4 address. Without `ip`, six of 24 well-known resolvers and hosts, others every hour. Nothing is scanned by asking. Free; fresh for 1 hour. */ exposure_lookup: { arguments: { /** A public IPv4 address */ ip?: string | null; }; payload: ExposureLookupPayload };
  /** The crypto market's Fear & Greed index, 0 (extreme fear) to 100 (extreme greed), with its label and the value before it. Use it for "how is the mood in crypto?"; for prices use btc_price or crypto_movers. Free; fresh for 5 minutes. */ fear_greed: { arguments: Record<string, never>; payload: FearGreedPayload };
  /** The 20 perpetual crypto futures with the largest funding rates, annualized, across Binance, Bybit, Hyperliquid and dYdX. Use it for "where is leverage most one-sided?" or to compare carry; for spot prices use crypto_movers. Free; fresh for 60 seconds. */ funding_rates: { arguments: { /** Most items */ limit?: number | null; }; payload: FundingRatesPayload };
  /** The 15 most played games on Steam right now, with how many play at this moment and today's peak. Use it for "what is everybody playing?". Free; fresh for 10 minutes. */ game_platform_top: { arguments: { /** Most items */ limit?: number | null; }; payload: GamePlatformTopPayload };
  /** What a unit of gas costs on Ethereum now, in gwei: low, standard, fast and the base fee. Use it for "are fees high?" or before sending a transaction; for Solana use chain_network. Free; fresh for 15 seconds. */ gas: { arguments: Record<string, never>; payload: GasPayload };
  /** How coding agents score on public benchmarks, by harness (the program) and model: SWE-bench Verified, Aider polyglot, METR time horizons, Terminal-Bench. Use it for "which coding agent is best?". Free; fresh for 12 hours. */ harnesses: { arguments: { /** All results, the best, or two comparisons */ view?: "raw" | "summary" | "gaps" | "combined" | null; /** Most items */ limit?: number | null; }; payload: HarnessesPayload };
  /** Whether this service is up, its API version, its uptime in seconds and its clock. Never depends on upstreams: use service_status for the state of other services. Free. */ health: { arguments: Record<string, never>; payload: HealthPayload };
  /** Everyone who is in space right now, with craft and agency. Use it for "how many people are in space?". Free; fresh for 1 hour. */ humans_in_space: { arguments: { /** Most items */ limit?: number | null; }; payload: HumansInSpacePayload };
  /** How long this server takes to open a TCP connection to four cloud regions and two public DNS anycast addresses. Use it for "is the internet slow?"; for outages of named services use service_status. Free; fresh for 60 seconds. */ internet_pulse: { arguments: { /** Most items */ limit?: number | null; }; payload: InternetPulsePayload };
  /** The next rocket launches worldwide: provider, vehicle, mission, pad, status, and when, with how exact that time is. Use it for "when is the next launch?". Free; fresh for 10 minutes. */ launches: { arguments: { /** Most items */ limit?: number | null; }; payload: LaunchesPayload };
  /** The AI models on Hugging Face that gained the most likes in the past 7 days, in that order, with downloads and what they are for. Use it for "which models are popular right now?". Free; fresh for 10 minutes. */ model_hub_trending: { arguments: { /** Most items */ limit?: number | null; }; payload: ModelHubTrendingPayload };
  /** Paid calls of a day that were not charged, by reason and endpoint, with the last 200 of them and the state of the public log that holds them all. Use receipt_verify for a single call. Free; fresh for 30 seconds. */ payment_no_charge_stats: { arguments: { /** A day, UTC; today by default */ date?: string | null; /** Also list the days there is anything about */ dates?: boolean | null; }; payload: PaymentNoChargeStatsPayload };
  /** The prediction markets most traded in the past 24 hours, with the probability of yes and no in percent and how it moved. Use it for "what are the odds that …?". Free; fresh for 60 seconds. */ predictions: { arguments: { /** Most items */ limit?: number | null; }; payload: PredictionsPayload };
  /** Whether the receipt of a paid call is genuine, what it says, and whether it belongs to the body you have. Nothing is fetched: keys come from a fixed list. Use payment_no_charge_stats for all calls of a day. Free. */ receipt_verify: { arguments: { /** The JWS of the header or of `_meta`, or the object with `signature` and `key_id` */ receipt: string | ReceiptVerifyReceipt; /** SHA-256 of the body you got, hex, to compare */ body_sha256?: string | null; }; payload: ReceiptVerifyPayload };
  /** The 15 gravest weather alerts now in force in the United States, ranked by severity x urgency x certainty, and how many there are of each severity. Use it for "any dangerous weather?"; to filter by state or event use climate_weather_alerts. Free; fresh for 60 seconds. */ severe_weather: { arguments: { /** Most items */ limit?: number | null; }; payload: SevereWeatherPayload };
  /** Space weather now: geomagnetic activity (Kp and storm level), solar wind speed and density, the strongest solar flare of the past 24 hours, alerts in force. Use it for auroras, radio blackouts, satellites. Free; fresh for 5 minutes. */ space_weather: { arguments: { /** Most items */ limit?: number | null; }; payload: SpaceWeatherPayload };
  /** Volcanoes that erupt or are restless this week, worldwide, with a summary of what happened, and the alert level and aviation colour of those in the United States. Use it for "which volcanoes are erupting?". Free; fresh for 1 hour. */ volcanoes: { arguments: { /** Most items */ limit?: number | null; }; payload: VolcanoesPayload };
  /** Fires burning in the United States in the past 24 hours as satellites see them, strongest first, and the largest wildfire incidents with acres and containment. For disasters worldwide use disaster_alerts. Free; fresh for 10 minutes. */ wildfires: { arguments: { /** Most items */ limit?: number | null; }; payload: WildfiresPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. What is going on in the world right now, for a model to know: markets, Fed funds rate, dollar rates, large earthquakes, launches, top news, prediction markets and the state of four major services; as data and as a short `system_prompt` to paste verbatim. */ premium_agent_context: { arguments: Record<string, never>; payload: PremiumAgentContextPayload };
  /** Costs 1 credit (0.02 USD) a call; fresh for 60 seconds. The state of the world as compact figures, one section a topic: bitcoin with its day, crypto fear & greed, earthquakes, tech news, people in space, prediction markets; with history=24h also hourly bitcoin prices. Use the free briefing for a summary in words. */ premium_briefing: { arguments: { /** Sections, separated by commas */ include?: string | null; /** 24h adds hourly bitcoin prices */ history?: "24h" | null; }; payload: PremiumBriefingPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 30 minutes. 30-day Pearson correlations between oil (WTI), the 10- and 2-year Treasury yields and the broad dollar index, from daily returns aligned by date: ranked pairs with strength and direction, and a lookup matrix. Use it to see what moves together; it says nothing about causes. */ premium_correlation_matrix: { arguments: Record<string, never>; payload: PremiumCorrelationMatrixPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 60 seconds. Crypto in one call: the 50 largest coins with 1 h, 24 h and 7 d changes, an exchange's 20 most traded USDT pairs, Bitcoin's height, fees, hashrate and mempool, and Ethereum gas; `coins` picks symbols, history=30d adds daily bitcoin candles. For single figures use btc_price, crypto_movers or gas. */ premium_crypto_deep: { arguments: { /** Only these symbols, separated by commas, at most 20 */ coins?: string | null; /** 30d adds daily bitcoin candles */ history?: "30d" | null; /** Most items */ limit?: number | null; }; payload: PremiumCryptoDeepPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. Ether that moves to and from the hot wallets of eight exchanges in the newest blocks: inflow, outflow and net by exchange, the transfers themselves, and which way it leans. For any large transfer use premium_whales. */ premium_exchange_flows: { arguments: { /** Most items */ limit?: number | null; }; payload: PremiumExchangeFlowsPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. The macro picture in one call: U.S. fed funds rate, CPI, unemployment, GDP growth and 10-year yield, the dollar against EUR, JPY, GBP and CHF, gold, oil and natural gas, and SPY, DIA, QQQ and VIX; with history=30d also series. */ premium_macro: { arguments: { /** 30d adds the 30 newest observations of each figure and rate */ history?: "30d" | null; }; payload: PremiumMacroPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. What is being said about markets: which of 26 crypto and stock tickers the headlines of the past 24 hours name and in what tone, with samples, crypto fear & greed, the VIX, and bets on the economy. For the one index use fear_greed, for prices stocks or premium_crypto_deep. */ premium_sentiment: { arguments: { /** Most items */ limit?: number | null; }; payload: PremiumSentimentPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 5 minutes. Large transfers on chain right now: unconfirmed bitcoin transactions that pay 10 BTC or more to others, and Ether transfers of 100 ETH or more in the newest blocks, with dollar values and exchange labels. For what exchanges receive and pay use premium_exchange_flows. */ premium_whales: { arguments: { /** Most items */ limit?: number | null; }; payload: PremiumWhalesPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 60 seconds. What changed in the world within the past hour, as one stream: earthquakes of M4+, stories that came to the front page of Hacker News, prediction markets that moved, and launches from an hour ago to 12 hours ahead. Poll it with `since` for what is new; for the state of the world use premium_agent_context. */ premium_world_deltas: { arguments: { /** Only events after this (ISO 8601, else UTC); default and earliest: an hour ago */ since?: string | null; /** Most items */ limit?: number | null; }; payload: PremiumWorldDeltasPayload };
  /** Costs 2 credits (0.04 USD) a call; fresh for 30 minutes. What gains stars on GitHub: the 30 most starred repositories of the past week with stars per day and in the last 24 hours, the 15 most starred active LLM repositories, and counts by language, topic and AI share. For a plain list use code_host_trending. */ premium_code_host_velocity: { arguments: { /** Most items */ limit?: number | null; }; payload: PremiumCodeHostVelocityPayload };
  /** The credits left on the bearer token that this call is made with, and when the token was issued. Costs no credits. */ payment_balance: { arguments: Record<string, never>; payload: PaymentBalancePayload };
  /** A quote for credits: the address to send USDC to on Base, and the memo that claims them. Nothing is charged until you pay. After paying, call payment_confirm with the transaction hash and the memo to get a token. Costs no credits. */ payment_buy_credits: { arguments: { /** US dollars to convert, at most 6 decimals; 1 USD = 50 credits */ amount_usd: number; /** Optional lock: base64url SHA-256 of a claim_verifier that confirm then requires */ claim_challenge?: string | null; /** Most credits per UTC day */ credits_per_day?: number | null; }; payload: PaymentBuyCreditsPayload };
  /** Turn a payment into a bearer token with credits: call it after sending USDC to the address of a quote. Waits some seconds for the chain; on payment_pending, call it again with the same arguments. Each payment counts once. Costs no credits. */ payment_confirm: { arguments: { /** Hash of the USDC transfer on Base */ tx_hash: string; /** The memo from payment_buy_credits */ nonce: string; /** Only if the quote was asked for with claim_challenge */ claim_verifier?: string | null; /** Only if payer_proof_required asked for it */ payer_signature?: string | null; }; payload: PaymentConfirmPayload };
  /** Credits for one signed USDC payment (x402), in one round trip: on the bearer token sent along, else on a new one. Needs an x402 wallet; without one use payment_buy_credits. Costs no credits. */ payment_topup: { arguments: { /** US dollars to convert, at most 6 decimals; 1 USD = 50 credits */ amount_usd: number; /** Only if payer_proof_required asked for it; 0x and hex digits */ payer_signature?: string | null; }; payload: PaymentTopupPayload };
  /** Everything that happened to the credits of this token, the latest first: calls with their receipts, purchases, and what was given back. Use payment_balance for the balance alone. Costs no credits. */ account_statement: { arguments: { /** Earliest time, ISO 8601, or a day (UTC) */ from?: string | null; /** First time that is left out, ISO 8601, or a day (UTC) */ to?: string | null; /** next_cursor of the page before */ cursor?: string | null; /** How many entries */ limit?: number | null; }; payload: AccountStatementPayload };
  /** A second token that spends the credits of this one, up to caps that are never crossed. Give it to an agent or a program instead of your own token. The credits stay yours until they are spent. Costs no credits. */ allowance_create: { arguments: { /** Whom or what it is for */ name: string; /** Most credits it may ever spend */ credits: number; /** Most credits per UTC day; no such cap by default */ credits_per_day?: number | null; /** When it ends, ISO 8601, within 10 years; never by default */ expires_at?: string | "never" | null; /** The only tools it may spend on; all by default */ tools?: Array<string> | null; }; payload: AllowanceCreatePayload };
  /** The allowances of this token: their caps, what each has spent in all and today, and whether they are still live. Use account_statement for the single calls. Costs no credits. */ allowance_list: { arguments: Record<string, never>; payload: AllowanceListPayload };
  /** End an allowance for good: its token is refused from the next call on. Safe to repeat. Calls that are running may still be charged. Costs no credits. */ allowance_revoke: { arguments: { /** The id of an allowance, from allowance_create or allowance_list */ id: string; }; payload: AllowanceRevokePayload };
  /** Change the name, caps, end or tools of an allowance; what is not given stays. It holds from the next call on. A cap below what is spent stops it. Costs no credits. */ allowance_update: { arguments: { /** The id of an allowance, from allowance_create or allowance_list */ id: string; /** A new name */ name?: string | null; /** The new cap in all */ credits?: number | null; /** The new cap per UTC day; 0 takes it away */ credits_per_day?: number | null; /** When it ends, ISO 8601, within 10 years; “never” takes it away */ expires_at?: string | "never" | null; /** The only tools it may spend on; empty: all */ tools?: Array<string> | null; }; payload: AllowanceUpdatePayload };
  /** Keep this token: cancel its replacement, which the account that paid for it has asked for as if it were lost. The balance shows such a request in `reissue_at` for 48 hours. Safe to repeat. Costs no credits. */ reissue_cancel: { arguments: Record<string, never>; payload: ReissueCancelPayload };
  /** Set a cap per day on this token, freeze or thaw it, set alerts; what is not given stays. Without arguments it shows what is set. All of it binds the allowances of the token too, from the next call on. Costs no credits. */ token_update: { arguments: { /** Most credits per UTC day, allowances included; 0 takes the cap away */ credits_per_day?: number | null; /** true: it pays for nothing; false: it pays again */ frozen?: boolean | null; /** Warn below this many credits; 0: never */ alert_below?: number | null; /** Warn from this percentage of the day's cap on; 0: never */ alert_percent?: number | null; }; payload: TokenUpdatePayload };
  /** The last deliveries of a webhook subscription, up to 50: when, how many attempts, how your server answered, what was charged and under which receipt. Costs no credits. */ webhook_deliveries: { arguments: { /** The id of a subscription, from webhook_subscribe or webhook_list */ id: string; /** How many */ limit?: number | null; /** next_cursor of the page before */ cursor?: string | null; }; payload: WebhookDeliveriesPayload };
  /** The webhook subscriptions of this token: their state, when they fire next, and how the last delivery went. Free of charge. Use webhook_deliveries for the log of one of them. Costs no credits. */ webhook_list: { arguments: Record<string, never>; payload: WebhookListPayload };
  /** Start a paused webhook subscription again, with its next slot. Safe to repeat; the token must hold at least 1 credit. An endpoint that failed for a day can be resumed five minutes after it was paused. Costs no credits. */ webhook_resume: { arguments: { /** The id of a subscription, from webhook_subscribe or webhook_list */ id: string; }; payload: WebhookResumePayload };
  /** Replace the signing secret of a webhook subscription. For 24 hours deliveries carry signatures of both secrets: Standard Webhooks in one header, ours in X-Service-Signature (new) and X-Service-Signature-Previous. Costs no credits. */ webhook_rotate_secret: { arguments: { /** The id of a subscription, from webhook_subscribe or webhook_list */ id: string; }; payload: WebhookRotateSecretPayload };
  /** Have a premium payload delivered to a URL of yours about every five minutes, or when a condition comes true. Subscribing is free, with at least 1 credit; each delivered fire costs 1 credit, and one that your server does not take costs nothing. Costs no credits. */ webhook_subscribe: { arguments: { /** Short name of a premium endpoint */ endpoint: string; /** A public https address, port 443 or 8443, that takes POST requests */ webhook_url: string; /** Query parameters of the endpoint */ params?: Record<string, unknown> | null; /** Deliver only when this happens, instead of every five minutes */ when?: WebhookSubscribeWhen | null; /** Headers to add to every delivery; kept encrypted */ headers?: Record<string, string> | null; /** A note of yours */ description?: string | null; }; payload: WebhookSubscribePayload };
  /** Send one signed test delivery with `"test": true` and see how your server answers it. It carries recorded or given values, never current ones. Costs no credits. */ webhook_test: { arguments: { /** The id of a subscription, from webhook_subscribe or webhook_list */ id: string; /** What to deliver, up to 32 KB; a recorded example by default */ data?: Record<string, unknown> | null; /** For a subscription with a condition: deliver as if it had come to this */ state?: "fired" | "cleared" | "no_data" | null; }; payload: WebhookTestPayload };
  /** Cancel a webhook subscription for good: it never fires again. Safe to repeat. Costs no credits. */ webhook_unsubscribe: { arguments: { /** The id of a subscription, from webhook_subscribe or webhook_list */ id: string; }; payload: WebhookUnsubscribePayload };
}
