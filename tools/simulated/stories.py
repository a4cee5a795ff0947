"""Simulate the submissions of the tech news site: one every four minutes; they rise, are ranked and sink."""

import math
from typing import NamedTuple

from toolserver.world.model import World

SLOT_S = 240.0
FIRST_ID = 40_000_000
INJECTED_ID = 90_000_000
HOUR = 3600.0
RANKED_S = 36 * HOUR  # older ones are on no page
SAME_S, QUIET_S = 8 * HOUR, 2 * HOUR
TOP, STIRRED_S = 15, 60.0
RISING = 5  # every fifth submission reaches the front page, so that some always enter

SUBJECTS = [
    "Postgres", "a RISC-V laptop", "the Linux kernel", "SQLite", "WebAssembly", "a home-made radio telescope",
    "Bitcoin", "the Nvidia driver", "open weights", "RSS", "the Rust borrow checker", "e-ink displays", "Ethereum",
    "Nim & Zig", "a 1987 synthesizer", "batteries", "the Tesla charger", "type inference", "undersea cables", "fonts",
]  # fmt: skip
TEMPLATES = [
    "Show HN: I rebuilt {} in a weekend",
    "What I learned from ten years of {}",
    "{} is faster than you think",
    "The quiet collapse of {}",
    "A visual introduction to {}",
    "Why we moved away from {}",
    "{} beats expectations",
    "Reverse engineering {}",
]
NAMES = ["ada", "brk", "cmoss", "dvorakian", "elmstreet", "forthright", "gnomon", "hexley", "ioctl", "jit"]


class SimStory(NamedTuple):
    """One submission. `cap`, `middle` and `spread` shape how its points grow (hours after birth)."""

    id: int
    born: float
    title: str
    url: str | None
    author: str
    kind: str  # "story" or "job"
    dead: bool
    cap: float
    middle: float
    spread: float
    talk: float  # comments per point


def story(world: World, index: int) -> SimStory:
    """Return the submission of a slot."""
    rising = index % RISING == 0
    asks = not rising and world.u("story.ask", index) < 0.1
    subject, template = world.pick("story.subject", index, SUBJECTS), world.pick("story.template", index, TEMPLATES)
    title = f"Ask HN: Who still works with {subject}?" if asks else template.format(subject)
    return SimStory(
        FIRST_ID + index,
        (index + world.u("story.at", index)) * SLOT_S,
        title[0].upper() + title[1:],
        None if asks else f"https://{world.pick('story.author', index, NAMES)}{index % 97}.example/posts/{index}",
        f"{world.pick('story.author', index, NAMES)}{index % 997}",
        "job" if not rising and world.u("story.job", index) < 0.03 else "story",
        not rising and world.u("story.dead", index) < 0.02,
        world.between("story.cap", index, 250, 900) if rising else 2 + 140 * world.u("story.cap", index) ** 3,
        world.between("story.middle", index, 0.2, 0.5) if rising else world.between("story.middle", index, 0.5, 5),
        0.12 if rising else 0.7,
        world.between("story.talk", index, 0.1, 1.1),
    )


def _injected(event: dict[str, object]) -> SimStory:
    at = float(event["at"])  # type: ignore[arg-type]
    title, url = str(event.get("title", "An injected story")), event.get("url", "https://injected.example/")
    points = float(event.get("points", 400))  # type: ignore[arg-type]
    identity = INJECTED_ID + int(at) % 1_000_000
    return SimStory(identity, at, title, str(url) if url else None, "injected", "story", False, points, -2, 0.2, 0.5)


def by_id(world: World, identity: int) -> SimStory | None:
    """Return the submission of that id if it exists by now."""
    if identity >= INJECTED_ID:
        return next((s for e in world.injected("story") if (s := _injected(e)).id == identity), None)
    submission = story(world, identity - FIRST_ID)
    return submission if 0 <= submission.born <= world.now else None


def born_since(world: World, since: float) -> list[SimStory]:
    """Return submissions after `since` and up to now, oldest first."""
    slots = range(math.floor(since / SLOT_S), math.floor(world.now / SLOT_S) + 1)
    submissions = [story(world, index) for index in slots] + [_injected(e) for e in world.injected("story", since)]
    return sorted((s for s in submissions if since < s.born <= world.now), key=lambda s: s.born)


def points(world: World, s: SimStory) -> int:
    """Return points by logistic growth from 1 to the cap."""
    hours = (world.now - s.born) / HOUR
    return 1 + int(s.cap / (1 + math.exp(-(hours - s.middle) / s.spread)))


def comments(world: World, s: SimStory) -> int:
    return int((points(world, s) - 1) * s.talk)


def rank_stories(world: World) -> list[SimStory]:
    """Return everything on any page, best first: points against age. Jobs pass through; a dead story stays for a while.

    With the value `stories.quiet` pinned to 1 the order is that of some hours ago, so nothing enters for eight hours;
    those on top still exchange places with each other, as they always do.
    """
    quiet = world.pinned("stories.quiet") == 1
    then = world.at((world.now - QUIET_S) // SAME_S * SAME_S) if quiet else world

    def weight(s: SimStory) -> float:
        gained = 40.0 if s.kind == "job" else points(then, s) - 1
        return float(gained / ((then.now - s.born) / HOUR + 2) ** 1.8)

    ranked = sorted(born_since(then, then.now - RANKED_S), key=weight, reverse=True)
    return _stir(ranked, world.now) if quiet else ranked


def _stir(ranked: list[SimStory], now: float) -> list[SimStory]:
    """Return the same stories with two neighbours on top exchanged, others every minute."""
    first = int(now // STIRRED_S) % (TOP - 1)
    return [*ranked[:first], *reversed(ranked[first : first + 2]), *ranked[first + 2 :]]


def front_page(world: World, count: int = 50) -> list[SimStory]:
    """Return the first page: stories and jobs, none of them dead."""
    return [s for s in rank_stories(world) if not s.dead][:count]
