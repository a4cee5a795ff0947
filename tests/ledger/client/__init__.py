import pytest

pytest.register_assert_rewrite("tests.ledger.client.journal_contract")
