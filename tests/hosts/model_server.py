"""A model provider on this machine, whose model is a function: it speaks the protocols that hosts of models speak.

`POST …/messages` is Anthropic's, `…/responses` and `…/chat/completions` are OpenAI's, `…generateContent` is Google's.
Each request is read into a `Turn`: what the model is shown. A `Player` answers it with a call of a tool or a text.

Hosts also ask for other things, a title for a conversation for example: without tools, so the model only says "ok".
"""

import gzip
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import zstandard

TOOL_SEARCH = "tool_search"  # OpenAI's kind of tool by which a host tells its model of more tools
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ShownTool:
    """The definition of a tool as a model gets it. `namespace` is OpenAI's group of tools; None elsewhere."""

    name: str
    description: str
    schema: Json
    namespace: str | None = None
    description_of_namespace: str = ""


@dataclass(frozen=True)
class Call:
    """A model calls a tool, by the name that it was shown."""

    name: str
    arguments: Json
    namespace: str | None = None


@dataclass(frozen=True)
class Result:
    """What the host tells its model about a call."""

    call: Call
    text: str
    failed: bool = False


@dataclass
class Turn:
    """What a model is shown: tools, and a conversation of sentences of the user, results and its own texts."""

    tools: list[ShownTool] = field(default_factory=list)
    system: str = ""
    said: list[str | Result] = field(default_factory=list)
    raw: Json = field(default_factory=dict)

    def hear(self, text: str, *, by_user: bool) -> None:
        """Add a text. Hosts put texts of their own among those of the user, in tags: they belong to the system."""
        if by_user and not text.lstrip().startswith("<"):
            self.said.append(text)
        else:
            self.system += "\n" + text

    @property
    def sentence(self) -> str:
        """The last text of the user."""
        return next((one for one in reversed(self.said) if isinstance(one, str)), "")

    @property
    def results(self) -> list[Result]:
        """What was called since the last text of the user, in order."""
        found: list[Result] = []
        for one in reversed(self.said):
            if isinstance(one, str):
                break
            found.insert(0, one)
        return found


Player: TypeAlias = Callable[[Turn], Call | str]


class ModelServer:
    """Answers as long as it is open. `turns` has every request that showed tools, `asked` every request,
    `faults` what went wrong here: a test that finds one has found nothing out. As a proxy it lets nothing through, and
    `egress` has what was asked for.
    """

    def __init__(self, player: Player) -> None:
        self.turns: list[Turn] = []
        self.asked: list[tuple[str, Json]] = []
        self.faults: list[str] = []
        self.egress: list[str] = []
        self.player = player
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._send(b"", "application/json")

            def do_GET(self) -> None:
                self._send(b'{"data": [], "models": []}', "application/json")

            def do_POST(self) -> None:
                body = json.loads(_decoded(self.headers.get("content-encoding", ""), self._body()) or b"{}")
                try:
                    self._send(*outer.answer(self.path, body))
                except Exception:
                    outer.faults.append(traceback.format_exc())
                    self._send(b'{"error": {"message": "the scripted model has failed"}}', "application/json", 400)

            def do_CONNECT(self) -> None:
                outer.egress.append(self.path)
                self._send(b"", "text/plain", 403)

            def _body(self) -> bytes:
                if self.headers.get("transfer-encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                whole = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    whole += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return whole

            def _send(self, body: bytes, kind: str, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, request: Json) -> tuple[bytes, str]:
        """Return the body and the media type of the answer to a request."""
        path = path.partition("?")[0]
        protocol = next((one for end, one in PROTOCOLS.items() if path.endswith(end)), None)
        with self._lock:
            self.asked.append((path, request))
            if protocol is None:
                return b'{"input_tokens": 1, "totalTokens": 1}', "application/json"
            turn = protocol.read(request)
            answer: Call | str = "ok"
            if turn.tools:
                self.turns.append(turn)
                answer = self.player(turn)
            number = len(self.asked)
        if isinstance(answer, Call):
            by_name = {tool.name: tool.namespace for tool in turn.tools}
            answer = Call(answer.name, answer.arguments, by_name.get(answer.name))
        streamed = path.endswith("streamGenerateContent") or bool(request.get("stream"))
        events = list(protocol.write(answer, number, str(request.get("model")), streamed))
        if not streamed:
            return json.dumps(events[-1]).encode(), "application/json"
        return b"".join(map(_event, events)), "text/event-stream"


def _decoded(encoding: str, body: bytes) -> bytes:
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return gzip.decompress(body) if encoding == "gzip" else body


def _event(event: Json) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def text_of(content: Any) -> str:
    """The text of a content that is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(text for part in content if (text := text_of(part)))
    if isinstance(content, dict):
        return str(content.get("text", ""))
    return str(content or "")


class Anthropic:
    """Messages. A tool with `defer_loading` is shown only after a `tool_reference` names it, as the provider does."""

    @staticmethod
    def read(request: Json) -> Turn:
        turn = Turn(raw=request, system=text_of(request.get("system")))
        calls: dict[str, Call] = {}
        loaded: set[str] = set()
        for message in request["messages"]:
            parts = message["content"]
            parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
            by_user = message["role"] == "user" and all(part["type"] != "tool_result" for part in parts)
            for part in parts:
                if part["type"] == "tool_use":
                    calls[part["id"]] = Call(part["name"], part["input"])
                elif part["type"] == "tool_result":
                    names = [one["tool_name"] for one in _list(part.get("content")) if one["type"] == "tool_reference"]
                    loaded.update(names)
                    text = text_of(part.get("content")) or "\n".join(names)
                    turn.said.append(Result(calls[part["tool_use_id"]], text, bool(part.get("is_error"))))
                elif part["type"] == "text" and message["role"] != "assistant":
                    turn.hear(part["text"], by_user=by_user)
        turn.tools = [
            ShownTool(tool["name"], tool.get("description", ""), tool["input_schema"])
            for tool in request.get("tools", ())
            if "input_schema" in tool and (not tool.get("defer_loading") or tool["name"] in loaded)
        ]
        return turn

    @staticmethod
    def write(answer: Call | str, number: int, model: str, streamed: bool) -> Iterator[Json]:
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        if isinstance(answer, Call):
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.name, "input": answer.arguments}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
            begun, reason = block | {"input": {}}, "tool_use"
        else:
            block = {"type": "text", "text": answer}
            delta = {"type": "text_delta", "text": answer}
            begun, reason = block | {"text": ""}, "end_turn"
        if not streamed:
            yield {**head, "content": [block], "stop_reason": reason, "usage": usage}
            return
        yield {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "usage": usage}}
        yield {"type": "content_block_start", "index": 0, "content_block": begun}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}


class Responses:
    """OpenAI's Responses: tools stand alone or in namespaces."""

    @staticmethod
    def read(request: Json) -> Turn:
        turn = Turn(raw=request, system=str(request.get("instructions") or ""))
        calls: dict[str, Call] = {}
        searched: list[ShownTool] = []
        items = request.get("input", ())
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            kind = item.get("type", "message")
            if kind == "function_call":
                calls[item["call_id"]] = Call(item["name"], json.loads(item["arguments"]), item.get("namespace"))
            elif kind == "function_call_output":
                turn.said.append(Result(calls[item["call_id"]], text_of(item["output"])))
            elif kind == "tool_search_call":
                calls[item["call_id"]] = Call(TOOL_SEARCH, _object(item["arguments"]))
            elif kind == "tool_search_output":
                found = list(_openai_tools(item["tools"]))
                searched += found
                turn.said.append(Result(calls[item["call_id"]], "\n".join(tool.name for tool in found)))
            elif kind == "message" and item["role"] != "assistant":
                turn.hear(text_of(item["content"]), by_user=item["role"] == "user")
        turn.tools = [*_openai_tools(request.get("tools", ())), *searched]
        return turn

    @staticmethod
    def write(answer: Call | str, number: int, model: str, streamed: bool) -> Iterator[Json]:
        if isinstance(answer, Call) and answer.name == TOOL_SEARCH:
            item = {"type": "tool_search_call", "id": f"ts_{number}", "call_id": f"call_{number}"}
            item |= {"execution": "client", "arguments": answer.arguments, "status": "completed"}
        elif isinstance(answer, Call):
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": answer.name}
            item |= {"arguments": json.dumps(answer.arguments), "status": "completed"}
            item |= {"namespace": answer.namespace} if answer.namespace else {}
        else:
            content = [{"type": "output_text", "text": answer, "annotations": []}]
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
            item |= {"status": "completed"}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
        head = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": model, "tools": []}
        head |= {"parallel_tool_calls": False, "tool_choice": "auto", "usage": usage}
        whole = {**head, "status": "completed", "output": [item]}
        if not streamed:
            yield whole
            return
        running = {**head, "status": "in_progress", "output": []}
        yield {"type": "response.created", "sequence_number": 0, "response": running}
        yield {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": item}
        yield {"type": "response.completed", "sequence_number": 2, "response": whole}


def _openai_tools(tools: Any, namespace: str | None = None, about: str = "") -> Iterator[ShownTool]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _openai_tools(tool["tools"], tool["name"], tool.get("description", ""))
        elif tool.get("type") == TOOL_SEARCH:
            yield ShownTool(TOOL_SEARCH, tool["description"], tool["parameters"])
        elif tool.get("type", "function") == "function":
            shown = tool.get("function", tool)
            schema = shown.get("parameters") or {}
            yield ShownTool(shown["name"], shown.get("description") or "", schema, namespace, about)


class ChatCompletions:
    """OpenAI's older protocol, which others speak too."""

    @staticmethod
    def read(request: Json) -> Turn:
        turn = Turn(raw=request, tools=list(_openai_tools(request.get("tools", ()))))
        calls: dict[str, Call] = {}
        for message in request["messages"]:
            for call in message.get("tool_calls") or ():
                calls[call["id"]] = Call(call["function"]["name"], json.loads(call["function"]["arguments"]))
            if message["role"] == "tool":
                turn.said.append(Result(calls[message["tool_call_id"]], text_of(message["content"])))
            elif message["role"] != "assistant":
                turn.hear(text_of(message["content"]), by_user=message["role"] == "user")
        return turn

    @staticmethod
    def write(answer: Call | str, number: int, model: str, streamed: bool) -> Iterator[Json]:
        if isinstance(answer, Call):
            function = {"name": answer.name, "arguments": json.dumps(answer.arguments)}
            message: Json = {
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
            }
        else:
            message = {"content": answer}
        choice = {"index": 0, "finish_reason": "stop" if message["content"] else "tool_calls"}
        choice |= {"message": {"role": "assistant", **message}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": str(number), "object": "chat.completion", "created": 0, "model": model, "usage": usage}
        yield {**head, "choices": [choice]}


class Gemini:
    """Google's generateContent: results name the function, and of a resumed conversation the calls may be missing."""

    @staticmethod
    def read(request: Json) -> Turn:
        turn = Turn(raw=request, system=text_of((request.get("systemInstruction") or {}).get("parts")))
        calls: list[Call] = []
        for content in request.get("contents", ()):
            for part in content.get("parts", ()):
                if "functionCall" in part:
                    calls.append(Call(part["functionCall"]["name"], part["functionCall"].get("args") or {}))
                elif "functionResponse" in part:
                    name, response = part["functionResponse"]["name"], part["functionResponse"]["response"]
                    text = response.get("output", response.get("error", response))
                    text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
                    called = next((call for call in calls if call.name == name), None)
                    calls = [call for call in calls if call is not called]
                    turn.said.append(Result(called or Call(name, {}), text, "error" in response))
                elif part.get("text") and content.get("role") == "user":
                    turn.hear(part["text"], by_user=True)
        for group in request.get("tools", ()):
            for tool in group.get("functionDeclarations", ()):
                schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
                turn.tools.append(ShownTool(tool["name"], tool.get("description", ""), schema))
        return turn

    @staticmethod
    def write(answer: Call | str, number: int, model: str, streamed: bool) -> Iterator[Json]:
        part: Json = {"text": answer}
        if isinstance(answer, Call):
            part = {"functionCall": {"name": answer.name, "args": answer.arguments}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _object(arguments: Any) -> Json:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def _list(content: Any) -> list[Json]:
    return content if isinstance(content, list) else []


PROTOCOLS: dict[str, Any] = {
    "/messages": Anthropic,
    "/responses": Responses,
    "/chat/completions": ChatCompletions,
    "generateContent": Gemini,
    "streamGenerateContent": Gemini,
}
