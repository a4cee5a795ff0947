"""Simulate the prediction markets: one price function, which two venues report with small differences."""

import math
from typing import NamedTuple

from toolserver.world.model import World

COUNT = 120
HOUR, DAY = 3600.0, 86400.0
LIVELY = 10  # one market in ten swings, so that some have always moved within the hour
SPORTS = 7  # of every ten, this one is between two teams

TOPICS = [
    (
        "Politics",
        "Will {} win the next election in {}?",
        ["Ada Brandt", "Bo Okafor", "Cy Ilves"],
        ["Lutha", "Freedonia"],
    ),
    ("Economics", "Will the Fed announce a {} at the meeting of {}?", ["rate cut", "rate hike"], ["March", "June"]),
    ("Crypto", "Will {} trade above ${}?", ["Bitcoin", "Ethereum", "Solana"], ["100K", "150K", "250K"]),
    ("Science", "Will {} be announced by {}?", ["a fusion record", "a new prime", "an AI proof"], ["May", "October"]),
    ("Companies", "Will {} hold an IPO before {}?", ["Acme", "Initech", "Globex"], ["summer", "the end of the year"]),
]
TEAMS = ["Rovers", "Comets", "Harbour City", "Steel Owls", "Old Town", "Meridian"]


class SimBet(NamedTuple):
    """One market in one of its lives: when a market ends, the next life begins under another id."""

    number: int
    life: int
    category: str
    question: str
    outcomes: tuple[str, str]
    created: float
    ends: float

    @property
    def id(self) -> int:
        return 500_000 + self.life * 1000 + self.number

    @property
    def slug(self) -> str:
        words = "".join(c if c.isalnum() else " " for c in self.question.lower()).split()
        return "-".join([*words, str(self.id)])


def bets(world: World) -> list[SimBet]:
    """Return the open markets. With `bets.quiet` pinned to 1 all of them are at least a day old."""
    markets = [_bet(world, index) for index in range(COUNT)]
    quiet = world.pinned("bets.quiet") == 1
    return [b for b in markets if not quiet or world.now - b.created > DAY]


def _bet(world: World, index: int) -> SimBet:
    length = math.floor(world.between("bet.days", index, 20, 200)) * DAY
    offset = world.u("bet.offset", index) * length
    life = math.floor((world.now - offset) / length)
    created = life * length + offset
    if index % 10 == SPORTS:
        one = world.pick("bet.team", f"{index}.{life}", TEAMS)
        two = world.pick("bet.rival", f"{index}.{life}", [t for t in TEAMS if t != one])
        return SimBet(index, life, "Sports", f"{one} vs. {two}", (one, two), created, created + length)
    category, template, who, what = TOPICS[index % len(TOPICS)]
    key = f"{index}.{life}"
    question = template.format(world.pick("bet.who", key, who), world.pick("bet.what", key, what))
    return SimBet(index, life, category, f"{question[:-1]} ({index})?", ("Yes", "No"), created, created + length)


def price(world: World, bet: SimBet, at: float | None = None) -> float:
    """Return the probability of the first outcome, in steps of 0.001.

    Pin `bet.<index>`, or inject `market_move` with `market` (an index) and `move` (a lasting difference). With
    `bets.quiet` pinned to 1 it is always the first price.
    """
    at = world.now if at is None else at
    if (pinned := world.pinned(f"bet.{bet.number}", at)) is not None:
        return pinned
    then = bet.created if world.pinned("bets.quiet", at) == 1 else at
    key = f"bet.{bet.number}.{bet.life}"
    if bet.number % LIVELY == 0:
        value = _swing(world, bet, then)
    else:
        start = world.between("bet.start", f"{bet.number}.{bet.life}", -6, 6)
        value = 1 / (1 + math.exp(-(start + 0.5 * world.noise(f"{key}.day", then / DAY))))
        value += 0.004 * world.noise(f"{key}.hour", then / HOUR)
    moves = (e for e in world.at(at).injected("market_move") if int(e.get("market", 0)) == bet.number)
    value += sum(float(e.get("move", 0.1)) for e in moves)
    return min(0.9995, max(0.0005, round(value, 3)))


def _swing(world: World, bet: SimBet, at: float) -> float:
    """Swing up and down in five hours, each market a sixth of a turn later: some are always moving."""
    turn = 2 * math.pi * (at / (5 * HOUR) + bet.number / LIVELY / 6)
    middle = world.between("bet.middle", f"{bet.number}.{bet.life}", 0.25, 0.75)
    return middle + 0.05 * math.sin(turn)


def price_change(world: World, bet: SimBet, over_s: float) -> float | None:
    """Return the price change over a span; None for a market younger than that."""
    if world.now - bet.created < over_s:
        return None
    return round(price(world, bet) - price(world, bet, world.now - over_s), 4)


def volume(world: World, bet: SimBet) -> float:
    """Return the dollars traded in the past 24 hours; the lively markets trade most."""
    low, high = (5.5, 6.7) if bet.number % LIVELY == 0 else (3.2, 6.5)
    exponent = world.between("bet.volume", bet.number, low, high)
    return 10**exponent * (1 + 0.3 * world.noise(f"bet.{bet.number}.volume", world.now / DAY))
