"""A client of a service, for programs: `ToolClient`, and `AsyncToolClient` for asyncio and trio.

    from toolserver.client import ToolClient

    with ToolClient("https://data.example", token="svc_live_…") as client:
        answer = client.weather(place="Paris")
        print(answer.payload["data"])

Each tool is a method with the types from the registry; `call` takes the name of a tool and a
dict. A refusal is raised as the exception of its error code (`toolserver.errors`), and an
unreachable service as `Unreachable`. This package imports nothing of this project but the
engine, so that it works in a project that has a package `catalog` or `tools`.
"""

from toolserver.client.answer import ToolAnswer
from toolserver.client.clients import AsyncToolClient, ToolClient
from toolserver.core.http import Unreachable

__all__ = ["AsyncToolClient", "ToolAnswer", "ToolClient", "Unreachable"]
