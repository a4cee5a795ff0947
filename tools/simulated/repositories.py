"""Simulate the repositories of the code host: new ones every few hours, and older ones about language models."""

import math
from typing import NamedTuple

from toolserver.world.model import World

DAY = 86400.0
NEW_SLOT_S = 7 * DAY / 60  # sixty in seven days
LLM = 60
FIRST_ID = 900_000_000

LANGUAGES = ["Python", "TypeScript", "Rust", "Go", "C++", None, "Zig", "Java", "Jupyter Notebook", "Shell"]
LICENCES = ["MIT", "Apache-2.0", None, "NOASSERTION", "GPL-3.0", "BSD-3-Clause"]
WORDS = ["agent", "tiny", "flow", "kernel", "vector", "canvas", "proxy", "mesh", "pixel", "ledger", "prompt", "orbit"]
TOPICS = ["llm", "cli", "rag", "game-engine", "mcp", "database", "react", "simulation", "homelab", "machine-learning"]
OWNERS = ["ada-labs", "brk", "cmoss", "open-orbit", "halcyon", "ijssel", "northwind-dev", "quux"]


class SimRepo(NamedTuple):
    """One repository."""

    id: int
    owner: str
    name: str
    owner_type: str
    description: str | None
    language: str | None
    licence: str | None
    topics: tuple[str, ...]
    created: float
    stars: int
    forks: int
    issues: int
    pushed: float
    fork: bool
    archived: bool


def created_since(world: World, since: float) -> list[SimRepo]:
    """Return repositories created after `since`, most stars first."""
    slots = range(math.floor(since / NEW_SLOT_S), math.floor(world.now / NEW_SLOT_S) + 1)
    born = [(i, (i + world.u("repo.at", i)) * NEW_SLOT_S) for i in slots]
    repositories = [_repo(world, i, at, _grown(world, i, at), ()) for i, at in born if since < at <= world.now]
    return sorted(repositories, key=lambda repo: repo.stars, reverse=True)


def _grown(world: World, index: int, created: float) -> int:
    """Return stars: growth is fast at first, then slower, up to a ceiling that is high for a few."""
    ceiling = 10 ** world.between("repo.ceiling", index, 1.6, 4.1)
    return int(ceiling * (1 - math.exp(-(world.now - created) / (2.5 * DAY))))


def about_llms(world: World) -> list[SimRepo]:
    """Return older, active repositories on language models, most stars first. Stars never decrease."""
    repositories = []
    for index in range(LLM):
        created = (15_000 + 40 * index) * DAY  # from 2011 on
        base, daily = 10 ** world.between("llm.base", index, 2, 5), world.between("llm.daily", index, 0, 90)
        stars = int(base + daily * max(0.0, world.now - 20_000 * DAY) / DAY)
        repositories.append(_repo(world, 100_000_000 + index, created, stars, ("llm",)))
    return sorted(repositories, key=lambda repo: repo.stars, reverse=True)


def _repo(world: World, index: int, created: float, stars: int, topics: tuple[str, ...]) -> SimRepo:
    def chance(name: str) -> float:
        return world.u(f"repo.{name}", index)

    owner = world.pick("repo.owner", index, OWNERS)
    name = f"{world.pick('repo.one', index, WORDS)}-{world.pick('repo.two', index, WORDS)}-{index % 1000}"
    own = {world.pick("repo.topic", f"{index}.{i}", TOPICS) for i in range(int(chance("topics") * 5))}
    quiet_for = 12 * 3600 * chance("pushed")
    return SimRepo(
        FIRST_ID + index,
        owner,
        name,
        "Organization" if "-" in owner else "User",
        None if chance("described") < 0.05 else f"A {name.split('-')[0]} for every day — fast &amp; small 🚀",
        world.pick("repo.language", index, LANGUAGES),
        world.pick("repo.licence", index, LICENCES),
        tuple(sorted(own | set(topics))),
        created,
        stars,
        stars // 11,
        stars // 60,
        max(created, world.now - quiet_for),
        chance("fork") < 0.06,
        chance("archived") < 0.03,
    )
