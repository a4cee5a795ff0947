"""Describe invalid settings so that they can be fixed: name, problem, nearest valid name and location.

Messages never quote a value, because a value may be a secret.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from toolserver.core.similar_names import find_similar
from toolserver.settings import FILE, PREFIX, Settings

_TABLE = re.compile(r"\s*\[\s*([\w.\s\"'-]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w.\s\"'-]+?)\s*=")


def describe_setting_errors(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write a line per pydantic error: `limits.daly: is not a setting; did you mean limits.daily? (line 3 of …)`."""
    return [_describe(error) for error in errors]


def describe_unknown_variable(name: str) -> str:
    """Return the message about a variable `TOOLSERVER_…` that is not a setting."""
    near = _find_near(name.removeprefix(PREFIX).lower().replace("__", "."))
    return f"{name} is not a setting{f'; did you mean {name_variable(near)}?' if near else ''}"


def list_settings(model: type[BaseModel] = Settings, before: str = "") -> Iterator[str]:
    """Yield the names of all settings, such as `limits.daily`, and of their parts."""
    for name, field in model.model_fields.items():
        yield f"{before}{name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from list_settings(field.annotation, f"{before}{name}.")


def name_variable(setting: str) -> str:
    """Return the variable of a setting: `TOOLSERVER_LIMITS__DAILY` for `limits.daily`."""
    return PREFIX + setting.replace(".", "__").upper()


def find_line(text: str, setting: str) -> int | None:
    """Return the number of the line in a TOML text that sets a setting or a part of it, or None."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _TABLE.fullmatch(line):
            table = _plain(found[1])
            name = table
        elif found := _KEY.match(line):
            name = f"{table}.{_plain(found[1])}".lstrip(".")
        else:
            continue
        if name == setting or name.startswith(f"{setting}."):
            return number
    return None


def _describe(error: Mapping[str, Any]) -> str:
    setting = ".".join(map(str, error["loc"]))
    told = str(error["msg"])
    if error["type"] == "extra_forbidden":
        near = _find_near(setting)
        told = f"is not a setting{f'; did you mean {near}?' if near else ''}"
    place = _find_place(setting)
    return f"{setting}: {told}{f' ({place})' if place else ''}"


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
