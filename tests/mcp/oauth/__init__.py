import pytest

pytest.register_assert_rewrite("tests.mcp.oauth.store_contract")
