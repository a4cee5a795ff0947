"""Load settings from options, environment and file, and describe invalid ones so that they can be fixed.

A description has the name, the problem, the nearest valid name and the place. It never quotes a value, because a value
may be a secret.
"""

import json
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard, get_origin

import click
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from toolserver.core.logging import set_up
from toolserver.core.similar_names import find_similar
from toolserver.settings import FILE, PREFIX, Settings, UnknownVariable
from toolserver.sql.failures import DATA_DIR, describe_disk_error

log = logging.getLogger(__name__)

_OF_JSON = (list, tuple, dict)
GUIDE = "docs/settings.md describes every setting"

_TABLE = re.compile(r"\s*\[\s*([\w.\s\"'-]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w.\s\"'-]+?)\s*=")


def settings_from(**flags: Any) -> Settings:
    """Read the settings: flags override the environment, which overrides the file. None means a flag was not given.

    An invalid setting ends the program with a message that quotes no value, because a value may be a secret.
    """
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise click.ClickException(
            refuse_settings(describe_setting_errors(error.errors(include_input=False)))
        ) from None
    except SettingsError as error:  # a variable of a list or table is not JSON
        raise click.ClickException(refuse_settings(list(_list_unreadable()) or [str(error)])) from None
    except tomllib.TOMLDecodeError as error:
        raise click.ClickException(f"{FILE} is not TOML: {error}; correct this line") from None
    except UnknownVariable as error:
        raise click.ClickException(describe_unknown_variable(error.name)) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def prepare_settings(**flags: Any) -> Settings:
    """Read the settings, set up logging and create the data directory."""
    settings = settings_from(**flags)
    set_up(settings.logs.level, settings.logs.format)
    make_data_dir(settings.data_dir)
    return settings


def make_data_dir(folder: Path) -> None:
    """Create the data directory if it does not exist. If that fails, the program ends with a message."""
    try:
        first = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = describe_disk_error(error, folder, DATA_DIR)
        raise click.ClickException(f"the data directory cannot be created: {why}") from None
    if first:
        log.info("first run: keys and databases will be stored in a new folder", extra={"folder": str(folder)})


def describe_setting_errors(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what is wrong per pydantic error: `limits.daly: is not a setting, did you mean limits.daily? (VARIABLE)`."""
    return [_describe(error) for error in errors]


def refuse_settings(wrong: Sequence[str]) -> str:
    """Return one line about all that is wrong, however much it is, and where to read what would be right."""
    return f"invalid settings: {'; '.join(wrong)}. Correct or remove {'it' if len(wrong) == 1 else 'them'}: {GUIDE}"


def describe_unknown_variable(name: str) -> str:
    """Return the message about a variable `TOOLSERVER_…` that is not a setting."""
    near = _find_near(name.removeprefix(PREFIX).lower().replace("__", "."))
    advice = f"did you mean {name_variable(near)}?" if near else f"remove it: {GUIDE}"
    return f"{name} is not a setting; {advice}"


def list_settings(model: type[BaseModel] = Settings, before: str = "") -> Iterator[str]:
    """Yield the names of all settings, such as `limits.daily`, and of their parts."""
    for name, _ in _walk(model, before):
        yield name


def name_variable(setting: str) -> str:
    """Return the variable of a setting: `TOOLSERVER_LIMITS__DAILY` for `limits.daily`."""
    return PREFIX + setting.replace(".", "__").upper()


def find_line(text: str, setting: str) -> int | None:
    """Return the number of the line in a TOML text that sets a setting or a part of it, or None."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.fullmatch(line):
            table = _plain(header[1])
            name = table
        elif key := _KEY.match(line):
            name = f"{table}.{_plain(key[1])}".lstrip(".")
        else:
            continue
        if name == setting or name.startswith(f"{setting}."):
            return number
    return None


def _walk(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names of all settings and of their parts with their types. A table comes before its members."""
    for name, field in model.model_fields.items():
        yield f"{before}{name}", field.annotation
        if _is_table(field.annotation):
            yield from _walk(field.annotation, f"{before}{name}.")


def _is_table(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _list_unreadable() -> Iterator[str]:
    """Yield a line for each variable of a table, list or mapping whose text is not JSON."""
    for setting, kind in _walk(Settings):
        text = os.environ.get(name_variable(setting))
        if text is None or not (_is_table(kind) or get_origin(kind) in _OF_JSON):
            continue
        try:
            json.loads(text)
        except ValueError:
            if _is_table(kind):
                yield f"{setting}: {_advise_on_table(setting)} ({name_variable(setting)})"
            else:
                example = '{"name": "…"}' if get_origin(kind) is dict else '["…", "…"]'
                yield f"{setting}: is not JSON, write {example} ({name_variable(setting)})"


def _advise_on_table(setting: str) -> str:
    member = next(name for name in list_settings() if name.startswith(f"{setting}."))
    return f"is a table, set its members one by one, such as {member}"


def _describe(error: Mapping[str, Any]) -> str:
    setting = ".".join(map(str, error["loc"]))
    problem = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        near = _find_near(setting)
        problem = f"is not a setting{f', did you mean {near}?' if near else ''}"
    elif error["type"] == "model_type":
        problem = _advise_on_table(setting)
    place = _find_place(setting)
    return f"{setting}: {problem}{f' ({place})' if place else ''}"


def _find_near(setting: str) -> str | None:
    return next(iter(find_similar(setting, list(list_settings()), most=1, least=0.7)), None)


def _find_place(setting: str) -> str | None:
    """Return where a setting was given: the variable overrides the file."""
    variable = name_variable(setting)
    if variable in os.environ:
        return variable
    path = Path(FILE)
    if not path.is_file():
        return None
    line = find_line(path.read_text(encoding="utf-8"), setting)
    return None if line is None else f"{FILE}, line {line}"


def _plain(key: str) -> str:
    return re.sub(r"[\s\"']", "", key)
