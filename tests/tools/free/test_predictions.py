"""The predictions tool: which markets count, and how they are shown."""

import pytest

import tools.simulated.kalshi
import tools.simulated.polymarket  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.predictions import predictions
from tools.parsing.prediction_markets import Bet
from tools.shared.bets import by_volume, counts, show_bet
from toolserver.upstream.source import SourceEmpty, SourceError
from toolserver.world.model import ROUTES, World

POLYMARKET, KALSHI = "Polymarket.markets_by_volume", "Kalshi.open_events"
BET = Bet("1", "Will it rain?", ("Yes", "No"), (0.2115, 0.7885), 12.3456, "Polymarket")


async def test_predictions_come_largest_first_and_equal_the_world(compose):
    made = await compose(predictions)

    expected = ROUTES.expectations["predictions"](World(1, NOW), {})
    keys = ("question", "yes_percent", "volume_usd", "source")
    assert [{k: bet[k] for k in keys} for bet in made.json] == expected
    assert len(expected) == 15
    assert all(bet["yes_percent"] + bet["no_percent"] == pytest.approx(100) for bet in made.json)
    assert any(bet["change_1h_points"] for bet in made.json)


async def test_when_polymarket_is_down_kalshi_answers_and_the_answer_says_so(compose):
    made = await compose(predictions, down={POLYMARKET})

    volumes = [bet["volume_usd"] for bet in made.json]
    assert len(volumes) == 15
    assert volumes == sorted(volumes, reverse=True)
    assert {bet["source"] for bet in made.json} == {"Kalshi"}
    assert {bet["change_1h_points"] for bet in made.json} == {None}
    assert {n.source.name: n.status for n in made.notes.sources} == {KALSHI: "fallback", POLYMARKET: "error"}
    [told] = [w.message for w in made.notes.warnings if w.code == "insufficient_sample"]
    assert told == "Read was the first 200 open events in Kalshi's own order, not all: others may be traded more."


@pytest.mark.parametrize(
    "faults",
    [{"down": {"*"}}, {"forms": {POLYMARKET: "empty", KALSHI: "empty"}}, {"forms": {POLYMARKET: "geo", KALSHI: "geo"}}],
)
async def test_when_nobody_answers_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(predictions, **faults)


@pytest.mark.parametrize(
    ("outcomes", "prices", "ok"),
    [
        (("Yes", "No"), (0.5, 0.5), True),
        (("YES", "no"), (0.5, 0.5), True),
        (("No", "Yes"), (0.5, 0.5), False),
        (("Rovers", "Comets"), (0.5, 0.5), False),
        (("Yes", "No", "Maybe"), (0.3, 0.3, 0.4), False),
        (("Yes", "No"), (), False),
        (("Yes", "No"), (0.5, 0.56), False),
        (("Yes", "No"), (0.5, 0.44), False),
        (("Yes", "No"), (0.52, 0.52), True),
        (("Yes", "No"), (0.005, 0.995), False),
        (("Yes", "No"), (0.995, 0.005), False),
        (("Yes", "No"), (0.006, 0.994), True),
    ],
)
def test_only_open_yes_no_questions_whose_prices_agree_count(outcomes, prices, ok):
    assert counts(BET._replace(outcomes=outcomes, prices=prices)) is ok


def test_percentages_are_of_the_yes_price_and_complete_each_other():
    item = show_bet(BET._replace(prices=(0.2116, 0.7884), change_1h=-0.0005, change_24h=0.043))
    assert (item.yes_percent, item.no_percent, item.volume_usd) == (21.2, 78.8, 12.35)
    assert (item.change_1h_points, item.change_24h_points) == (-0.05, 4.3)


def test_a_list_without_any_market_that_counts_is_a_failure_not_an_empty_answer():
    with pytest.raises(SourceEmpty):
        by_volume([BET._replace(outcomes=("Rovers", "Comets"))])
