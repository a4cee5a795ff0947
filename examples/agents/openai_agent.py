"""Let an OpenAI model answer with live data: `python openai_agent.py "What does a bitcoin cost?"`."""

import json
import os
import sys

import httpx
from openai import OpenAI

server = os.environ.get("TOOLSERVER_URL", "http://127.0.0.1:8080")
token = os.environ.get("TOOLSERVER_TOKEN")  # only tools that cost credits need one
headers = {"Authorization": f"Bearer {token}"} if token else {}
document = httpx.get(f"{server}/api/llm-tools?format=openai&toolset=core").json()


def run_tool(name, arguments):
    route, sent = document["routes"][name], {"path": {}, "query": {}, "body": None}
    for argument, value in arguments.items():
        place = route["arguments"].get(argument, "query")
        sent[place] = {**(sent[place] or {}), argument: value}
    url = document["base_url"] + route["path"].format(**sent["path"])
    return httpx.request(route["method"], url, params=sent["query"], json=sent["body"], headers=headers, timeout=60)


model, messages, tools = OpenAI(), [{"role": "user", "content": sys.argv[1]}], document["openai"]
while True:
    said = model.chat.completions.create(model="gpt-5.6-terra", messages=messages, tools=tools).choices[0].message
    messages.append(said)
    for call in said.tool_calls or []:
        answer = run_tool(call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": answer.text})
    if not said.tool_calls:
        break
print(said.content)
