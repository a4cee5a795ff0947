"""A model provider's API on this machine, whose model has learned its part: it calls two tools, then answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALLS = {"call_1": ("btc_price", {}), "call_2": ("premium_briefing", {"include": "earthquakes"})}


class ScriptedModel:
    """Answers `POST /v1/chat/completions` (OpenAI) and `POST /v1/messages` (Anthropic). `asked` keeps the requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.asked.append(request)
                answer = model.answer_openai(request) if self.path.endswith("completions") else model.answer(request)
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer_openai(self, request: dict[str, Any]) -> dict[str, Any]:
        """A chat completion."""
        heard = {m["tool_call_id"]: m["content"] for m in request["messages"] if m["role"] == "tool"}
        calls = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, (name, arguments) in CALLS.items()
        ]
        message = {"content": sum_up(heard)} if heard else {"content": None, "tool_calls": calls}
        choice = {"index": 0, "finish_reason": "stop" if heard else "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"], "usage": usage}
        return {**head, "choices": [{**choice, "message": {"role": "assistant", **message}}]}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """A message of Anthropic's API."""
        parts = request["messages"][-1]["content"]
        heard = {part["tool_use_id"]: part["content"] for part in parts if isinstance(part, dict)}
        calls = [{"type": "tool_use", "id": id, "name": name, "input": given} for id, (name, given) in CALLS.items()]
        content = [{"type": "text", "text": sum_up(heard)}] if heard else calls
        head = {"id": "1", "type": "message", "role": "assistant", "model": request["model"], "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {**head, "content": content, "stop_reason": "end_turn" if heard else "tool_use", "usage": usage}

    def close(self) -> None:
        """Answer nothing more."""
        self._server.shutdown()
        self._server.server_close()


def sum_up(heard: dict[str, str]) -> str:
    """The answer to the user, from what the tools said."""
    price, briefing = (json.loads(heard[id]) for id in CALLS)
    outcome = briefing["error"] if "error" in briefing else briefing["sections"]["earthquakes"]["count"]
    return f"{price['data']['price_usd']} {outcome}"
