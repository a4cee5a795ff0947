"""What a store of OAuth promises in numbers. What it promises in deeds is in store_contract.py, for every engine."""

from toolserver.mcp.oauth.records import DAY_MS
from toolserver.mcp.oauth.store import (
    IDLE_CLIENT_MS,
    MOST_CLIENTS,
    MOST_REQUESTS,
    MOST_USED,
    ROOM_AT_ONCE,
    UNUSED_CLIENT_MS,
)


def test_a_store_has_room_for_so_many_clients_requests_and_used_tokens():
    assert ROOM_AT_ONCE == 100
    assert (MOST_CLIENTS, MOST_REQUESTS, MOST_USED) == (50_000, 20_000, 1000)


def test_a_client_is_kept_a_day_until_its_first_use_and_half_a_year_after_its_last():
    assert (UNUSED_CLIENT_MS, IDLE_CLIENT_MS) == (DAY_MS, 180 * DAY_MS)
