"""The first generation of the Python SDK: `py1.py URL TOKEN`. Prints what it saw as JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


def seen(result: Any) -> dict[str, Any]:
    return {
        "failed": result.isError,
        "structured": result.structuredContent,
        "text": result.content[0].text,
        "meta": result.meta,
    }


async def main(url: str, token: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        found["version"] = (await session.initialize()).protocolVersion
        found["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        found["free"] = seen(await session.call_tool("sample_echo", {"text": "hé"}))
        found["unpaid"] = seen(await session.call_tool("sample_oracle", {}))
        found["wrong"] = seen(await session.call_tool("sample_echo", {"text": "x" * 101}))
        try:
            await session.call_tool("nope", {})
        except McpError as error:
            found["unknown"] = error.error.code
    headers = {"Authorization": f"Bearer {token}"}
    async with streamablehttp_client(url, headers=headers) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        found["paid"] = seen(await session.call_tool("sample_oracle", {}))
    return found


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
