"""Define the command line: its verbs by name. The module of a verb is imported when the verb is called.

So `toolserver --help` imports no verb, `stdio` answers at once, and a verb's module has its imports at its top.
"""

import gc
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

import toolserver
from toolserver.cli.error_lines import end_in_one_line
from toolserver.sql.failures import show_tracebacks

PACKAGES = ("catalog", "rest_bridge", "tools")  # beside `toolserver` in the same distribution


class Verb(NamedTuple):
    """A verb: its module in this package with the command in it, and the first sentence of its help."""

    place: str
    sentence: str


VERBS = {
    "allowances": Verb(
        "allowances:allowances", "Manage allowances: tokens that spend the credits of another one, up to caps."
    ),
    "books": Verb(
        "books:books", "Read the books: credits sold, used and owed, and USDC received, by day, month, tool and token."
    ),
    "call": Verb("call:call", "Call the tool NAME and print its answer."),
    "completion": Verb("completion:completion", "Print what completes commands, tools and arguments in a shell."),
    "db": Verb(
        "db:db", "Check the ledger's database, back up and restore its file, and move it to PostgreSQL or back."
    ),
    "demo": Verb("demo:demo", "Serve the tools with a simulated world and a funded token: everything works offline."),
    "docs": Verb(
        "docs:docs", "Write the generated files of this checkout: docs, examples and the answer in the README."
    ),
    "doctor": Verb("doctor:doctor", "Check this installation: every setting and its origin, storage and sources."),
    "facilitator": Verb(
        "facilitator:facilitator",
        "Verify and settle x402 payments on this machine with the official facilitator (extra: x402).",
    ),
    "install": Verb(
        "install:install", "Add this program to the configuration of HOST, keeping a copy of the old file."
    ),
    "keys": Verb("keys:keys", "Manage the keys that sign receipts."),
    "ledger": Verb("ledger:ledger", "Look up balances and reserved credits, and check that the ledger is consistent."),
    "mcpb": Verb("publish:mcpb", "Write an MCP bundle, which a host installs with one click, to FILE."),
    "migrate": Verb("migrate:migrate", "Bring the tables of the ledger up to date with this version of the software."),
    "openapi": Verb("publish:openapi", "Print the OpenAPI document."),
    "purchases": Verb(
        "purchases:purchases",
        "List purchases of credits, newest first; with --cases, --pending or --unclaimed, list open items.",
    ),
    "receipts": Verb("receipts:receipts", "Verify receipts of paid calls."),
    "recover": Verb("recover:recover", "Credit a payment that a restored backup has lost, once, to a new token."),
    "refund": Verb("refund:refund", "Refund unspent credits: ask, book, plan, sign offline (`sweep sign`), submit."),
    "reissue": Verb("reissue:reissue", "Replace a lost token: ask, prove, wait 48 hours, complete."),
    "serve": Verb("serve:serve", "Serve the tools with live upstreams."),
    "server-json": Verb(
        "publish:server_json", "Print server.json, which publishes a service in the registry of MCP servers."
    ),
    "stdio": Verb("stdio:stdio", "Serve MCP on stdin and stdout; the bearer token comes from TOOLSERVER_TOKEN."),
    "sweep": Verb("sweep:sweep", "Collect deposits: plan what is worth collecting, sign offline, submit."),
    "sweep-plan": Verb(
        "purchases:print_sweep_plan",
        "Print what must be signed offline to collect the deposits: EIP-3009 authorisations, as JSON.",
    ),
    "tools": Verb("tools:tools", "List the tools with their prices and paths."),
    "uninstall": Verb("install:uninstall", "Remove this program from the configuration of HOST."),
    "webhooks": Verb(
        "webhooks:webhooks", "Inspect and control webhook subscriptions; receive deliveries during development."
    ),
    "world": Verb("world:world", "Run the simulated world alone."),
}


class LazyGroup(click.Group):
    """Imports a verb when it is called, and ends every verb with one line for a person: see `sql.failures`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return sorted({*VERBS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb, after importing its module, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        module, _, name = VERBS[cmd_name].place.partition(":")
        if cmd_name == "serve":
            import_module("toolserver.cli.lean_libraries")
        command: click.Command = getattr(import_module(f"toolserver.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their sentences. Imports none of them."""
        listing = click.Group(commands=[click.Command(name, help=verb.sentence) for name, verb in VERBS.items()])
        listing.format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs and options that begin so. Imports no verb."""
        verbs = [CompletionItem(name, help=v.sentence) for name, v in VERBS.items() if name.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Import and run the verb. The packages that verbs import are looked for first."""
        show_tracebacks.set(ctx.params["traceback"])
        gc.disable()  # a start makes no garbage and is a fifth faster without GC; `freeze_startup` turns it on again
        with end_in_one_line():
            if hidden := describe_hidden():
                raise click.ClickException(hidden)
            return super().invoke(ctx)


@click.group(cls=LazyGroup)
@click.version_option(toolserver.__version__)
@click.option("--traceback", is_flag=True, help="Show where an unexpected error arose")
def main(traceback: bool) -> None:
    """Typed, live-data tools for AI agents over MCP, REST and function-calling definitions."""


def describe_hidden() -> str | None:
    """Return one line about foreign packages that hide ours: their places and the remedy; None if there are none.

    `python -m toolserver` searches the working directory first, so a folder `tools` or a
    Django app `catalog` is imported instead of the package that was installed with
    `toolserver`.
    """
    ours = Path(toolserver.__file__).resolve().parents[1]
    places = {name: _find_place(find_spec(name)) for name in PACKAGES}
    hiding = [f"{name} ({place})" for name, place in places.items() if place and ours not in place.parents]
    missing = [name for name, place in places.items() if not place]
    if hiding:
        return (
            f"toolserver has packages of its own named like these, which Python finds first: {', '.join(hiding)}. "
            "Start `toolserver` or `python -P -m toolserver`, which do not search the working directory, or change "
            "PYTHONPATH if that names the place."
        )
    if missing:
        return (
            f"toolserver is not installed completely: {', '.join(missing)} is missing. Install agent-toolserver again."
        )
    return None


def _find_place(spec: ModuleSpec | None) -> Path | None:
    """Return the file of a module, or the folder of a package without an `__init__.py`."""
    if spec is None:
        return None
    places = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or ())
    return Path(places[0]).resolve() if places else None
