"""What the specification says of premium payloads (SPEC 2.4), as JSON Schemas: nothing here is read from the code."""

from tests.specified import COUNT, DATE, INTEGER, NUMBER, TEXT, TEXT_OR_NULL, TIME, Schema, one_of, record, rows

BOOLEAN: Schema = {"type": "boolean"}
PROBABILITY: Schema = {"type": "number", "minimum": 0, "maximum": 1}
WITHIN_ONE: Schema = {"type": "number", "minimum": -1, "maximum": 1}
MOOD: Schema = {"type": "integer", "minimum": 0, "maximum": 100}
MILLISECONDS: Schema = {"type": "integer", "minimum": 10**12}
SERIES_NAME: Schema = {"type": "string", "pattern": "^[^:]+:.+$"}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def each(item: Schema, **more: object) -> Schema:
    """An object whose members are all like that."""
    return {"type": "object", "additionalProperties": item, **more}


DATED = rows(record(date=DATE, value=NUMBER), least=30, most=30)
NOTES = each({"type": "string"})
FRAME = record(source=TEXT, endpoint=TEXT, generated_at=TIME, notes=NOTES)

_FIGURE = record(value=maybe(NUMBER), date=DATE, source=SERIES_NAME)
_PRICED = record(price_usd=NUMBER, date=DATE, source=TEXT)
_QUOTE = record(price=NUMBER, change=NUMBER, change_percent=NUMBER)
_COIN = record(
    symbol=TEXT,
    name=TEXT,
    price_usd=NUMBER,
    change_1h_percent=NUMBER,
    change_24h_percent=NUMBER,
    change_7d_percent=NUMBER,
    market_cap=NUMBER,
    volume_24h=NUMBER,
    rank=INTEGER,
)
_PAIR = record(
    pair=TEXT,
    price=NUMBER,
    change_24h_percent=NUMBER,
    volume_24h=NUMBER,
    high_24h=NUMBER,
    low_24h=NUMBER,
    trades_24h=INTEGER,
)
_TALK = record(
    symbol=TEXT,
    asset_class=one_of("crypto", "equity", "crypto-equity"),
    mention_count_24h=COUNT,
    sources=each(COUNT),
    sentiment_score=WITHIN_ONE,
    sentiment_label=one_of("negative", "moderately_negative", "neutral", "moderately_positive", "positive"),
    sample_headlines=rows(
        record(title=TEXT, url=TEXT_OR_NULL, source=TEXT, sentiment_signal=one_of("+", "-", "neutral"))
    ),
)
_EVENT = record(
    type=one_of("earthquake", "tech_news_story", "prediction_market_update", "space_launch"),
    timestamp=TIME,
    severity=one_of("minor", "moderate", "major"),
    data={"type": "object", "minProperties": 1},
)
_BLOCK = record(number=INTEGER, time=TIME, tx_count=COUNT)
_REPO = record(
    full_name=TEXT, language=TEXT_OR_NULL, topics=rows(TEXT, least=0), license=TEXT_OR_NULL, is_ai_ml=BOOLEAN
)

SHAPES: dict[str, Schema] = {
    "briefing": record(
        sections=record(
            btc=record(price_usd=NUMBER, change_24h_percent=NUMBER, volume_24h=NUMBER, high_24h=NUMBER, low_24h=NUMBER),
            fear_greed=record(value=MOOD, label=TEXT),
            earthquakes=record(count=COUNT, latest=maybe(record(magnitude=NUMBER, place=TEXT, time=INTEGER))),
            tech_news=record(top_story_count=COUNT),
            humans_in_space=record(count=COUNT, names=rows(TEXT)),
            predictions=record(count=COUNT, top=rows(record(question=TEXT, volume_24hr=NUMBER, outcomes={}))),
        ),
        series=record(btc_24h=rows(record(ts=MILLISECONDS, price=NUMBER), least=24, most=24)),
    ),
    "macro": record(
        economic=record(
            **dict.fromkeys(("fed_rate", "cpi", "unemployment", "gdp_growth", "treasury_10y"), _FIGURE),
        ),
        forex=record(
            base={"const": "USD"},
            date=DATE,
            rates=record(EUR=NUMBER, JPY=NUMBER, GBP=NUMBER, CHF=NUMBER),
            series=record(EUR=DATED, JPY=DATED, GBP=DATED, CHF=DATED),
        ),
        commodities=record(
            gold=maybe(record(price_usd=NUMBER, source=TEXT)),
            silver={"type": "null"},
            oil=maybe(_PRICED),
            nat_gas=maybe(_PRICED),
        ),
        markets=record(**dict.fromkeys(("spy", "dia", "qqq", "vix"), maybe(_QUOTE))),
    ),
    "crypto-deep": record(
        coins_top50=rows(_COIN, least=50, most=50),
        exchange_top20_usdt=rows(_PAIR, least=20, most=20),
        network_btc=record(
            block_height=INTEGER,
            fees_sat_per_vb=record(
                **dict.fromkeys(("fastest", "half_hour", "hour", "economy", "minimum"), INTEGER),
            ),
            hashrate=record(current_eh_s=NUMBER, current_difficulty=NUMBER),
            mempool=record(count=INTEGER, vsize=INTEGER, total_fee_sat=INTEGER),
        ),
        eth_gas=maybe(
            record(low_gwei=INTEGER, standard_gwei=INTEGER, fast_gwei=INTEGER, base_fee_gwei=NUMBER, last_block=INTEGER)
        ),
        series=record(
            btc_30d=rows(
                record(ts=MILLISECONDS, low=NUMBER, high=NUMBER, open=NUMBER, close=NUMBER, volume=NUMBER),
                least=30,
                most=30,
            )
        ),
    ),
    "sentiment": record(
        market_indices=record(
            crypto_fear_greed=maybe(record(value=MOOD, label=TEXT, source=TEXT)),
            stocks_vix=maybe(
                record(
                    value=NUMBER,
                    change_percent=NUMBER,
                    label=one_of("low_volatility", "normal", "elevated", "high_volatility", "unknown"),
                    source=TEXT,
                )
            ),
        ),
        trending=rows(_TALK),
        prediction_markets_signals=rows(
            record(question=TEXT, yes_probability=maybe(PROBABILITY), volume_24h=NUMBER, url=TEXT_OR_NULL)
        ),
        sample_size=record(headlines_scanned=COUNT, tickers_with_mentions=COUNT),
    ),
    "world-deltas": record(
        since=TIME,
        since_clamped=BOOLEAN,
        events=rows(_EVENT),
        counts=each(COUNT),
        sample_size={"type": "object"},
    ),
    "agent-context": record(
        context=record(
            datetime={"type": "object"},
            markets=record(
                **dict.fromkeys(("btc", "crypto_fear_greed", "vix", "fed_funds_rate"), maybe({"type": "object"})),
                forex_usd_base={"type": "object"},
            ),
            world_events=record(
                significant_earthquakes_24h=rows({"type": "object"}, least=0),
                upcoming_space_launches=rows({"type": "object"}),
                news_front_page_top5=rows({"type": "object"}, least=5, most=5),
                prediction_markets_top3=rows({"type": "object"}, least=3, most=3),
            ),
            infrastructure=record(summary=TEXT, details={"type": "object"}, all_operational=BOOLEAN),
        ),
        system_prompt={"type": "string", "minLength": 800, "maxLength": 1700},
    ),
    "correlation-matrix": record(
        window={"const": "30d"},
        method=TEXT,
        assets=rows(record(symbol=TEXT, asset_class=one_of("commodity", "rates", "fx"), observations=COUNT), least=4),
        pairs=rows(
            record(
                a=TEXT,
                b=TEXT,
                pearson_r=WITHIN_ONE,
                n_observations=COUNT,
                relationship=one_of("negligible", "weak", "moderate", "strong"),
                direction=one_of("positive", "negative", "none"),
            ),
            least=6,
            most=6,
        ),
        matrix=each(each(WITHIN_ONE, minProperties=4), minProperties=4),
        sample_size={"type": "object"},
    ),
    "whales": record(
        spot_prices=record(btc_usd=NUMBER, eth_usd=NUMBER),
        btc_whales_unconfirmed=rows({"type": "object"}, least=0),
        eth_whales_latest_block=rows({"type": "object"}),
        eth_block=record(number=INTEGER, time=TIME),
        eth_blocks_scanned=rows(_BLOCK, least=5, most=5),
        aggregate={"type": "object"},
        thresholds={"type": "object"},
    ),
    "exchange-flows": record(
        spot_eth_usd=NUMBER,
        blocks_scanned=rows(_BLOCK, least=5, most=5),
        flows_by_exchange=rows({"type": "object"}, least=8, most=8),
        recent_transfers=rows({"type": "object"}),
        aggregate=record(
            transfer_count=COUNT,
            total_inflow_eth=NUMBER,
            total_outflow_eth=NUMBER,
            net_flow_eth=NUMBER,
            net_flow_usd=maybe(INTEGER),
            bias=one_of("inflow_dominant", "outflow_dominant", "balanced"),
        ),
        threshold={"type": "object"},
        exchanges_tracked=rows(TEXT),
    ),
    "code-host-velocity": record(
        trending_repos=rows({**_REPO, "required": [*_REPO["required"], "stars", "stars_per_day", "owner_type"]}),
        ai_ml_repos_active_30d=rows(_REPO, least=15, most=15),
        by_language=rows(record(language=TEXT, count=COUNT)),
        by_topic=rows(record(topic=TEXT, count=COUNT)),
        aggregate=record(ai_ml_share_percent=NUMBER),
    ),
}
"""The payloads as they are with every parameter that adds something."""
