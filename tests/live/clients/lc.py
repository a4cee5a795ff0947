"""LangChain's adapters, over HTTP and over stdio: `lc.py URL TOKEN STDIO-COMMAND…`. Prints what they saw as JSON."""

import asyncio
import json
import os
import sys
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url: str, token: str, command: str, *arguments: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    stdio = {"transport": "stdio", "command": command, "args": list(arguments), "env": dict(os.environ)}
    client = MultiServerMCPClient(
        {"http": {"transport": "streamable_http", "url": url, "headers": headers}, "stdio": stdio}
    )
    by_http = {tool.name: tool for tool in await client.get_tools(server_name="http")}
    by_stdio = {tool.name: tool for tool in await client.get_tools(server_name="stdio")}
    return {
        "http": list(by_http),
        "stdio": list(by_stdio),
        "schema": by_http["sample_echo"].args_schema,
        "free": str(await by_http["sample_echo"].ainvoke({"text": "hé"})),
        "free_stdio": str(await by_stdio["sample_echo"].ainvoke({"text": "hé"})),
        "paid": str(await by_http["sample_oracle"].ainvoke({})),
    }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
