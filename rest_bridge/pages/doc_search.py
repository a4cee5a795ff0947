"""Searches documents, tools, pages and error codes by everyday words, at /docs/search and /docs/search.json.

Typing errors and other endings do not matter, and words that our documents do not use lead to those that they do.
"""

import functools
import heapq
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import anyio.to_thread

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.discovery import as_json
from rest_bridge.pages.guides import SEARCH
from rest_bridge.pages.render import render_page
from rest_bridge.routes import Handler
from rest_bridge.serving import by_query
from toolserver.core.text_search import TextIndex, count_words, split_words
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import JSON, Document, SiteFacts

PAGE = "/docs/search"
TITLE, HEADING, HINT, TEXT = 4.0, 3.0, 3.0, 1.0  # how much a word counts by where it stands
TITLED = 1.25  # how much more an entry counts if a word of the query is in the title of its page
FURTHER, SHARE = 0.4, 0.6  # what a page's next two sections add to its best one, and the power of the share of words
PREFERENCES = {"tool": 1.3, "account tool": 0.7, "page": 1.3, "error": 1.0, "guide": 1.0, "history": 0.5, "code": 0.5}
"""How much an entry counts by its kind: people who search rarely mean how the code is built, or what it was."""
MOST, LONGEST, AROUND = 12, 200, 160  # results; characters of a query, and of the text that is shown of a result

SYNONYMS: Mapping[str, str] = {
    "tesla": "stocks", "apple": "stocks", "nvidia": "stocks", "microsoft": "stocks", "amazon": "stocks",
    "share": "stocks", "shares": "stocks", "ticker": "stocks", "nasdaq": "stocks", "equity": "stocks",
    "ethereum": "coin", "solana": "coin", "dogecoin": "coin", "crypto": "coin bitcoin",
    "cryptocurrency": "coin bitcoin", "currency": "forex exchange rates", "euro": "forex", "yen": "forex",
    "inflation": "economic", "unemployment": "economic", "gdp": "economic", "recession": "economic macro",
    "quake": "earthquakes", "seismic": "earthquakes", "tsunami": "earthquakes", "hurricane": "storm disaster",
    "tornado": "severe weather alerts", "smog": "air quality", "pollution": "air quality", "temperature": "weather",
    "rocket": "launches", "spacex": "launches", "astronaut": "humans space", "aurora": "space weather",
    "outage": "status", "down": "status", "odds": "predictions", "polymarket": "predictions", "bet": "predictions",
    "pay": "payments buy credits", "price": "cost credits", "pricing": "prices credits", "wallet": "buy credits usdc",
    "billing": "credits payments", "invoice": "statement", "refund": "refunds", "money": "refunds credits",
    "subscription": "webhook", "callback": "webhook", "hmac": "signature", "throttle": "limits",
    "429": "rate limited limits", "quota": "limits", "ratelimit": "limits", "limit": "limits",
    "401": "token", "402": "payment required", "login": "sign oauth",
    "sso": "sign oauth", "auth": "token sign", "authentication": "token sign", "apikey": "token", "key": "token keys",
    "nginx": "reverse proxy", "caddy": "reverse proxy", "traefik": "reverse proxy", "https": "proxy tls",
    "ssl": "tls authority", "certificate": "authority tls", "ca": "authority", "corporate": "company network",
    "healthcheck": "health monitoring", "opentelemetry": "metrics monitoring", "telemetry": "metrics monitoring",
    "prometheus": "monitoring metrics", "grafana": "monitoring metrics", "alert": "alarms alerts",
    "docker": "container image", "env": "environment settings", "vars": "environment settings",
    "environment": "settings", "variable": "settings environment", "config": "settings", "configuration": "settings",
    "option": "settings", "hosting": "operating install", "deploy": "operating install",
    "deployment": "operating install", "connect": "connecting host", "desktop": "host connecting",
    "select": "choose tools", "selection": "choose tools", "selective": "choose tools", "filter": "choose tools",
    "filtering": "choose tools", "disable": "choose tools", "cost": "price credits payments",
    "deposit": "payment transfer", "credited": "credits counts", "transfer": "payment", "leak": "lost token",
    "stolen": "lost token", "compromised": "lost token", "rotation": "replacing new", "cancel": "unsubscribe end",
    "train": "licence inference",
    "training": "licence inference", "commercial": "licence terms", "resell": "licence redistribution",
    "kubernetes": "scaling instances", "k8s": "scaling instances",
    "install": "operating", "upgrade": "backup versions", "restore": "backup", "database": "postgresql",
    "postgres": "postgresql", "replica": "scaling instances", "cluster": "scaling instances",
    "latency": "performance", "benchmark": "performance", "slow": "performance", "offline": "simulated world",
    "mock": "simulated world", "sandbox": "simulated world", "fake": "simulated world", "sdk": "client",
    "typescript": "client", "library": "client", "log": "log troubleshooting", "crash": "troubleshooting",
    "licence": "licence terms sources", "license": "licence terms sources", "attribution": "sources credit",
}  # fmt: skip
"""Words that people search for, each with the words of our documents that it means."""

NOISE = frozenset(
    "able add allow another broken bug can't cannot comprehensive confusing confusion documentation error errors"
    " feature following function help hi implement issue near please problem question request requests resolve simple"
    " still support too unable urgent using work works working".split()
)
"""Words of questions that say nothing about their subject."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A result: where it leads, its title, the heading of its section (empty at the top of a page) and some text."""

    path: str
    title: str
    heading: str
    text: str


class DocSearch:
    """Everything that can be found, ready to be searched.

    An entry has `path`, `title`, `heading` and `text`, a `hint` (words for what it is about) and a `kind`.
    """

    def __init__(self, entries: Sequence[Mapping[str, str]]) -> None:
        self._entries = entries
        self._pages = [entry["path"].partition("#")[0] for entry in entries]
        self._texts = [
            count_words([(TITLE, e["title"]), (HEADING, e["heading"]), (HINT, e["hint"]), (TEXT, e["text"])])
            for e in entries
        ]
        self._index = TextIndex(self._texts, SYNONYMS)

    def find(self, query: str, most: int = MOST) -> tuple[int, list[Hit]]:
        """Return how many entries have words of the query, and the best of them."""
        subject = " ".join(word for word in query[:LONGEST].split() if word.casefold().strip(".,:;!?()") not in NOISE)
        read = self._index.read(subject or query[:LONGEST])
        words = {word: weight for word, weight in read.items() if len(word) > 1}
        scores = {at: score * self._prefer(at, words) for at, score in self._index.score(words).items()}
        further = self._add_further(scores)
        best = heapq.nlargest(most, ((score + further[self._pages[at]], -at) for at, score in scores.items()))
        return len(scores), [self._show(-at, words) for _, at in best]

    def _add_further(self, scores: Mapping[int, float]) -> dict[str, float]:
        """Return by page what its further sections add to each: a page that is all about the words comes first."""
        by_page: defaultdict[str, list[float]] = defaultdict(list)
        for at, score in scores.items():
            by_page[self._pages[at]].append(score)
        return {page: FURTHER * sum(heapq.nlargest(3, found)[1:]) for page, found in by_page.items()}

    def _prefer(self, at: int, words: Mapping[str, float]) -> float:
        """Return how much more an entry counts: for the share of the words it has, its title, and what it is."""
        text, entry = self._texts[at], self._entries[at]
        share = sum(weight for word, weight in words.items() if word in text) / sum(words.values())
        titled = TITLED if not words.keys().isdisjoint(split_words(entry["title"])) else 1.0
        return math.pow(share, SHARE) * titled * PREFERENCES[entry["kind"]]

    def _show(self, at: int, words: Mapping[str, float]) -> Hit:
        entry = self._entries[at]
        text = entry["text"]
        tokens = text.split()
        first = next((at for at, token in enumerate(tokens) if any(w in words for w in split_words(token))), 0)
        begin = len(" ".join(tokens[: max(0, first - 8)]))
        part = text[begin : begin + AROUND].strip()
        shown = f"{'…' if begin else ''}{part}{'…' if len(text) > begin + AROUND else ''}"
        return Hit(entry["path"], entry["title"], entry["heading"], shown)


def search_handlers(registry: Registry, facts: SiteFacts, entries: Callable[[], bytes]) -> dict[str, Handler]:
    """Return the handlers of the page of results and of the results as JSON.

    `entries` returns the index as JSON. Without a query the page shows only the field, and the JSON is the index.
    """
    search = functools.cache(lambda: DocSearch(json.loads(entries())))

    def write_page(parameters: Mapping[str, str]) -> Document:
        query = parameters.get("q", "").strip()[:LONGEST]
        count, hits = search().find(query) if query else (0, [])
        return render_page(
            "search_results.html",
            registry,
            facts,
            path=PAGE,
            title=f"Search: {query}" if query else "Search",
            about="Search in documents, tools and error codes.",
            scripts=["docs.js"],
            query=query,
            hits=hits,
            count=count,
        )

    def write_results(parameters: Mapping[str, str]) -> Document:
        query = parameters.get("q", "").strip()[:LONGEST]
        if not query:
            return Document(entries(), JSON)
        count, hits = search().find(query)
        return as_json({"query": query, "count": count, "results": [asdict(hit) for hit in hits]})

    def prepared(handler: Handler) -> Handler:
        async def handle(scope: Scope, request: ParsedRequest) -> PlainReply:
            await anyio.to_thread.run_sync(search)  # reading the index takes a tenth of a second, the first time
            return await handler(scope, request)

        return handle

    return {PAGE: prepared(by_query(write_page)), SEARCH: prepared(by_query(write_results))}
