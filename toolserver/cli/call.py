"""Implement `toolserver call`: call one tool, in this process or at a service elsewhere, and print its answer.

There is one flag for each argument of the tool's schema. `--place Paris` and `--place=Paris`
are the same, and `--per-day` is the argument `per_day`. A list is one value with commas, an
object is JSON. What people call an argument (`--city` for `--place`) is taken for it, and a
note says so. Only the types are read here: the tool itself judges the values.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import click
from click.shell_completion import CompletionItem

from toolserver.app import Service
from toolserver.calls.arguments import SYNONYMS, suggest_name
from toolserver.cli.bridge import ask, open_bridge
from toolserver.cli.load_settings import prepare_settings, settings_from
from toolserver.cli.local_service import has_data, local_caller, local_service, needs_books
from toolserver.cli.options import Style, choose_style, data_dir_option, server_option, style_option
from toolserver.cli.plain_lines import write_answer
from toolserver.core.caller import Caller
from toolserver.core.similar_names import find_similar
from toolserver.core.visible_text import disarm, disarm_all
from toolserver.errors import CallRejected
from toolserver.mcp.stdio import Conversation
from toolserver.registry.error_codes import body as problem_body
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.money import keeps_books
from toolserver.settings import Settings

Schema = Mapping[str, Any]


def read_flags(name: str, schema: Schema, words: Sequence[str]) -> dict[str, Any]:
    """Return the arguments that the words of the command line give to a tool.

    Raises:
        click.UsageError: a flag is unknown (with the nearest one), or a value has the wrong type.
    """
    names = list(schema.get("properties", {}))
    known_as = dict(_list_synonyms(names))
    try:
        with tool_command(name, schema).make_context(name, list(words)) as context:
            found = {key: value for key, value in context.params.items() if value is not None}
    except click.NoSuchOption as error:
        raise click.UsageError(_describe_unknown(name, names, error.option_name)) from None
    for synonym, argument in known_as.items():
        if synonym in found:
            if argument in found:
                raise click.UsageError(f"--{synonym} and --{argument} are the same argument")
            click.echo(f"--{synonym} is taken for --{argument}", err=True)
            found[argument] = found.pop(synonym)
    return found


def tool_command(name: str, schema: Schema, sentence: str = "") -> click.Command:
    """Return a command whose options are the arguments of a tool, to parse words and to write help."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    options = [_option(argument, described) for argument, described in properties.items()]
    for synonym, argument in _list_synonyms(list(properties)):
        options.append(click.Option([f"--{synonym}"], type=_type(properties[argument]), hidden=True))
    return click.Command(name, params=list(options), help=sentence, add_help_option=False)


def complete_flags(schema: Schema, words: Sequence[str], incomplete: str) -> list[CompletionItem]:
    """Return what may follow these words: the values of the flag before, or the flags that are not there yet."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    last = _argument_of(words[-1]) if words else ""
    if last in properties and properties[last].get("type") != "boolean":
        values = [str(value) for value in properties[last].get("enum", ())]
        return [CompletionItem(value) for value in values if value.startswith(incomplete)]
    given = {_argument_of(word) for word in words}
    return [
        CompletionItem(flag, help=described.get("description"))
        for argument, described in properties.items()
        if argument not in given and (flag := write_flag(argument)).startswith(incomplete)
    ]


def describe_unknown_tool(name: str, names: Iterable[str]) -> str:
    """Return the sentence about a tool that does not exist, with the nearest names."""
    near = find_similar(name.replace("-", "_"), names)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"there is no tool called {name}; {meant}`toolserver tools` lists them"


def write_flag(argument: str) -> str:
    """Return the flag of an argument: `--per-day` for `per_day`."""
    return "--" + argument.replace("_", "-")


def _list_synonyms(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what people call an argument, with the argument: the first one of the tool that has this synonym."""
    seen = set(names)
    for name in names:
        for synonym in SYNONYMS.get(name, ()):
            if synonym not in seen and len(synonym) > 1:
                seen.add(synonym)
                yield synonym, name


def _option(argument: str, described: Schema) -> click.Option:
    flag, written = write_flag(argument), f"--{argument}"
    texts = [described.get("description", "")]
    if described.get("examples"):
        texts.append(f"for example {_write_value(described['examples'][0])}")
    if "default" in described:
        texts.append(f"{_write_value(described['default'])} by default")
    shown = "; ".join(text for text in texts if text)
    if described.get("type") == "boolean":
        return click.Option([f"{flag}/--no-{flag[2:]}", argument], default=None, help=shown)
    names = [flag] if flag == written else [flag, written]
    return click.Option([*names, argument], type=_type(described), help=shown)


def _type(described: Schema) -> Any:
    """Return how the value of an argument is read, as click takes it: a type of its own, or a function."""
    kinds = {each.get("type") for each in described.get("anyOf", [described])}
    if described.get("enum"):
        return click.Choice([str(value) for value in described["enum"]], case_sensitive=False)
    if "object" in kinds:
        return _read_object_or_text if "string" in kinds else _read_json
    if "array" in kinds:
        return _read_list
    return {"integer": int, "number": float}.get(str(described.get("type")), str)


def _describe_unknown(name: str, names: list[str], flag: str) -> str:
    if not names:
        return f"{name} takes no arguments, so {flag} is not one"
    written, known_as = _argument_of(flag), dict(_list_synonyms(names))
    similar = find_similar(written, [*names, *known_as], most=1, least=0.7)
    near = suggest_name(written, names) or next((known_as.get(each, each) for each in similar), None)
    meant = f"did you mean {write_flag(near)}? " if near else ""
    return f"{name} has no argument {flag}; {meant}the valid ones are {', '.join(map(write_flag, names))}"


def _argument_of(word: str) -> str:
    return word.partition("=")[0].removeprefix("--").replace("-", "_") if word.startswith("--") else ""


def _write_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_list(text: str) -> Any:
    """Return the items of a list that is written with commas, as texts, or as a JSON array."""
    if text.strip().startswith("["):
        return _read_json(text)
    return [part.strip() for part in text.split(",") if part.strip()]


def _read_object_or_text(text: str) -> Any:
    return _read_json(text) if text.strip().startswith("{") else text


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"this is not JSON: {error}") from None


class CallCommand(click.Command):
    """The command `call`, which completes the arguments of the tool too."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the options that begin so: those of the tool first."""
        return [*_complete_flags(ctx, incomplete), *super().shell_complete(ctx, incomplete)]


@click.command(cls=CallCommand, context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("name", required=False, shell_complete=lambda ctx, param, incomplete: _complete_name(incomplete))
@click.argument(
    "flags",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=lambda ctx, param, incomplete: _complete_flags(ctx, incomplete),
)
@click.option("--args", "arguments", default="{}", show_default=True, help="Arguments as a JSON object")
@click.option("--token", help="Bearer token, for tools that cost credits")
@style_option
@server_option
@data_dir_option
@click.option("--help", "wants_help", is_flag=True, help="Show this message, or after NAME the arguments of the tool")
@click.pass_context
def call(
    ctx: click.Context,
    name: str | None,
    flags: tuple[str, ...],
    arguments: str,
    token: str | None,
    as_json: bool | None,
    server: str | None,
    data_dir: Path | None,
    wants_help: bool,
) -> None:
    """Call the tool NAME and print its answer. Exits with 1 if the call is refused or returns no data.

    Arguments are flags, `--place Paris`, or one JSON object, `--args`. `call NAME --help` lists them.
    """
    if name is None or name.startswith("-"):
        if wants_help or name is None:
            click.echo(ctx.get_help())
            ctx.exit(0 if wants_help else 2)
        raise click.UsageError(f"the name of the tool comes before its arguments, such as {name}")
    words = Words(name, _read_arguments(arguments), ("--help",) if wants_help else flags)
    style = choose_style(as_json)
    if server is not None:
        options = {"data_dir": data_dir, "token": token}
        ctx.exit(anyio.run(lambda: call_server(server, words, options, style)))
    settings = prepare_settings(data_dir=data_dir, token=token)
    ctx.exit(anyio.run(lambda: call_command(settings, words, style)))


class Words(NamedTuple):
    """A call as it is written on the command line: the tool, the object of --args, and flags that are not read yet."""

    name: str
    given: dict[str, Any]
    flags: tuple[str, ...] = ()

    @property
    def wants_help(self) -> bool:
        """True if the arguments of the tool are asked for."""
        return self.flags == ("--help",)

    def read(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments. Raises click.UsageError if one is unknown, has the wrong type or is given twice."""
        by_flag = read_flags(self.name, schema, self.flags)
        if twice := by_flag.keys() & self.given.keys():
            raise click.UsageError(f"{', '.join(sorted(twice))}: given both by --args and by a flag")
        return {**self.given, **by_flag}


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"--args is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise click.ClickException("--args must be a JSON object")
    return arguments


def _load_registry() -> Registry:
    return Registry.load(*tool_packages(settings_from().tools))


def _complete_name(incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(o.name, help=o.title) for o in _load_registry() if o.name.startswith(incomplete)]


def _complete_flags(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    operation = _load_registry().get(str(ctx.params.get("name")))
    flags = ctx.params.get("flags") or ()
    return [] if operation is None else complete_flags(operation.input_schema, flags, incomplete)


async def call_command(settings: Settings, words: Words, style: Style) -> int:
    """Call one tool in this process and print the answer. Returns the status with which the program ends."""
    registry = Registry.load(*tool_packages(settings.tools))
    operation = registry.get(words.name)
    if operation is None:
        raise click.ClickException(describe_unknown_tool(words.name, [o.name for o in registry]))
    if words.wants_help:
        return print_help(operation.name, operation.input_schema, operation.description)
    arguments = words.read(operation.input_schema)
    books = keeps_books(settings)
    if needs_books(operation) and not books:
        raise click.ClickException(f"{words.name} needs a service that sells: add --server https://…")
    async with local_service(settings, registry, books=books) as service:
        return await print_outcome(service, operation, arguments, local_caller(settings, "cli"), style)


def print_help(name: str, schema: Mapping[str, Any], description: str) -> int:
    """Print what a tool answers, and its arguments as flags. Returns 0."""
    command = tool_command(name, schema, description)
    click.echo(disarm(command.get_help(click.Context(command, info_name=f"toolserver call {name}"))))
    return 0


async def print_outcome(
    service: Service, operation: Operation, arguments: dict[str, Any], caller: Caller, style: Style
) -> int:
    """Call a tool and print the answer. Returns 1 when the call is refused or returns no data."""
    try:
        outcome = await service.pipeline.call(operation, arguments, caller)
    except CallRejected as rejected:
        problem = problem_body(
            rejected.code, rejected.detail, facts=service.facts, request_id="local", **rejected.extra
        )
        print_text(json.dumps(problem), style, failed=True)
        return 1
    text = outcome.rendered.payload.decode()
    print_text(text, style)
    return 0 if has_data(json.loads(text)) else 1


async def call_server(server: str, words: Words, options: Mapping[str, Any], style: Style) -> int:
    """Call one tool of the service at this address and print the answer, like `print_outcome`."""
    async with open_bridge(server, options, {"toolset": "all", "output_schema": "off"}) as bridge:
        if not words.flags:
            return await print_remote_answer(bridge, words.name, words.given, style)
        listed = {tool["name"]: tool for tool in (await ask(bridge, "tools/list", {}))["tools"]}
        tool = listed.get(words.name)
        if tool is None:
            raise click.ClickException(describe_unknown_tool(words.name, list(listed)))
        if words.wants_help:
            return print_help(words.name, tool["inputSchema"], tool.get("description", ""))
        return await print_remote_answer(bridge, words.name, words.read(tool["inputSchema"]), style)


async def print_remote_answer(bridge: Conversation, name: str, arguments: dict[str, Any], style: Style) -> int:
    """Call a tool over a bridge and print the answer. Returns 1 when the call is refused or returns no data."""
    result = await ask(bridge, "tools/call", {"name": name, "arguments": arguments})
    failed = bool(result.get("isError"))
    print_text(read_text(result), style, failed=failed)
    return 1 if failed or not has_data(result.get("structuredContent") or {}) else 0


def read_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result. Raises click.ClickException if it has none."""
    try:
        text = result["content"][0]["text"]
    except (LookupError, TypeError):
        text = None
    if not isinstance(text, str):
        raise click.ClickException("the service sent an answer without a text")
    return text


def print_text(text: str, style: Style, *, failed: bool = False) -> None:
    """Print an answer or a refusal. Only `--json` prints a refusal to standard output.

    A service elsewhere, or what it quotes, may hold what a terminal obeys. Nothing of that is printed.
    """
    err = failed and style != "json"
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload = None
    if style == "json" or not isinstance(payload, dict):
        click.echo(disarm(text), err=err)
    elif style == "indented":
        click.echo(json.dumps(disarm_all(payload), indent=2, ensure_ascii=False), err=err)
    else:
        click.echo("\n".join(write_answer(payload)), err=err)
