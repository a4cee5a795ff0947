"""List what the service must do: one sentence each, its source, and an id that a test names with `@proves`.

`tests/test_requirements.py` fails for a requirement that no test proves and for an id that is missing here.
`@proves("shape.*")` covers every id with that beginning; the test takes its cases from `named("shape.")`.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tests.specified import ENDPOINTS, PREMIUM, SHAPES

F = TypeVar("F", bound=Callable[..., object])


class Requirement(NamedTuple):
    """One thing that must be true."""

    id: str
    sentence: str
    source: str


def proves(*ids: str) -> Callable[[F], F]:
    """Mark a test as the proof of requirements. The mark is read from the source text; nothing is imported for it."""

    def marked(test: F) -> F:
        return test

    return marked


def named(prefix: str) -> list[str]:
    """What follows the prefix in the ids that begin with it."""
    return [id.removeprefix(prefix) for id in REQUIREMENTS if id.startswith(prefix)]


_SENTENCES: dict[str, dict[str, str]] = {
    "SPEC §1": {
        "free.open": "A free endpoint asks for no token, and ignores a bad one.",
        "free.cors": "Pages of any origin may read a free answer.",
        "free.cached": "Each free endpoint has its cache: within it, calls get the same bytes and ask nobody.",
        "free.stale": "When its upstreams fail, a free endpoint gives the last good answer, marked stale, and no 5xx.",
        "premium.bearer": "A premium call without a valid bearer token is refused before anything is fetched.",
        "premium.licence": "Premium answers are licensed for inference only, free ones permissively, and it is said.",
        "premium.receipt": "Every paid call carries a receipt signed with the service's own Ed25519 key.",
        "premium.keys": "The keys are published under /.well-known/.",
        "premium.verifier": "Anyone can have a receipt verified at /api/receipt/verify.",
        "premium.no-charge-log": "Calls that were not charged are public at /api/payment/no-charge-stats.",
        "purchase.terms": "No subscription, no expiry, purchases are final: and it is said.",
    },
    "SPEC §2.1": {
        "envelope.free": "A free answer holds source, endpoint, updated_at and data.",
        "envelope.source": "`source` is the service's own host name.",
        "envelope.briefing": "The free briefing holds source, generated_at, summary and six sections.",
        **{f"shape.{name}": f"The data of {name} have the documented shape." for name in SHAPES},
    },
    "SPEC §2.2": {
        "payment-error.body": "A 402 body holds error, signup and pricing; pricing maps 1 USD to 50 credits.",
        "payment-error.values": "`error` of a 402 is one of the six documented values.",
    },
    "SPEC §2.3": {
        "purchase.request": "buy-credits takes amount_usd, a number of 1 or more.",
        "purchase.rate": "1 USD is 50 credits.",
        "purchase.quote": "buy-credits answers wallet, memo, quote with amount_usd, credits and chain, and expires_at.",
        "purchase.claim": "confirm takes tx_hash and nonce, both required.",
        "purchase.token": "confirm answers the token, `svc_live_` and 64 hex digits, and the credits minted.",
        "balance.answer": "balance answers the credits that remain and when the token was issued.",
    },
    "SPEC §2.4": {
        **{f"pro-shape.{name}": f"The premium payload {name} has the documented shape." for name in PREMIUM},
        "pro.frame": "A premium payload holds source, endpoint, generated_at, and notes of texts.",
        "pro.values": "Every figure of a premium payload is what its upstreams said.",
        "pro.history": "Series are there only when history asks for them, and then whole.",
        "correlation.scipy": "Correlations are Pearson's on daily simple returns aligned by date, with n and method.",
        "correlation.matrix": "The matrix is symmetric, and pairs stand by the absolute value of r.",
        "sentiment.mentions": "Sentiment counts each headline of 24 hours once, by a documented lexicon.",
        "whales.thresholds": "Whales are transfers from the stated thresholds on, of the newest blocks and mempool.",
        "flows.sums": "Exchange flows are the sums of the scanned blocks, with net and bias.",
        "velocity.stars-per-day": "Velocity lists repositories by stars, with stars per day and the AI share.",
        "context.values": "The agent context is the world as data and as a text of about 350 tokens.",
    },
    "SPEC §3": {
        "purchase.expiry": "What was paid before the quote's end is credited, even if it is confirmed later.",
        "purchase.cap": "A quote may ask for a cap per day, which the token that it buys has from the start.",
        "purchase.credited": "A USDC transfer that matches memo and hash becomes credits on a new token.",
        "purchase.once": "The same nonce or transaction hash never credits twice.",
        "token.stays-valid": "A token below the cost of a call stays valid.",
    },
    "SPEC §4.1": {
        **{
            f"endpoint.{name}": f"GET /api/{name} answers without arguments, takes ({', '.join(row.parameters)}),"
            " and is " + ("cached" if row.ttl_s is None else f"the same for {row.ttl_s} s") + "."
            for name, row in ENDPOINTS.items()
        },
        "endpoints.exactly": "There are 34 free endpoints of data, at these paths.",
        "endpoints.period-ttl": "climate/earthquakes is cached from 60 s for the hour up to 900 s for the month.",
        "endpoints.per-location": "Weather and air quality are cached for each location, rounded to two decimals.",
        "air-quality.defaults": "air-quality takes 34.05, -118.24 for a missing or invalid coordinate.",
        "exposure.curated": "exposure-lookup without an address tells of well-known public ones.",
        "exposure.private": "exposure-lookup refuses private and reserved addresses.",
        "movers.top-15": "crypto-movers holds the 15 that moved most in 24 hours.",
        "models.top-15": "model-hub-trending holds at most the 15 with the most likes in 7 days.",
    },
    "SPEC §4.2": {
        **{
            f"price.{name}": f"GET /api/pro/{name} costs {row.credits} credit{'s' if row.credits > 1 else ''}, takes"
            f" ({', '.join(row.parameters)}), and is composed anew after {row.ttl_s} s."
            for name, row in PREMIUM.items()
        },
        "pro.exactly": "The premium endpoints are the ten of the table.",
        "pro.include": "briefing: include chooses sections; only their sources are asked.",
        "deltas.since": "world-deltas: since is an hour ago by default and at the earliest, and it says when clamped.",
        "deltas.merged": "world-deltas: four sources are one stream, sorted by time.",
        "deltas.severity": "world-deltas: events have type, timestamp, severity and data.",
        "context.gaps": "agent-context: what no source gave is named as unavailable, never called calm.",
    },
    "SPEC §4.3": {
        "payment.open": "buy-credits and confirm need no token; balance does.",
        "purchase.flow": "Quote, transfer, confirm, premium call: the token that is bought pays.",
        "payment.faces": "A purchase is the same over REST and MCP.",
        "ledger.internal": "validate and commit check and charge credits on the owner of the ledger.",
    },
    "SPEC §4.5": {
        "definitions.free": "GET /api/llm-tools needs no token and costs nothing.",
        "definitions.formats": "`format` chooses raw, both (the default) or the layout of either large provider.",
        "definitions.tier": "`tier` narrows the definitions to free or premium.",
        "definitions.all": "There is a definition for every endpoint.",
        "mcp.json-rpc": "POST /api/mcp speaks JSON-RPC 2.0, with tools/call by name and arguments.",
        "mcp.bearer": "The bearer token is the MCP credential.",
        "mcp.rest-payload": "A tool result is the REST payload plus _meta.credits_remaining.",
        "mcp.charges": "Premium tools charge over MCP like over REST.",
    },
    "SPEC §5": {
        "auth.shape": "A token is `svc_live_` and 64 hexadecimal digits, sent as a bearer.",
        "charge.before-fetch": "Credits are set aside before anything is fetched.",
        "auth.none": "Free endpoints, buy-credits, confirm, llm-tools and health ask for no token.",
        "auth.shared": "A token of the sister service is accepted, and the credits are one pool.",
        "charge.partial": "When some sources fail the answer is 200, charged, and `warning` names what is missing.",
        "no-charge.5xx": "A call that ends in a 5xx is not charged.",
        "no-charge.circuit-breaker": "A call that the billing breaker stops is not charged.",
        "no-charge.schema": "An answer that breaks its schema is not charged.",
        "no-charge.stale": "An answer with stale data is not charged.",
    },
    "SPEC §4.4": {
        "webhook.subscribe": "Subscribing takes endpoint and webhook_url as JSON and answers the resource of SPEC 2.5.",
        "webhook.bearer": "Every route of subscriptions needs a valid bearer token.",
        "webhook.cancel": "DELETE cancels a subscription, and it never fires again.",
        "webhook.list": "The list has the token's subscriptions with the record of CONTRACT 9, and no secret.",
    },
    "SPEC §6": {
        "webhook.headers": "A delivery is a POST of JSON with the four headers of the specification.",
        "webhook.body": "Its body holds subscription_id, endpoint, delivered_at in milliseconds and the whole payload.",
        "webhook.signature": "The signature is the hex HMAC-SHA256 of timestamp, dot and body; the key is the secret.",
        "webhook.slot": "A subscription fires once in every five minutes, and once after a long silence.",
        "webhook.charge": "A delivered fire costs one credit, once, with a receipt; any other fire costs nothing.",
        "webhook.cap": "A token has five active subscriptions at most, whatever comes at once.",
        "webhook.autopause": "Without credits a subscription pauses with that reason, and nothing is sent.",
    },
    "SPEC §7": {
        "payment-error.missing_token": "Without an Authorization header: 402 missing_token.",
        "payment-error.invalid_token": "With a token malformed or unknown: 402 invalid_token.",
        "payment-error.insufficient_credits": "With too few credits: 402 insufficient_credits.",
        "payment-error.billing_unavailable": "While the ledger is away: 402 billing_unavailable.",
        "payment-error.expired": "With a revoked token: 402 expired.",
        "payment-error.payment_required": "With a signed payment that is not accepted: 402 payment_required.",
        "payment-error.pricing-header": "Every 402 has the header X-Service-Pricing with the payment documentation.",
    },
    "SPEC §8": {
        "limits.daily": "A client has 100,000 free calls a day over all endpoints.",
        "limits.spacing": "A client has one free call per endpoint in 30 seconds.",
        "limits.no-penalty": "Beyond a limit: 429, and a client that waits is served again.",
        "limits.alerts": "weather-alerts lists 1 to 100 alerts, 50 by default.",
    },
    "SPEC §9": {
        "version.api": "health, meta and the description say API version 1.15.0.",
        "version.additive": "Answers may get new members at any time: no published schema forbids them.",
        "version.permanent": "Documented fields, paths and source names do not change unseen.",
        "version.changelog": "Changes are published at /changelog.",
        "version.openapi": "/openapi.json is OpenAPI 3.1.0 with an HTTP bearer scheme.",
        "version.llms": "/llms.txt is the discovery text.",
    },
    "CONTRACT §1": {
        "operations.one-registry": "One entry makes an operation on REST, MCP and every catalogue alike.",
        "faces.same-bytes": "Every door gives the same bytes.",
        "operations.core-free": "The nine free core tools are what an MCP client sees by default.",
        "operations.choice": "?toolset and ?tools choose the tools; stdio takes --toolset and --tools.",
        "operations.outside": "A tool outside the choice is neither listed nor called.",
        "operations.alias": "A renamed tool keeps an alias that is not listed.",
        "operations.documents": "Pages and documents that are no tools stand at their addresses.",
        "operations.by-name": "Without a choice of tools every tool can be called by its name.",
        "operations.refusal": "The refusal of a tool outside the chosen ones names the toolset that has it.",
        "operations.core": "An MCP client sees 21 tools by default: nine free, nine premium and three for payments.",
    },
    "CONTRACT §2": {
        "answers.envelope": "A free answer is source, endpoint, updated_at, data, stale, _meta; health too.",
        "answers.short-name": "`endpoint` is the REST short name.",
        "answers.updated-at": "`updated_at` is when the oldest part of the data was fetched.",
        "answers.premium-envelope": "A premium answer is source, endpoint, generated_at, payload, notes, captured_at,"
        " stale, _meta, without its receipt.",
        "pro.captured-at": "captured_at is when the oldest part of a premium payload was fetched.",
        "pro.same-on-mcp": "Over MCP a premium payload is the same, and costs the same.",
        "answers.meta-sources": "_meta.sources[] names each source with status and time; licences are in /api/sources.",
        "answers.source-names": "The names in _meta.sources[] are those of the tool's published list.",
        "answers.warning": "`warning` names what is degraded and is absent when nothing is.",
        "answers.same-bytes": "Until the TTL ends every call gets the same bytes.",
        "answers.fit": "An answer stays under 8,000 tokens by default and under 20,000 with any limit (o200k_base).",
        "answers.single-flight": "Calls that come together for an answer that is not there compose it once.",
        "answers.refresh-ahead": "A popular answer is refreshed before it expires.",
        "answers.as-expected": "What an answer says is what its sources say.",
        "answers.stale": "When a refresh fails, the last good answer is served with stale: true.",
        "answers.stale-survives-restart": "Last good answers survive a restart.",
        "answers.keep-limit": "A last good answer is served as long as its source may be kept, and no longer.",
        "answers.never-5xx": "A free endpoint never answers 5xx because of an upstream.",
        "answers.nothing-ever": "With nothing ever fetched: 200, data and updated_at null, stale, a warning, no-store.",
        "answers.deadline": "An answer comes in time, whatever the upstreams do.",
        "answers.never-invented": "No number is invented; zero, quiet, none or an empty list is never a failure.",
        "answers.fallback": "The next source answers when one fails, and the answer says so.",
        "places.as-written": "Of 200 names as people write them 95 % are right; the rest are among the candidates.",
        "places.candidates": "A name that may mean several places is refused, and each candidate can be sent back.",
        "places.named": "A place that was found by its name is named in the answer, with region and country.",
        "places.refused-at-once": "A name that is refused, and asked nobody, leaves the corrected one its place.",
        "places.units": "units=metric adds its own fields to weather; the default keeps those that it had.",
        "places.local-time": "Weather has the local time beside UTC, of the observation and not of the call.",
        "headers.caching": "Free answers have Cache-Control, Age, ETag, Last-Modified and Cache-Status.",
        "headers.304": "A client that has the bytes gets 304.",
        "headers.limits": "Free answers have RateLimit-Policy and RateLimit.",
        "headers.cors": "Free answers have CORS * with the useful headers exposed, and Vary: Accept-Encoding.",
        "headers.compression": "Bodies over 1 KB come as gzip, br or zstd if the client takes it.",
        "headers.premium": "Premium answers are private, no-store, with X-Credits-Remaining and no ETag.",
        "headers.receipt": "Premium answers have X-Service-Receipt, X-Service-Receipt-Id and Content-Digest.",
        "headers.request-id": "Every answer has X-Request-Id: the caller's if sane, else a new one.",
        "headers.security": "Every answer has the security headers and a Link to the description.",
        "headers.head": "HEAD works wherever GET does.",
        "answers.public-url": "Public URLs come from base_url, never from Host or X-Forwarded-*.",
        "arguments.closed": "An unknown argument is 400 with the valid names and the nearest one, over REST, MCP and"
        " the command line.",
        "arguments.default-place": "The default place is told by a warning; given by hand it is another question.",
        "arguments.lost": "Arguments that a host lost on the way are asked for again, as an object.",
        "arguments.absent": "On MCP null and an empty text mean that an optional argument is absent.",
        "answers.truncated": "A list that is cut says so in a warning with the total.",
        "answers.cursor": "The pages of a long list make the whole, each row once.",
        "answers.meta-short": "meta=short keeps of _meta only what changes a decision, over REST and MCP; the default"
        " is the whole.",
        "answers.rows-dropped": "Rows that could not be read are left out and told with their count.",
        "answers.member-missing": "A member that a source used to give and that all rows of an answer lack is told"
        " (field_missing), also after a restart.",
        "answers.rows-share": "A body with more unreadable rows than its source may have is rejected.",
        "headers.deprecation": "What is about to go is announced by Deprecation, Sunset and X-Service-Deprecation in"
        " the answers concerned.",
        "deprecations.notice": "Nothing published goes without a notice of 90 days.",
        "arguments.hosts": "On MCP what hosts are known to add by themselves changes nothing, and is counted by name.",
        "arguments.hosts-unlogged": "What a host adds is neither stored nor logged.",
        "arguments.address": "Unknown query parameters of the MCP address are ignored.",
        "answers.degraded": "A degraded answer may be kept for 30 s at most, and is made anew once its source is back.",
        "answers.proved-empty": "A list is empty only where its source proves that it is alive; otherwise it is"
        " unproved_empty.",
        "answers.paced": "A free call that our own pacing would hold for more than 1.5 s gets the last good answer.",
        "headers.compressed-once": "Each encoding is compressed once for an answer.",
    },
    "CONTRACT §3": {
        "errors.problem": "Errors are application/problem+json with type, title, status, detail, error, request_id.",
        "errors.type": "Every `type` resolves to a page.",
        "errors.codes": "The codes are those of the contract, each with its status.",
        "errors.garbage": "What is no proper request gets an error or a closed door, and disturbs nobody else.",
        "errors.mcp": "On MCP a failure is a result with isError and the REST body as text, never 401, 402 or 429.",
        "errors.mcp-protocol": "Protocol faults stay JSON-RPC errors.",
        "errors.invalid_arguments": "400 invalid_arguments names each wrong argument; nothing was run or charged.",
        "errors.invalid_json": "400 for a body that is not a JSON object.",
        "errors.unsupported_media_type": "415 for a body announced as something else.",
        "errors.payload_too_large": "413 with limit_bytes for a body over 64 KiB.",
        "errors.not_found": "404 with did_you_mean and catalog.",
        "errors.method_not_allowed": "405 with Allow.",
        "errors.rate_limited": "429 with retry_after_seconds, limit and Retry-After.",
        "errors.idempotency_conflict": "422 for the same key with other arguments.",
        "errors.upstream_unavailable": "503 with Retry-After when nothing premium could be composed, not charged.",
        "errors.internal_error": "500 with a request id and no internals, not charged.",
        "errors.enums": "A value that is not in the list is 400 everywhere.",
        "errors.weather": "weather: both coordinates missing take the default; one missing or out of range is 400.",
        "errors.exposure": "exposure-lookup: anything but a global unicast IPv4 is 400.",
        "errors.mcp-text": "A refusal on MCP is its text alone, without structuredContent.",
        "errors.chain_unavailable": "503 with Retry-After while the chain cannot be read.",
        "errors.billing-retry": "402 billing_unavailable has Retry-After.",
    },
    "CONTRACT §4": {
        "limits.shared": "A free MCP call and its REST twin share one budget.",
        "limits.address": "A client is an address, IPv6 by /64.",
        "limits.proxies": "X-Forwarded-For counts from trusted proxies only.",
        "limits.bearer": "A valid bearer is its own client.",
        "limits.unspaced": "Health, discovery documents and pages are not spaced.",
        "limits.stdio": "stdio has no limits.",
        "limits.304": "A 304 costs nothing of the spacing.",
        "limits.network": "The clients of an IPv6 /48 share larger limits of the free tier.",
        "limits.questions": "With a valid token calls are spaced by endpoint and arguments, 12 different ones per"
        " endpoint and 30 s.",
        "limits.scope": "limits.spacing_scope decides whether clients without a token are spaced by endpoint, the"
        " default, or by question.",
        "limits.payments": "Payment tools answer 60 calls a minute per client, together.",
        "limits.receipts": "Reading receipts counts towards the same 60 a minute.",
        "limits.subscriptions": "Routes of subscriptions, allowances and the statement count towards the same 60.",
        "limits.premium": "A token has 600 premium calls a minute, over all instances.",
        "limits.distinct": "Where an argument reaches an upstream a client has a quota of distinct values.",
        "limits.chosen-share": "Questions that callers choose have a share, a lane and a circuit of their own on a"
        " host.",
        "limits.invented-tokens": "An invented token counts by address, before the ledger is asked.",
        "limits.refused": "A question that is refused before anything is asked upstream costs nothing of the spacing.",
        "limits.refused-asked": "A refused question for which an upstream was asked takes a place.",
        "limits.settings": "The figures of the free limits are settings.",
    },
    "CONTRACT §5": {
        "secrets.nowhere": "No token, memo or key stands in a log, an error, a metric, a public page or a stored file.",
        "tokens.hashed": "A token is stored only as its SHA-256.",
        "tokens.fingerprint": "Its owner knows a token by 16 hex digits of its SHA-256; in public nothing names it.",
        "tokens.revoked": "The operator can revoke a token; a payment that is undone revokes it too.",
        "tokens.cap": "The owner of a token sets a cap per UTC day, which no concurrency crosses; 402 names it.",
        "tokens.alerts": "Paid answers say in a header and in _meta which thresholds of the token's owner are crossed.",
        "tokens.notices": "A crossed threshold is notified once to a webhook of the owner, signed and free of charge.",
        "tokens.freeze": "A token that its owner has frozen pays for nothing until it is thawed; 402 says how.",
        "tokens.limits-children": "Cap and freeze of a token bind its allowances, which cannot change them.",
        "tokens.stdio": "stdio takes the token from TOOLSERVER_TOKEN.",
        "tokens.placeholder": "An empty bearer and the placeholder of a token count as absent on REST and MCP.",
        "tokens.malformed": "An authorization that is no valid bearer token is 402 where a token is needed and ignored"
        " where none is.",
        "tokens.argument": "Where a connection carries no token, tools that need one take it as an argument on MCP, and"
        " on no other face.",
        "tokens.argument-alone": "The token argument is refused beside an Authorization header that holds a token.",
        "allowance.child": "An allowance is a token of the same shape that spends its owner's credits, shown once.",
        "allowance.caps": "No cap of an allowance is crossed under any concurrency.",
        "allowance.refusal": "A call that would cross a cap is 402 insufficient_credits with the cap's name.",
        "allowance.list": "The list of allowances has the record of the contract and no token.",
        "allowance.change": "PATCH changes caps from the next call on and leaves what it does not name.",
        "allowance.revoke": "DELETE revokes an allowance at once.",
        "allowance.no-children": "An allowance makes and manages none.",
        "allowance.subscriptions": "All allowances of a token share its five subscriptions.",
        "allowance.live": "A token has at most 100 live allowances.",
        "allowance.followed": "The sister contract carries allowances, and tells which cap was crossed.",
        "oauth.401": "Only /api/mcp/auth answers 401, and says where its metadata are.",
        "oauth.metadata": "OAuth metadata stand at the well-known addresses with the endpoint's path, and the root ones"
        " are 404.",
        "oauth.allowance": "An access token is bound to an allowance: it spends up to its cap, ends with it, and is"
        " worth nothing elsewhere.",
        "tokens.reissue": "A lost token is replaced by the operator alone, for the one payer of all its purchases,"
        " after 48 hours.",
        "tokens.reissue-objection": "Who holds the token sees that it will be replaced, and may cancel that.",
        "limits.truth": "A 429 says which rule it is, whether waiting brings other data, and what helps this caller.",
        "limits.no-spacing": "limits.spacing_s=0 spaces nobody.",
        "headers.declared": "RateLimit names only policies that RateLimit-Policy of the same response declares.",
        "visitor.token": "A visitor token is `svc_free_` and a MAC over id and issue, unstored; it ends in 30 days.",
        "visitor.forged": "A forged or expired visitor token counts as an invented one, by address, before anything.",
        "visitor.identity": "A visitor token has free limits of its own, spaced by endpoint or as the operator says.",
        "visitor.no-money": "Where an account is needed, a visitor token gets 402 payment_required.",
        "visitor.no-account": "A visitor token never reaches the ledger, an own one or a followed one.",
        "visitor.issue": "An address gets three a day cheaply, then for work that doubles, and at most 200.",
        "visitor.work": "Work counts for its address, once, on its day, and within an hour.",
        "visitor.network": "A /48 gets at most 2,000 visitor tokens a day, whatever it solves, shares or replays.",
        "visitor.consent": "The consent page gives a visitor token and no allowance, counted by the browser's address.",
        "visitor.egress": "A hundred users with a visitor token each behind one address are all answered.",
        "visitor.page": "The page of the account gets a visitor token with one press, and works for it.",
        "allowance.sister": "What a sister service allows pays at that service only, and its owner sees and revokes it"
        " everywhere.",
        "allowance.unsupported": "Where the ledger's owner keeps no allowances they are not supported, and their tools"
        " unlisted.",
        "allowance.ends": "An allowance ends at its time, and with its owner.",
        "oauth.secrets": "Nothing that is stored of a sign-in opens anything.",
        "oauth.code-once": "A code is good for a minute, for its client and once; a second use ends grant and"
        " allowance.",
    },
    "CONTRACT §6": {
        "charge.arguments-first": "Wrong arguments are refused before any credit is touched.",
        "charge.once": "A paid call is charged once.",
        "charge.hang-up": "A caller who hangs up is not charged.",
        "charge.empty": "An empty result is given and not charged.",
        "charge.all-failed": "When all sections failed: 503, not charged.",
        **{
            f"sla.{name}": f"A value of /api/pro/{name} counts as stale from {row.sla_s} s on, or as long as its source"
            " is fresh; before that it is charged, then not."
            for name, row in PREMIUM.items()
        },
        "pro.sections-alone": "A premium section that fails alone is null and named, and changes no other.",
        "pro.all-down": "With all sources down no premium payload is sold.",
        "pro.empty": "What is empty for each payload is given and not charged.",
        "pro.licence": "Sections that the licence policy bars are null, with a warning that names the reason.",
        "pro.licence-told": "What the policy bars is said before payment, is what the answer lacks, and is not asked.",
        "pro.latency": "Status is each exchange's own; what was not asked is not listed.",
        "pro.cost": "A premium call on warm sources takes less than 15 ms of CPU.",
        "pro.cold": "On cold sources a premium call takes no longer than its slowest source and 50 ms.",
        "pro.once": "The ten payloads composed at once ask each source once.",
        "pro.slow-source": "A source that hangs delays no other section, and the call not beyond its deadline.",
        "charge.idempotent": "The same Idempotency-Key returns the same bytes and receipt without a second charge.",
        "charge.twin": "A concurrent twin waits for the first.",
        "charge.cached": "A premium answer from the cache costs its credits.",
        "charge.remaining": "X-Credits-Remaining is what can be spent after this call.",
        "charge.delivery": "A call that died with its process is not charged.",
        "charge.killed": "However often a service is killed, no call without its whole answer stays charged.",
        "idempotency.scope": "An Idempotency-Key belongs to its token and is kept for 24 hours.",
        "idempotency.mcp": "On MCP the key is _meta.idempotency_key.",
        "charge.head": "HEAD of a paid path checks arguments and token, answers 200 without a body, and composes and"
        " charges nothing.",
        "charge.limited": "A paid call that a limit refuses sets no credits aside.",
        "charge.nothing-chosen": "A choice that matches nothing is refused or empty as a whole, and never a part for"
        " free.",
        "charge.receipted": "Without a receipt there is no charge.",
        "charge.delivered": "What was delivered stays charged when the process dies, and what was not is released.",
        "charge.shared-start": "Where instances share a ledger, a start releases only what no other can be sending.",
        "no-charge.cancelled": "A call that its caller gave up stands in the public log with that reason.",
        "no-charge.empty": "A call that found nothing stands in the public log with that reason and costs nothing.",
        "no-charge.delivery-failed": "A fire that was not delivered stands in the public log with that reason and costs"
        " nothing.",
        "idempotency.restart": "After a restart the same key still brings the same bytes and receipt, over REST and"
        " MCP.",
        "charge.given-back-counts": "What is given back can be spent again, on the day it was reserved.",
        "charge.hold-ends": "What nobody settles in time is given back.",
        "charge.uncharged-bound": "Calls without a charge are bounded for each payer, and charged ones cost nothing of"
        " that.",
    },
    "CONTRACT §7": {
        "ledger.durable": "What was acknowledged is on the disk, those who ask together sharing one write.",
        "ledger.crash": "No kill loses or doubles what was acknowledged.",
        "ledger.contract": "Every ledger keeps one contract: nothing is spent twice, and a release wins.",
        "ledger.sums": "Debits equal credits, and every rule of the books can be checked.",
        "sister.shared": "A token bought at either of two services works at both, and is charged once.",
        "sister.away": "While the ledger is away a follower answers 402 billing_unavailable, and recovers by itself.",
        "log.verified-by-others": "A verifier that others wrote finds the log of uncharged calls in order.",
        "ledger.follower": "A service can charge the credits of a sister service's ledger, whatever fails on the way.",
        "ledger.owner": "The owner hears only services that sign, each about its own calls.",
        "quote.additions": "A quote has payment_uri, memo_commitment, network, token_contract and amount_atomic.",
        "quote.own-address": "Each quote has an address of its own, derived from the operator's account key.",
        "quote.shared": "Where the address is shared, a transfer counts with proof of its payer only.",
        "purchase.topup": "A transfer for a quote that a token asked for adds to that token, and to no other.",
        "purchase.finality": "The larger a payment, the older its block has to be; large sums need two servers.",
        "purchase.undone": "What the chain undoes is taken back as far as it is unspent.",
        "purchase.lost-answer": "Until it is used, a token whose answer was lost is given again for 15 minutes.",
        "purchase.refusals": "A refused confirmation has its documented code and status at every door.",
        "receipt.jws": "A receipt is a compact JWS, EdDSA, over a canonical core that tells all of the call.",
        "receipt.keys": "The key set is a JWK set with RFC 7638 ids, and retired keys stay in it.",
        "receipt.stored": "GET /api/receipt/<id> shows a receipt to the bearer that paid.",
        "receipt.verdict": "The verifier answers 200 with valid and the checks; malformed is 400; it fetches nothing.",
        "no-charge-log.days": "no-charge-stats tells a day: count, credits, reasons, endpoints, events, the log.",
        "no-charge-log.proof": "The log is tamper-evident: anyone can rebuild it and prove an entry in it.",
        "money.apart": "Simulated and real credits never share a directory.",
        "receipt.reference": "Prefer: receipt=reference leaves the signed receipt out; id and digest stay, and GET"
        " brings it later.",
        "receipt.refused": "A refused call has no receipt.",
        "receipt.retired-keys": "Receipts outlive the key that signed them.",
        "receipt.trusted-keys": "Keys of others count only where the operator put them.",
        "receipt.tamper-evident": "No character of a receipt can be changed unnoticed.",
        "statement.entries": "The statement has calls, purchases, reversals and releases, and adds up to the balance.",
        "statement.receipts": "The statement names the receipt of each call and the transaction of each purchase.",
        "statement.allowances": "The statement says which allowance made a call; an allowance sees its own calls only.",
        "statement.pages": "A span and pages of any size hold every entry once.",
        "no-charge-log.hours": "An uncharged call is booked at once, and the closed hour is appended and signed by one"
        " task.",
        "no-charge-log.bucket": "A receipt names its bucket, and the proof is had when the hour is over.",
        "no-charge-log.leaves": "The leaves of an hour are one for each token, tool and reason.",
        "no-charge-log.never-smaller": "A smaller or rewritten tree is never signed.",
        "no-charge-log.mark": "The last checkpoint is kept outside the database too, so that a backup's shorter log is"
        " never signed.",
        "purchase.ceilings": "Ceilings per purchase, hour and day bound what is sold; what arrives beyond waits for a"
        " person.",
        "purchase.second-server": "A second server confirms every credited payment later; one that lies is found within"
        " a minute.",
        "purchase.usdc-only": "Only USDC that reached the address of the quote is a payment.",
        "purchase.verifier": "A quote with a challenge is claimed with its verifier only.",
        "quote.numbers": "No deposit address is given out twice, whatever backup is restored: its number has a mark"
        " outside the database.",
        "quote.secret-memo": "The memo of a quote is neither stored nor logged.",
        "sister.named-commit": "A commit that names neither call nor reservation is refused; with either it is charged"
        " once.",
        "sister.any-reason": "A commit with any reason not to charge releases.",
        "refund.once": "A refund takes credits once, no more than is unspent and was paid for.",
        "books.month": "A closed month is signed, and proves itself to anyone who has its archive.",
        "receipt.reference-x402": "A call that is paid by itself carries its signed receipt whatever is preferred.",
        "ledger.instances": "Three instances spend one token to exactly zero, and refuse at once what one of them"
        " revoked.",
        "ledger.sealed": "A ledger that somebody else wrote in is not served.",
        "ledger.lost": "A ledger that was lost is not begun anew beside the keys of its receipts.",
        "receipt.alg": "The verifier takes EdDSA and Ed25519 as the name of the algorithm, which the signature covers.",
        "receipt.private-halves": "Published keys have no private half, and a retired key's is deleted.",
        "receipt.revoked-key": "Of a revoked key only receipts on record from before count.",
        "sister.own-bind": "The contract between services has an address of its own and stands in no public document.",
        "sister.clock": "A signed request is good for a minute, and for its body.",
        "sister.journal": "A journal that cannot be written stops sales.",
        "sweep.planned": "A sweep is signed for our own addresses only, and names what costs more than it yields.",
    },
    "CONTRACT §8": {
        "x402.off": "Off unless a facilitator is configured: nothing of it is on the wire.",
        "x402.offer": "Every premium 402 carries an offer, in PAYMENT-REQUIRED and, for clients of version 1, in the"
        " body.",
        "x402.topup": "One signed authorisation buys a new token or tops up the bearer that is sent along.",
        "x402.call": "A signed payment buys one call, is settled once and has a receipt, over REST and MCP.",
        "x402.verified-first": "A payment that is not verified is refused before anything runs.",
        "x402.unsettled": "A payment is never settled for a failure, a stale answer or an empty one.",
        "x402.again": "A payment made is answered with what it bought, for 24 hours with the first key and 10 minutes"
        " without, then never with an offer.",
        "x402.one-answer": "A payment does not buy another answer.",
        "x402.topup-again": "The token of a top-up is given again only for the first key, for a day; the credits"
        " stand.",
        "x402.payer-proof": "The payer's signature brings a token for one that never came; a stranger's brings"
        " nothing.",
        "x402.spent-nonce": "A nonce that the chain has spent is never answered with an offer.",
        "x402.finality": "Top-ups have the finality and agreement of transfers.",
        "x402.undone": "What the chain undoes of a top-up is taken back, and buys nothing more.",
        "x402.ceilings": "A payment that would cross a ceiling is refused before it is made.",
        "x402.pending": "While nobody knows whether a payment was made it is 503 settlement_pending, without an offer.",
        "x402.search": "A pending payment is searched from the block of its hand-over on, whatever the downtime.",
        "x402.oldest": "All pending payments are looked at, and one in trouble keeps no other waiting.",
        "x402.limit": "Calls with payments count by address towards the limit of paid calls.",
    },
    "CONTRACT §9": {
        "webhook.created": "Subscribing answers 201 with URL, endpoint, state, times and the names of the headers.",
        "webhook.owner": "Another owner's subscription is 404, like one that does not exist.",
        "webhook.standard": "Standard Webhooks signatures stand beside ours and libraries of others verify them.",
        "webhook.retry": "Failed attempts are repeated inside the slot with the same id and bytes.",
        "webhook.rotate": "After a rotation the old secret signs too, for a day.",
        "webhook.test": "A test is signed, free, marked, and carries recorded or given values.",
        "webhook.condition": "A condition fires once and clears once; stale data are neither, said once and free.",
        "webhook.kills": "After kills between any two steps every delivered fire is charged once.",
        "webhook.followed": "What a follower delivered is charged at the ledger's owner and stays so after a crash.",
        "events.list": "MCP Events are listed with source, price and flat schemas, and advertised in both eras.",
        "events.once": "An event is delivered once in its slot with all that is new, for one credit, with a receipt.",
        "events.quiet": "Stale data and a bound that is passed back wake nobody.",
        "events.verified": "A receiver proves that it wants events before the first one, within limits and free.",
        "events.renewed": "The same subscription again is renewed, and is one of the five.",
        "events.ended": "A subscription of MCP Events ends with its time, with 410 and when its client ends it.",
        "events.secret": "A client's secret is in no answer, log and list, and its predecessor signs for a day.",
        "events.untrusted": "Texts of third parties stand in events only as cut members of `untrusted`.",
        "apps.views": "Clients that show MCP Apps are told a view of each tool with something to draw; others are not.",
        "apps.small": "A view is one HTML text under 40 KB that loads nothing.",
        "apps.one-code": "Views draw with the code of pages.",
        "apps.drawn": "Ten tools are drawn in the official bridge, light and dark, 320 and 800 px, by valid messages.",
        "apps.hostile": "Texts of third parties stay text in a view, and links only ask the host.",
        "resources.read": "Resources are listed and read in both eras; unknown ones are refused by the era's code.",
        "webhook.sixth": "The sixth active subscription is 409.",
        "webhook.pause-reasons": "A subscription pauses with a reason that its owner sees: credits, revoked token,"
        " failing or gone endpoint.",
        "webhook.ledger-away": "While the ledger is away a slot is left out and nobody is paused.",
        "webhook.resume": "A paused subscription can be resumed, a failing one after five minutes.",
        "webhook.log": "Its owner sees every delivery with its cost, page by page.",
        "webhook.stale": "Stale data are not delivered and not charged.",
        "webhook.condition-cost": "A condition's fired and cleared deliveries cost a credit each and say old and new.",
        "webhook.short-name": "endpoint takes the short name of any premium endpoint, and params its parameters.",
        "webhook.released-logged": "Every released fire stands in the public log.",
        "webhook.unpaid-bodies": "A body that was sent and refused counts for account, token, target and host, through"
        " new subscriptions and restarts.",
        "webhook.challenge": "After the third refused body a challenge without payload comes first.",
        "webhook.no-redirect": "A redirect of a receiver is not followed.",
        "webhook.rebinding": "A name that leads inside on a later lookup is not connected to.",
        "webhook.secrets": "No token is stored with a subscription, and its secret only encrypted.",
        "webhook.target-first": "A refused target is 400 whatever the balance is.",
        "webhook.needs-credit": "Without a credit nothing is subscribed to, tested or resumed.",
        "webhook.thinned": "Failing endpoints are tried in ever fewer slots, down to one an hour.",
        "webhook.reserved-headers": "An owner's headers can neither pass for ours nor break the request.",
    },
    "CONTRACT §10": {
        "definitions.layouts": "There are layouts for openai-responses, gemini and bedrock besides.",
        "definitions.body": "The body is source, generated_at, docs, auth, count and one list per format.",
        "definitions.true": "Required, enums, bounds and defaults are those of the tools.",
        "mcp.structured-equals-text": "structuredContent is the REST payload and content[0].text the same JSON.",
        "mcp.credits": "For bearer calls _meta.credits_remaining stands in the payload and in the result's _meta.",
        "mcp.charged": "Paid results say credits_charged and receipt_id in the payload's _meta, where models read.",
        "mcp.receipt": "The result's _meta holds receipt and receipt_id.",
        "terms.price": "Price stands in words in the first line of every premium description, on every face.",
        "terms.fresh": "Every description says for how long an answer is fresh.",
        "terms.listed": "Home page, llms.txt, OpenAPI, catalogue and tools/list count and list the same tools.",
        "terms.deprecated": "Deprecations stand on the tool: in tools/list, on its page, in OpenAPI on what will go.",
        "terms.hints": "All four hints are always written out; priced tools are writes, quotes and lists are reads.",
        "terms.open": "MCP lists open schemas, without additionalProperties: false; unknown arguments are refused.",
        "terms.instructions": "Instructions begin with the topics, say that there is more, then how to pay; 900 bytes.",
        "mcp.get": "GET without an event-stream Accept answers a short JSON description.",
        "definitions.routes": "Routes say method, path and where each argument goes, so that every tool runs from the"
        " document alone.",
        "definitions.choice": "?tools= and ?toolset= choose definitions as on MCP.",
        "mcp.confirmed": "Hosts ask before a call that spends, unless ?hints=read is given, and not before a quote, a"
        " balance or a list.",
        "mcp.not-required": "Output schemas are listed without root required, so that strict clients show refusals.",
    },
    "CONTRACT §11": {
        "find-tools.questions": "find_tools finds the tool for everyday questions, misspelt words included.",
        "find-tools.definitions": "It returns whole definitions, and is not spaced by the rule of the free tools.",
        "find-tools.call": "`call` runs a free tool, listed or not, counted and spaced as that tool, with its bytes.",
        "find-tools.hints": "By search hints, hosts that search by keywords find the tool for everyday questions.",
        "find-tools.priced": "`call` refuses tools that cost credits, in words.",
        "discovery.openapi": "/openapi.json has x-credits, x-cache-ttl, x-sources and examples that validate.",
        "discovery.llms": "/llms.txt and /llms-full.txt lead to everything there is.",
        "discovery.changelog": "/changelog is HTML, and Markdown by Accept.",
        "discovery.meta": "/api/meta has service, version, freshness, ledger mode and discovery links.",
        "discovery.meta-pro": "/api/meta/pro has path, credits, params, free sibling and SLA of what is sold.",
        "discovery.premium-pages": "Each premium payload has a page with a real example and what to draw of it.",
        "discovery.catalog": "/.well-known/api-catalog is a link set (RFC 9727).",
        "discovery.robots": "/robots.txt asks crawlers to leave the API alone.",
        "discovery.licence": "The licence stands in the description, meta, the reference, llms.txt and a Link header.",
        "discovery.pricing": "X-Service-Pricing and signup point at base_url/docs/payments.",
        "discovery.small": "tools/list: core 7,600 tokens and 30 KB, without output schemas 3,200 and 13 KB; all 24,600"
        " and 10,500 tokens.",
        "discovery.x402": "/.well-known/x402.json lists what can be paid for with its prices, where payments are"
        " taken.",
        "webhook.sender": "A delivery comes from toolserver-webhook/1.0.",
        "credits.no-expiry": "Credits do not expire.",
    },
    "CONTRACT §12": {
        "operating.ready-line": "With --ready-json exactly one JSON line on stdout, once calls are accepted.",
        "operating.graceful-stop": "SIGTERM or SIGINT: a graceful stop within 15 s and exit code 0.",
        "operating.refusals": "What cannot be done is refused in a sentence.",
        "operating.starts-fast": "The first answer comes soon after the start.",
        "operating.small": "The process stays small.",
        "operating.data-dir": "Keys and databases are made in the data directory on first start, mode 0600.",
        "operating.via": "With upstream.via every request goes to /u/HOST/PATH there, as it is, and answers say so.",
        "operating.demo-spacing": "The demo runs without spacing, unless --limits or a setting of it is given.",
        "pages.search": "The search of the documentation forgives typing errors and knows other words for things.",
        "pages.try": "Pages try free tools by a path of their own, with small limits of its own, and mint nothing.",
        "operating.no-limits": "limits.enabled=false takes all limits away.",
        "webhook.target": "A webhook target that is refused is 400 with the reason, and no connection is made.",
        "operating.licence": "Selling needs a decision about licences; without one the service does not start and says"
        " what to set.",
        "operating.call-status": "A call on the command line ends with 1 when there are no data or it is refused.",
        "operating.loopback": "Webhooks to this machine are off by default; the demo turns them on unless told"
        " otherwise.",
        "operating.names": "No document installs the package of somebody else that has our command's name.",
    },
}

REQUIREMENTS: dict[str, Requirement] = {
    id: Requirement(id, sentence, source) for source, listed in _SENTENCES.items() for id, sentence in listed.items()
}
