"""Read GitHub's repository search: how fast repositories gain stars, and whether they are about machine learning."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from tools.sources.github import REPOSITORIES, Repo, RepoList, RepoQuery
from tools.sources.github import request as search_request
from toolserver import Fallback, FallbackReader, Get, Keys, Source, TimeSeriesStore, delay_second

DAY, NEARLY_AN_HOUR = timedelta(days=1), timedelta(minutes=55)
STARS, KEEP_S, WITHIN_S = "github_stars", 30 * 86400.0, 2 * 3600.0
PATIENCE_S = 8.0  # after a burst of searches the next one is seconds away

AGENTS = frozenset({"agent", "agents"})
WORDS = AGENTS | frozenset(
    (
        "ai ml llm llms gpt rag agentic mcp claude gemini openai transformer diffusion embedding embeddings finetuning"
        " lora inference"
    ).split()
)
PHRASES = (
    "machine learning",
    "deep learning",
    "language model",
    "neural network",
    "vector database",
    "fine tuning",
    "prompt engineering",
    "computer vision",
    "text to speech",
)


class Searched(NamedTuple):
    """A search: when it was made, whether the token was accepted for it, and its result."""

    listed: RepoList
    at: datetime
    authenticated: bool


def with_token(query: RepoQuery, keys: Keys) -> Get | None:
    """Return the search with the token; it is not usable without one."""
    return search_request(query, keys)[0] if "GITHUB_TOKEN" in keys else None


def anonymous(query: RepoQuery, keys: Keys) -> Get:
    return search_request(query, {})[0]


WITH_TOKEN = replace(REPOSITORIES, request=with_token)
ANONYMOUS = replace(REPOSITORIES, request=anonymous)


def search_fallbacks(query: RepoQuery) -> tuple[Fallback[Searched], ...]:
    """Return the search with the token, then without. As one source, the two could not be told apart; here they can."""
    return delay_second(_fallback(WITH_TOKEN, query, True), _fallback(ANONYMOUS, query, False), PATIENCE_S)


def _fallback(source: Source[RepoQuery, RepoList], query: RepoQuery, authenticated: bool) -> Fallback[Searched]:
    async def fallback(reading: FallbackReader) -> Searched:
        listed = await reading.read(source, query)
        at = reading.notes[-1].fetched_at
        assert at is not None
        return Searched(listed, at, authenticated)

    return fallback


def most_starred(listed: RepoList, limit: int) -> list[Repo]:
    """Return repositories that are neither forks nor archived, most stars first."""
    own = [repo for repo in listed.repos if not (repo.fork or repo.archived)]
    return sorted(own, key=lambda repo: (-repo.stars, repo.full_name))[:limit]


def age_days(repo: Repo, now: datetime) -> float:
    """Return the days since creation, at least one, so that the first hours do not inflate a daily rate."""
    return round(max(1.0, (now - repo.created_at) / DAY), 1)


def remember(history: TimeSeriesStore, searched: Searched) -> None:
    """Keep every repository's stars as of the search, about once an hour."""
    for repo in searched.listed.repos:
        last = history.last(STARS, str(repo.id))
        if last is None or searched.at - last.at >= NEARLY_AN_HOUR:
            history.note(STARS, str(repo.id), repo.stars, searched.at, keep_s=KEEP_S)


def stars_24h(history: TimeSeriesStore, repo: Repo, at: datetime) -> int | None:
    """Return the stars gained since a day before an instant, give or take two hours; None without a count from then."""
    before = history.near(STARS, str(repo.id), at - DAY, within_s=WITHIN_S)
    return None if before is None else repo.stars - int(before.value)


def is_ai_ml(repo: Repo) -> bool:
    """Return True if name, description or topics have one of our words or phrases. "Agent" alone is too ambiguous."""
    texts = [" ".join(_words(text)) for text in (repo.name, repo.description or "", *repo.topics)]
    hits = WORDS.intersection(word for text in texts for word in text.split())
    phrases = any(f" {phrase}" in f" {text}" for text in texts for phrase in PHRASES)  # also its plural
    return phrases or bool(hits - AGENTS)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.casefold())
