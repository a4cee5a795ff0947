import pytest

pytest.register_assert_rewrite("tests.money.ledger.client.journal_contract")
