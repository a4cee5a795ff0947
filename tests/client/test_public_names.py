"""Test the names that programs import from `toolserver.client`."""

import toolserver.client
import toolserver.client.clients
from toolserver.errors import ToolserverError


def test_programs_find_both_clients_and_what_they_return_and_raise():
    public = toolserver.client

    assert (public.ToolClient, public.AsyncToolClient) == (
        toolserver.client.clients.ToolClient,
        toolserver.client.clients.AsyncToolClient,
    )
    assert sorted(public.__all__) == sorted({"ToolClient", "AsyncToolClient", "ToolAnswer", "Unreachable"})
    assert issubclass(public.Unreachable, ToolserverError)
