"""A client of a service, for programs: `ToolClient`, and `AsyncToolClient` for asyncio and trio.

    from toolserver.client import ToolClient

    with ToolClient("https://data.example", token="svc_live_…") as client:
        answer = client.weather(place="Paris")
        print(answer.payload["data"])

Each tool is a method, with the types that the registry gives it; `call` takes the name of a tool and a dict. A refusal
is raised as the exception of its error code (`toolserver.errors`), a service that cannot be reached as `Unreachable`.
It is written beside what else the registry is written out as: `catalog.client`.
"""

from catalog.client.answer import ToolAnswer
from catalog.client.clients import AsyncToolClient, ToolClient
from toolserver.core.http_client import Unreachable

__all__ = ["AsyncToolClient", "ToolAnswer", "ToolClient", "Unreachable"]
