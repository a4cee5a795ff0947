"""Writes an MCP bundle (.mcpb): a file that installs this program in a host with one click.

A bundle is a zip file with a manifest of version 0.4, the code of the program, and a
pyproject.toml from which the host installs the dependencies with `uv`. It contains no
pictures.
"""

import io
import json
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import requires
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from toolserver import __version__
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import DISTRIBUTION, SERVICE, sells

PACKAGES = ("toolserver", "tools", "rest_bridge", "catalog")
START = "server/main.py"
_DATE = (2026, 1, 1, 0, 0, 0)  # a fixed date, so that the same content makes the same bytes
_MAIN = '''\
"""Starts the program of this bundle."""

import os

from toolserver.cli.main import main

if os.environ.get("TOOLSERVER_TOKEN", "").startswith("${"):
    del os.environ["TOOLSERVER_TOKEN"]  # nothing was entered, and the host left the placeholder
main()
'''


def write_bundle(registry: Registry, server: str | None = None, *, changes: str = "") -> bytes:
    """Return the bundle. With the address of a service it is a bridge to it that can buy and spend credits."""
    manifest = make_manifest(registry, server)
    texts = {
        "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        "pyproject.toml": write_project(requires(DISTRIBUTION) or ()),
        START: _MAIN,
        "server/toolserver/CHANGELOG.md": changes,
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as bundle:
        for name, content in sorted({**dict(_code()), **{k: v.encode() for k, v in texts.items()}}.items()):
            bundle.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def make_manifest(registry: Registry, server: str | None) -> dict[str, Any]:
    """Return the manifest: what a host shows of the program, asks its user for, and starts."""
    arguments = ["run", "--directory", "${__dirname}", START, "stdio", *(["--server", server] if server else [])]
    token = {
        "type": "string",
        "title": "Token",
        "description": "svc_live_… pays for premium tools. Optional: a token bought in a conversation is kept.",
        "required": False,
        "sensitive": True,
        "default": "",
    }
    paid = server is not None and sells(registry)
    environment = {"env": {"TOOLSERVER_TOKEN": "${user_config.token}"}} if paid else {}
    shown = [operation for operation in registry.chosen() if paid or operation.tier is Tier.FREE]
    return {
        "manifest_version": "0.4",
        "name": SERVICE,
        "display_name": "Live data for agents",
        "version": __version__,
        "description": "Typed tools with live data: markets, news, weather, earthquakes, outages.",
        "author": {"name": f"The authors of {DISTRIBUTION}"},
        "license": "Apache-2.0",
        **({"documentation": f"{server}/docs"} if server else {}),
        "server": {
            "type": "uv",
            "entry_point": START,
            "mcp_config": {"command": "uv", "args": arguments, **environment},
        },
        "tools": [{"name": o.name, "description": o.description} for o in shown],
        "tools_generated": True,
        **({"user_config": {"token": token}} if paid else {}),
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": ">=3.11"}},
    }


def write_project(requirements: Sequence[str]) -> str:
    """Return pyproject.toml with the requirements of the distribution, without its extras."""
    listed = [requirement for requirement in requirements if "extra ==" not in requirement]
    lines = [f"    {json.dumps(requirement)}," for requirement in listed]
    head = ["[project]", f'name = "{SERVICE}-bundle"', f'version = "{__version__}"', 'requires-python = ">=3.11"']
    text = "\n".join([*head, "dependencies = [", *lines, "]", "", "[tool.uv]", "package = false", ""])
    tomllib.loads(text)
    return text


def _code() -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        yield from _files_below(files(package), f"server/{package}")


def _files_below(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files_below(entry, f"{name}/{entry.name}")
        elif not entry.name.endswith(".png"):  # pictures of pages, which are not served over stdio
            yield f"{name}/{entry.name}", entry.read_bytes()
