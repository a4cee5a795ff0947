"""An agent of the OpenAI Agents SDK: `openai_agents.py DOOR`, a sentence and an answer a line, as JSON."""

import asyncio
import json
import sys

from agents import Agent, Runner, SQLiteSession
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from signing_in import sign_in


async def main(door: dict) -> None:
    if door["command"]:
        server = MCPServerStdio({"command": door["command"][0], "args": door["command"][1:]})
    else:
        auth = {"auth": sign_in(door["url"])} if door["transport"] == "oauth" else {}
        server = MCPServerStreamableHttp({"url": door["url"], **auth})
    async with server:
        instructions = (server.server_initialize_result and server.server_initialize_result.instructions) or ""
        agent = Agent(name="Assistant", instructions=instructions, model="gpt-5.5", mcp_servers=[server])
        session = SQLiteSession("conversation")
        for line in iter(sys.stdin.readline, ""):
            answer = await Runner.run(agent, json.loads(line), session=session, max_turns=100)
            print(json.dumps(answer.final_output), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
