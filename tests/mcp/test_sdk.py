"""The SDK is loaded once, when the first message needs it, and gets the caller and the choice of tools."""

import anyio

from toolserver.mcp import sdk
from toolserver.mcp.asgi import CALLER, CHOICE
from toolserver.mcp.sdk import McpExtension, Sdk


class Sessions:
    def __init__(self):
        self.scopes = []

    async def handle_request(self, scope, receive, send):
        self.scopes.append(scope)


class Module:
    """Stands in for the module that holds the SDK's server."""

    def __init__(self):
        self.sessions, self.made, self.names = Sessions(), [], []

    def manager(self, fast, *, body_limit):
        self.made.append((fast, body_limit))
        return self.sessions

    async def live(self, sessions, *, task_status):
        task_status.started()
        await anyio.sleep_forever()


async def test_the_sdk_is_started_once_for_all_who_need_it_at_the_same_time(monkeypatch):
    module = Module()
    monkeypatch.setattr(sdk.importlib, "import_module", lambda name: module.names.append(name) or module)
    async with anyio.create_task_group() as tasks:
        asked = Sdk("fast", tasks, body_limit=9)
        assert module.names == []

        async def ask(number):
            await asked({"n": number}, None, None, choice="choice", caller=f"caller {number}")

        async with anyio.create_task_group() as callers:
            for number in range(3):
                callers.start_soon(ask, number)
        tasks.cancel_scope.cancel()

    assert (module.names, module.made) == (["toolserver.mcp.sdk_server"], [("fast", 9)])
    assert sorted((s["n"], s[CHOICE], s[CALLER]) for s in module.sessions.scopes) == [
        (n, "choice", f"caller {n}") for n in range(3)
    ]


def test_it_waits_until_the_start_is_over():
    assert sdk.PREPARED_AFTER_S == 10


async def test_it_is_started_once_the_service_has_run_for_a_while(monkeypatch):
    module = Module()
    monkeypatch.setattr(sdk.importlib, "import_module", lambda name: module.names.append(name) or module)
    async with anyio.create_task_group() as tasks:
        asked = Sdk("fast", tasks, body_limit=9)
        async with anyio.create_task_group() as soon:
            soon.start_soon(asked.prepare, 0.05)
            await anyio.sleep(0.01)
            assert module.names == []
        assert module.names == ["toolserver.mcp.sdk_server"]
        await asked({}, None, None, choice=None, caller=None)
        assert len(module.made) == 1
        tasks.cancel_scope.cancel()


async def test_an_extension_makes_the_server_itself(monkeypatch):
    module, other = Module(), Module()
    monkeypatch.setattr(sdk.importlib, "import_module", lambda name: module.names.append(name) or module)
    async with anyio.create_task_group() as tasks:
        await Sdk("fast", tasks, body_limit=9, extension=McpExtension(other.manager, [], {}))(
            {}, None, None, choice=None, caller=None
        )
        tasks.cancel_scope.cancel()

    assert (module.made, other.made) == ([], [("fast", 9)])


async def test_a_process_without_descriptors_goes_on_and_the_next_message_starts_it(monkeypatch, caplog):
    module, fails = Module(), [OSError(24, "Too many open files")]

    def load(name):
        if fails:
            raise fails.pop()
        return module

    monkeypatch.setattr(sdk.importlib, "import_module", load)
    async with anyio.create_task_group() as tasks:
        made = Sdk("fast", tasks, body_limit=9)
        await made.prepare(0)
        assert [record.message for record in caplog.records] == ["the MCP SDK could not be prepared"]
        await made({"n": 1}, None, None, choice="choice", caller="caller")
        tasks.cancel_scope.cancel()

    assert [scope["n"] for scope in module.sessions.scopes] == [1]
