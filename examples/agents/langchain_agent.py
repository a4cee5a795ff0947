"""Let a LangChain chat model answer with live data: `python langchain_agent.py "What does a bitcoin cost?"`."""

import os
import sys

import httpx
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

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


model, messages = ChatOpenAI(model="gpt-5.6-terra").bind_tools(document["openai"]), [HumanMessage(sys.argv[1])]
while (said := model.invoke(messages)).tool_calls:
    answers = [(call["id"], run_tool(call["name"], call["args"]).text) for call in said.tool_calls]
    messages += [said, *(ToolMessage(text, tool_call_id=id) for id, text in answers)]
print(said.content)
