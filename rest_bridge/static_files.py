"""Serves the files that pages load: style sheet, scripts and pictures, under one path that changes with their content.

All files are below `/static/<digest of all of them>/`. A page and its files therefore have the
same version, modules import each other by relative paths, and a browser may cache every file
for a year.
"""

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument
from toolserver.errors import NotFound
from toolserver.registry.site_facts import JSON, Document

PREFIX = "/static/"
FOREVER = b"public, max-age=31536000, immutable"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": JSON,
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


TOKENS = "css/tokens.css"
LAND = "land.svg"  # the coastline of the home page's map, which that page need not carry itself
_COAST = re.compile(rb'"(M[^"]+)"')
_STYLED = ("css/style.css", "css/consent.css")  # served behind the tokens: a page waits for one sheet, not for two


@functools.cache
def read_static_files() -> Mapping[str, Document]:
    """Return every file by its path below the folder `pages/static`, as it is served."""
    read = {name: file.read_bytes() for name, file in sorted(_walk(files("rest_bridge.pages").joinpath("static"), ""))}
    served = read | {name: read[TOKENS] + read[name] for name in _STYLED} | {LAND: _draw_land(read["js/world.js"])}
    return {name: Document(body, _TYPES[name.rsplit(".", 1)[-1]]) for name, body in served.items()}


def _draw_land(module: bytes) -> bytes:
    """Return the coastline of the module that other pages' maps load, as a shape that a page can use by its address."""
    found = _COAST.search(module)
    assert found is not None, "world.js has a path"
    return (
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-180 -90 360 180"><path id="land" d="%s"/></svg>\n'
        % found[1]
    )


@functools.cache
def static_path(name: str) -> str:
    """Return the path at which a file is served. Raise KeyError if there is no such file."""
    read_static_files()[name]
    return f"{PREFIX}{_digest()}/{name}"


def static_handler() -> Handler:
    """Serve the files. An address with another version's digest gets this version's file, to be revalidated."""
    served: dict[str, ServedDocument] = {}

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        version, _, name = scope["path"].removeprefix(PREFIX).partition("/")
        document = read_static_files().get(name)
        if document is None:
            raise NotFound("There is no such file.")
        if name not in served:
            served[name] = ServedDocument(document)
        policy = FOREVER if version == _digest() else b"no-cache"
        return served[name].reply(request, cache_control=policy)

    return handler


@functools.cache
def _digest() -> str:
    return digest_of(read_static_files())


def digest_of(documents: Mapping[str, Document]) -> str:
    """Return the version of some files: it changes with every byte and every name."""
    whole = hashlib.sha256()
    for name, document in documents.items():
        whole.update(b"%s %d " % (name.encode(), len(document.body)))
        whole.update(document.body)
    return whole.hexdigest()[:12]


def _walk(folder: Traversable, above: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{above}{entry.name}/")
        else:
            yield above + entry.name, entry
