"""Test the names that programs import from `toolserver.client`."""

import catalog.client.clients
import toolserver.client
from toolserver.errors import ToolserverError


def test_programs_find_both_clients_and_what_they_return_and_raise():
    public = toolserver.client

    assert (public.ToolClient, public.AsyncToolClient) == (
        catalog.client.clients.ToolClient,
        catalog.client.clients.AsyncToolClient,
    )
    assert sorted(public.__all__) == sorted({"ToolClient", "AsyncToolClient", "ToolAnswer", "Unreachable"})
    assert issubclass(public.Unreachable, ToolserverError)
