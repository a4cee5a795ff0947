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
        self.sessions, self.made, self.loads = Sessions(), [], 0

    async def load(self):
        self.loads += 1
        return self

    def manager(self, fast, *, body_limit):
        self.made.append((fast, body_limit))
        return self.sessions

    async def live(self, sessions, *, task_status):
        task_status.started()
        await anyio.sleep_forever()


async def test_the_sdk_is_started_once_for_all_who_need_it_at_the_same_time():
    module = Module()
    async with anyio.create_task_group() as tasks:
        asked = Sdk("fast", tasks, body_limit=9, load=module.load)
        assert module.loads == 0

        async def ask(number):
            await asked({"n": number}, None, None, choice="choice", caller=f"caller {number}")

        async with anyio.create_task_group() as callers:
            for number in range(3):
                callers.start_soon(ask, number)
        tasks.cancel_scope.cancel()

    assert (module.loads, module.made) == (1, [("fast", 9)])
    assert sorted((s["n"], s[CHOICE], s[CALLER]) for s in module.sessions.scopes) == [
        (n, "choice", f"caller {n}") for n in range(3)
    ]


def test_it_waits_until_the_start_is_over():
    assert sdk.PREPARED_AFTER_S == 10


async def test_it_is_started_once_the_service_has_run_for_a_while():
    module = Module()
    async with anyio.create_task_group() as tasks:
        asked = Sdk("fast", tasks, body_limit=9, load=module.load)
        async with anyio.create_task_group() as soon:
            soon.start_soon(asked.prepare, 0.05)
            await anyio.sleep(0.01)
            assert module.loads == 0
        assert module.loads == 1
        await asked({}, None, None, choice=None, caller=None)
        assert len(module.made) == 1
        tasks.cancel_scope.cancel()


async def test_an_extension_makes_the_server_itself():
    module, other = Module(), Module()
    async with anyio.create_task_group() as tasks:
        await Sdk("fast", tasks, body_limit=9, extension=McpExtension(other.manager, [], {}), load=module.load)(
            {}, None, None, choice=None, caller=None
        )
        tasks.cancel_scope.cancel()

    assert (module.made, other.made) == ([], [("fast", 9)])


async def test_a_process_without_descriptors_goes_on_and_the_next_message_starts_it(caplog):
    module, fails = Module(), [OSError(24, "Too many open files")]

    async def load():
        if fails:
            raise fails.pop()
        return module

    async with anyio.create_task_group() as tasks:
        made = Sdk("fast", tasks, body_limit=9, load=load)
        await made.prepare(0)
        assert [record.message for record in caplog.records] == ["the MCP SDK could not be prepared"]
        await made({"n": 1}, None, None, choice="choice", caller="caller")
        tasks.cancel_scope.cancel()

    assert [scope["n"] for scope in module.sessions.scopes] == [1]


async def test_what_is_loaded_is_the_module_that_imports_the_sdk():
    assert (await sdk.load_sdk()).__name__ == "toolserver.mcp.sdk_server"
