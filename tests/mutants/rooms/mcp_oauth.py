"""Faults of the room where people let programs spend for them."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/mcp/oauth/consent.py",
        "the secret of a page opens its request in any browser",
        "if request is None or request.browser != hash_secret(browser):",
        "if request is None:",
        "tests/mcp/oauth/test_authorization.py",
    ),
    fault(
        "toolserver/mcp/oauth/grants.py",
        "a code or refresh token that is used again does not end its grant",
        "            await self._end_copied(presented)\n            return None",
        "            return None",
        "tests/mcp/oauth/test_grants.py",
    ),
    fault(
        "toolserver/mcp/oauth/http.py",
        "requests of an address are counted against the first quota alone",
        "for buckets in quotas if self.limited else ():",
        "for buckets in quotas[:1] if self.limited else ():",
        "tests/mcp/oauth/test_http.py",
    ),
    fault(
        "toolserver/mcp/oauth/authorization.py",
        "a form that another site sent is accepted",
        'if method == "POST" and is_foreign(scope, self._facts.base_url):',
        'if method == "PUT" and is_foreign(scope, self._facts.base_url):',
        "tests/mcp/oauth/test_authorization.py",
    ),
    fault(
        "toolserver/mcp/oauth/clients.py",
        "a client may hold every place where documents are read",
        "WaitLimits(most, limits.share, limits.crowd_share, limits.total_s)",
        "WaitLimits(most, limits.at_once, limits.crowd_share, limits.total_s)",
        "tests/mcp/oauth/test_clients.py",
    ),
)
