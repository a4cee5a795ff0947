"""Let an Anthropic model answer with live data: `python anthropic_agent.py "What does a bitcoin cost?"`."""

import os
import sys

import httpx
from anthropic import Anthropic

server = os.environ.get("TOOLSERVER_URL", "http://127.0.0.1:8080")
token = os.environ.get("TOOLSERVER_TOKEN")  # only tools that cost credits need one
headers = {"Authorization": f"Bearer {token}"} if token else {}
document = httpx.get(f"{server}/api/llm-tools?format=anthropic&toolset=core").json()


def run_tool(name, arguments):
    route, sent = document["routes"][name], {"path": {}, "query": {}, "body": None}
    for argument, value in arguments.items():
        place = route["arguments"].get(argument, "query")
        sent[place] = {**(sent[place] or {}), argument: value}
    url = document["base_url"] + route["path"].format(**sent["path"])
    return httpx.request(route["method"], url, params=sent["query"], json=sent["body"], headers=headers, timeout=60)


model, messages, tools = Anthropic(), [{"role": "user", "content": sys.argv[1]}], document["anthropic"]
while True:
    said = model.messages.create(model="claude-sonnet-5-5", max_tokens=4000, messages=messages, tools=tools)
    calls = [part for part in said.content if part.type == "tool_use"]
    if not calls:
        break
    answers = [(call.id, run_tool(call.name, call.input).text) for call in calls]
    results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in answers]
    messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
print("".join(part.text for part in said.content if part.type == "text"))
