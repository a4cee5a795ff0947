"""Check that the documents are complete and current, and that their links work."""

import inspect
import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import httpx
import pytest
from pydantic import BaseModel

from rest_bridge import asgi
from rest_bridge import headers as h
from rest_bridge.headers import HeaderBook
from rest_bridge.pages.operators import AS_JSON
from tests.calls.parts import RICH
from tests.calls.toy import FIRST, REGISTRY, SECOND
from tests.deploy.test_alarms import watch
from tests.requirements import proves
from tests.served import FACTS, Served, served
from toolserver.cli.docs import compose_documents, generate, update_files
from toolserver.cli.main import main
from toolserver.core.metrics import ConnectionCounts, Metrics
from toolserver.core.waiting_room import WaitCounts
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.field_table import Row, rows
from toolserver.registry.meaning import find_meanings
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import LimitFacts
from toolserver.registry.site_pages import PAGES
from toolserver.registry.terms import find_readings
from toolserver.serving.packaged_texts import read_examples, read_licence_table
from toolserver.settings import FILE, KEYS, PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SETTINGS_PAGE, HEADERS_PAGE, MONITORING = DOCS / "settings.md", DOCS / "headers.md", DOCS / "monitoring.md"
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
    """The tables of settings as they have to be: one for those at the top, and one for each part."""
    parts = {name for name, field in Settings.model_fields.items() if issubclass_of(field.annotation, BaseModel)}
    listed = [row for row in rows(Settings.model_json_schema()) if row.path not in parts]
    tops = [row for row in listed if "." not in row.path]
    groups = {part: [row for row in listed if row.path.startswith(f"{part}.")] for part in sorted(parts)}
    return "".join(settings_group(heading, group) for heading, group in {"The service": tops, **groups}.items())


def settings_group(heading: str, group: list[Row]) -> str:
    head = ["| setting, and its name in the environment | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join([f"\n### {heading}\n", *head, *map(setting_row, group), ""])


def issubclass_of(kind: object, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def setting_row(row: Row) -> str:
    kind = row.kind.replace(" (password)", "").replace("|", "\\|")
    name = f"{PREFIX}{row.path.replace('.', '__').upper()}"
    meaning = row.description.split(": FINNHUB")[0].replace("|", "\\|")
    return f"| `{row.path}` `{name}` | {kind} | {default(row)} | {meaning} |"


def default(row: Row) -> str:
    if row.path == "data_dir":
        return "[of the platform](backup-and-upgrade.md#the-data-directory)"
    if isinstance(row.default, dict) and row.default:
        return f"{len(row.default)} of them"
    if row.default is None or row.default in ([], {}):
        return "none"
    shown = ", ".join(row.default) if isinstance(row.default, list) else str(row.default)
    return f"`{shown.lower() if isinstance(row.default, bool) else shown}`"


def test_every_setting_stands_in_the_table_as_it_is():
    text = read(SETTINGS_PAGE)
    wanted = SETTINGS.sub(lambda found: found[1] + settings_table() + found[2], text)
    if os.environ.get("UPDATE_DOCUMENTS"):
        SETTINGS_PAGE.write_text(wanted, encoding="utf-8")
        text = wanted

    assert SETTINGS.search(text)
    missing = [row for row in settings_table().splitlines() if row not in text.splitlines()]
    assert not missing, "UPDATE_DOCUMENTS=1 writes these rows:\n" + "\n".join(missing)
    assert text == wanted


def test_every_key_of_a_source_is_described():
    assert [key for key in KEYS if f"| `{key}` |" not in read(SETTINGS_PAGE)] == []


def test_settings_shown_as_an_example_are_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(
        r"^```toml\n(.*?)^```", read(SETTINGS_PAGE) + read(DOCS / "reverse-proxy.md"), re.DOTALL | re.MULTILINE
    )
    assert len(examples) == 3
    for example in examples:
        tomllib.loads(example)
        (tmp_path / FILE).write_text(example, encoding="utf-8")
        if "contracts" in example:
            assert list(Settings().sources.contracts) == ["CoinGecko", "Polymarket.markets_by_volume"]
            continue
        assert Settings().base_url == "https://data.example"
        assert Settings().limits.trusted_proxies == ["127.0.0.1/32", "::1/128"]


def test_every_error_code_is_described():
    assert [code for code in PROBLEMS if f"`{code}`" not in texts()] == []


def test_every_page_is_described():
    text = read(ROOT / "docs" / "pages.md")
    assert [page.path for page in PAGES if f"| `{page.path}` | {page.summary} |" not in text] == []


def test_every_tool_is_described():
    listed, pages = read(ROOT / "docs" / "tools.md"), {path.stem for path in (ROOT / "docs" / "tools").glob("*.md")}
    names = [operation.name for operation in Registry.load("tools")]
    assert [name for name in names if f"tools/{name}.md" not in listed] == []
    assert set(names) == pages


def test_each_cell_of_the_comparisons_has_a_link_and_a_date():
    rows = re.findall(r"^\| (?!question|-)(.*) \|$", read(ROOT / "docs" / "comparisons.md"), re.MULTILINE)
    cells = [cell for row in rows for cell in row.split(" | ")[1:] if cell != "–"]
    assert len(cells) > 40
    assert [cell for cell in cells if not re.search(r"\]\([^)]+\) 20\d\d-\d\d-\d\d\)$", cell)] == []


def test_the_readme_shows_a_still_and_a_moving_picture_and_proves_five_claims():
    text = read(ROOT / "README.md")
    pictures = re.findall(r"!\[[^\]]+\]\((docs/pictures/[\w.-]+)\)", text)
    assert [Path(name).suffix for name in pictures] == [".png", ".svg"]
    assert "@keyframes" in read(ROOT / "docs" / "pictures" / "session.svg")
    claims = re.search(r"\| what you can rely on \| proof \|\n\|---\|---\|\n((?:\|.*\n)+)", text)
    assert claims is not None
    assert len(claims[1].splitlines()) == 5
    assert all(re.search(r"\]\(docs/", line) for line in claims[1].splitlines())


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "pictures").glob("*"))
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size >= 300_000] == []


def verbs(group: click.Group, path: str = "toolserver") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def test_every_command_is_described():
    assert [verb for verb in verbs(main) if not re.search(rf"{verb}\b", texts())] == []


def every_metric() -> Metrics:
    """Metrics with all that a service adds to them where it follows a ledger, takes payments or has a Redis."""
    metrics = Metrics()
    metrics.follow(lambda: ("closed", 0, 0.0, 0, None))
    metrics.watch_payments(lambda: (0, 0.0, 0))
    metrics.watch_chain_book(lambda: (0, 0.0, 0, False))
    metrics.follow_shared_memory(lambda: (True, 0, 0))
    metrics.follow_budgets(list)
    metrics.follow_announcements(list)
    metrics.follow_closed(list, list)
    metrics.follow_connections(lambda: ConnectionCounts(8, 1, {"waiting": 1}, {"deadline": 1}))
    metrics.follow_waits(lambda: WaitCounts("ledger", 1, 8, {"late": 1}))
    watch(metrics)
    return metrics


def test_every_metric_is_described():
    families = list(every_metric().registry.collect())
    added = set(re.findall(r"metrics\.(\w+)\(", inspect.getsource(every_metric)))
    assert {name for name in vars(Metrics) if name.startswith(("follow", "watch"))} == added
    names = [f"{f.name}_total" if f.type == "counter" else f.name for f in families]

    assert names
    assert [name for name in names if f"| `{name}` |" not in read(MONITORING)] == []


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
    table = read(HEADERS_PAGE).partition("| response header |")[2].partition("\n\n")[0].lower()
    described = set(re.findall(r"`([\w-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines() if "|" in row)))
    assert sorted((sent | headers_in_the_code()) - described) == []


def test_every_request_header_a_page_may_send_is_described():
    table = read(HEADERS_PAGE).partition("| request header |")[2].partition("\n\n")[0].lower()
    assert [name for name in h.ALLOWED.lower().split(", ") if f"`{name}`" not in table] == []


def test_every_request_header_that_is_read_is_described():
    table = read(HEADERS_PAGE).partition("| request header |")[2].partition("\n\n")[0].lower()
    read_ones = {name.decode() for name in asgi.HEADER_FIELDS} - {"content-length"}  # of the protocol
    assert sorted(name for name in read_ones if f"`{name}`" not in table) == []


def test_what_is_served_beside_the_metrics_is_described():
    text = read(MONITORING)
    assert [path for path in ("/metrics", AS_JSON) if f"`{path}`" not in text and f"`GET {path}`" not in text] == []
    assert "## The operators' page" in text


# --- what the documents claim is so ---


def shell_blocks(text: str) -> list[str]:
    """The commands of a page, one each; a line that ends in a backslash goes on."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def request_of(command: str) -> dict[str, Any]:
    """The request that a `curl` line sends, for httpx."""
    words = iter(shlex.split(command.replace("$TOKEN", RICH))[1:])
    request: dict[str, Any] = {"method": "GET", "headers": {}}
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            request["headers"][name] = value
        elif word == "-d":
            request |= {"method": "POST", "content": next(words)}
        elif not word.startswith("-"):
            request["url"] = word.removeprefix("http://").replace("localhost:8080", FACTS.base_url)
    return request


SELLS_NOTHING_HERE = "/api/payment/buy-credits"  # the service of the tests sells no credits; the demo does


async def test_every_curl_of_the_readme_is_answered_as_it_stands():
    asked = [request_of(line) for line in shell_blocks(read(ROOT / "README.md")) if line.startswith("curl ")]
    assert len(asked) == 5
    async with served() as s:
        found = {request["url"]: (await s.client.request(**request)) for request in asked}

    statuses = {url.removeprefix(FACTS.base_url): answer.status_code for url, answer in found.items()}
    assert statuses.pop(SELLS_NOTHING_HERE) in (200, 404)
    assert set(statuses.values()) == {200}, statuses
    assert all("error" not in answer.json() for url, answer in found.items() if not url.endswith(SELLS_NOTHING_HERE))


def test_the_readme_fits_on_a_page_or_two_and_names_the_prices_of_the_registry():
    text = " ".join(read(ROOT / "README.md").split())
    prices = sorted({operation.credits for operation in Registry.load("tools") if operation.credits})

    assert len(read(ROOT / "README.md").splitlines()) < 120
    assert f"cost {prices[0]} or {prices[1]} credits a call" in text
    assert len(prices) == 2
    assert f"1 USD buys {CREDITS_PER_USD} credits" in text
    assert f"one call per endpoint every {LimitFacts().free_spacing_s} seconds" in text


@pytest.mark.parametrize("parameter", ["format=openai", "format=raw", "format=gemini", "format=bedrock"])
async def test_the_definitions_that_the_readme_names_are_served(parameter):
    async with served(REGISTRY) as s:
        assert (await s.client.get(f"/api/llm-tools?{parameter}")).status_code == 200


def test_every_command_in_the_documents_exists():
    known = {tuple(verb.split()[1:]) for verb in verbs(main)}
    groups = {verb[0] for verb in known}
    said = re.findall(r"`(?:\.venv/bin/)?toolserver ([a-z-]+)(?: ([a-z-]+))?", texts())

    assert len(said) > 20
    assert [words for words in said if words[0] not in groups] == []


@pytest.mark.parametrize("name", ["reading-the-code.md", "architecture.md"])
def test_every_file_that_a_guide_leads_to_is_there(name):
    paths = set(re.findall(r"`((?:toolserver|tools|rest_bridge|catalog|tests)/[\w/.]*)`", read(ROOT / "docs" / name)))

    assert len(paths) >= 5
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_the_glossary_has_at_most_25_words_each_of_them_once():
    words = re.findall(r"^\| ([\w ]+) \|", read(ROOT / "docs" / "glossary.md"), re.MULTILINE)[1:]

    assert 15 <= len(words) <= 25
    assert len(words) == len(set(words))


def test_the_index_leads_to_every_document():
    linked = LINK.findall(read(ROOT / "docs" / "README.md"))

    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= set(linked)


@proves("operating.names")
def test_no_file_installs_a_package_of_somebody_else():
    """The name `toolserver` on the public index is not ours."""
    pages = [name for name in tracked() if name.endswith((".md", ".py", ".html", ".json", ".toml", ".ts", ".svg"))]
    found = [name for name in pages if re.search(r"(pip install|uvx|pipx run) '?toolserver", read(ROOT / name))]

    assert found == []


# --- what is generated is current ---


def test_the_generated_pages_say_what_the_tools_say():
    meanings, readings = find_meanings(["tools"]), find_readings(["tools"])
    wanted = generate(Registry.load("tools"), read_examples(), read_licence_table(), ROOT, meanings, readings)
    outdated = [str(path) for path, text in wanted.items() if not is_current(ROOT / path, text)]

    assert not outdated, "`toolserver docs` brings them up to date: " + ", ".join(outdated)


def is_current(path: Path, text: str) -> bool:
    return path.is_file() and read(path) == text


def test_no_page_or_example_is_left_of_a_tool_that_is_gone():
    names = {operation.name for operation in Registry.load("tools")}

    assert {path.stem for path in (ROOT / "docs" / "tools").iterdir()} <= names
    assert {path.stem for path in (ROOT / "catalog" / "examples").iterdir()} <= names
    assert {path.stem for path in (ROOT / "catalog" / "samples").iterdir()} <= names


@pytest.mark.live
@pytest.mark.timeout(600)
def test_the_examples_are_what_the_tools_answer_today():
    outdated = update_files(compose_documents(Settings(tools=["tools"])), check=True, root=ROOT)

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


def broken_links(name: str, root: Path = ROOT) -> Iterator[str]:
    text = read(root / name)
    for target in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        page = (root / name).parent / path if path else root / name
        if not page.exists() or (anchor and page.suffix == ".md" and anchor not in anchors(read(page))):
            yield f"{name}: {target}"


def test_every_relative_link_leads_somewhere():
    pages = [name for name in tracked() if name.endswith(".md")]

    assert "README.md" in pages
    assert [link for name in pages for link in broken_links(name)] == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "a.md").write_text(
        "# One two\n[x](#one-two) [y](#two) [z](b.md) [w](https://w.example)\n", encoding="utf-8"
    )

    assert list(broken_links("a.md", tmp_path)) == ["a.md: #two", "a.md: b.md"]


def unreadable_parts(name: str, root: Path = ROOT) -> Iterator[str]:
    """The blocks that do not parse as what they claim to be, and the links that are no https address of a host."""
    text = read(root / name)
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        try:
            if language == "json":
                json.loads(body if body.lstrip().startswith(("{", "[")) else f"{{{body}}}")  # or members of an object
            elif language == "toml":
                tomllib.loads(body)
            elif language == "sh":
                subprocess.run(["bash", "-n"], input=body, capture_output=True, text=True, check=True)
        except (ValueError, subprocess.CalledProcessError) as failure:
            yield f"{name}: {language}: {failure}"
    for target in re.findall(r"\]\(([a-z]+:[^)\s]*)\)", FENCE.sub("", text)):
        parts = urlsplit(target)
        if parts.scheme != "https" or "." not in (parts.hostname or ""):
            yield f"{name}: {target}"


def test_every_block_parses_and_every_link_to_another_site_is_an_https_address():
    pages = [name for name in tracked() if name.endswith(".md") and not name.startswith("rest_bridge/pages/")]

    assert [part for name in pages for part in unreadable_parts(name)] == []


def test_a_block_that_does_not_parse_and_a_link_without_a_host_are_noticed(tmp_path):
    text = '```json\n"a": 1\n```\n```json\n{"a": }\n```\n```sh\nif\n```\n[x](http://w.example) [y](https://w.example)\n'
    (tmp_path / "a.md").write_text(text, encoding="utf-8")

    assert [part.split(":")[1].strip() for part in unreadable_parts("a.md", tmp_path)] == ["json", "sh", "http"]


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
