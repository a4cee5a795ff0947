"""One price: whatever states it derives it, and the documents that cannot are held to it here."""

import re
from pathlib import Path

import pytest

from toolserver.money.purchases import credit_price
from toolserver.money.purchases.credit_price import (
    ATOMIC,
    ATOMIC_PER_CREDIT,
    CREDIT_PRICE,
    CREDITS_PER_USD,
    PRICING,
    credits_for,
)

ROOT = Path(__file__).resolve().parents[3]
WRITTEN = re.compile(r"1 USD(?: \w+| =)? (\d+) credits")


def test_the_price_is_that_of_the_specification():
    assert (CREDITS_PER_USD, PRICING) == (50, {"1 USD": "50 credits"})
    assert CREDIT_PRICE == "1 USD = 50 credits"
    assert ATOMIC_PER_CREDIT * CREDITS_PER_USD == ATOMIC


@pytest.mark.parametrize(
    ("amount", "credits"), [(0, 0), (19_999, 0), (20_000, 1), (1_000_000, 50), (1_019_999, 50), (12_345_678, 617)]
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
