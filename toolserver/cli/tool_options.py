"""Read the arguments of a tool from flags on the command line: one flag for each argument of its schema.

`--place Paris` and `--place=Paris` are the same, and `--per-day` is the argument `per_day`. A list is one value with
commas, an object is JSON. What people call an argument (`--city` for `--place`) is taken for it, and a note says so.
Only the types are read here: the tool itself judges the values.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from toolserver.calls.arguments import SYNONYMS, suggest_name
from toolserver.core.similar_names import find_similar

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
