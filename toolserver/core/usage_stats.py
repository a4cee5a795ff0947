"""Counts calls by user agent family, hourly over two days, and keeps the last calls, without address or token."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

KEEP_H, WINDOW_H, RECENT = 48, 24, 20
OTHER = "other"
_FAMILIES = (
    ("gptbot", "GPTBot"), ("chatgpt-user", "ChatGPT-User"), ("oai-searchbot", "OAI-SearchBot"), ("openai", "OpenAI"),
    ("claudebot", "ClaudeBot"), ("claude-user", "Claude-User"), ("claude-code", "Claude Code"), ("claude", "Claude"),
    ("anthropic", "Anthropic"), ("perplexity", "PerplexityBot"), ("google-extended", "Google-Extended"),
    ("gemini", "Gemini"), ("bytespider", "Bytespider"), ("ccbot", "CCBot"), ("cohere", "Cohere"),
    ("mistral", "Mistral"),
    ("cursor", "Cursor"), ("vscode", "VS Code"), ("copilot", "Copilot"), ("langchain", "LangChain"),
    ("fastmcp", "FastMCP"), ("modelcontextprotocol", "MCP SDK"), ("mcp", "MCP client"), ("googlebot", "Googlebot"),
    ("bingbot", "Bingbot"), ("toolserver", "toolserver"), ("python-httpx", "python-httpx"),
    ("python-requests", "python-requests"), ("aiohttp", "aiohttp"), ("urllib", "python-urllib"), ("axios", "axios"),
    ("undici", "node"), ("node", "node"), ("go-http-client", "Go"), ("okhttp", "OkHttp"), ("java", "Java"),
    ("curl", "curl"), ("wget", "wget"), ("mozilla", "browser"),
)  # fmt: skip
_KNOWN = 2000  # User-Agents remembered with their family


class CountedCall(NamedTuple):
    """One of the last calls. `at` is rounded down to the minute."""

    endpoint: str
    agent: str
    at: datetime
    status: int
    tier: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls of the past 24 hours. `since` is when counting began, if that is less than a day ago."""

    total: int
    agents: dict[str, int]
    recent: list[CountedCall]
    since: datetime


class Usage:
    """Counts calls in memory; the owner stores and restores the hours, and adds those of other instances."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._hours: dict[int, dict[str, int]] = {}
        self._others: Mapping[tuple[int, str], int] = {}  # by hour and family, of other instances
        self._recent: deque[tuple[str, str, float, int, str]] = deque(maxlen=RECENT)
        self._families: dict[str, str] = {}
        self.began = now()

    def count(self, agent: str, endpoint: str, status: int, tier: str, at: float) -> None:
        """Count one call. `at` is in epoch seconds."""
        family = self._families.get(agent) or self._family(agent)
        number = int(at) // 3600
        hour = self._hours.get(number)
        if hour is None:
            hour = self._new_hour(number)
        hour[family] = hour.get(family, 0) + 1
        self._recent.append((endpoint, family, at, status, tier))

    def counted(self) -> Counted:
        """Return the calls of the past 24 hours to all instances, most frequent family first."""
        now = self._now()
        first = int(now.timestamp() // 3600) - WINDOW_H
        agents: dict[str, int] = {}
        for hour, family, hits in (*self.rows(), *((*key, hits) for key, hits in self._others.items())):
            if hour > first and hits > 0:
                agents[family] = agents.get(family, 0) + hits
        ordered = dict(sorted(agents.items(), key=lambda item: (-item[1], item[0])))
        since = max(self.began, now - timedelta(hours=WINDOW_H))
        recent = [
            CountedCall(endpoint, family, datetime.fromtimestamp(at - at % 60, UTC), status, tier)
            for endpoint, family, at, status, tier in reversed(self._recent)
        ]
        return Counted(sum(ordered.values()), ordered, recent, since)

    def rows(self) -> list[tuple[int, str, int]]:
        """Return this instance's counts as rows `(hour since the epoch, family, hits)` to store."""
        return [(hour, family, hits) for hour, families in self._hours.items() for family, hits in families.items()]

    def restore(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Add stored hours to the counts since the start."""
        for hour, family, hits in rows:
            families = self._hours.setdefault(hour, {})
            families[family] = families.get(family, 0) + hits
            self.began = min(self.began, datetime.fromtimestamp(hour * 3600, UTC))

    def list_hours(self) -> list[int]:
        """Return the hours of the past day and the current one, as numbers since the epoch."""
        last = int(self._now().timestamp() // 3600)
        return list(range(last - WINDOW_H, last + 1))

    def take_others(self, counted: Mapping[tuple[int, str], int]) -> None:
        """Set the counts of other instances by hour and family, replacing the previous ones."""
        self._others = counted

    def _new_hour(self, hour: int) -> dict[str, int]:
        for old in [h for h in self._hours if h <= hour - KEEP_H]:
            del self._hours[old]
        return self._hours.setdefault(hour, {})

    def _family(self, agent: str) -> str:
        lowered = agent.lower()
        family = next((name for mark, name in _FAMILIES if mark in lowered), OTHER)
        if len(self._families) < _KNOWN:
            self._families[agent] = family
        return family
