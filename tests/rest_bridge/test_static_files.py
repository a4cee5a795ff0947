"""The files that pages load: one version for all, kept for a year, small."""

import re

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.static_files import PREFIX, digest_of, read_static_files, static_handler, static_path
from toolserver.errors import NotFound
from toolserver.registry.site_facts import Document

STYLE = "css/style.css"


async def ask(path, **headers):
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"path": path, "headers": lines, "query_string": b""}
    reply = await static_handler()(scope, parse_request(scope))
    return reply, dict(reply.headers)


async def test_a_file_of_this_version_may_be_kept_for_a_year():
    reply, headers = await ask(static_path(STYLE))
    assert reply.body == read_static_files()[STYLE].body
    assert headers[b"content-type"] == b"text/css; charset=utf-8"
    assert headers[b"cache-control"] == b"public, max-age=31536000, immutable"


async def test_the_address_of_another_version_gets_this_one_and_does_not_keep_it():
    reply, headers = await ask(f"{PREFIX}0123456789ab/{STYLE}")
    assert reply.body == read_static_files()[STYLE].body
    assert headers[b"cache-control"] == b"no-cache"


@pytest.mark.parametrize("name", ["none.css", "", "../render.py", "css/../css/style.css", "css"])
async def test_nothing_else_is_served(name):
    with pytest.raises(NotFound):
        await ask(f"{PREFIX}0123456789ab/{name}")


def test_every_file_has_the_same_version_in_its_address():
    versions = {static_path(name).removesuffix(name) for name in read_static_files()}
    assert len(versions) == 1
    assert re.fullmatch(r"/static/[0-9a-f]{12}/", versions.pop())
    with pytest.raises(KeyError):
        static_path("none.css")


def test_modules_import_what_is_there_and_nothing_from_elsewhere():
    files = read_static_files()
    modules = {name: document.body.decode() for name, document in files.items() if re.match(r"js/[^/]+$", name)}
    assert len(modules) > 5
    for name, text in modules.items():
        for wanted in re.findall(r'(?:from|import\() ?"([^"]+)"', text):
            assert wanted.startswith("./"), (name, wanted)
            assert f"js/{wanted[2:]}" in files, (name, wanted)
        assert "innerHTML" not in text, name
        assert not re.search(r"\beval\(|new Function|document\.write|insertAdjacentHTML", text), name


def test_files_are_small():
    for name, document in read_static_files().items():
        assert len(document.body) < (300_000 if name.endswith(".png") else 200_000), name


def test_the_version_changes_with_every_byte_and_every_name():
    def version(**given):
        return digest_of({name: Document(body, "text/css") for name, body in given.items()})

    versions = [version(a=b"x"), version(a=b"y"), version(b=b"x"), version(a=b"x", b=b""), version(a=b"xx")]
    assert len(set(versions)) == len(versions)
    assert version(a=b"x") == versions[0]


async def test_a_client_that_has_a_file_is_not_sent_it_again():
    first, headers = await ask(static_path(STYLE))
    again, _ = await ask(static_path(STYLE), if_none_match=headers[b"etag"].decode())
    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_every_kind_of_file_has_its_media_type():
    kinds = {name.rsplit(".", 1)[-1]: document.content_type for name, document in read_static_files().items()}
    assert (
        kinds.items()
        <= {
            "css": "text/css; charset=utf-8",
            "js": "text/javascript; charset=utf-8",
            "json": "application/json",
            "png": "image/png",
            "svg": "image/svg+xml",
            "txt": "text/plain; charset=utf-8",
        }.items()
    )


async def test_a_compressed_form_is_made_once():
    handler = static_handler()
    scope = {"path": static_path(STYLE), "headers": [(b"accept-encoding", b"gzip")], "query_string": b""}
    first, again = [await handler(scope, parse_request(scope)) for _ in range(2)]
    assert first.body is again.body
