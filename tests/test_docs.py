"""The documents are complete, current, and lead somewhere."""

import os
import re
import subprocess
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import click
import httpx
import pytest
from pydantic import BaseModel

from rest_bridge import headers as h
from rest_bridge.headers import HeaderBook
from tests.engine.parts import RICH
from tests.engine.toy import FIRST, REGISTRY, SECOND
from tests.served import FACTS, Served, served
from toolserver import written
from toolserver.cli import main
from toolserver.fields import Row, rows
from toolserver.metrics import Metrics
from toolserver.problems import PROBLEMS
from toolserver.registry import Registry
from toolserver.settings import FILE, KEYS, PREFIX, Settings
from toolserver.site import kept_examples

ROOT = Path(__file__).resolve().parent.parent
OPERATING = ROOT / "docs" / "operating.md"
SETTINGS = re.compile(r"(<!-- settings: [^>]*-->\n).*?(<!-- /settings -->)", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def texts() -> str:
    """The documents for people: the README and the pages beside it, without those made from the tools."""
    return "\n".join(map(read, [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]))


# --- everything that can be set, asked or received is described ---


def settings_table() -> str:
    """The table of settings as it has to be."""
    parts = {name for name, field in Settings.model_fields.items() if issubclass_of(field.annotation, BaseModel)}
    listed = [row for row in rows(Settings.model_json_schema()) if row.path not in parts]
    head = ["| setting | environment | type | default | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *map(setting_row, listed), ""])


def issubclass_of(kind: object, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def setting_row(row: Row) -> str:
    kind = row.kind.replace(" (password)", "").replace("|", "\\|")
    name = f"{PREFIX}{row.path.replace('.', '__').upper()}"
    meaning = row.description.split(": FINNHUB")[0].replace("|", "\\|")
    return f"| `{row.path}` | `{name}` | {kind} | {default(row)} | {meaning} |"


def default(row: Row) -> str:
    if row.path == "data_dir":
        return "[see below](#the-data-directory)"
    if isinstance(row.default, dict) and row.default:
        return f"{len(row.default)} of them"
    if row.default is None or row.default in ([], {}):
        return "none"
    shown = ", ".join(row.default) if isinstance(row.default, list) else str(row.default)
    return f"`{shown.lower() if isinstance(row.default, bool) else shown}`"


def test_every_setting_stands_in_the_table_as_it_is():
    text = read(OPERATING)
    wanted = SETTINGS.sub(lambda found: found[1] + settings_table() + found[2], text)
    if os.environ.get("UPDATE_DOCUMENTS"):
        OPERATING.write_text(wanted, encoding="utf-8")
        text = wanted

    assert "## Settings" in text
    assert SETTINGS.search(text)
    missing = [row for row in settings_table().splitlines() if row not in text.splitlines()]
    assert not missing, "UPDATE_DOCUMENTS=1 writes these rows:\n" + "\n".join(missing)
    assert text == wanted


def test_every_key_of_a_source_is_described():
    assert [key for key in KEYS if f"| `{key}` |" not in read(OPERATING)] == []


def test_settings_shown_as_an_example_are_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```toml\n(.*?)^```", read(OPERATING), re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        tomllib.loads(example)
        (tmp_path / FILE).write_text(example, encoding="utf-8")
        assert Settings().base_url == "https://data.example"
        assert Settings().limits.trusted_proxies == ["127.0.0.1/32", "::1/128"]


def test_every_error_code_is_described():
    assert [code for code in PROBLEMS if f"`{code}`" not in texts()] == []


def verbs(group: click.Group, path: str = "toolserver") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from verbs(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def test_every_command_is_described():
    assert [verb for verb in verbs(main) if not re.search(rf"{verb}\b", texts())] == []


def test_every_metric_is_described():
    families = list(Metrics().registry.collect())
    names = [f"{f.name}_total" if f.type == "counter" else f.name for f in families]

    assert names
    assert [name for name in names if f"| `{name}` |" not in read(OPERATING)] == []


@asynccontextmanager
async def asked_in_every_way() -> AsyncIterator[tuple[Served, list[httpx.Response]]]:
    """A service, and its answers to every kind of request."""
    found: list[httpx.Response] = []
    async with served(REGISTRY, limits=True) as s:
        for url in (FIRST, SECOND):
            s.upstreams.serves(url, {"value": 3})
        bearer = {"authorization": f"Bearer {RICH}"}
        free = await s.client.get("/api/number")
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_report"}}
        found += [
            free,
            await s.client.get("/api/number", headers={"if-none-match": free.headers["etag"]}),
            await s.client.get("/api/number"),
            await s.client.get("/api/number?add=x"),
            await s.client.get("/api/broken"),
            await s.client.get("/api/nothing"),
            await s.client.post("/api/number"),
            await s.client.get("/api/pro/report"),
            await s.client.get("/api/pro/report", headers=bearer),
            await s.client.get("/docs", headers={"accept-encoding": "gzip"}),
            await s.client.get("/readyz"),
            await s.client.options("/api/number"),
            await s.client.options("/api/mcp"),
            await s.client.get("/api/mcp"),
            await s.client.get("/api/mcp", headers={"accept": "text/event-stream"}),
            await s.client.post("/api/mcp", json=call, headers=bearer),
            await s.client.post("/api/mcp", json=call),
        ]
        yield s, found


def headers_in_the_code() -> set[str]:
    """Every name of a header in the module that makes them, whatever it takes to have it sent."""
    book = HeaderBook(FACTS)
    constants = {value[0].decode() for value in vars(h).values() if isinstance(value, tuple) and len(value) == 2}
    told = {name.decode() for name, _ in [*book.always, *book.preflight, book.pricing]}
    return told | constants | {name.strip().lower() for name in h.EXPOSED.split(",")}


async def test_every_response_header_is_described():
    async with asked_in_every_way() as (_, answers):
        sent = {name for answer in answers for name in answer.headers}
        statuses = {answer.status_code for answer in answers}

    assert {200, 204, 304, 400, 402, 404, 405, 429, 500} <= statuses
    table = read(OPERATING).partition("| response header |")[2].partition("\n\n")[0].lower()
    described = set(re.findall(r"`([\w-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines() if "|" in row)))
    assert sorted((sent | headers_in_the_code()) - described) == []


def test_every_request_header_a_page_may_send_is_described():
    table = read(OPERATING).partition("| request header |")[2].partition("\n\n")[0].lower()
    assert [name for name in h.ALLOWED.lower().split(", ") if f"`{name}`" not in table] == []


# --- what is generated is current ---


def test_the_generated_pages_say_what_the_tools_say():
    wanted = written.generated(Registry.load("tools"), kept_examples(), ROOT)
    outdated = [str(path) for path, text in wanted.items() if not is_current(ROOT / path, text)]

    assert not outdated, "`toolserver docs` brings them up to date: " + ", ".join(outdated)


def is_current(path: Path, text: str) -> bool:
    return path.is_file() and read(path) == text


def test_no_page_or_example_is_left_of_a_tool_that_is_gone():
    names = {operation.name for operation in Registry.load("tools")}

    assert {path.stem for path in (ROOT / "docs" / "tools").iterdir()} <= names
    assert {path.stem for path in (ROOT / "catalog" / "examples").iterdir()} <= names


@pytest.mark.live
@pytest.mark.timeout(120)
def test_the_examples_are_what_the_tools_answer_today():
    outdated = written.write_documents(Settings(tools=["tools"]), check=True, root=ROOT)

    assert not outdated, "`toolserver docs` brings them up to date: " + ", ".join(map(str, outdated))


# --- what is tracked leads somewhere and tells nothing it should not ---


@cache
def tracked() -> list[str]:
    """The files of the project, also those not yet committed."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(name: str) -> Iterator[str]:
    text = read(ROOT / name)
    for target in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        page = (ROOT / name).parent / path if path else ROOT / name
        if not page.exists() or (anchor and page.suffix == ".md" and anchor not in anchors(read(page))):
            yield f"{name}: {target}"


def test_every_relative_link_leads_somewhere():
    pages = [name for name in tracked() if name.endswith(".md")]

    assert "README.md" in pages
    assert [link for name in pages for link in broken_links(name)] == []


def test_a_broken_link_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_docs.ROOT", tmp_path)
    (tmp_path / "a.md").write_text(
        "# One two\n[x](#one-two) [y](#two) [z](b.md) [w](https://w.example)\n", encoding="utf-8"
    )

    assert list(broken_links("a.md")) == ["a.md: #two", "a.md: b.md"]


def joined(*parts: str) -> str:
    """A text that does not stand in this file as it is."""
    return "".join(parts)


FORBIDDEN = {
    "paths of a machine": rf"(^|[^\w./-])/({joined('wo', 'rk')}|{joined('ro', 'ot')}|home/[a-z]+|Users/[A-Za-z]+)/",
    "hosts of package indexes": "|".join(
        joined(*parts)
        for parts in (
            ("py", r"pi\.org"),
            ("python", r"hosted\.org"),
            ("npm", r"js\.(org|com)"),
            ("crates", r"\.io"),
            ("deb", r"\.debian"),
            ("rubygems", r"\.org"),
            (r"proxy\.gol", r"ang\.org"),
        )
    ),
    "how the project is made": "|".join(
        joined(*parts)
        for parts in (
            ("sub-?", "agents?"),
            ("the ", "lead (commits|wires|does)"),
            ("helper", "s? (session|guide|task)"),
            ("as (an|your) ", "AI"),
            ("generated ", "(by|with) (AI|Claude|an LLM)"),
            ("co-authored-", "by"),
            ("another ", "worker"),
            ("your ", "last message"),
        )
    ),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_tells(what):
    tracked()
    search = ["git", "grep", "--untracked", "-nIiE", FORBIDDEN[what]]
    done = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode in (0, 1), done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("paths of a machine", joined("see /wo", "rk/main/x")),
        ("paths of a machine", joined("/ho", "me/ada/x")),
        ("hosts of package indexes", joined("https://py", "pi.org/simple")),
        ("how the project is made", joined("Co-authored-", "By: a")),
    ],
)
def test_what_is_looked_for_would_be_found(what, text):
    assert re.search(FORBIDDEN[what], text, re.IGNORECASE)
    assert not re.search(FORBIDDEN[what], "work/main, the home page /docs/ and /api/", re.IGNORECASE)


def test_every_document_is_linked_to_from_another_one():
    documents = {path.name for path in (ROOT / "docs").glob("*.md")}
    linked = {Path(target.partition("#")[0]).name for target in LINK.findall(texts())}

    assert documents <= linked
