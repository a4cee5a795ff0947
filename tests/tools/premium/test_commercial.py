"""With licence_policy=commercial a buyer reads before paying what an answer lacks, and nothing barred is passed on.

Text that only barred publishers have is planted in their bodies, so that a byte of it shows wherever it goes.
"""

import base64
import json
import logging
import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import httpx
import pytest

from tests.requirements import proves
from tests.served import all_tools
from tests.specified import PREMIUM
from tests.tools.premium.sections import SECTIONS, shown
from tests.tools.premium.store import Store, store
from tests.tools.premium.test_licences import KEPT, WHOLE
from toolserver.cli.docs import OWN
from toolserver.settings import SourceSettings
from toolserver.upstream.source import Source
from toolserver.world.model import ROUTES, Ask

CONTRACTS = {"Polymarket": "resale, by mail", "CNBC": "distribution over the API", "CoinGecko.markets": "Enterprise"}
OFFERS = {"keyless": {}, "three contracts": CONTRACTS}
MARK = "planted in a barred body"
SENTENCE = re.compile(r"Always null here, for licence reasons: (.*?)\.(?= [A-Z]|\s*$|<)")


class Offer(NamedTuple):
    """What was said of a payload before it was paid for, by place, and what its answer lacks then."""

    told: dict[str, set[str]]
    missing: set[str]


def source_of(request: httpx.Request) -> str:
    """The public name of the source whose route a request to the simulated world takes."""
    host, _, path = request.url.path.removeprefix("/u/").partition("/")
    headers = {name.lower(): value for name, value in request.headers.items()}
    found = ROUTES.find(Ask(request.method, host, f"/{path}", request.url.query.decode(), headers, request.content))
    assert found is not None, request.url
    return found[0].source


def mark_texts(value: Any) -> Any:
    """The value with the mark behind every text of several words."""
    if isinstance(value, dict):
        return {name: mark_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [mark_texts(inner) for inner in value]
    return f"{value} {MARK}" if isinstance(value, str) and value.count(" ") > 1 else value


def mark_body(body: bytes) -> bytes:
    """A JSON or RSS body whose texts have the mark; a body in another form is returned as it is."""
    if body[:1] in b"{[":
        return json.dumps(mark_texts(json.loads(body))).encode()
    if body[:1] == b"<":
        root = ElementTree.fromstring(body)
        for element in root.iter():
            element.text = mark_texts(element.text)
        return ElementTree.tostring(root)
    return body


@contextmanager
def written_log() -> Iterator[list[str]]:
    """Every line that the service logs at any level, with what it was given."""
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.getMessage()} {record.__dict__}")

    handler, own = Handler(), [logging.getLogger(name) for name in ("toolserver", "tools", "rest_bridge")]
    levels = [logger.level for logger in own]
    logging.disable(logging.NOTSET)
    for logger in own:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield lines
    for logger, level in zip(own, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a data directory and every cell of its databases, unpacked."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield path.name, content
            if content.startswith(b"SQLite format 3"):
                yield from read_cells(path)


def read_cells(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for cell in row:
                    if isinstance(cell, bytes):
                        yield f"{path.name}: {table}", unpack(cell)


def unpack(cell: bytes) -> bytes:
    try:
        return zlib.decompress(cell)
    except zlib.error:
        return cell


def is_barred(source: Source[Any, Any], contracts: Mapping[str, str]) -> bool:
    """Whether a source may not be sold on, by its own terms and without a contract about it or its publisher."""
    return source.licence.kind not in KEPT and not contracts.keys() & {source.name, source.name.partition(".")[0]}


def plant(s: Store, barred: set[str]) -> None:
    s.upstreams.edit = lambda request, body: mark_body(body) if source_of(request) in barred else body


async def read_offer(s: Store, name: str) -> Offer:
    """What each page and refusal says about a payload, and then the answer to a paid call."""
    tool, everything = PREMIUM[name].tool, set(SECTIONS[name])
    refusal = (await s.client.get(f"/api/pro/{name}")).json()
    meta = {one["tool"]: one for one in (await s.client.get("/api/meta/pro")).json()["endpoints"]}
    description = s.service.registry[tool].description
    texts = {"402": refusal["detail"], "description": description}
    if any(one.name == tool for one in s.tools):
        texts["page"] = (await s.client.get(f"/t/{tool}")).text
        texts["tools/list"] = next(one.description for one in s.tools if one.name == tool)
    told = {place: read_sentence(text) for place, text in texts.items()}
    if tool in meta:
        told["meta"] = set(meta[tool].get("withheld", ()))
    answer = await s.buy(name, WHOLE.get(name, ""), **{"idempotency-key": f"a-key-for-{name}"})
    if answer.status_code != 200:
        return Offer(told, everything)
    body = answer.json()
    return Offer(told, {section for section in everything if shown(body, name, section) is None})


def read_sentence(text: str) -> set[str]:
    match = SENTENCE.search(text)
    return set(match[1].split(", ")) if match else set()


def list_marked(s: Store, folder: Path, answers: list[str], lines: list[str]) -> set[str]:
    """Where the mark is: in answers, in files of the data directory or in the log."""
    places = [*(("answer", text) for text in answers), *read_files(folder), *(("log", line) for line in lines)]
    return {place for place, text in places if MARK in str(text)}


@proves("pro.licence-told")
@pytest.mark.parametrize("offer", OFFERS)
async def test_each_payload_lacks_what_was_said_before_payment_and_nothing_barred_is_asked_kept_or_logged(
    tmp_path, offer
):
    barred = {source.name for source in all_tools().sources if is_barred(source, OFFERS[offer])}
    sources = SourceSettings(licence_policy="commercial", contracts=OFFERS[offer])
    async with store(tmp_path, sources=sources) as s:
        plant(s, barred)
        with written_log() as lines:
            offers = {name: await read_offer(s, name) for name in PREMIUM}
            answers = [(await s.buy(name, WHOLE.get(name, ""))).text for name in PREMIUM]
        asked = {source_of(request) for request in s.upstreams.asked}

    for name, (told, missing) in offers.items():
        sourceless = {section for section, sources in SECTIONS[name].items() if sources <= barred}
        assert missing == sourceless, name
        assert {place: found ^ missing for place, found in told.items() if found != missing} == {}, name
        is_sold = missing < SECTIONS[name].keys()
        assert told.keys() == {"402", "description"} | ({"meta", "page", "tools/list"} if is_sold else set()), name
    assert asked
    assert not asked & barred
    assert list_marked(s, tmp_path, answers, lines) == set()


async def test_what_is_planted_shows_in_answers_and_files_where_its_source_is_allowed(tmp_path):
    async with store(tmp_path) as s:
        plant(s, {source.name for source in all_tools().sources})
        with written_log() as lines:
            logging.getLogger("toolserver").info(MARK)
            answers = [(await s.buy(name, **{"idempotency-key": f"a-key-for-{name}"})).text for name in PREMIUM]

    marked = list_marked(s, tmp_path, answers, lines)
    assert {"answer", "log", "answers.sqlite3: body", "answers.sqlite3: answer"} <= marked
    assert any(place.startswith("ledger.sqlite3: ") for place in marked)  # the results kept for an Idempotency-Key


async def test_with_servers_of_ones_own_no_public_host_of_theirs_is_asked_and_no_password_is_kept(tmp_path):
    own = {name: OWN[name] for name in ("ETH_RPC_URL", "BITCOIN_RPC_URL")}
    served = {source.name for source in all_tools().sources if source.terms.keys() & own.keys()}
    async with store(tmp_path, sources=SourceSettings(licence_policy="commercial", keys=own)) as s:
        with written_log() as lines:
            answers = [await s.buy(name, WHOLE.get(name, "")) for name in ("whales", "crypto-deep", "exchange-flows")]
        requests = [request for request in s.upstreams.asked if source_of(request) in served]

    whales, deep, flows = (answer.json() for answer in answers)
    sold = (whales["btc_whales_unconfirmed"], deep["network_btc"], flows["spot_eth_usd"])
    assert None not in (*sold, *deep["network_btc"].values())
    hosts = {request.url.path.removeprefix("/u/").partition("/")[0] for request in requests}
    assert hosts == {"ethereum.example", "bitcoin.example"}
    places = [
        *(("answer", answer.text) for answer in answers),
        *read_files(tmp_path),
        *(("log", line) for line in lines),
    ]
    login = base64.b64encode(b"sim-user:sim-password").decode()
    assert [place for place, text in places if "sim-password" in str(text) or login in str(text)] == []
