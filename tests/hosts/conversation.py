"""Ten everyday questions, what the simulated world expects of the answers, and the person who asks them.

An answer is right if the value that the world expects stands in the text that the host showed its model.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.hosts.hosts import Host, HostFailed
from tests.hosts.model_server import Json, Result
from tests.hosts.reader import find_problem, objects
from tests.live.processes import Program, Sim

SAN_FRANCISCO = {"lat": "37.77", "lon": "-122.42"}
PRICE, RATE, POINTS, DEGREES = 0.02, 0.005, 3.0, 1.0
"""How far a value may be from the world's, which goes on while a host thinks: shares of it, points and degrees."""
RECEIPT = re.compile(r"\brcpt_[0-9a-f]{32}\b")
CREDITS_A_DOLLAR = 50


@dataclass
class Person:
    """Asks, pays on the simulated chain what an answer quotes, and verifies the receipt. `rows`: question and fault."""

    host: Host
    program: Program
    world: Sim
    rows: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, sentence: str, is_wrong: Callable[[list[Json], str], str]) -> None:
        """Say a sentence, and judge what the model got then: `is_wrong` returns why, or nothing."""
        try:
            self.answer = self.host.say(sentence)
        except HostFailed as failed:
            self.rows.append((sentence, str(failed)))
            return
        results = self.results()
        text = results[-1].text if results else ""
        if not results:
            self.rows.append((sentence, f"no tool was called: {self.answer[:200]}"))
        elif (problem := find_problem(text)) is not None:
            self.rows.append((sentence, f"{results[-1].call.name} refused: {problem['error']} {problem.get('detail')}"))
        else:
            why = is_wrong(list(objects(text)), text)
            self.rows.append((sentence, why and f"{results[-1].call.name} {results[-1].call.arguments}: {why}"))

    def results(self) -> list[Result]:
        """What the host showed its model since the last sentence."""
        return self.host.model.turns[-1].results if self.host.model.turns else []

    def converse(self) -> None:
        """Ask everything."""
        for sentence, is_wrong in questions(self.world):
            self.ask(sentence, is_wrong)
        self.ask("Buy 5 dollars of credits.", self.is_no_quote)
        self.pay()
        self.ask("Give me the premium briefing on earthquakes.", self.is_no_paid_answer)

    def is_no_quote(self, shown: list[Json], _: str) -> str:
        quote = member(shown, "quote", dict) or {}
        return "" if quote.get("credits") == 5 * CREDITS_A_DOLLAR and member(shown, "wallet") else f"no quote: {quote}"

    def pay(self) -> None:
        """Send what the answer asks for, as the person reads it there, and have it confirmed."""
        wallet = member(list(objects(self.answer)), "wallet")
        if not wallet:
            self.rows.append(("(pays)", f"the answer names no address: {self.answer[:200]}"))
            return
        self.world.put("clock", {"speed": 30})
        try:
            paid = self.world.paid(wallet, 5)
            self.ask(f"I have sent the USDC. The transaction is {paid}. Confirm the payment.", self.is_not_confirmed)
        finally:
            self.world.put("clock", {"speed": 1})

    def is_not_confirmed(self, shown: list[Json], _: str) -> str:
        credits = member(shown, "credits")
        return "" if credits == 5 * CREDITS_A_DOLLAR else f"credits {credits}"

    def is_no_paid_answer(self, shown: list[Json], text: str) -> str:
        count = (member(shown, "earthquakes", dict) or {}).get("count")
        expected = self.world.get("expect/earthquake")["count"]
        if count is None or abs(count - expected) > 0.15 * expected + 4:
            return f"{count} earthquakes, not {expected}"
        receipt = RECEIPT.search(text)
        if receipt is None:
            return "the text names no receipt"
        verdict = httpx.get(f"{self.program.url}/api/receipt/verify", params={"id": receipt[0]}, trust_env=False).json()
        return "" if verdict.get("valid") is True else f"{receipt[0]} is not valid: {verdict}"


def questions(world: Sim) -> Iterator[tuple[str, Callable[[list[Json], str], str]]]:
    """The sentences of the user, each with what is wrong in an answer."""
    yield "What is the weather in San Francisco, CA, in Celsius?", lambda shown, _: celsius(world, shown)
    yield (
        "What is the price of ETH?",
        lambda shown, _: near(
            row(shown, symbol="ETH").get("price_usd"), world.get("expect/pro/exchange-flows")["spot_eth_usd"], PRICE
        ),
    )
    yield (
        "Is GitHub down?",
        lambda shown, _: same(
            row(shown, name="GitHub").get("status"), pick(world.get("expect/service-status"), name="GitHub")["status"]
        ),
    )
    yield "Any big earthquakes today?", lambda shown, _: quake(world, shown)
    yield (
        "What is Apple's last share price?",
        lambda shown, _: near(
            row(shown, symbol="AAPL").get("price"),
            pick(world.get("expect/stocks")["quotes"], symbol="AAPL")["price"],
            PRICE,
        ),
    )
    yield (
        "How much is 200 dollars in yen?",
        lambda shown, _: near(
            (member(shown, "rates", dict) or {}).get("JPY"), world.get("expect/forex")["rates"]["JPY"], RATE
        ),
    )
    yield "What is the top tech news?", lambda shown, _: on_page(world, shown)
    bet = world.get("expect/predictions")[0]
    wish = re.sub(r" \(\d+\)\?$", "", bet["question"].removeprefix("Will ")).replace(" win ", " wins ")
    yield (
        f"What are the odds that {wish}?",
        lambda shown, _: near(
            row(shown, question=bet["question"]).get("yes_percent"),
            pick(world.get("expect/predictions"), question=bet["question"])["yes_percent"],
            0,
            POINTS,
        ),
    )


def member(shown: list[Json], name: str, kind: type = object) -> Any:
    """The first member of that name and kind in what was shown, or None."""
    return next((one[name] for one in shown if one.get(name) is not None and isinstance(one[name], kind)), None)


def row(shown: list[Json], **wanted: Any) -> Json:
    """The first object with these members, or an empty one."""
    return next((one for one in shown if all(one.get(name) == value for name, value in wanted.items())), {})


def pick(rows: list[Json], **wanted: Any) -> Json:
    """The first row with these members. Raises KeyError if the world has none."""
    found = row(rows, **wanted)
    if not found:
        raise KeyError(wanted)
    return found


def near(value: Any, expected: float, share: float, spare: float = 0.0) -> str:
    if isinstance(value, int | float) and abs(value - expected) <= share * abs(expected) + spare:
        return ""
    return f"{value} where the world has {expected}"


def same(value: Any, expected: Any) -> str:
    return "" if value == expected else f"{value} where the world has {expected}"


def celsius(world: Sim, shown: list[Json]) -> str:
    fahrenheit = world.get("expect/weather", **SAN_FRANCISCO)["current"]["temperature_f"]
    current = member(shown, "current", dict) or {}
    return near(current.get("temperature_c"), (fahrenheit - 32) / 1.8, 0, DEGREES)


def quake(world: Sim, shown: list[Json]) -> str:
    largest = max(world.get("expect/earthquake")["earthquakes"], key=lambda one: one["magnitude"])
    magnitudes = [one["magnitude"] for one in shown if isinstance(one.get("magnitude"), int | float)]
    return near(max(magnitudes, default=None), largest["magnitude"], 0, 0.3)


def on_page(world: Sim, shown: list[Json]) -> str:
    expected = [story["title"] for story in world.get("expect/tech-news")[:3]]
    titles = [one["title"] for one in shown if isinstance(one.get("title"), str)]
    return "" if set(titles[:5]) & set(expected) else f"{titles[:2]} where the world has {expected}"
