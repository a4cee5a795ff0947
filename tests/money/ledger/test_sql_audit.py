"""Statements are summed page by page, for every token, as their owners would."""

import pytest

from tests.money.ledger.ledgers import token
from toolserver.money.ledger.sql_statements import count_tokens, find_statement_differences
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.sql.sqlite import snapshot


@pytest.fixture
async def path(tmp_path):
    async with open_ledger(tmp_path / FILE) as ledger:
        for number in (1, 2):
            await ledger.mint(token(number), 50, cause=f"rich {number}")
        for number in range(8):
            await ledger.charge(f"c{number}", token(1), 2, endpoint="/x")
        await ledger.settle("c3", no_charge="delivery_failed")
        await ledger.reserve("c9", token(1), 3, endpoint="/x", ttl_s=60)
    return tmp_path / FILE


def find(path, page_size=5000):
    return snapshot(path, lambda db: list(find_statement_differences(db, 0, page_size)))


@pytest.mark.parametrize("page", [1, 3, 5000])
async def test_statements_add_up_however_they_are_paged(path, page):
    assert find(path, page) == []
    assert snapshot(path, count_tokens) == 2


async def test_a_balance_that_its_statement_does_not_explain_is_found(path):
    async with open_ledger(path) as ledger:
        sql = "UPDATE account SET credits=credits+7 WHERE id=(SELECT min(account) FROM token)"
        await ledger.file.alone(lambda db: db.execute(sql) and None)
    (found,) = find(path)
    assert "adds up to 33 credits, the balance is 40" in found
