"""A chat of the Python SDK that can open addresses: `elicit.py URL TOKEN TOOL`. It speaks as `elicit.mjs` does."""

import json
import sys
from typing import Any

import anyio
import anyio.to_thread
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitRequestURLParams, ElicitResult, TextContent


def say(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


async def ask(context: Any, params: Any) -> ElicitResult:
    assert isinstance(params, ElicitRequestURLParams)
    say({"mode": params.mode, "open": params.url, "message": params.message})
    action: Any = (await anyio.to_thread.run_sync(sys.stdin.readline)).strip()
    return ElicitResult(action=action)


async def main(url: str, token: str, tool: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=ask) as client:
            result = await client.call_tool(tool, {})
    content = result.content[0]
    assert isinstance(content, TextContent)
    say({"failed": bool(result.is_error), "answer": json.loads(content.text)})


anyio.run(main, *sys.argv[1:])
