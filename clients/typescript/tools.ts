// Written by `toolserver docs` from the registry: change a tool, not this file.

export interface BriefingSectionsCrypto {
  /** Last trade of bitcoin, in the currency of `quote` */ price_usd: number;
  /** Change of the price in 24 hours, percent; null: the venue does not give it */ change_24h_percent: number | null;
  /** Traded in 24 hours, in the currency of `quote`; null: the venue does not give it */ volume_24h_usd: number | null;
  /** Currency of the price; USDT is not converted */ quote: "USD" | "USDT";
}

export interface BriefingSectionsFearGreed {
  /** Fear & Greed: 0 extreme fear, 100 extreme greed */ value: number;
  /** The publisher's word for the value */ label: string;
}

export interface BriefingSectionsEarthquakesLatest {
  /** Magnitude on the network's preferred scale */ magnitude: number;
  /** Place, as the network names it */ location: string;
  /** Origin time */ time: string;
}

export interface BriefingSectionsEarthquakes {
  /** Earthquakes of M2.5 and above in 24 hours */ count: number;
  /** The newest of them; null: there is none */ latest: BriefingSectionsEarthquakesLatest | null;
}

export interface BriefingSectionsPredictions {
  /** The question, in the market's words */ question: string;
  /** Price of yes as a probability, percent; of Kalshi the last trade */ yes_percent: number;
  /** 100 - yes_percent */ no_percent: number;
  /** Traded in 24 hours, USD; of Kalshi contracts times the last price */ volume_usd: number;
  /** Market place: Polymarket or Kalshi */ source: string;
  /** Page of the market; null: none */ url: string | null;
  /** When trading is to end; null: not given */ ends_at: string | null;
  /** Change of yes_percent in an hour, percentage points; null: not given */ change_1h_points: number | null;
  /** Change of yes_percent in 24 hours, percentage points; null: not given */ change_24h_points: number | null;
  /** Orders that wait in the book, USD; null: not given */ liquidity_usd: number | null;
}

export interface BriefingSectionsNews {
  /** Place on the page, from 1 */ rank: number;
  /** Hacker News's id of the story */ id: number;
  /** Title of the story */ title: string;
  /** The article, or the discussion for text posts */ url: string;
  /** Points on Hacker News */ score: number;
  /** Comments on Hacker News */ comments: number;
  /** Who submitted it; null: not given */ author: string | null;
  /** When it was submitted */ time: string;
  /** Its page on Hacker News */ discussion_url: string;
}

export interface BriefingSectionsServices {
  /** Name of the service */ name: string;
  /** Our word for what its status page reports, of OpenAI about its API; unknown: the page does not answer */ status: "operational" | "maintenance" | "degraded" | "partial_outage" | "major_outage" | "unknown";
  /** The status page's own words, those of its worst open event, or the endpoints in trouble (OpenAI) */ description: string;
  /** The status page */ url: string;
  /** When the status page was read; null: it does not answer */ checked_at: string | null;
}

export interface BriefingSections {
  /** Bitcoin; null: no source answered */ crypto: BriefingSectionsCrypto | null;
  /** Mood of the crypto market; null: no source answered */ fear_greed: BriefingSectionsFearGreed | null;
  /** Earthquakes of the past day; null: no source answered */ earthquakes: BriefingSectionsEarthquakes | null;
  /** Most traded prediction markets, at most 5; null: no source answered */ predictions: Array<BriefingSectionsPredictions> | null;
  /** Top of Hacker News, at most 5 stories; null: no source answered */ news: Array<BriefingSectionsNews> | null;
  /** GitHub, Cloudflare, OpenAI and Anthropic; null: no status page answered */ services: Array<BriefingSectionsServices> | null;
}

export interface Warning {
  /** The part of the payload it is about */ section: string;
  /** The permanent name of the source it is about */ source?: string;
  /** What is the matter, in one word for programs */ code: "section_unavailable" | "unproved_empty" | "stale_data" | "partial" | "fallback_used" | "degraded_fallback" | "field_missing" | "missing_symbols" | "disagreement" | "implausible_jump" | "change_not_removed" | "truncated" | "rows_dropped" | "own_network_suspect" | "no_network" | "licence_excluded" | "insufficient_sample" | "incomplete_window" | "default_location" | "low_balance";
  /** What is the matter, in one sentence */ message: string;
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
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** True: the data are invented for a demonstration */ simulated?: boolean;
  /** On MCP, after a call with a token: what it can spend */ credits_remaining?: number;
  /** On MCP: what this call cost, in credits; 0 if free */ credits_charged?: number;
  /** On MCP, after a paid call: the id of its signed receipt */ receipt_id?: string;
}

export interface BriefingPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** When the briefing was composed */ generated_at: string | null;
  /** The sections in words, with those that are missing */ summary: string | null;
  /** The figures behind the summary, one member a topic */ sections: BriefingSections | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface BtcPriceData {
  /** Last price, in the currency of `quote` */ price_usd: number;
  /** Change of the price in about 24 hours, percent; null: the venue does not give it */ change_24h_percent: number | null;
  /** Highest price in 24 hours, in the currency of `quote`; null: the venue does not give it */ high_24h: number | null;
  /** Lowest price in 24 hours, in the currency of `quote`; null: the venue does not give it */ low_24h: number | null;
  /** Traded in 24 hours at this venue, or at all for a market page; null: the venue does not give it */ volume_24h_usd: number | null;
  /** Exchange or market page that gave the numbers */ venue: string;
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
  /** Magnitude on the network's preferred scale */ magnitude: number;
  /** Place, as the network names it */ location: string;
  /** Origin time */ time: string;
  /** Depth of the focus, kilometres; null: not published */ depth_km: number | null;
  /** Degrees north; null: not published */ lat: number | null;
  /** Degrees east; null: not published */ lon: number | null;
  /** The network's id of the event */ id: string;
  /** The network's page of the event; null: none */ url: string | null;
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
  /** The day that the rates are for */ date: string;
  /** Units of each currency per dollar */ rates: Record<string, number>;
}

export interface ForexData {
  /** Currency that the rates are for one unit of */ base: "USD";
  /** Newest published day; no weekends or holidays for ecb_reference */ date: string;
  /** Units of each of 16 currencies per dollar */ rates: Record<string, number>;
  /** The day published before `date`; null: it could not be read */ previous: ForexDataPrevious | null;
  /** Change of the rate from `previous` to `date`, by currency, percent; null without `previous` */ change_percent: Record<string, number> | null;
  /** ecb_reference: the ECB's daily fixing; market_mid: mid-market */ kind: "ecb_reference" | "market_mid";
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
  /** Name of the service */ name: string;
  /** Our word for what its status page reports, of OpenAI about its API; unknown: the page does not answer */ status: "operational" | "maintenance" | "degraded" | "partial_outage" | "major_outage" | "unknown";
  /** The status page's own words, those of its worst open event, or the endpoints in trouble (OpenAI) */ description: string;
  /** The status page */ url: string;
  /** When the status page was read; null: it does not answer */ checked_at: string | null;
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
  /** Ticker of the share, fund or index */ symbol: string;
  /** Last price, USD; points for an index */ price: number;
  /** Change against previous_close, percent */ change_percent: number;
  /** price less previous_close */ change: number;
  /** Close of the session before */ previous_close: number;
  /** Name, the provider's or else our list's; null: neither has it */ name: string | null;
  /** Time of the price; null: the provider does not give it */ as_of: string | null;
  /** Whether the provider calls the price delayed; null: it does not say */ delayed: boolean | null;
  /** Older than 12 minutes (delayed ones 32) in market hours */ stale: boolean;
}

export interface StocksData {
  /** Of the symbols listed, risen, most first; at most 5 unless symbols are given */ gainers: Array<StocksQuote>;
  /** Of the symbols listed, fallen, most first; at most 5 unless symbols are given */ losers: Array<StocksQuote>;
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
  /** Hacker News's id of the story */ id: number;
  /** Title of the story */ title: string;
  /** The article, or the discussion for text posts */ url: string;
  /** Points on Hacker News */ score: number;
  /** Comments on Hacker News */ comments: number;
  /** Who submitted it; null: not given */ author: string | null;
  /** When it was submitted */ time: string;
  /** Its page on Hacker News */ discussion_url: string;
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
  /** Time of the conditions, UTC */ time: string;
  /** Air temperature, °F */ temperature_f: number;
  /** What it feels like, °F; null from MET Norway */ apparent_temperature_f: number | null;
  /** Code of the weather in Open-Meteo's list of WMO codes; 68, 69, 83, 84: sleet, by MET Norway; null: none */ weather_code: number | null;
  /** Our words for weather_code; unknown without one */ condition: string;
  /** Wind at 10 m, miles an hour */ wind_speed_mph: number;
  /** Where the wind comes from, degrees from north; null: not given */ wind_direction_deg: number | null;
  /** Relative humidity, percent */ humidity_percent: number;
  /** Inches in the past 15 minutes; of MET Norway: in the hour to come; null: not given */ precipitation_in: number | null;
  /** `time` on the clocks of the place, with the offset from UTC; null: its zone is not known */ local_time: string | null;
  /** Air temperature, °C; absent without units=metric */ temperature_c?: number | null;
  /** What it feels like, °C; absent without units=metric; null from MET Norway */ apparent_temperature_c?: number | null;
  /** Wind at 10 m, km/h; absent without units=metric */ wind_speed_kph?: number | null;
  /** precipitation_in as millimetres; absent without units=metric; null: not given */ precipitation_mm?: number | null;
}

export interface WeatherDataHourly {
  /** Start of the hour, UTC */ time: string;
  /** Air temperature, °F */ temperature_f: number;
  /** Code of the weather in Open-Meteo's list of WMO codes; 68, 69, 83, 84: sleet, by MET Norway; null: none */ weather_code: number | null;
  /** Our words for weather_code; unknown without one */ condition: string;
  /** Wind at 10 m, miles an hour */ wind_speed_mph: number;
  /** Relative humidity, percent; null: not given */ humidity_percent: number | null;
  /** Probability of precipitation, percent; null from MET Norway */ precipitation_probability_percent: number | null;
  /** `time` on the clocks of the place, with the offset from UTC; null: its zone is not known */ local_time: string | null;
  /** Air temperature, °C; absent without units=metric */ temperature_c?: number | null;
  /** Wind at 10 m, km/h; absent without units=metric */ wind_speed_kph?: number | null;
}

export interface WeatherData {
  /** Degrees north, two decimals */ lat: number;
  /** Degrees east, two decimals */ lon: number;
  /** Name of the place, whole; null: only coordinates were given */ place: string | null;
  /** Time zone of the place, by name; UTC when not known */ timezone: string;
  /** True: no place was given, and this is Los Angeles */ default_location: boolean;
  /** The weather now */ current: WeatherDataCurrent;
  /** Forecast by the hour, from the current one on */ hourly: Array<WeatherDataHourly>;
  /** Unit by kind of value */ units: Record<string, string>;
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
  /** Family of User-Agents, as far as it is recognised */ name: string;
  /** Calls by this family */ hits: number;
}

export interface AiStatsDataRecentCalls {
  /** Tool that was called */ endpoint: string;
  /** Family of User-Agents of the caller */ agent: string;
  /** To the minute */ at: string;
  /** HTTP status of the answer */ status: number;
  /** Price tier of the tool: free, premium, payment or account */ tier: string;
}

export interface AiStatsData {
  /** Time that is counted: the past 24 hours */ window: "24h";
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
  /** Reporting area of AirNow */ name: string;
  /** Kilometres from the place to the middle of the area */ distance_km: number;
  /** Pollutant that the index is of: the one with the highest index */ pollutant: string;
}

export interface AirQualityData {
  /** Degrees north, two decimals */ lat: number;
  /** Degrees east, two decimals */ lon: number;
  /** Name of the place, whole; null: only coordinates were given */ place: string | null;
  /** True: no usable place was given, and this is Los Angeles */ default_location: boolean;
  /** Hour of the values; null: AirNow gives a time in an unknown zone */ time: string | null;
  /** U.S. AQI, modelled (particles as 24-hour means) or, with `station`, observed; null: none */ us_aqi: number | null;
  /** 24h_mean: modelled, smoke shows hours late; nowcast: observed, by the last hours; null: no index */ us_aqi_method: "24h_mean" | "nowcast" | null;
  /** EPA's category of us_aqi: good to 50, then to 100, 150, 200 and 300; null without an index */ us_aqi_band: "good" | "moderate" | "unhealthy_sensitive" | "unhealthy" | "very_unhealthy" | "hazardous" | null;
  /** European index, 0 to over 100, as Open-Meteo computes it; null: not modelled */ european_aqi: number | null;
  /** Particles below 2.5 µm, µg/m³; null: not modelled */ pm2_5: number | null;
  /** Particles below 10 µm, µg/m³; null: not modelled */ pm10: number | null;
  /** Ozone, µg/m³; null: not modelled */ ozone: number | null;
  /** Nitrogen dioxide, µg/m³; null: not modelled */ nitrogen_dioxide: number | null;
  /** Sulphur dioxide, µg/m³; null: not modelled */ sulphur_dioxide: number | null;
  /** Carbon monoxide, µg/m³; null: not modelled */ carbon_monoxide: number | null;
  /** Of the six concentrations */ unit: "\u00b5g/m\u00b3";
  /** Reporting area that the index was observed in; null: all values are modelled */ station: AirQualityDataStation | null;
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
  /** Number of the current slot */ slot: number;
  /** Milliseconds a slot took in the newest sample */ slotMs: number;
  /** Number of the current epoch */ epoch: number;
  /** Part of the epoch that is over, percent */ epochProgress: number;
  /** True if the node did not count votes separately, so that they are included */ includesVotes: boolean;
  /** When the newest sample ended */ as_of: string;
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
  /** The network's id of the event */ id: string;
  /** Magnitude on the network's preferred scale; null: not published yet */ magnitude: number | null;
  /** Place, as the network names it */ place: string;
  /** Origin time */ time: string;
  /** Depth of the focus, kilometres; null: not published */ depth_km: number | null;
  /** Degrees north; null: not published */ lat: number | null;
  /** Degrees east; null: not published */ lon: number | null;
  /** Kind of event in the network's words, such as earthquake or quarry blast */ type: string;
  /** USGS's flag for large events in oceanic regions, no warning of a tsunami; null: not given (EMSC) */ tsunami: boolean | null;
  /** The network's page of the event; null: none */ url: string | null;
  /** Scale of the magnitude, such as mww or ml; null: not published */ magnitude_type: string | null;
  /** automatic or reviewed by a seismologist; null: not published */ status: string | null;
}

export interface ClimateEarthquakesFilters {
  /** Smallest magnitude listed, or significant */ magnitude: "significant" | "4.5" | "2.5" | "1.0" | "all";
  /** Time listed: the past hour, day, week or month */ period: "hour" | "day" | "week" | "month";
}

export interface ClimateEarthquakesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Newest first */ data: Array<ClimateEarthquakesData> | null;
  /** All matching events; the list may be cut */ count: number | null;
  /** Give it as `cursor` to read on; null: the list ends here */ next_cursor: string | null;
  /** What was asked for, as understood */ filters: ClimateEarthquakesFilters | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface ClimateWeatherAlertsData {
  /** The NWS's id of the message */ id: string;
  /** Name of the event in the words of the NWS, such as Tornado Warning */ event: string;
  /** How grave the NWS takes it to be (CAP) */ severity: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown";
  /** How soon to act (CAP) */ urgency: "Immediate" | "Expected" | "Future" | "Past" | "Unknown";
  /** How sure the NWS is of it (CAP) */ certainty: "Observed" | "Likely" | "Possible" | "Unlikely" | "Unknown";
  /** Alert, Update, or Cancel: called off */ message_type: string;
  /** Headline of the message; null: none, or left out of a long list */ headline: string | null;
  /** Text of the message; null: none, or left out of a long list */ description: string | null;
  /** Counties and zones, in words; shortened in a long list */ areaDesc: string;
  /** When the message was sent */ sent: string;
  /** From when the message is valid */ effective: string;
  /** When the message is void */ expires: string;
  /** When the weather ends; null: not given, or equal to `expires` in a long list */ ends: string | null;
  /** Office of the NWS that sent it; null: not given, or left out of a long list */ sender_name: string | null;
  /** Web address in the message; null: none, or left out of a long list */ web: string | null;
}

export interface ClimateWeatherAlertsFilters {
  /** State, territory or marine area; null: any */ area: string | null;
  /** Name of the event; null: any */ event: string | null;
  /** Severity; null: any */ severity: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown" | null;
  /** Urgency; null: any */ urgency: "Immediate" | "Expected" | "Future" | "Past" | "Unknown" | null;
  /** Status of the messages: Actual, or a kind that is not to be acted on */ status: "Actual" | "Exercise" | "System" | "Test" | "Draft";
  /** Most alerts a page may have */ limit: number;
}

export interface ClimateWeatherAlertsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Newest first */ data: Array<ClimateWeatherAlertsData> | null;
  /** Alerts listed */ count: number | null;
  /** Alerts that match; `limit` cuts the list */ total_matching: number | null;
  /** Give it as `cursor` to read on; null: the list ends here */ next_cursor: string | null;
  /** As understood; null: any */ filters: ClimateWeatherAlertsFilters | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface CodeHostTrendingData {
  /** Name without the owner */ name: string;
  /** owner/name */ full_name: string;
  /** The owner's description, cut at 200 characters; null: none */ description: string | null;
  /** Page of the repository on GitHub */ url: string;
  /** Language that GitHub finds most of; null: none */ language: string | null;
  /** Stars in all; null from the feed */ stars: number | null;
  /** Forks in all; null from the feed */ forks: number | null;
  /** Topics that the owner chose, at most 10; null from the feed */ topics: Array<string> | null;
  /** SPDX identifier; null: none, not recognised, or from the feed */ license: string | null;
  /** User or Organization; null: not given */ owner_type: string | null;
  /** When it was created; null from the feed */ created_at: string | null;
  /** Days since it was created, at least 1; null from the feed */ age_days: number | null;
  /** Stars by days of age: a mean over its life; null from the feed */ stars_per_day: number | null;
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
  /** Symbol of the coin */ symbol: string;
  /** Name of the coin */ name: string;
  /** Price in USD, over all venues */ price_usd: number;
  /** Change of the price in 24 hours, percent */ change_24h_percent: number;
  /** Price of all coins in circulation, USD; null: not published */ market_cap_usd: number | null;
  /** Traded in 24 hours at all venues, USD; null: not published */ volume_24h_usd: number | null;
  /** Rank by market value, from 1 */ rank: number;
  /** Address of the coin's logo; null: not from CoinGecko */ image: string | null;
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
  /** Tracker that lists it */ source: "URLhaus" | "ThreatFox" | "CISA KEV" | "Feodo Tracker" | "OpenPhish";
  /** Kind of threat, one for each tracker */ type: "malware_url" | "ioc" | "exploited_vulnerability" | "c2_server" | "phishing_url";
  /** The address or file, defanged (hxxp://host[.]example), or a CVE id or hash */ indicator: string;
  /** Form of the indicator, such as url, ip:port, cve or sha256_hash; null: not given */ ioc_type: string | null;
  /** Malware, attack or vulnerability in the tracker's words; null: not given */ threat: string | null;
  /** When it was listed: ISO 8601 time, or a date; null: OpenPhish gives none */ date: string | null;
  /** What the tracker says of state, confidence, tags or due date; null: nothing */ severity_note: string | null;
  /** The tracker's own page; null: OpenPhish has none */ reference: string | null;
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
  /** The list and its own id */ id: string;
  /** Kind of disaster */ type: "earthquake" | "tropical_cyclone" | "flood" | "volcano" | "wildfire" | "drought" | "tsunami" | "storm";
  /** Name or headline in the list's words */ name: string;
  /** GDACS's colour, of the worst episode so far; null: NASA EONET gives none */ alert_level: "green" | "orange" | "red" | null;
  /** GDACS's colour of the present episode, which may be calmer; null: not given */ present_alert_level: "green" | "orange" | "red" | null;
  /** Country or countries affected; null: not given */ country: string | null;
  /** Size as the list states it, such as a magnitude, wind speed or acres; null: not given */ severity_text: string | null;
  /** When it began */ started_at: string;
  /** When it ended, or was last seen or forecast; null: not given */ ended_at: string | null;
  /** Whether the list calls it current; null: not given */ current: boolean | null;
  /** Degrees north of its centre; null: not given */ lat: number | null;
  /** Degrees east of its centre; null: not given */ lon: number | null;
  /** Page or report of the event; null: none */ url: string | null;
  /** List that it is from: GDACS or NASA EONET */ source: string;
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
  /** Newest published value, in `unit` */ value: number;
  /** The day, or the first day of the month or quarter, it is for */ date: string;
  /** Unit of value, previous and change (of change, percentage points where this is percent) */ unit: string;
  /** Value published before it, for previous_date; null: not known */ previous: number | null;
  /** The day, or the first day of the period, that `previous` is for; null: not known */ previous_date: string | null;
  /** value - previous; null without a previous value */ change: number | null;
  /** Only of cpi, as BLS counts it: 12 months of the unadjusted index, percent, one decimal; null otherwise, and after a gap */ yoy_percent: number | null;
  /** provider:series */ source: string;
}

export interface EconomicDataData {
  /** Effective federal funds rate, percent; null: no publisher answered */ fed_rate: EconomicDataFigure | null;
  /** Consumer prices (CPI-U), all items, seasonally adjusted index; null: no publisher answered */ cpi: EconomicDataFigure | null;
  /** Unemployment (U-3), seasonally adjusted, percent; null: no publisher answered */ unemployment: EconomicDataFigure | null;
  /** Real GDP against the quarter before, as an annual rate, percent; null: no publisher answered */ gdp_growth: EconomicDataFigure | null;
  /** Par yield of 10-year Treasuries, percent; null: no publisher answered */ treasury_10y: EconomicDataFigure | null;
  /** Par yield of 2-year Treasuries, percent; null: no publisher answered */ treasury_2y: EconomicDataFigure | null;
  /** Freddie Mac's 30-year fixed mortgage rate, weekly, percent; null: no publisher answered */ mortgage_30y: EconomicDataFigure | null;
  /** 10-year less 2-year yield, same day and source, percentage points; null: no publisher answered */ yield_curve_2s10s: EconomicDataFigure | null;
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
  /** Public IPv4 address */ ip: string;
  /** Whose address it is, of the 24 well-known ones; null: any other */ name: string | null;
  /** False: the scan has nothing on it */ indexed: boolean;
  /** Open ports that the scan saw */ ports: Array<number>;
  /** Vulnerabilities (CVE ids) derived from product versions, not verified */ cves: Array<string>;
  /** Host names that the scan found for it */ hostnames: Array<string>;
  /** Shodan's labels, such as cloud or vpn */ tags: Array<string>;
  /** Products that the scan recognised, as CPE names */ cpes: Array<string>;
  /** When Shodan's record was read; the scan itself is about weekly */ checked_at: string;
}

export interface ExposureLookupData {
  /** single: the address that was asked for; curated: six of the well-known ones */ mode: "single" | "curated";
  /** One record for each address that could be read */ results: Array<ExposureLookupDataResults>;
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
  /** Publisher of the index; two publishers' values are not comparable */ index: "alternative.me" | "coinmarketcap";
  /** When the publisher set the value */ as_of: string;
  /** The publisher's value before this one; null: not given */ previous_value: number | null;
  /** When the publisher sets the next value; null: not given */ next_update_at: string | null;
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
  /** Exchange that trades the contract */ venue: "binance" | "bybit" | "hyperliquid" | "dydx" | "okx";
  /** Perpetual contract: coin-currency */ symbol: string;
  /** Rate for the next settlement, a fraction that may still change; positive: longs pay */ period_rate: number;
  /** Hours between two settlements */ period_hours: number;
  /** period_rate as a year, simple and not compounded, percent */ annualized_percent: number;
  /** Price that positions are valued at (dYdX: its oracle's); null: not given */ mark_price: number | null;
  /** When the next settlement is due; null: not given */ next_funding_time: string | null;
  /** True: Hyperliquid's forecast of it, as the venue itself did not answer */ predicted: boolean;
  /** Always false: a rate moves until next_funding_time, and is paid then */ settled: false;
}

export interface FundingRatesDataVenues {
  /** Exchange */ name: "binance" | "bybit" | "hyperliquid" | "dydx" | "okx";
  /** predicted: by Hyperliquid's forecast; replaced: by OKX; unavailable: not compared */ status: "ok" | "predicted" | "replaced" | "unavailable";
  /** Contracts compared; null: the venue gave none */ markets: number | null;
}

export interface FundingRatesData {
  /** Largest annualized rate of either sign first */ top: Array<FundingRatesDataTop>;
  /** The exchanges, and which of them were compared */ venues: Array<FundingRatesDataVenues>;
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
  /** Place in this list, from 1 */ rank: number;
  /** Steam's id of the game */ app_id: number;
  /** Name in the store, or `app <id>` without a public page */ name: string;
  /** Players at this moment; null from SteamSpy */ players_now: number | null;
  /** Most players at once today, by Steam's day; null from SteamSpy */ peak_today: number | null;
  /** Most players at once yesterday; null from Steam */ peak_yesterday: number | null;
  /** Page of the game in the store */ url: string;
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
  /** Base fee of the next block plus a low tip (10th percentile), or an explorer's slow price, gwei */ low: number;
  /** The same with a usual tip (median), or an explorer's average price, gwei */ standard: number;
  /** The same with a high tip (90th percentile), or an explorer's fast price, gwei */ fast: number;
  /** Base fee of the next block, gwei; null: the explorer does not give it */ base_fee: number | null;
  /** Unit of the prices, for one unit of gas */ unit: "gwei";
  /** Newest block considered; null: the explorer does not give it */ block: number | null;
  /** Time of that block, or of the explorer's estimate */ as_of: string;
  /** fee_history: from fees paid in the last 20 blocks; explorer: an explorer's estimate */ method: "fee_history" | "explorer";
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
  /** Program that runs the model */ harness: string;
  /** Model, or several joined by +; null: the board does not name it */ model: string | null;
  /** Score in the unit of the benchmark */ score: number;
  /** Date of the result, at METR of the model's release; null: not given */ reported_at: string | null;
  /** Whether the board's makers checked it; null: the board does not say */ verified: boolean | null;
  /** Page of the submission; null: none */ source_url: string | null;
}

export interface HarnessesDataBenchmarks {
  /** Short name of the benchmark */ id: string;
  /** Name of the benchmark */ name: string;
  /** Unit of the scores */ unit: string;
  /** Site of the board */ source_url: string;
  /** Licence of the board's data */ licence: string;
  /** Day of the newest result; of the copy where results carry other days or none */ as_of: string;
  /** What to bear in mind when reading its scores */ caveat: string;
  /** Best first */ results: Array<HarnessesDataBenchmarksResults>;
}

export interface HarnessesFreshness {
  /** When the oldest of the boards was read; null: none was */ checked_at: string | null;
  /** Latest date of any result; null: no result has one */ newest_result: string | null;
}

export interface HarnessesData {
  /** All results by board */ view: "raw";
  /** When this answer was composed */ generated_at: string;
  /** Version of the layout of this view */ schema_version: 2;
  /** One board each, those that could be read */ benchmarks: Array<HarnessesDataBenchmarks>;
  /** How old the boards are */ freshness: HarnessesFreshness;
}

export interface HarnessesDataBenchmarksTop {
  /** Program that ran the model */ harness: string;
  /** Model, or several joined by +; null: the board does not name it */ model: string | null;
  /** Score in the unit of the benchmark */ score: number;
}

export interface HarnessesDataBenchmarks2 {
  /** Short name of the benchmark */ id: string;
  /** Name of the benchmark */ name: string;
  /** Unit of the score */ unit: string;
  /** Best result */ top: HarnessesDataBenchmarksTop;
}

export interface HarnessesCombined {
  /** Program that runs the model */ harness: string;
  /** Model */ model: string;
  /** Mean over its benchmarks of the percentage of the best score there */ combined_score: number;
  /** Benchmarks that have this pair, at least two */ benchmarks: number;
  /** Share of all benchmarks that have this pair, 0-1 */ coverage: number;
}

export interface HarnessesScored {
  /** Program that ran the model */ harness: string;
  /** Score in the unit of the benchmark */ score: number;
}

export interface HarnessesGap {
  /** Short name of the benchmark */ benchmark: string;
  /** Model that both harnesses ran */ model: string;
  /** Harness with the highest score */ best: HarnessesScored;
  /** Harness with the lowest score */ worst: HarnessesScored;
  /** Score of the best less that of the worst, in the unit of the benchmark */ delta: number;
}

export interface HarnessesData2 {
  /** The best of each board, and two comparisons */ view: "summary";
  /** When this answer was composed */ generated_at: string;
  /** The best result of each board */ benchmarks: Array<HarnessesDataBenchmarks2>;
  /** Best pairs of harness and model over several boards */ top_combined: Array<HarnessesCombined>;
  /** Widest differences between harnesses with one model */ biggest_gaps: Array<HarnessesGap>;
  /** How old the boards are */ freshness: HarnessesFreshness;
}

export interface HarnessesData3 {
  /** One model in several harnesses */ view: "gaps";
  /** When this answer was composed */ generated_at: string;
  /** Widest first */ gaps: Array<HarnessesGap>;
}

export interface HarnessesData4 {
  /** Pairs of harness and model over several boards */ view: "combined";
  /** When this answer was composed */ generated_at: string;
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
  /** degraded: storage cannot be written */ status: "ok" | "degraded";
  /** Version of the API */ version: string;
  /** Seconds since the process started */ uptime: number;
  /** Now, Unix milliseconds */ ts: number;
}

export interface HealthPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** The same four values as beside it */ data: HealthData | null;
  /** degraded: storage cannot be written */ status: "ok" | "degraded" | null;
  /** Version of the API */ version: string | null;
  /** Seconds since the process started */ uptime: number | null;
  /** Now, Unix milliseconds */ ts: number | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface HumansInSpaceDataPeople {
  /** Name of the person */ name: string;
  /** Station or spacecraft, or unknown */ craft: string;
  /** Space agency or company; null: not given */ agency: string | null;
}

export interface HumansInSpaceData {
  /** People in space, also where `limit` cuts the list */ count: number;
  /** By craft, then name */ people: Array<HumansInSpaceDataPeople>;
  /** When the roster was checked, or its newest member launched */ as_of: string;
  /** checked: when the roster was read; newest_launch: launch of its newest member */ as_of_kind: "checked" | "newest_launch";
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
  /** Cloud region or DNS service */ name: string;
  /** Median time of a TCP connect from this server, milliseconds; -1: unreachable */ latency_ms: number;
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
  /** The list's id of the launch */ id: string;
  /** Vehicle and mission, as listed */ name: string;
  /** Company or agency that launches; null: not given */ provider: string | null;
  /** Rocket; null: not given */ vehicle: string | null;
  /** Name of the mission; null: not given */ mission: string | null;
  /** Purpose in Launch Library's words; null: not given, or from the fallback */ mission_type: string | null;
  /** State in Launch Library's words; of the fallback Scheduled */ status: string;
  /** Launch Library's short form of the state; null from the fallback */ status_code: string | null;
  /** No earlier than, UTC; null: no exact time from the fallback */ scheduled_time: string | null;
  /** How much of scheduled_time is known; unknown: it may mean little */ time_precision: "second" | "minute" | "hour" | "day" | "month" | "unknown";
  /** When the launch window opens; null: not given */ window_start: string | null;
  /** When the launch window closes; null: not given */ window_end: string | null;
  /** Launch pad; null: not given */ pad: string | null;
  /** Launch site; null: not given */ location: string | null;
  /** Degrees north of the pad; null from the fallback */ lat: number | null;
  /** Degrees east of the pad; null from the fallback */ lon: number | null;
  /** Entry of the launch in the list; null: none */ url: string | null;
  /** The date in words; null: not from the fallback */ date_text: string | null;
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
  /** owner/name on the hub */ id: string;
  /** Owner of the model; null: none */ author: string | null;
  /** Name without the owner */ name: string;
  /** Likes of all time */ likes: number;
  /** Downloads in the past 30 days; null: not given */ downloads: number | null;
  /** Task that the model is for, in the hub's words; null: the author did not say */ pipeline: string | null;
  /** Page of the model */ url: string;
  /** When it was last changed; null: not given */ updated: string | null;
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
  /** When it happened, UTC, with milliseconds */ ts: string;
  /** Code for why nothing was charged */ reason: string;
  /** Path that was called */ endpoint: string;
  /** Credits that it would have cost */ credits: number;
  /** SHA-256 of the receipt's core; null: no receipt was fetched */ receipt_sha256: string | null;
}

export interface PaymentNoChargeStatsLog {
  /** Name of the log, in its checkpoints */ origin: string;
  /** Leaves in the log */ size: number;
  /** Merkle root of the log, base64 */ root: string;
  /** Calls that are booked and will be in the log when their hour is over */ waiting: number;
}

export interface PaymentNoChargeStatsDates {
  /** Day, UTC */ date: string;
  /** Calls that were not charged on it */ count: number;
}

export interface PaymentNoChargeStatsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** Day that is counted, UTC */ date: string | null;
  /** Calls not charged on that day */ count: number | null;
  /** Credits that these calls would have cost */ credits_skipped: number | null;
  /** Calls by the code for why nothing was charged */ by_reason: Record<string, number> | null;
  /** Calls by the path that was called */ by_endpoint: Record<string, number> | null;
  /** The last ones, newest first */ events: Array<PaymentNoChargeStatsEvents> | null;
  /** The log that gets every event when its hour is over, as it was last signed */ log: PaymentNoChargeStatsLog | null;
  /** Null unless asked for; the last day first */ dates: Array<PaymentNoChargeStatsDates> | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface PredictionsData {
  /** The question, in the market's words */ question: string;
  /** Price of yes as a probability, percent; of Kalshi the last trade */ yes_percent: number;
  /** 100 - yes_percent */ no_percent: number;
  /** Traded in 24 hours, USD; of Kalshi contracts times the last price */ volume_usd: number;
  /** Market place: Polymarket or Kalshi */ source: string;
  /** Page of the market; null: none */ url: string | null;
  /** When trading is to end; null: not given */ ends_at: string | null;
  /** Change of yes_percent in an hour, percentage points; null: not given */ change_1h_points: number | null;
  /** Change of yes_percent in 24 hours, percentage points; null: not given */ change_24h_points: number | null;
  /** Orders that wait in the book, USD; null: not given */ liquidity_usd: number | null;
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
  /** It is written as a receipt is; null: not checked */ format: boolean | null;
  /** Its key is one of those trusted here; null: an earlier check failed */ key_known: boolean | null;
  /** The key did sign it; null: an earlier check failed */ signature: boolean | null;
  /** The key was in use then, and is not revoked; null: an earlier check failed */ key_time: boolean | null;
  /** It is about the body whose hash was given; null: none was */ body: boolean | null;
  /** The log of uncharged calls has it; null: it names no place there */ in_log: boolean | null;
}

export interface ReceiptVerifyPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the oldest part of the data was fetched; null: never */ updated_at: string | null;
  /** No check failed */ valid: boolean | null;
  /** Each check; null: it was not asked for, or an earlier one failed */ checks: ReceiptVerifyChecks | null;
  /** Name of the key that signed it; null: it names none */ key_id: string | null;
  /** What the receipt says; null unless the signature is good */ core: Record<string, unknown> | null;
  /** Why it is not valid; absent when it is */ error?: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  /** What is missing or old */ warning?: Array<Warning>;
  _meta: Meta;
}

export interface SevereWeatherDataCountsBySeverity {
  /** Alerts of this severity in force */ Extreme: number;
  /** Alerts of this severity in force */ Severe: number;
  /** Alerts of this severity in force */ Moderate: number;
  /** Alerts of this severity in force */ Minor: number;
  /** Alerts of this severity in force, or all from the map */ Unknown: number;
}

export interface SevereWeatherDataTop {
  /** Id of the message, or of the hazard on the map */ id: string;
  /** Name of the event in the words of the NWS */ event: string;
  /** How grave the NWS takes it to be (CAP); Unknown from the map */ severity: "Extreme" | "Severe" | "Moderate" | "Minor" | "Unknown";
  /** How soon to act (CAP); Unknown from the map */ urgency: "Immediate" | "Expected" | "Future" | "Past" | "Unknown";
  /** How sure the NWS is of it (CAP); Unknown from the map */ certainty: "Observed" | "Likely" | "Possible" | "Unlikely" | "Unknown";
  /** Our weights of severity x urgency x certainty, 0.125 to 64 */ score: number;
  /** Counties and zones in words, or the office's area from the map */ area: string;
  /** Headline of the message; null: none */ headline: string | null;
  /** From when the message is valid, or when it was issued */ effective: string;
  /** When the message is void */ expires: string;
  /** When the weather ends; null: not given */ ends: string | null;
  /** Office of the NWS that sent it; null: not given */ sender: string | null;
  /** Our word: tornado, tropical, flood, thunderstorm, winter, fire, heat, wind, marine or other */ category: string;
  /** Address of the message; null: none */ url: string | null;
}

export interface SevereWeatherData {
  /** Alerts in force: warnings, watches, advisories, statements; the list shows the gravest */ total_active: number;
  /** All alerts in force by severity */ counts_by_severity: SevereWeatherDataCountsBySeverity;
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
  /** SWPC's id of the kind of product */ product_id: string;
  /** SWPC's message code; null: none */ code: string | null;
  /** Kind of bulletin: alert, warning, watch or summary */ kind: "alert" | "warning" | "watch" | "summary";
  /** First line of the bulletin */ title: string;
  /** When it was issued */ issued_at: string;
  /** Until when it is valid; null: not given, then it counts for 24 hours */ valid_to: string | null;
  /** Text of the bulletin, cut at 1,000 characters */ message: string;
}

export interface SpaceWeatherData {
  /** Planetary K, 0-9, of the newest three hours; null: not read */ kp_index: number | null;
  /** Start of those three hours, UTC; null: not read */ kp_time: string | null;
  /** SWPC's running estimate of Kp: the newest minute, or the last one of the three hours before, if larger, since each three hours begin at 0; null: not read */ kp_estimated: number | null;
  /** Minute of that estimate; null: not read */ kp_estimated_time: string | null;
  /** NOAA's G scale by kp_index: minor from 4.67, moderate 5.67, strong 6.67, severe 7.67, extreme 9; quiet, our word, is below G1; null: not read */ storm_level: "quiet" | "minor" | "moderate" | "strong" | "severe" | "extreme" | null;
  /** Speed of the solar wind, km/s; null: not read */ solar_wind_speed_kms: number | null;
  /** Protons per cubic centimetre of the solar wind; null: not read */ solar_wind_density_cm3: number | null;
  /** Time of the solar wind's measurement; null: not read */ solar_wind_time: string | null;
  /** Class of the highest X-ray flux (0.1-0.8 nm) of 24 hours, flare or not; null: not read */ flare_peak_class_24h: string | null;
  /** Letter of that class; null: not read */ flare_class_letter: "A" | "B" | "C" | "M" | "X" | null;
  /** Minute of that flux; null: not read */ flare_peak_time: string | null;
  /** Bulletins in force, newest first; null: not read */ active_alerts: Array<SpaceWeatherDataActiveAlerts> | null;
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
  /** Name of the volcano */ name: string;
  /** Country; null: not given */ country: string | null;
  /** Start of the report, cut at 400 characters; null: no report */ summary: string | null;
  /** Page of the volcano or of the report */ link: string;
  /** The report's heading for it, such as New Eruptive Activity; null: no weekly report */ category: string | null;
  /** Days of the report, as it writes them; null: no weekly report */ report_period: string | null;
  /** When the report or notice was published, or the event began; null: not given */ published_at: string | null;
  /** Number in the Smithsonian catalogue; null: not given */ vnum: string | null;
  /** Degrees north; null: not given */ lat: number | null;
  /** Degrees east; null: not given */ lon: number | null;
  /** USGS alert level for people on the ground; null: not raised, or not in the United States */ us_alert_level: string | null;
  /** USGS aviation colour code; null: not raised, or not in the United States */ us_color_code: string | null;
  /** List that it is from */ source: string;
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
  /** Degrees north of the pixel */ lat: number;
  /** Degrees east of the pixel */ lon: number;
  /** Fire radiative power of the pixel, megawatts */ frp_mw: number;
  /** NASA's class of confidence in the detection */ confidence: "low" | "nominal" | "high";
  /** When the satellite saw it */ detected_at: string;
  /** Satellite that saw it */ satellite: string;
  /** D: by day; N: by night; null: not given */ daynight: "D" | "N" | null;
  /** U.S. state, by boxes that overlap; null: outside all of them */ approx_state: string | null;
}

export interface WildfiresDataIncidents {
  /** Name of the fire */ name: string;
  /** State where it began; null: not reported */ state: string | null;
  /** Acres burned, as reported; null: not reported */ acres: number | null;
  /** Part of the edge that is contained, percent; null: not reported */ contained_percent: number | null;
  /** When it was discovered; null: not reported */ discovered_at: string | null;
}

export interface WildfiresData {
  /** Hours that the detections are from */ window_hours: 24;
  /** Distinct hot spots in the window; `top` has the strongest */ total_detections: number;
  /** Hot spots by satellite, of those that could be read */ by_satellite: Record<string, number>;
  /** Strongest first, by radiative power */ top: Array<WildfiresDataTop>;
  /** Reported wildfires, largest first; null: the agencies' list could not be read */ incidents: Array<WildfiresDataIncidents> | null;
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
  /** Now, UTC */ iso: string;
  /** Now, Unix milliseconds */ unix_ms: number;
  /** Now in words, UTC */ human_readable_utc: string;
  /** Day of the week, UTC */ weekday: string;
}

export interface PremiumAgentContextContextMarketsBtc {
  /** Last price, in the currency of `quote` */ price_usd: number;
  /** Change of the price in about 24 hours, percent; null: the venue does not give it */ change_24h_percent: number | null;
  /** Traded in 24 hours, in the currency of `quote`; null: the venue does not give it */ volume_24h: number | null;
  /** Currency of the numbers; USDT is not converted */ quote: "USD" | "USDT";
  /** When the price was fetched */ as_of: string;
}

export interface PremiumAgentContextContextMarketsCryptoFearGreed {
  /** 0 extreme fear, 100 extreme greed */ value: number;
  /** The publisher's word for the value */ label: string;
  /** Publisher of the index; two publishers' values are not comparable */ source: "alternative.me" | "coinmarketcap";
  /** When the publisher set the value */ as_of: string;
}

export interface PremiumAgentContextContextMarketsVix {
  /** The VIX, points */ value: number;
  /** Change against the previous close, percent; null: not given */ change_percent: number | null;
  /** provider:symbol */ source: string;
  /** Whether it is current, delayed or the last close, as far as the provider says */ freshness: "delayed" | "real_time" | "previous_close";
  /** Time of the value; null: the provider does not give it */ as_of: string | null;
}

export interface PremiumAgentContextContextMarketsFedFundsRate {
  /** Effective rate, percent */ value: number;
  /** The day that the rate is for */ as_of: string;
  /** Lower end of the Fed's target range, percent; null: not from the New York Fed */ target_from: number | null;
  /** Upper end of the Fed's target range, percent; null: not from the New York Fed */ target_to: number | null;
}

export interface PremiumAgentContextContextMarketsForexUsdBase {
  /** Euros per dollar; null: not published */ EUR: number | null;
  /** Yen per dollar; null: not published */ JPY: number | null;
  /** Pounds sterling per dollar; null: not published */ GBP: number | null;
  /** Swiss francs per dollar; null: not published */ CHF: number | null;
  /** Newest published day */ date: string;
  /** ecb_reference: the ECB's daily fixing; market_mid: mid-market */ kind: "ecb_reference" | "market_mid";
}

export interface PremiumAgentContextContextMarkets {
  /** Bitcoin; null: no source answered */ btc: PremiumAgentContextContextMarketsBtc | null;
  /** Mood of the crypto market; null: no source answered */ crypto_fear_greed: PremiumAgentContextContextMarketsCryptoFearGreed | null;
  /** Expected volatility of U.S. shares; null: no source answered */ vix: PremiumAgentContextContextMarketsVix | null;
  /** U.S. federal funds rate; null: no source answered */ fed_funds_rate: PremiumAgentContextContextMarketsFedFundsRate | null;
  /** Dollar rates; null: no source answered */ forex_usd_base: PremiumAgentContextContextMarketsForexUsdBase | null;
}

export interface PremiumAgentContextContextWorldEventsSignificantEarthquakes24h {
  /** Magnitude on the network's preferred scale */ magnitude: number;
  /** Place, as the network names it */ place: string;
  /** Origin time */ time: string;
  /** The network's page of the event; null: none */ url: string | null;
}

export interface PremiumAgentContextContextWorldEventsUpcomingSpaceLaunches {
  /** Name of the mission, or of the launch */ mission: string;
  /** Rocket; null: not given */ vehicle: string | null;
  /** Company or agency that launches; null: not given */ provider: string | null;
  /** No earlier than, UTC; null: no exact time from the fallback */ net: string | null;
  /** How much of `net` is known; unknown: it may mean little */ time_precision: "second" | "minute" | "hour" | "day" | "month" | "unknown";
  /** State in the list's words */ status: string;
}

export interface PremiumAgentContextContextWorldEventsNewsFrontPageTop5 {
  /** Title of the story */ title: string;
  /** Points on Hacker News */ points: number;
  /** Comments on Hacker News */ comments: number;
  /** The article, or the discussion for text posts */ url: string;
}

export interface PremiumAgentContextContextWorldEventsPredictionMarketsTop3 {
  /** The question, in the market's words */ question: string;
  /** Price of yes as a probability, 0-1; of Kalshi the last trade */ yes_probability: number;
  /** Traded in 24 hours, USD; of Kalshi contracts times the last price */ volume_24h: number;
  /** Page of the market; null: none */ url: string | null;
}

export interface PremiumAgentContextContextWorldEvents {
  /** M6+ or flagged significant by USGS, largest first; null: no source answered */ significant_earthquakes_24h: Array<PremiumAgentContextContextWorldEventsSignificantEarthquakes24h> | null;
  /** Soonest first; null: no source answered */ upcoming_space_launches: Array<PremiumAgentContextContextWorldEventsUpcomingSpaceLaunches> | null;
  /** Front page of Hacker News, from the top; null: no source answered */ news_front_page_top5: Array<PremiumAgentContextContextWorldEventsNewsFrontPageTop5> | null;
  /** Most traded in 24 hours; null: no source answered */ prediction_markets_top3: Array<PremiumAgentContextContextWorldEventsPredictionMarketsTop3> | null;
}

export interface PremiumAgentContextContextInfrastructureDetails {
  /** What its status page reports, in our word */ GitHub: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
  /** What its status page reports, in our word */ Cloudflare: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
  /** What its status page reports, ChatGPT included, in our word */ OpenAI: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
  /** What its status page reports, in our word */ Anthropic: "operational" | "minor issues" | "major issues" | "critical" | "maintenance" | "unknown";
}

export interface PremiumAgentContextContextInfrastructure {
  /** The four services in one sentence */ summary: string;
  /** The four services */ details: PremiumAgentContextContextInfrastructureDetails;
  /** False when the state of one is unknown */ all_operational: boolean;
}

export interface PremiumAgentContextContext {
  /** The moment this is about */ datetime: PremiumAgentContextContextDatetime;
  /** Markets and rates */ markets: PremiumAgentContextContextMarkets;
  /** Earthquakes, launches, news and bets */ world_events: PremiumAgentContextContextWorldEvents;
  /** GitHub, Cloudflare, OpenAI and Anthropic */ infrastructure: PremiumAgentContextContextInfrastructure;
}

export interface PremiumAgentContextPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** The state of the world as data */ context: PremiumAgentContextContext;
  /** Plain text of about 350 tokens */ system_prompt: string;
  /** Remarks on use, freshness and composition */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumBriefingSectionsBtc {
  /** Last price, in the currency of `quote` */ price_usd: number;
  /** Change of the price in about 24 hours, percent; null: the venue does not give it */ change_24h_percent: number | null;
  /** Traded in 24 hours, in the currency of `quote`; null: the venue does not give it */ volume_24h: number | null;
  /** Highest price in 24 hours, in the currency of `quote`; null: the venue does not give it */ high_24h: number | null;
  /** Lowest price in 24 hours, in the currency of `quote`; null: the venue does not give it */ low_24h: number | null;
  /** Exchange or market page that gave the numbers */ venue: string;
  /** Currency of the numbers; USDT is not converted */ quote: "USD" | "USDT";
}

export interface PremiumBriefingSectionsFearGreed {
  /** 0 extreme fear, 100 extreme greed */ value: number;
  /** The publisher's word for the value */ label: string;
  /** Publisher of the index; two publishers' values are not comparable */ source: "alternative.me" | "coinmarketcap";
}

export interface PremiumBriefingSectionsEarthquakesLatest {
  /** Magnitude on the network's preferred scale */ magnitude: number;
  /** Place, as the network names it */ place: string;
  /** Origin time, Unix milliseconds */ time: number;
}

export interface PremiumBriefingSectionsEarthquakes {
  /** Earthquakes of M2.5 and above in 24 hours */ count: number;
  /** The newest of them; null: there is none */ latest: PremiumBriefingSectionsEarthquakesLatest | null;
}

export interface PremiumBriefingSectionsTechNews {
  /** Stories on the front page of Hacker News, at most 30 */ top_story_count: number;
}

export interface PremiumBriefingSectionsHumansInSpace {
  /** People in space */ count: number;
  /** Their names, in alphabetical order */ names: Array<string>;
}

export interface PremiumBriefingSectionsPredictionsTopOutcomes {
  /** Name of the outcome, Yes or No */ name: string;
  /** Price as a probability, 0-1 */ price: number;
}

export interface PremiumBriefingSectionsPredictionsTop {
  /** The question, in the market's words */ question: string;
  /** Traded in 24 hours, USD; of Kalshi contracts times the last price */ volume_24hr: number;
  /** Both outcomes with their prices */ outcomes: Array<PremiumBriefingSectionsPredictionsTopOutcomes>;
}

export interface PremiumBriefingSectionsPredictions {
  /** Open yes/no markets seen */ count: number;
  /** Most traded in 24 hours, at most 5 */ top: Array<PremiumBriefingSectionsPredictionsTop>;
}

export interface PremiumBriefingSections {
  /** Bitcoin; null: no source answered */ btc?: PremiumBriefingSectionsBtc | null;
  /** Mood of the crypto market; null: no source answered */ fear_greed?: PremiumBriefingSectionsFearGreed | null;
  /** Earthquakes of the past day; null: no source answered */ earthquakes?: PremiumBriefingSectionsEarthquakes | null;
  /** Front page of Hacker News; null: no source answered */ tech_news?: PremiumBriefingSectionsTechNews | null;
  /** Who is in space; null: no source answered */ humans_in_space?: PremiumBriefingSectionsHumansInSpace | null;
  /** Prediction markets; null: no source answered */ predictions?: PremiumBriefingSectionsPredictions | null;
}

export interface PremiumBriefingSeriesBtc24h {
  /** Start of the hour, Unix ms */ ts: number;
  /** Last price of the hour, USD */ price: number;
}

export interface PremiumBriefingSeries {
  /** Bitcoin by the hour, hours that are over, oldest first; null: no source answered */ btc_24h: Array<PremiumBriefingSeriesBtc24h> | null;
}

export interface PremiumBriefingPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** The sections that were asked for */ sections: PremiumBriefingSections;
  /** Prices by the hour; absent without history=24h */ series?: PremiumBriefingSeries | null;
  /** Remarks on units, times and indices */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumCorrelationMatrixAssets {
  /** Our symbol of the asset */ symbol: string;
  /** Class of the asset; yields are also compared by differences */ asset_class: "commodity" | "rates" | "fx";
  /** Published days in the last 75 days; 0: no source answered */ observations: number;
  /** The first of these days; null: none */ first_date: string | null;
  /** The last of these days; null: none */ last_date: string | null;
  /** provider:series; null: no source answered */ source: string | null;
}

export interface PremiumCorrelationMatrixPairs {
  /** Symbol of the first asset */ a: string;
  /** Symbol of the second asset */ b: string;
  /** Pearson's r of daily percentage changes, -1 to 1 */ pearson_r: number;
  /** Returns that both have, at most 30 */ n_observations: number;
  /** Our word for the size of r: weak from 0.2, moderate 0.4, strong 0.7 */ relationship: "negligible" | "weak" | "moderate" | "strong";
  /** Sign of r; none below 0.05 */ direction: "positive" | "negative" | "none";
  /** r with the changes of yields in percentage points; null: a pair without a yield */ pearson_r_yield_diff: number | null;
  /** Day of the first common return */ first_date: string;
  /** Day of the last common return */ last_date: string;
}

export interface PremiumCorrelationMatrixSampleSize {
  /** Assets compared */ assets_requested: number;
  /** Assets that a source answered for */ assets_with_data: number;
  /** Pairs with at least ten common returns */ pairs_computed: number;
  /** Published days by symbol */ data_availability: Record<string, number>;
}

export interface PremiumCorrelationMatrixPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Returns looked at, at most 30 days */ window: "30d";
  /** How r is computed */ method: string;
  /** The assets, in a fixed order */ assets: Array<PremiumCorrelationMatrixAssets>;
  /** Largest |r| first */ pairs: Array<PremiumCorrelationMatrixPairs>;
  /** pearson_r by symbol and symbol; null: too few common returns */ matrix: Record<string, Record<string, number | null>>;
  /** How much the correlations rest on */ sample_size: PremiumCorrelationMatrixSampleSize;
  /** Remarks on dates, yields and significance */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumCryptoDeepCoinsTop50 {
  /** Symbol of the coin */ symbol: string;
  /** Name of the coin */ name: string;
  /** Price in USD, over all venues */ price_usd: number;
  /** Change of the price in an hour, percent; null: not published */ change_1h_percent: number | null;
  /** Change of the price in 24 hours, percent; null: not published */ change_24h_percent: number | null;
  /** Change of the price in 7 days, percent; null: not published */ change_7d_percent: number | null;
  /** Price of all coins in circulation, USD; null: not published */ market_cap: number | null;
  /** Traded in 24 hours at all venues, USD; null: not published */ volume_24h: number | null;
  /** Rank by market value, from 1 */ rank: number;
}

export interface PremiumCryptoDeepExchangeTop20Usdt {
  /** coin-currency */ pair: string;
  /** Last price, in the second currency */ price: number;
  /** Change in 24 hours, percent; of Kraken that at OKX or over all venues; null: not known */ change_24h_percent: number | null;
  /** Traded in 24 hours, in the second currency; of Kraken in USD over the coin's pairs */ volume_24h: number;
  /** Highest price in 24 hours, in the second currency */ high_24h: number;
  /** Lowest price in 24 hours, in the second currency */ low_24h: number;
  /** Trades in 24 hours; null: OKX does not publish them */ trades_24h: number | null;
  /** Exchange */ venue: string;
}

export interface PremiumCryptoDeepNetworkBtcFeesSatPerVb {
  /** For the next block */ fastest: number;
  /** For a block within about half an hour */ half_hour: number;
  /** For a block within about an hour */ hour: number;
  /** For a block within about a day */ economy: number;
  /** Least that enters the mempool of mempool.space or our node; of Blockstream the estimate for a week */ minimum: number;
  /** `fastest` before it is rounded up, often below 1; null: only whole numbers are published */ fastest_exact: number | null;
  /** `half_hour` before it is rounded up; null: as above */ half_hour_exact: number | null;
  /** `hour` before it is rounded up; null: as above */ hour_exact: number | null;
  /** `economy` before it is rounded up; null: as above */ economy_exact: number | null;
  /** `minimum` before it is rounded up; null: as above */ minimum_exact: number | null;
}

export interface PremiumCryptoDeepNetworkBtcHashrate {
  /** Exahashes a second, mean of the past `mean_days` */ current_eh_s: number;
  /** Difficulty of the network */ current_difficulty: number;
  /** Days of the mean: 7 at mempool.space, 1 elsewhere */ mean_days: number;
}

export interface PremiumCryptoDeepNetworkBtcMempool {
  /** Transactions that wait for a block */ count: number;
  /** Their size, virtual bytes */ vsize: number;
  /** Their fees, satoshi */ total_fee_sat: number;
}

export interface PremiumCryptoDeepNetworkBtc {
  /** Number of the newest block; null: no source answered */ block_height: number | null;
  /** Recommended fees, satoshi per virtual byte, rounded up to at least 1; null: no source answered */ fees_sat_per_vb: PremiumCryptoDeepNetworkBtcFeesSatPerVb | null;
  /** Mining power; null: no source answered */ hashrate: PremiumCryptoDeepNetworkBtcHashrate | null;
  /** What waits for a block; null: no source answered */ mempool: PremiumCryptoDeepNetworkBtcMempool | null;
}

export interface PremiumCryptoDeepEthGas {
  /** low_gwei_exact rounded up to whole gwei, at least 1 */ low_gwei: number;
  /** standard_gwei_exact rounded up to whole gwei */ standard_gwei: number;
  /** fast_gwei_exact rounded up to whole gwei */ fast_gwei: number;
  /** Base fee of the next block, gwei; null: the explorer does not give it */ base_fee_gwei: number | null;
  /** Newest block considered; null: the explorer does not give it */ last_block: number | null;
  /** Base fee plus a low tip (10th percentile of 20 blocks), or an explorer's slow price, gwei */ low_gwei_exact: number;
  /** The same with a usual tip (median), or an explorer's average price, gwei */ standard_gwei_exact: number;
  /** The same with a high tip (90th percentile), or an explorer's fast price, gwei */ fast_gwei_exact: number;
}

export interface PremiumCryptoDeepSeriesBtc30d {
  /** Start of the UTC day, Unix ms */ ts: number;
  /** Lowest price of the day, USD */ low: number;
  /** Highest price of the day, USD */ high: number;
  /** First price of the day, USD */ open: number;
  /** Last price of the day, USD */ close: number;
  /** Traded on that day, BTC; null: prices of an oracle, which have none */ volume: number | null;
}

export interface PremiumCryptoDeepSeries {
  /** Bitcoin by day, days that are over, oldest first; null: no source answered */ btc_30d: Array<PremiumCryptoDeepSeriesBtc30d> | null;
}

export interface PremiumCryptoDeepPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Coins by market value, largest first; null: no source answered */ coins_top50: Array<PremiumCryptoDeepCoinsTop50> | null;
  /** Pairs of one exchange, most traded first; null: no source answered */ exchange_top20_usdt: Array<PremiumCryptoDeepExchangeTop20Usdt> | null;
  /** State of the Bitcoin network; null: no source answered, or `coins` found none */ network_btc: PremiumCryptoDeepNetworkBtc | null;
  /** Price of gas on Ethereum; null: no source answered, or `coins` found none */ eth_gas: PremiumCryptoDeepEthGas | null;
  /** Candles by day; absent without history=30d */ series?: PremiumCryptoDeepSeries | null;
  /** Remarks on venue, rounding and units */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumExchangeFlowsBlocksScanned {
  /** Number of the block */ number: number;
  /** Time of the block */ time: string;
  /** Transactions in the block */ tx_count: number;
}

export interface PremiumExchangeFlowsFlowsByExchange {
  /** Exchange, by the label of its wallets */ exchange: string;
  /** Received from others, ETH */ inflow_eth: number;
  /** Paid to others, ETH */ outflow_eth: number;
  /** Inflow less outflow, ETH */ net_eth: number;
  /** Transfers received from others */ inflow_count: number;
  /** Transfers paid to others */ outflow_count: number;
  /** inflow_eth in USD; null: no price */ inflow_usd: number | null;
  /** outflow_eth in USD; null: no price */ outflow_usd: number | null;
  /** net_eth in USD; null: no price */ net_usd: number | null;
}

export interface PremiumExchangeFlowsRecentTransfers {
  /** Hash of the transaction */ tx_hash: string;
  /** As seen from `exchange`; internal ones are not listed */ direction: "inflow" | "outflow" | "inter_exchange" | "internal";
  /** The one that receives or pays; between two, the one that pays */ exchange: string;
  /** The other address; null: a contract was created */ counterparty: string | null;
  /** Exchange of the other address; null: it is none that is known */ counterparty_exchange: string | null;
  /** Amount, ETH */ value_eth: number;
  /** Amount in USD; null: no price */ value_usd: number | null;
  /** Number of the block */ block_number: number;
  /** Time of the block */ block_time: string;
  /** Page of the transaction on Etherscan */ explorer_url: string;
}

export interface PremiumExchangeFlowsAggregate {
  /** Inflows and outflows of all exchanges */ transfer_count: number;
  /** Transfers between two exchanges, which are in no other sum */ inter_exchange_count: number;
  /** Inflow of all exchanges, ETH */ total_inflow_eth: number;
  /** Outflow of all exchanges, ETH */ total_outflow_eth: number;
  /** Inflow less outflow, ETH */ net_flow_eth: number;
  /** net_flow_eth in USD; null: no price */ net_flow_usd: number | null;
  /** Which way the net flow leans, by our rule in `threshold` */ bias: "inflow_dominant" | "outflow_dominant" | "balanced";
}

export interface PremiumExchangeFlowsThreshold {
  /** Smallest transfer that counts, ETH */ min_eth: number;
  /** When the bias is called balanced */ balanced_rule: string;
  /** Why this smallest transfer */ rationale: string;
}

export interface PremiumExchangeFlowsPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Price of one ETH, USD; null: no source answered */ spot_eth_usd: number | null;
  /** Blocks that were read, newest first */ blocks_scanned: Array<PremiumExchangeFlowsBlocksScanned>;
  /** All tracked, largest net flow first */ flows_by_exchange: Array<PremiumExchangeFlowsFlowsByExchange>;
  /** Newest block first, the largest of a block first */ recent_transfers: Array<PremiumExchangeFlowsRecentTransfers>;
  /** Sums over all exchanges */ aggregate: PremiumExchangeFlowsAggregate;
  /** What counts, and why */ threshold: PremiumExchangeFlowsThreshold;
  /** Exchanges whose wallets are known */ exchanges_tracked: Array<string>;
  /** Remarks on scope and labels */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumMacroDatedValue {
  /** The day, or the first day of the period, that the value is for */ date: string;
  /** Value as published */ value: number;
}

export interface PremiumMacroEconomicFigure {
  /** Newest published value, in `unit`; null: not published */ value: number | null;
  /** The day, or the first day of the month or quarter, it is for */ date: string;
  /** provider:series */ source: string;
  /** Unit of the value */ unit: string;
  /** Of cpi, as BLS counts it: 12 months of the unadjusted index, percent, one decimal; null after a gap; absent from the others */ yoy_percent?: number | null;
  /** Newest 30 at its own frequency, oldest first; absent without history=30d */ series?: Array<PremiumMacroDatedValue> | null;
}

export interface PremiumMacroEconomic {
  /** Effective federal funds rate, percent; null: no publisher answered */ fed_rate: PremiumMacroEconomicFigure | null;
  /** Consumer prices (CPI-U), all items, seasonally adjusted index; null: no publisher answered */ cpi: PremiumMacroEconomicFigure | null;
  /** Unemployment (U-3), seasonally adjusted, percent; null: no publisher answered */ unemployment: PremiumMacroEconomicFigure | null;
  /** Real GDP against the quarter before, as an annual rate, percent; null: no publisher answered */ gdp_growth: PremiumMacroEconomicFigure | null;
  /** Par yield of 10-year Treasuries, percent; null: no publisher answered */ treasury_10y: PremiumMacroEconomicFigure | null;
}

export interface PremiumMacroForex {
  /** Currency that the rates are for one unit of */ base: "USD";
  /** Newest published day */ date: string;
  /** Units of EUR, JPY, GBP and CHF per dollar */ rates: Record<string, number>;
  /** ecb_reference: the ECB's daily fixing; market_mid: mid-market */ kind: "ecb_reference" | "market_mid";
  /** Newest 30 published days by currency, oldest first; absent without history=30d */ series?: Record<string, Array<PremiumMacroDatedValue>> | null;
}

export interface PremiumMacroGoldPriced {
  /** Price of a troy ounce, USD */ price_usd: number;
  /** provider:series */ source: string;
  /** Time of the price */ as_of: string;
}

export interface PremiumMacroCommodityPriced {
  /** Price of a barrel of oil or a million Btu of gas, USD */ price_usd: number;
  /** The day that the price is for, often a week ago */ date: string;
  /** provider:series */ source: string;
}

export interface PremiumMacroCommodities {
  /** Spot, a token for an ounce or the nearest future, as `notes` says; null: no source answered */ gold: PremiumMacroGoldPriced | null;
  /** Always null: there is no source */ silver: PremiumMacroGoldPriced | null;
  /** West Texas Intermediate; null: no source answered */ oil: PremiumMacroCommodityPriced | null;
  /** Natural gas at Henry Hub; null: no source answered */ nat_gas: PremiumMacroCommodityPriced | null;
}

export interface PremiumMacroMarketFigure {
  /** Last price, USD; points for the VIX */ price: number;
  /** price less the previous close */ change: number;
  /** Change against the previous close, percent */ change_percent: number;
  /** Time of the price; null: the provider does not give it */ as_of: string | null;
  /** provider:symbol */ source: string;
  /** Whether the price is current, delayed or the last close, as far as the provider says */ freshness: "delayed" | "real_time" | "previous_close";
}

export interface PremiumMacroMarkets {
  /** Fund of the S&P 500; null: no source answered */ spy: PremiumMacroMarketFigure | null;
  /** Fund of the Dow; null: no source answered */ dia: PremiumMacroMarketFigure | null;
  /** Fund of the Nasdaq 100; null: no source answered */ qqq: PremiumMacroMarketFigure | null;
  /** Cboe's index of expected volatility; null: no source answered */ vix: PremiumMacroMarketFigure | null;
}

export interface PremiumMacroPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** U.S. figures */ economic: PremiumMacroEconomic;
  /** Dollar rates; null: no source answered */ forex: PremiumMacroForex | null;
  /** Gold, oil and gas */ commodities: PremiumMacroCommodities;
  /** Three funds and the VIX */ markets: PremiumMacroMarkets;
  /** Remarks on dates, kinds of price and licences */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumSentimentMarketIndicesCryptoFearGreed {
  /** 0 extreme fear, 100 extreme greed */ value: number;
  /** The publisher's word for the value */ label: string;
  /** Publisher of the index; two publishers' values are not comparable */ source: "alternative.me" | "coinmarketcap";
}

export interface PremiumSentimentMarketIndicesStocksVix {
  /** The VIX, points */ value: number;
  /** Change against the close before, percent */ change_percent: number;
  /** Our word for the value: low_volatility below 15, normal 25, elevated 40 */ label: "low_volatility" | "normal" | "elevated" | "high_volatility" | "unknown";
  /** provider:symbol */ source: string;
}

export interface PremiumSentimentMarketIndices {
  /** Fear & Greed of the crypto market; null: no source answered */ crypto_fear_greed: PremiumSentimentMarketIndicesCryptoFearGreed | null;
  /** Expected volatility of U.S. shares; null: no source answered */ stocks_vix: PremiumSentimentMarketIndicesStocksVix | null;
}

export interface PremiumSentimentTrendingSampleHeadlines {
  /** Headline, third-party text */ title: string;
  /** Address of the article; null: none */ url: string | null;
  /** Publisher */ source: string;
  /** Tone of this headline by our words: above 0.1 +, below -0.1 - */ sentiment_signal: "+" | "-" | "neutral";
}

export interface PremiumSentimentTrending {
  /** Ticker */ symbol: string;
  /** Class of the ticker */ asset_class: "crypto" | "equity" | "crypto-equity";
  /** Headlines of 24 hours that name it */ mention_count_24h: number;
  /** Headlines that name it, by publisher */ sources: Record<string, number>;
  /** Mean tone of these headlines, -1 to 1 */ sentiment_score: number;
  /** Our word for the score: neutral from -0.1 to 0.1, moderately_ up to 0.3 */ sentiment_label: "negative" | "moderately_negative" | "neutral" | "moderately_positive" | "positive";
  /** Up to three, the clearest in tone first */ sample_headlines: Array<PremiumSentimentTrendingSampleHeadlines>;
  /** By the number of mentions: low below 3, medium below 10 */ confidence: "low" | "medium" | "high";
}

export interface PremiumSentimentPredictionMarketsSignals {
  /** The question, in the market's words */ question: string;
  /** Price of yes as a probability, 0-1; of Kalshi the last trade; null: no price */ yes_probability: number | null;
  /** Traded in 24 hours, USD; of Kalshi contracts times the last price */ volume_24h: number;
  /** Page of the market; null: none */ url: string | null;
}

export interface PremiumSentimentSampleSize {
  /** Of the window, each story once, with or without a ticker */ headlines_scanned: number;
  /** Tickers of our list that some headline names */ tickers_with_mentions: number;
  /** Headline feeds that answered */ sources_ok: number;
  /** Headline feeds that were asked and gave nothing, as in _meta */ sources_failed: number;
  /** Hours that the headlines are from */ window_hours: number;
}

export interface PremiumSentimentPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Two indices of mood */ market_indices: PremiumSentimentMarketIndices;
  /** Most named tickers first; null: too few headlines to tell */ trending: Array<PremiumSentimentTrending> | null;
  /** Markets about money, most traded first; null: no source answered */ prediction_markets_signals: Array<PremiumSentimentPredictionMarketsSignals> | null;
  /** How much the tones rest on */ sample_size: PremiumSentimentSampleSize;
  /** Remarks on scoring, sources and labels */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumWhalesSpotPrices {
  /** Price of one BTC, USD; null: no source answered */ btc_usd: number | null;
  /** Price of one ETH, USD; null: no source answered */ eth_usd: number | null;
}

export interface PremiumWhalesBtcWhalesUnconfirmed {
  /** Hash of the transaction */ tx_hash: string;
  /** Paid to others, BTC, change removed unless a warning says otherwise */ value_btc: number;
  /** All outputs, change included, BTC */ value_btc_total: number;
  /** value_btc in USD; null: no price */ value_usd: number | null;
  /** Fee of the whole transaction, satoshi; null: not given */ fee_sats: number | null;
  /** Size, virtual bytes; null: not given */ vsize: number | null;
  /** Fee by size, satoshi per virtual byte; null: one of them is not given */ fee_sat_per_vb: number | null;
  /** When the explorer, the node or we first saw it */ first_seen: string;
  /** It waited for a block when it was seen */ confirmed: false;
  /** Page of the transaction on mempool.space */ explorer_url: string;
}

export interface PremiumWhalesEthWhalesLatestBlock {
  /** Hash of the transaction */ tx_hash: string;
  /** Address that paid */ from: string;
  /** Address that received; null: a contract was created */ to: string | null;
  /** Exchange that paid; null: no wallet that is known */ from_label: string | null;
  /** Exchange that received; null: no wallet that is known */ to_label: string | null;
  /** Amount, ETH */ value_eth: number;
  /** Amount in USD; null: no price */ value_usd: number | null;
  /** Number of the block */ block_number: number;
  /** Time of the block */ block_time: string;
  /** It is in a block */ confirmed: true;
  /** Page of the transaction on Etherscan */ explorer_url: string;
}

export interface PremiumWhalesEthBlock {
  /** Number of the block */ number: number;
  /** Time of the block */ time: string;
}

export interface PremiumWhalesEthBlocksScanned {
  /** Number of the block */ number: number;
  /** Time of the block */ time: string;
  /** Transactions in the block */ tx_count: number;
}

export interface PremiumWhalesAggregate {
  /** Large bitcoin transactions found; null: not read */ btc_whale_count: number | null;
  /** Their value_btc together; null: not read */ btc_whale_total_btc: number | null;
  /** The same in USD; null: not read, or no price */ btc_whale_total_usd: number | null;
  /** Large Ether transfers found; null: not read */ eth_whale_count: number | null;
  /** Their ETH together; null: not read */ eth_whale_total_eth: number | null;
  /** The same in USD; null: not read, or no price */ eth_whale_total_usd: number | null;
}

export interface PremiumWhalesThresholds {
  /** Smallest bitcoin transaction listed, BTC */ btc_min_btc: number;
  /** Smallest Ether transfer listed, ETH */ eth_min_eth: number;
  /** Transactions seen in the window, large or not */ btc_sample_txs: number;
  /** Seconds that they have been watched, at most 1800 */ btc_window_s: number;
  /** Why these smallest amounts */ rationale: string;
}

export interface PremiumWhalesPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Prices that the dollar values are computed with */ spot_prices: PremiumWhalesSpotPrices;
  /** Not in a block when seen, largest first; null: no source answered */ btc_whales_unconfirmed: Array<PremiumWhalesBtcWhalesUnconfirmed> | null;
  /** In the blocks scanned, largest first; null: no source answered */ eth_whales_latest_block: Array<PremiumWhalesEthWhalesLatestBlock> | null;
  /** Newest block scanned; null: none could be read */ eth_block: PremiumWhalesEthBlock | null;
  /** Blocks that were read, newest first */ eth_blocks_scanned: Array<PremiumWhalesEthBlocksScanned>;
  /** Counts and sums of all that was found, also where a list is cut */ aggregate: PremiumWhalesAggregate;
  /** What counts, and why */ thresholds: PremiumWhalesThresholds;
  /** Remarks on sample, change and labels */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumWorldDeltasEventsData {
  /** The network's id of the event */ id: string;
  /** Magnitude on the network's preferred scale */ magnitude: number;
  /** Place, as the network names it */ place: string;
  /** Depth of the focus, kilometres; null: not published */ depth_km: number | null;
  /** Degrees north; null: not published */ lat: number | null;
  /** Degrees east; null: not published */ lon: number | null;
  /** USGS's flag for large events in oceanic regions, no warning of a tsunami; null: not given (EMSC) */ tsunami: boolean | null;
  /** Scale of the magnitude, such as mww or ml; null: not published */ mag_type: string | null;
  /** The network's page of the event; null: none */ url: string | null;
  /** When the network last changed the event; null: not given */ updated: string | null;
}

export interface PremiumWorldDeltasEventsData2 {
  /** Hacker News's id of the story */ id: number;
  /** Title of the story */ title: string;
  /** The article, or the discussion for text posts */ url: string;
  /** Points on Hacker News */ points: number;
  /** Comments on Hacker News; null: not given */ num_comments: number | null;
  /** Who submitted it; null: not given */ author: string | null;
  /** When it was submitted */ created_at: string;
  /** When we first saw it on the front page */ first_seen_at: string;
}

export interface PremiumWorldDeltasEventsData3 {
  /** The market place's id */ id: string;
  /** The question, in the market's words */ question: string;
  /** Price of yes as a probability, 0-1; of Kalshi the last trade */ yes_probability: number;
  /** Change of yes_probability in an hour; null for some markets opened within the hour */ change_1h: number | null;
  /** Traded in 24 hours, USD; of Kalshi contracts times the last price */ volume_24h: number;
  /** Page of the market; null: none */ url: string | null;
  /** Market place: Polymarket or Kalshi */ source: string;
}

export interface PremiumWorldDeltasEventsData4 {
  /** The list's id of the launch */ id: string;
  /** Vehicle and mission, as listed */ name: string;
  /** Name of the mission; null: not given */ mission: string | null;
  /** Rocket; null: not given */ vehicle: string | null;
  /** Company or agency that launches; null: not given */ provider: string | null;
  /** State in the list's words */ status: string;
  /** Time of the launch: no earlier than */ net: string;
  /** recent: the time is past; upcoming: it is ahead */ window: "recent" | "upcoming";
  /** Launch pad; null: not given */ pad: string | null;
  /** Entry of the launch in the list; null: none */ url: string | null;
}

export interface PremiumWorldDeltasEvents {
  /** Kind of event */ type: "earthquake" | "tech_news_story" | "prediction_market_update" | "space_launch";
  /** Time of the event; which one depends on the type, as `notes` says */ timestamp: string;
  /** Our word for how large it is, by the rules in `notes` */ severity: "minor" | "moderate" | "major";
  /** Facts of the event, by type */ data: PremiumWorldDeltasEventsData | PremiumWorldDeltasEventsData2 | PremiumWorldDeltasEventsData3 | PremiumWorldDeltasEventsData4;
}

export interface PremiumWorldDeltasSampleSize {
  /** Events of the past hour, launches ahead included */ events_in_rolling_hour: number;
  /** Those after `since` */ events_after_since_filter: number;
  /** Sources that gave something */ sources_ok: number;
  /** Sources that were asked and gave nothing, as in _meta */ sources_failed: number;
}

export interface PremiumWorldDeltasPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Time after which events are listed */ since: string;
  /** True: `since` was given as more than an hour ago */ since_clamped: boolean;
  /** Latest first, launches ahead included */ events: Array<PremiumWorldDeltasEvents>;
  /** Events listed, by type; a type whose sources failed is absent */ counts: Record<string, number>;
  /** How many events and sources this rests on */ sample_size: PremiumWorldDeltasSampleSize;
  /** Remarks on windows, types and severity */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PremiumCodeHostVelocityWindow {
  /** Age in days of the repositories in trending_repos */ created_within_days: number;
  /** Days in which those of ai_ml_repos_active_30d were pushed to */ active_within_days: number;
}

export interface PremiumCodeHostVelocityTrendingRepos {
  /** owner/name */ full_name: string;
  /** The owner's description, cut at 200 characters; null: none */ description: string | null;
  /** Page of the repository on GitHub */ url: string;
  /** Language that GitHub finds most of; null: none */ language: string | null;
  /** Topics that the owner chose, at most 10 */ topics: Array<string>;
  /** SPDX identifier; null: none or not recognised */ license: string | null;
  /** Name of the owner */ owner: string;
  /** Kind of owner; null: neither of the two */ owner_type: "User" | "Organization" | null;
  /** Stars in all */ stars: number;
  /** Forks in all */ forks: number;
  /** Open issues and pull requests */ open_issues: number;
  /** When it was created */ created_at: string;
  /** When it was last pushed to; null: not given */ pushed_at: string | null;
  /** Stars gained since our count of 22 to 26 hours before; null: there was none */ stars_24h: number | null;
  /** Whether name, description or topics have a word of our list about AI */ is_ai_ml: boolean;
  /** Days since it was created, at least 1 */ age_days: number;
  /** Stars by days of age: a mean over its life */ stars_per_day: number;
}

export interface PremiumCodeHostVelocityAiMlReposActive30d {
  /** owner/name */ full_name: string;
  /** The owner's description, cut at 200 characters; null: none */ description: string | null;
  /** Page of the repository on GitHub */ url: string;
  /** Language that GitHub finds most of; null: none */ language: string | null;
  /** Topics that the owner chose, at most 10 */ topics: Array<string>;
  /** SPDX identifier; null: none or not recognised */ license: string | null;
  /** Name of the owner */ owner: string;
  /** Kind of owner; null: neither of the two */ owner_type: "User" | "Organization" | null;
  /** Stars in all */ stars: number;
  /** Forks in all */ forks: number;
  /** Open issues and pull requests */ open_issues: number;
  /** When it was created */ created_at: string;
  /** When it was last pushed to; null: not given */ pushed_at: string | null;
  /** Stars gained since our count of 22 to 26 hours before; null: there was none */ stars_24h: number | null;
  /** Whether name, description or topics have a word of our list about AI */ is_ai_ml: boolean;
}

export interface PremiumCodeHostVelocityByLanguage {
  /** Language; unknown: GitHub names none */ language: string;
  /** Repositories in trending_repos */ count: number;
  /** Stars of these repositories together */ total_stars: number;
}

export interface PremiumCodeHostVelocityByTopic {
  /** Topic */ topic: string;
  /** Repositories in trending_repos */ count: number;
}

export interface PremiumCodeHostVelocityAggregate {
  /** Repositories in trending_repos; null: that search failed */ trending_count: number | null;
  /** Their stars together; null: that search failed */ total_stars_in_trending: number | null;
  /** Those about AI; null: that search failed */ ai_ml_in_trending_count: number | null;
  /** Their share, percent; null: the list is empty or its search failed */ ai_ml_share_percent: number | null;
  /** Repositories in ai_ml_repos_active_30d; null: that search failed */ ai_ml_active_30d_count: number | null;
  /** Different languages that are known; null: that search failed */ languages_in_trending: number | null;
  /** Whether the searches were made with a token of GitHub */ auth_used: "authenticated" | "unauthenticated";
}

export interface PremiumCodeHostVelocityPayload {
  /** The host name of this service */ source: string;
  /** The name of the endpoint */ endpoint: string;
  /** When the payload was composed */ generated_at: string;
  /** Days that the two lists look back */ window: PremiumCodeHostVelocityWindow;
  /** Created in the past 7 days, most stars first; null: the search failed */ trending_repos: Array<PremiumCodeHostVelocityTrendingRepos> | null;
  /** Topic llm, over 50 stars, lately pushed to, most stars first; null: the search failed */ ai_ml_repos_active_30d: Array<PremiumCodeHostVelocityAiMlReposActive30d> | null;
  /** trending_repos by language, most first; null: the search failed */ by_language: Array<PremiumCodeHostVelocityByLanguage> | null;
  /** trending_repos by topic, the 20 most frequent; null: the search failed */ by_topic: Array<PremiumCodeHostVelocityByTopic> | null;
  /** Counts over both lists */ aggregate: PremiumCodeHostVelocityAggregate;
  /** Remarks on method and limits */ notes: Record<string, string>;
  /** What is missing or old */ warning?: Array<Warning>;
  /** When the oldest part of the payload was fetched */ captured_at: string | null;
  /** Whether a source could not be refreshed in time */ stale: boolean;
  _meta: Meta;
}

export interface PaymentBalancePayload {
  /** What can still be spent */ credits: number;
  /** When the token was issued */ issued_at: string;
  /** When another token replaces this one, because the account that paid for it reported it lost; reissue_cancel prevents it. Null without such a request */ reissue_at?: string | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface PaymentBuyCreditsQuote {
  /** Amount to pay, US dollars */ amount_usd: number;
  /** 50 for each US dollar, rounded down */ credits: number;
  /** Chain to pay on */ chain: "base";
}

export interface PaymentBuyCreditsPayload {
  /** Send USDC here, in one transfer */ wallet: string;
  /** A secret that claims the token; never put it on the chain */ memo: string;
  /** What the amount buys */ quote: PaymentBuyCreditsQuote;
  /** When the quote ends; a later payment is credited too, and called late */ expires_at: string;
  /** Chain to pay on, as CAIP-2 */ network: "eip155:8453";
  /** Contract of USDC on Base; no other token counts */ token_contract: string;
  /** The amount in millionths of a USDC */ amount_atomic: number;
  /** The payment as a link for wallets (EIP-681) */ payment_uri: string;
  /** Note to add to the payment, if you want one: this and not the memo */ memo_commitment: string;
  /** How to pay and claim, in words */ instructions: string;
  /** Why a person would have to approve it: it exceeds what is sold in an hour or a day; null: no need */ review?: string | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface PaymentConfirmNext {
  /** Tool to call next */ tool: string;
  /** How to call it, in one sentence */ how: string;
}

export interface PaymentConfirmPayload {
  /** Bearer token, a secret; shown once more only if it is not used yet */ token: string;
  /** Credits on the token */ credits: number;
  /** Paid after the quote's end, and credited all the same */ late: boolean;
  /** What to call with the token */ next: PaymentConfirmNext;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface PaymentTopupTransfer {
  /** Send USDC here, in one transfer */ wallet: string;
  /** A secret: it claims the credits for the token. Never put it on the chain */ memo: string;
  /** The amount in 0.000001 USDC */ amount_atomic: number;
  /** The payment for wallets (EIP-681) */ payment_uri: string;
  /** Until when the quote holds; later payments may be refused */ expires_at: string;
  /** Why a person would have to approve the payment; null: nobody has to */ review: string | null;
}

export interface PaymentTopupNext {
  /** Tool to call next */ tool: string;
  /** How to call it, in one sentence */ how: string;
}

export interface PaymentTopupPayload {
  /** Bearer token with the credits, a secret: a new one, or the one sent along */ token: string;
  /** Credits that this payment added, or that `transfer` would add */ credits: number;
  /** Hash of the USDC transfer; null: not paid yet */ transaction: string | null;
  /** Chain of the payment, as CAIP-2 */ network: "eip155:8453";
  /** What to pay; null once it is paid */ transfer: PaymentTopupTransfer | null;
  /** What to call with the token */ next: PaymentTopupNext;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface AccountStatementEntries {
  /** When it happened */ at: string;
  /** What happened; withheld: the payment is in doubt, until released; earlier_calls: those before `at` */ kind: "purchase" | "top_up" | "grant" | "credit" | "call" | "reversal" | "refund" | "taken_back" | "withheld" | "released" | "earlier_calls";
  /** What it changed of what you can spend; negative for a call */ credits: number;
  /** The call's request id; null unless a call or its reversal, as are the three below */ call_id: string | null;
  /** Path that was called; null: no call */ endpoint: string | null;
  /** open: still running; posted: charged; voided: not charged; reversed: given back; null: no call */ state: "open" | "posted" | "voided" | "reversed" | null;
  /** GET /api/receipt/{id} shows it; null: there is none */ receipt_id: string | null;
  /** Why nothing was charged, or why it was given back; null: neither */ no_charge_reason: string | null;
  /** The allowance that made the call; null: this token did */ allowance: string | null;
  /** Hash of the USDC transfer of a purchase; null where there is none */ transaction: string | null;
}

export interface AccountStatementPayments {
  /** Time of its block */ at: string;
  /** USDC that you paid; negative: paid back to you */ amount_usd: number;
  /** transfer: to the address of a quote; x402_topup: by a signature; sent: paid back */ way: "transfer" | "x402_topup" | "x402_call" | "other" | "sent";
  /** quoted, late: nobody has confirmed it; pending: too few blocks; credited: it bought credits; second: the address was paid before; short: too little; held: in doubt; undone: gone from the chain; refunded: paid back */ state: "quoted" | "pending" | "credited" | "second" | "late" | "short" | "foreign" | "held" | "undone" | "swept" | "refunded";
  /** Since when it is in this state */ state_since: string;
  /** Hash of the transaction */ transaction: string;
}

export interface AccountStatementPayload {
  /** What you can spend now; without an allowance the sum of all entries */ credits: number;
  /** The latest first */ entries: Array<AccountStatementEntries>;
  /** Your USDC on the chain, the latest first; only without a cursor */ payments: Array<AccountStatementPayments>;
  /** Give it as cursor to read on; null: there is nothing older */ next_cursor: string | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface AllowanceCreatePayload {
  /** The id of the allowance */ id: string;
  /** Your name for it */ name: string;
  /** Most credits it may ever spend */ credits: number;
  /** Credits charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** Most credits per UTC day; null: no such cap */ credits_per_day: number | null;
  /** When it ends; null: never */ expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  /** active: it pays; exhausted: the cap is spent; expired: its end is over; revoked: ended by you */ state: "active" | "exhausted" | "expired" | "revoked";
  /** When it was made */ created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
  /** Bearer token of the allowance, a secret; shown this once */ token: string;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface AllowanceListAllowances {
  /** The id of the allowance */ id: string;
  /** Your name for it */ name: string;
  /** Most credits it may ever spend */ credits: number;
  /** Credits charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** Most credits per UTC day; null: no such cap */ credits_per_day: number | null;
  /** When it ends; null: never */ expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  /** active: it pays; exhausted: the cap is spent; expired: its end is over; revoked: ended by you */ state: "active" | "exhausted" | "expired" | "revoked";
  /** When it was made */ created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
}

export interface AllowanceListPayload {
  /** Live ones first, then ended ones */ allowances: Array<AllowanceListAllowances>;
  /** Allowances listed */ count: number;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface AllowanceRevokePayload {
  /** The id of the allowance */ id: string;
  /** Your name for it */ name: string;
  /** Most credits it may ever spend */ credits: number;
  /** Credits charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** Most credits per UTC day; null: no such cap */ credits_per_day: number | null;
  /** When it ends; null: never */ expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  /** active: it pays; exhausted: the cap is spent; expired: its end is over; revoked: ended by you */ state: "active" | "exhausted" | "expired" | "revoked";
  /** When it was made */ created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface AllowanceUpdatePayload {
  /** The id of the allowance */ id: string;
  /** Your name for it */ name: string;
  /** Most credits it may ever spend */ credits: number;
  /** Credits charged and reserved so far, less what was given back */ spent: number;
  /** The same of this UTC day */ spent_today: number;
  /** Most credits per UTC day; null: no such cap */ credits_per_day: number | null;
  /** When it ends; null: never */ expires_at: string | null;
  /** The tools it may call that cost credits; null: all */ tools: Array<string> | null;
  /** active: it pays; exhausted: the cap is spent; expired: its end is over; revoked: ended by you */ state: "active" | "exhausted" | "expired" | "revoked";
  /** When it was made */ created_at: string;
  /** When it last spent; null: never */ last_used_at: string | null;
  /** The service where it was made, at which alone it pays; null: everywhere */ service: string | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface ReissueCancelPayload {
  /** Whether a reissue was waiting, and is cancelled now */ cancelled: boolean;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface TokenUpdatePayload {
  /** The cap per UTC day; null: none */ credits_per_day: number | null;
  /** Charged and reserved this UTC day, by allowances too */ spent_today: number;
  /** Whether it pays for nothing */ frozen: boolean;
  /** Since when; null: it is not */ frozen_at: string | null;
  /** Paid answers warn below this many credits; null: never */ alert_below: number | null;
  /** They warn from this share of the cap on; null: never */ alert_percent: number | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookDeliveriesDeliveries {
  /** The webhook-id header: the same in every attempt */ id: string;
  /** data: a regular payload; fired, cleared, no_data: of a condition; test: asked for by you */ kind: "data" | "fired" | "cleared" | "no_data" | "test";
  /** charged: delivered and paid; free: delivered; released: given up, not charged; skipped: not tried */ state: "open" | "accepted" | "charged" | "free" | "released" | "skipped";
  /** Why it was released or skipped; null: neither */ reason: string | null;
  /** When it was made */ created_at: string;
  /** When it was decided; null: still open */ finished_at: string | null;
  /** Attempts so far */ attempts: number;
  /** HTTP status of the last attempt; null: there was no answer */ status: number | null;
  /** One word for how the last attempt failed; null: it did not */ error: string | null;
  /** How long the last attempt took, milliseconds; null: there was none */ duration_ms: number | null;
  /** Credits charged */ credits: number;
  /** Null unless it was charged */ receipt_id: string | null;
}

export interface WebhookDeliveriesPayload {
  /** The latest first */ deliveries: Array<WebhookDeliveriesDeliveries>;
  /** Give it as cursor to read on; null: there is nothing older */ next_cursor: string | null;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookListSubscriptions {
  /** The id of the subscription */ id: string;
  /** Short name of the premium endpoint, or credit-alerts */ endpoint: string;
  /** Address that deliveries are sent to */ webhook_url: string;
  /** active: it fires; paused: it may be resumed; cancelled: it never fires again */ state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone, tool_removed or operator */ pause_reason: string | null;
  /** When it was made */ created_at: string;
  /** When it fires or looks next; null unless active, and for credit-alerts */ next_fire_at: string | null;
  /** When your server last took a delivery; null: never */ last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  /** Failed deliveries since the last one that was taken */ consecutive_failures: number;
  /** Deliveries that your server took */ delivered_count: number;
  /** Deliveries that it did not take */ failed_count: number;
  /** Query parameters of the endpoint, as you gave them */ params: Record<string, unknown>;
  /** Your condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  /** Your note */ description: string;
}

export interface WebhookListPayload {
  /** Active and paused ones, the oldest first */ subscriptions: Array<WebhookListSubscriptions>;
  /** Subscriptions listed */ count: number;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookResendPayload {
  /** The webhook-id header: the same as before */ id: string;
  /** Your server answered 2xx */ delivered: boolean;
  /** HTTP status of the answer; null: there was none */ status: number | null;
  /** One word for how it failed; null: it did not */ error: string | null;
  /** How long it took, milliseconds */ duration_ms: number;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookResumePayload {
  /** The id of the subscription */ id: string;
  /** Short name of the premium endpoint, or credit-alerts */ endpoint: string;
  /** Address that deliveries are sent to */ webhook_url: string;
  /** active: it fires; paused: it may be resumed; cancelled: it never fires again */ state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone, tool_removed or operator */ pause_reason: string | null;
  /** When it was made */ created_at: string;
  /** When it fires or looks next; null unless active, and for credit-alerts */ next_fire_at: string | null;
  /** When your server last took a delivery; null: never */ last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  /** Failed deliveries since the last one that was taken */ consecutive_failures: number;
  /** Deliveries that your server took */ delivered_count: number;
  /** Deliveries that it did not take */ failed_count: number;
  /** Query parameters of the endpoint, as you gave them */ params: Record<string, unknown>;
  /** Your condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  /** Your note */ description: string;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookRotateSecretPayload {
  /** The id of the subscription */ id: string;
  /** The new secret; shown this once */ secret: string;
  /** Hours for which deliveries are signed with the old secret too */ overlap_hours: number;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
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
  /** The id of the subscription */ id: string;
  /** Short name of the premium endpoint, or credit-alerts */ endpoint: string;
  /** Address that deliveries are sent to */ webhook_url: string;
  /** active: it fires; paused: it may be resumed; cancelled: it never fires again */ state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone, tool_removed or operator */ pause_reason: string | null;
  /** When it was made */ created_at: string;
  /** When it fires or looks next; null unless active, and for credit-alerts */ next_fire_at: string | null;
  /** When your server last took a delivery; null: never */ last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  /** Failed deliveries since the last one that was taken */ consecutive_failures: number;
  /** Deliveries that your server took */ delivered_count: number;
  /** Deliveries that it did not take */ failed_count: number;
  /** Query parameters of the endpoint, as you gave them */ params: Record<string, unknown>;
  /** Your condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  /** Your note */ description: string;
  /** Signs every delivery; shown this once */ secret: string;
  /** Hash of the HMAC that signs deliveries */ hmac_algorithm: "sha256";
  /** Credits for each delivered fire */ fire_cost_credits: number;
  /** How often it fires without a condition, in words */ fire_interval: string;
  /** Header of a delivery with its signature */ signature_header: string;
  /** Header of a delivery with its time, which is signed too */ timestamp_header: string;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookTestPayload {
  /** The webhook-id header: the same in every attempt */ id: string;
  /** data: a regular payload; fired, cleared, no_data: of a condition; test: asked for by you */ kind: "data" | "fired" | "cleared" | "no_data" | "test";
  /** charged: delivered and paid; free: delivered; released: given up, not charged; skipped: not tried */ state: "open" | "accepted" | "charged" | "free" | "released" | "skipped";
  /** Why it was released or skipped; null: neither */ reason: string | null;
  /** When it was made */ created_at: string;
  /** When it was decided; null: still open */ finished_at: string | null;
  /** Attempts so far */ attempts: number;
  /** HTTP status of the last attempt; null: there was no answer */ status: number | null;
  /** One word for how the last attempt failed; null: it did not */ error: string | null;
  /** How long the last attempt took, milliseconds; null: there was none */ duration_ms: number | null;
  /** Credits charged */ credits: number;
  /** Null unless it was charged */ receipt_id: string | null;
  /** Your server answered 2xx */ delivered: boolean;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface WebhookUnsubscribePayload {
  /** The id of the subscription */ id: string;
  /** Short name of the premium endpoint, or credit-alerts */ endpoint: string;
  /** Address that deliveries are sent to */ webhook_url: string;
  /** active: it fires; paused: it may be resumed; cancelled: it never fires again */ state: "active" | "paused" | "cancelled";
  /** Null unless paused: insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone, tool_removed or operator */ pause_reason: string | null;
  /** When it was made */ created_at: string;
  /** When it fires or looks next; null unless active, and for credit-alerts */ next_fire_at: string | null;
  /** When your server last took a delivery; null: never */ last_delivered_at: string | null;
  /** HTTP status of the last attempt; null: there was no answer */ last_status: number | null;
  /** One word, such as timeout or http_500; null after a success */ last_error: string | null;
  /** Failed deliveries since the last one that was taken */ consecutive_failures: number;
  /** Deliveries that your server took */ delivered_count: number;
  /** Deliveries that it did not take */ failed_count: number;
  /** Query parameters of the endpoint, as you gave them */ params: Record<string, unknown>;
  /** Your condition; null: it fires in every slot */ when: Record<string, unknown> | null;
  /** Your note */ description: string;
  /** Only on MCP: what the call cost, and the credits left */ _meta?: Record<string, unknown>;
}

export interface Tools {
  /** The state of the world in one call: bitcoin price, crypto fear & greed, earthquakes, prediction markets, tech news and the status of GitHub, Cloudflare, OpenAI and Anthropic, with a summary in words. Use it first; for more, use the tool of the topic. Free; fresh for 60 seconds. */ briefing: { arguments: { /** Most items */ limit?: number | null; }; payload: BriefingPayload };
  /** The price now of bitcoin, or of any of the 250 largest coins as `coin`, with its change, high, low and traded volume of the past 24 hours, and which venue says so. For the biggest moves use crypto_movers. Free; fresh for 30 seconds. */ btc_price: { arguments: { /** Symbol, name or id; one of the 250 largest */ coin?: string | null; }; payload: BtcPricePayload };
  /** Earthquakes of magnitude 2.5 and above in the past 24 hours, worldwide, newest first, with place, depth and coordinates. Use it for "any earthquakes today?". Free; fresh for 2 minutes. */ earthquakes: { arguments: { /** Most items */ limit?: number | null; }; payload: EarthquakesPayload };
  /** The tools of this service that answer a question, best first, with arguments and prices. Use it when no listed tool fits. Free. */ find_tools: { arguments: { /** The question, in everyday words */ q?: string | null; /** Most items */ limit?: number | null; }; payload: FindToolsPayload };
  /** Daily US dollar exchange rates to 16 major currencies (EUR, GBP, JPY, CAD, CNY, …): newest published day, the published day before it, and the change in percent. Use it to convert or compare currencies; not intraday. Free; fresh for 5 minutes. */ forex: { arguments: Record<string, never>; payload: ForexPayload };
  /** Whether 15 cloud and developer services are up right now, by their own status pages: GitHub, Cloudflare, OpenAI, Anthropic, Vercel, Discord, Atlassian, Reddit, Stripe, Zoom, Datadog, Slack, AWS, Google Cloud and Azure. Use it for "is GitHub down?". Free; fresh for 60 seconds. */ service_status: { arguments: { /** Most items */ limit?: number | null; }; payload: ServiceStatusPayload };
  /** U.S. share prices with change since the last close: gainers and losers of those listed, quotes, and the main indices (S&P 500, Dow, Nasdaq, Russell 2000, VIX). Give `symbols` for particular shares: AAPL or Apple. Free; fresh for 15 seconds. */ stocks: { arguments: { /** Tickers or names, separated by commas, 1-35; default: 31 widely held ones */ symbols?: string | null; /** Most items */ limit?: number | null; }; payload: StocksPayload };
  /** The stories on the front page of Hacker News right now, in page order, with score, number of comments and links. Use it for "what is the tech world talking about?". Free; fresh for 60 seconds. */ tech_news: { arguments: { /** Most items */ limit?: number | null; }; payload: TechNewsPayload };
  /** Current weather anywhere on earth, and the next 24 hours: temperature in Fahrenheit or Celsius, wind, humidity, condition. Give `place`, or `lat` and `lon`. For warnings use climate_weather_alerts. Free; fresh for 10 minutes. */ weather: { arguments: { /** Latitude */ lat?: number | null; /** Longitude */ lon?: number | null; /** City, with state or country where several have the name */ place?: string | null; /** metric adds Celsius */ units?: "us" | "metric" | null; }; payload: WeatherPayload };
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
  /** Add credits to the bearer token sent along. With an x402 wallet it takes one round trip, which without a token gives a new one. By a plain transfer it takes two calls: with amount_usd for what to pay, then with tx_hash and nonce. To buy a new token by transfer use payment_buy_credits. Costs no credits. */ payment_topup: { arguments: { /** US dollars to convert, at most 6 decimals; 1 USD = 50 credits */ amount_usd?: number | null; /** Only if payer_proof_required asked for it; 0x and hex digits */ payer_signature?: string | null; /** Pay by a plain transfer of USDC; where no x402 is taken that is the only way */ by_transfer?: boolean | null; /** After a transfer, with nonce: its hash on Base */ tx_hash?: string | null; /** After a transfer: the memo of its quote */ nonce?: string | null; }; payload: PaymentTopupPayload };
  /** Everything that happened to the credits of this token, the latest first: calls with their receipts, purchases, and what was given back. Use payment_balance for the balance alone. Costs no credits. */ account_statement: { arguments: { /** Earliest time, ISO 8601, or a day (UTC) */ from?: string | null; /** First time that is left out, ISO 8601, or a day (UTC) */ to?: string | null; /** next_cursor of the page before */ cursor?: string | null; /** How many entries */ limit?: number | null; }; payload: AccountStatementPayload };
  /** A second token that spends the credits of this one, up to caps that are never crossed. Give it to an agent or a program instead of your own token. The credits stay yours until they are spent. Costs no credits. */ allowance_create: { arguments: { /** Whom or what it is for */ name: string; /** Most credits it may ever spend */ credits: number; /** Most credits per UTC day; no such cap by default */ credits_per_day?: number | null; /** When it ends, ISO 8601, within 10 years; never by default */ expires_at?: string | "never" | null; /** The only tools it may spend on; all by default */ tools?: Array<string> | null; }; payload: AllowanceCreatePayload };
  /** The allowances of this token: their caps, what each has spent in all and today, and whether they are still live. Use account_statement for the single calls. Costs no credits. */ allowance_list: { arguments: Record<string, never>; payload: AllowanceListPayload };
  /** End an allowance for good: its token is refused from the next call on. Safe to repeat. Calls that are running may still be charged. Costs no credits. */ allowance_revoke: { arguments: { /** The id of an allowance, from allowance_create or allowance_list */ id: string; }; payload: AllowanceRevokePayload };
  /** Change the name, caps, end or tools of an allowance; what is not given stays. It holds from the next call on. A cap below what is spent stops it. Costs no credits. */ allowance_update: { arguments: { /** The id of an allowance, from allowance_create or allowance_list */ id: string; /** A new name */ name?: string | null; /** The new cap in all */ credits?: number | null; /** The new cap per UTC day; 0 takes it away */ credits_per_day?: number | null; /** When it ends, ISO 8601, within 10 years; “never” takes it away */ expires_at?: string | "never" | null; /** The only tools it may spend on; empty: all */ tools?: Array<string> | null; }; payload: AllowanceUpdatePayload };
  /** Keep this token: cancel its replacement, which the account that paid for it has asked for as if it were lost. The balance shows such a request in `reissue_at` for 48 hours. Safe to repeat. Costs no credits. */ reissue_cancel: { arguments: Record<string, never>; payload: ReissueCancelPayload };
  /** Set a cap per day on this token, freeze or thaw it, set alerts; what is not given stays. Without arguments it shows what is set. All of it binds the allowances of the token too, from the next call on. Costs no credits. */ token_update: { arguments: { /** Most credits per UTC day, allowances included; 0 takes the cap away */ credits_per_day?: number | null; /** true: it pays for nothing; false: it pays again */ frozen?: boolean | null; /** Warn below this many credits; 0: never */ alert_below?: number | null; /** Warn from this percentage of the day's cap on; 0: never */ alert_percent?: number | null; }; payload: TokenUpdatePayload };
  /** The last deliveries of a webhook subscription, up to 50: when, how many attempts, how your server answered, what was charged and under which receipt. Costs no credits. */ webhook_deliveries: { arguments: { /** The id of a subscription, from webhook_list */ id: string; /** How many */ limit?: number | null; /** next_cursor of the page before */ cursor?: string | null; }; payload: WebhookDeliveriesPayload };
  /** The webhook subscriptions of this token: their state, when they fire next, and how the last delivery went. Free of charge. Use webhook_deliveries for the log of one of them. Costs no credits. */ webhook_list: { arguments: Record<string, never>; payload: WebhookListPayload };
  /** Send an accepted delivery of the past hour again, for free: the same id and bytes, signed anew. Costs no credits. */ webhook_resend: { arguments: { /** The id of a subscription, from webhook_list */ id: string; /** The id of a delivery, from webhook_deliveries */ delivery_id: string; }; payload: WebhookResendPayload };
  /** Start a paused webhook subscription again, with its next slot. Safe to repeat; the token must hold at least 1 credit. An endpoint that failed for a day can be resumed five minutes after it was paused. Costs no credits. */ webhook_resume: { arguments: { /** The id of a subscription, from webhook_list */ id: string; }; payload: WebhookResumePayload };
  /** Replace the signing secret of a webhook subscription. For 24 hours deliveries carry signatures of both secrets: Standard Webhooks in one header, ours in X-Service-Signature (new) and X-Service-Signature-Previous. Costs no credits. */ webhook_rotate_secret: { arguments: { /** The id of a subscription, from webhook_list */ id: string; }; payload: WebhookRotateSecretPayload };
  /** Have a premium payload delivered to a URL of yours about every five minutes, or when a condition comes true. Subscribing is free, with at least 1 credit; each delivered fire costs 1 credit, and one that your server does not take costs nothing. Costs no credits. */ webhook_subscribe: { arguments: { /** Short name of a premium endpoint; credit-alerts: notices of token_update's alerts, free */ endpoint: string; /** A public https address, port 443 or 8443, that takes POST requests */ webhook_url: string; /** Query parameters of the endpoint */ params?: Record<string, unknown> | null; /** Deliver only when this happens, instead of every five minutes */ when?: WebhookSubscribeWhen | null; /** Headers to add to every delivery; kept encrypted */ headers?: Record<string, string> | null; /** A note of yours */ description?: string | null; }; payload: WebhookSubscribePayload };
  /** Send one signed test delivery with `"test": true` and see how your server answers it. It carries recorded or given values, never current ones. Costs no credits. */ webhook_test: { arguments: { /** The id of a subscription, from webhook_list */ id: string; /** What to deliver, up to 32 KB; a recorded example by default */ data?: Record<string, unknown> | null; /** For a subscription with a condition: deliver as if it had come to this */ state?: "fired" | "cleared" | "no_data" | null; }; payload: WebhookTestPayload };
  /** Cancel a webhook subscription for good: it never fires again. Safe to repeat. Costs no credits. */ webhook_unsubscribe: { arguments: { /** The id of a subscription, from webhook_list */ id: string; }; payload: WebhookUnsubscribePayload };
}
