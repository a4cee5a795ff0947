"""The commands of documents and pages do what they say when they are pasted: each runs against a demo of its own."""

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live.processes import ROOT, UNLIMITED, Program, environment, started
from tests.live.programs import NODE, installed, ran

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
PRINTED = "\n%{http_code}"
PENDING = '"payment_pending"'  # the document says to send the same request again
PROGRAM = re.compile(r"^```(python|js)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PRINTS = {  # what the programs of a document print, in their order; each stands in Python and in JavaScript
    "billing.md": (
        r"0x\w{40} 5000000 svc_buy_[0-9a-f]{32}",
        r"svc_live_[0-9a-f]{64} 250",
        r"\d+ rcpt_[0-9a-f]{32}",
    ),
    "webhooks.md": (r"wh_[0-9a-f]{16} whsec_\S+",),
}
UNSAID = "/t/payment_topup"  # the amount is the buyer's to choose: the page's call names none
OWN_ID = re.compile("_0123456789abcdef|svc_buy_")  # no caller has what an example names
LAST = "reissue_cancel"  # it concerns the token of all other calls


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


@pytest.fixture(scope="module")
def variables(program: Program) -> dict[str, str]:
    """What the documents let a reader keep: the address, a token, and the hash and the memo of a purchase."""
    with httpx.Client(trust_env=False, timeout=30) as client:
        quote = client.post(f"{program.url}/api/payment/buy-credits", json={"amount_usd": 5}).raise_for_status().json()
        transfer = {"to": quote["wallet"], "amount_usd": 5}
        paid = client.post(f"{program.ready['world_url']}/_sim/chain/transfer", json=transfer).raise_for_status().json()
    token = program.ready["token"]
    return {
        "BASE": program.url,
        "TOKEN": token,
        "TOOLSERVER_TOKEN": token,
        "TX_HASH": paid["tx_hash"],
        "MEMO": quote["memo"],
        "PATH": os.environ["PATH"],
    }


def paste(script: str, variables: dict[str, str]) -> tuple[int, str]:
    """Run lines that end with one curl. Return the status of its response, and the response."""
    given = environment(variables)
    words = ["bash", "-euo", "pipefail", "-c", f"curl() {{ command curl -s -w '{PRINTED}' \"$@\"; }}\n{script}"]
    done = subprocess.run(words, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, script + done.stderr
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def calls(document: Path) -> list[str]:
    """The calls of a document, each with the assignments before it in its block."""
    found = []
    for block in BLOCK.findall(document.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", "").splitlines()
        before: list[str] = []
        for line in lines:
            if line.startswith("curl "):
                found.append("\n".join([*before, line]))
            elif re.match(r"[a-z_]+=", line):
                before.append(line)
    return found


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.name != "ten-minutes.md"], ids=lambda d: d.name)
def test_every_call_of_a_document_succeeds(program: Program, variables: dict[str, str], document: Path) -> None:
    """The guide of ten minutes is one script, and has its own test."""
    refused = {}
    for call in calls(document):
        status, body = paste(call.replace("localhost:8080", program.url.removeprefix("http://")), variables)
        if status >= 300 and not (status == 409 and PENDING in body):
            refused[call] = (status, body)
    assert refused == {}


def programs(document: str, language: str) -> list[str]:
    """The programs of a document that call this service. Receivers, which wait for its calls, are tried elsewhere."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    return [code for written, code in PROGRAM.findall(text) if written == language and "BASE" in code]


@pytest.mark.parametrize(("language", "ending"), [("python", "py"), ("js", "mjs")])
@pytest.mark.parametrize("document", PRINTS)
def test_every_example_does_the_same_in_other_languages(
    program: Program, variables: dict[str, str], tmp_path: Path, document: str, language: str, ending: str
) -> None:
    installed(runs := {"python": Path(sys.executable), "js": NODE}[language])
    found = programs(document, language)
    assert len(found) == len(PRINTS[document])
    for code, printed in zip(found, PRINTS[document], strict=True):
        file = tmp_path / f"example.{ending}"
        file.write_text(code, encoding="utf-8")
        done = ran(runs, file, **variables)
        assert done.returncode == 0, code + done.stderr
        assert re.fullmatch(printed, done.stdout.strip()), done.stdout


def test_the_documents_have_calls() -> None:
    assert {d.name for d in DOCUMENTS if calls(d)} >= {"README.md", "billing.md", "webhooks.md", "ten-minutes.md"}


def test_the_call_on_each_page_is_one_that_the_service_accepts(program: Program, variables: dict[str, str]) -> None:
    refused, count = {}, 0
    with httpx.Client(base_url=program.url, trust_env=False, timeout=30) as client:
        paths = re.findall(r'"(/t/[a-z0-9_-]+)"', client.get("/docs").text)
        for path in ["/", *sorted(dict.fromkeys(paths), key=lambda path: path.endswith(LAST))]:
            text = re.sub(r"</?span[^>]*>", "", client.get(path).raise_for_status().text)  # colours of code
            for call in map(html.unescape, re.findall(r"<code[^>]*>(curl .*?)</code>", text, re.DOTALL)):
                count += 1
                status, body = paste(call, variables)
                is_of_own_id = status == 404 and '"not_found"' in body and OWN_ID.search(call)
                if status >= 300 and not is_of_own_id and not path.endswith(LAST) and path != UNSAID:
                    refused[path] = (call, status, body[:300])
    assert refused == {}
    assert count > 50
