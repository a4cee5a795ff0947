"""An agent of LangChain with our server: `langchain_agent.py DOOR`, a sentence and an answer a line, as JSON."""

import asyncio
import json
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from signing_in import sign_in


async def main(door: dict) -> None:
    if door["command"]:
        connection = {"transport": "stdio", "command": door["command"][0], "args": door["command"][1:]}
        connection["env"] = dict(os.environ)
    else:
        connection = {"transport": "streamable_http", "url": door["url"]}
        if door["transport"] == "oauth":
            connection["auth"] = sign_in(door["url"])
    tools = await MultiServerMCPClient({"toolserver": connection}).get_tools()
    agent = create_agent(ChatOpenAI(model="gpt-5.5"), tools)
    messages = []
    for line in iter(sys.stdin.readline, ""):
        messages.append({"role": "user", "content": json.loads(line)})
        messages = (await agent.ainvoke({"messages": messages}))["messages"]
        print(json.dumps(messages[-1].text), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
