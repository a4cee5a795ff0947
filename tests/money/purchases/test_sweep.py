"""The plan that is signed offline: which addresses, which keys, and what the relayer sends."""

from tests.money.purchases.parts import KEY
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.sweep import Deposit, SubmissionCost, find_funded, plan, plan_sweep
from toolserver.money.purchases.transfer_authorization import VALID_S

TO = bytes([0xD0]) * 20
NOW = 1_800_000_000


async def test_addresses_with_too_little_are_left_alone():
    amounts = {bytes([n]) * 20: n for n in range(4)}
    known = [(n, bytes([n]) * 20) for n in range(4)]

    async def balances(addresses):
        return [amounts[address] for address in addresses]

    assert [d.hd_index for d in await find_funded(known, balances, least=2)] == [2, 3]
    assert [d.amount for d in await find_funded(known, balances)] == [1, 2, 3]


async def test_a_thousand_addresses_take_a_request_for_five_hundred():
    asked = []

    async def balances(addresses):
        asked.append(len(addresses))
        return [1] * len(addresses)

    known = [(n, n.to_bytes(20)) for n in range(1001)]
    assert [d.hd_index for d in await find_funded(known, balances)] == list(range(1001))
    assert asked == [500, 500, 1]


def test_each_address_authorises_all_that_it_holds_to_one_place_for_a_week():
    made = plan([Deposit(4, KEY.address(4), 7), Deposit(9, KEY.address(9), 5)], TO, KEY, now=NOW)
    assert (made["chain_id"], made["total"], made["to"]) == (8453, 12, checksum_address(TO))
    first, second = made["authorizations"]
    assert (first["path"], second["path"]) == ("0/4", "0/9")
    message = first["typed_data"]["message"]
    assert (message["from"], message["to"]) == (checksum_address(KEY.address(4)), checksum_address(TO))
    assert (message["value"], message["validAfter"], message["validBefore"]) == (7, 0, NOW + VALID_S)
    assert message["nonce"] != second["typed_data"]["message"]["nonce"]


def test_addresses_of_another_key_are_named_and_not_signed_for():
    made = plan([Deposit(4, KEY.address(5), 7)], TO, KEY, now=NOW)
    assert (made["total"], made["authorizations"]) == (0, [])
    assert made["of_other_keys"] == [{"index": 4, "address": checksum_address(KEY.address(5)), "value": 7}]


def test_what_costs_more_than_it_yields_stays_and_the_plan_says_so():
    deposits = [Deposit(n, KEY.address(n), amount) for n, amount in enumerate((900_000, 5_000_000, 7_000_000))]
    made = plan_sweep(deposits, TO, KEY, SubmissionCost.of(10**9, 10**12, 60_000.0), now=NOW, least=1)
    assert (made["total"], [one["index"] for one in made["authorizations"]]) == (7_000_000, [2])
    assert made["left"] == {
        "least_usd": "5.460001",
        "worth_too_little": {"addresses": 2, "usd": "5.900000"},
        "bought_nothing_yet": {"addresses": 0, "usd": "0.000000"},
    }
    assert (made["yield_usd"], made["cost"]["usd"], made["cost"]["eth"]) == ("7.000000", "5.460000", "0.000091000")


def test_without_a_price_of_ether_the_cost_is_told_in_ether_alone():
    made = plan_sweep([Deposit(1, KEY.address(1), 5)], TO, KEY, SubmissionCost.of(10**9, 0, None), now=NOW, least=5)
    assert (made["total"], made["cost"]["usd"], made["cost"]["eth"]) == (5, None, "0.000090000")


def test_money_that_bought_nothing_yet_stays_unless_it_is_asked_for():
    deposits = [Deposit(n, KEY.address(n), 10, state) for n, state in enumerate(("quoted", "lost", "credited"))]
    cost = SubmissionCost.of(1, 0, None)
    made = plan_sweep(deposits, TO, KEY, cost, now=NOW, least=1)
    assert ([one["index"] for one in made["authorizations"]], made["left"]["bought_nothing_yet"]["addresses"]) == (
        [2],
        2,
    )
    assert plan_sweep(deposits, TO, KEY, cost, now=NOW, least=1, uncredited=True)["total"] == 30
