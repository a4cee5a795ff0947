"""Records of OAuth as its tests store them: a client, a request, a grant and its secrets."""

from toolserver.mcp.oauth.store import (
    DAY_MS,
    HOUR_MS,
    ConsentRequest,
    OAuthClient,
    OAuthGrant,
    hash_secret,
    make_secret,
)

NOW = 1_800_000_000_000
CHILD = f"svc_live_{'ab' * 32}"
CLIENT = OAuthClient("client_1", "Host", ("https://host.example/back", "http://127.0.0.1/"), NOW)
REQUEST = ConsentRequest(
    id=hash_secret("request"),
    browser=hash_secret("cookie"),
    client_id="client_1",
    client_name="Host",
    redirect_uri=CLIENT.redirect_uris[0],
    state="state",
    challenge="challenge",
    created_at=NOW,
    expires_at=NOW + HOUR_MS,
)
GRANT = OAuthGrant("grant_1", "client_1", CLIENT.redirect_uris[0], "challenge", "cd" * 32, NOW, NOW + 30 * DAY_MS)


def change(record, **fields):
    """A record with other fields."""
    return record._replace(**fields)


def make(kind, expires_at=NOW + HOUR_MS, grant="grant_1"):
    return make_secret(kind, grant, CHILD, expires_at)[1]


async def allowed(store):
    """A store with a grant; its code."""
    code = make("code")
    await store.add_client(CLIENT)
    await store.add_request(REQUEST)
    assert await store.allow_request(REQUEST.id, GRANT, code, NOW)
    return code
