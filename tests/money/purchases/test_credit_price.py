"""One price: whatever states it derives it, and the documents that cannot are held to it here."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.money.purchases import credit_price
from toolserver.money.purchases.credit_price import (
    ATOMIC,
    ATOMIC_PER_CREDIT,
    CREDIT_PRICE,
    CREDITS_PER_USD,
    LARGEST_USD,
    PRICING,
    atomic,
    credits_for,
)

ROOT = Path(__file__).resolve().parents[3]
WRITTEN = re.compile(r"1 USD(?: \w+| =)? (\d+) credits")


def test_the_price_is_that_of_the_specification():
    assert (CREDITS_PER_USD, PRICING) == (50, {"1 USD": "50 credits"})
    assert CREDIT_PRICE == "1 USD = 50 credits"
    assert ATOMIC_PER_CREDIT * CREDITS_PER_USD == ATOMIC


@pytest.mark.parametrize(
    ("amount", "credits"),
    [(0, 0), (19_999, 0), (20_000, 1), (1_000_000, 50), (1_019_999, 50), (12_345_678, 617), (10**12, 5 * 10**7)],
)
def test_fractions_of_a_credit_are_rounded_down(amount, credits):
    assert credits_for(amount) == credits


def test_no_other_module_writes_the_price():
    own = Path(credit_price.__file__)
    packages = ("toolserver", "tools", "rest_bridge", "catalog")
    files = [
        path for package in packages for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".md", ".html")
    ]
    assert [path.name for path in files if path != own and WRITTEN.search(path.read_text(encoding="utf-8"))] == []


def test_the_documents_state_the_same_price():
    found = {
        path.name: set(WRITTEN.findall(path.read_text(encoding="utf-8")))
        for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    }
    assert {name: prices for name, prices in found.items() if prices - {str(CREDITS_PER_USD)}} == {}
    assert found["billing.md"] == {"50"}
    per_credit = re.findall(r"([\d,]+) units of 0\.000001 USDC for each credit", (ROOT / "docs/x402.md").read_text())
    assert per_credit == [f"{ATOMIC_PER_CREDIT:,}"]


@given(st.integers(0, LARGEST_USD * 10**6))
def test_an_amount_in_dollars_and_in_atoms_is_the_same_amount(amount):
    assert atomic(Decimal(amount).scaleb(-6)) == amount
    assert atomic(Decimal(repr(amount / 10**6))) == amount  # as JSON numbers come


@pytest.mark.parametrize(
    "text",
    [
        *("1.0000001", "0.0000005", "-1", "1000000.000001", "NaN", "sNaN", "Infinity", "-Infinity", "1e309", "1e-400"),
        *("1." + "0" * 40 + "1", "1e999999", "1e-999999"),
    ],
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(ValueError, match="an amount"):
        atomic(Decimal(text))


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_splitting_a_payment_never_brings_more_credits(a, b):
    assert credits_for(a) + credits_for(b) <= credits_for(a + b)
