"""Where no statements are given, that is said."""

import pytest

from toolserver.core.account_statement import NoStatements, StatementRange
from toolserver.errors import NotFound


async def test_a_server_without_a_ledger_says_so():
    with pytest.raises(NotFound, match="belongs to another service"):
        await NoStatements().read("svc_live_x", StatementRange(None, None, None, 10))
