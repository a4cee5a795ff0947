"""A moving picture for the README: what a real demo answered to the commands of its first minute, as an animated SVG.

Each command is shown with its answer for some seconds, one after the other. Who wants less motion sees the first.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import httpx

WIDTH, LINE, TOP, LEFT = 860, 20, 58, 24
SECONDS = 4.5  # for each command
MOST_LINES, MOST_LETTERS = 10, 96
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #e8ece9; white-space: pre; }
.prompt { fill: #6ad0ae; } .soft { fill: #a5b0aa; } .title { font-family: system-ui, sans-serif; fill: #a5b0aa; }
.screen { opacity: 0; } .screen:first-of-type { opacity: 1; }
"""


def record_session(site: str, token: str) -> list[tuple[str, list[str]]]:
    """Make the calls of a first minute, and return each command with the lines of its answer, shortened."""
    short = "localhost:8080"  # where a demo listens that is told nothing else
    bearer = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=site, timeout=30) as client:
        price = client.get("/api/btc-price").raise_for_status().json()
        quakes = client.get("/api/earthquake?limit=2").raise_for_status().json()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        call = message | {"params": {"name": "premium_correlation_matrix", "arguments": {}}}
        refused = client.post("/api/mcp", json=call).raise_for_status().json()
        paid = client.get("/api/pro/correlation-matrix", headers=bearer).raise_for_status()
        receipt = {"receipt": paid.headers["x-service-receipt"]}
        checked = client.post("/api/receipt/verify", json=receipt).raise_for_status().json()
    fields = {name: price[name] for name in ("updated_at", "data", "stale")}
    fields |= {"_meta": {"attribution": price["_meta"]["attribution"], "sources": price["_meta"]["sources"]}}
    offer = json.loads(refused["result"]["content"][0]["text"].replace(site, f"http://{short}"))
    verdict = {name: checked[name] for name in ("valid", "checks", "core")}
    left = [f"{name}: {paid.headers[name]}" for name in sorted(paid.headers) if name.startswith("x-credits")]
    premium = f'curl -si {short}/api/pro/correlation-matrix -H "Authorization: Bearer $TOKEN"'
    return [
        (f"curl -s {short}/api/btc-price", [*_write(fields), "# every value with its age and source"]),
        (f"curl -s '{short}/api/earthquake?limit=2'", _write(quakes["data"])),
        (
            f"curl -s {short}/api/mcp -d '{{…premium_correlation_matrix…}}'",
            [*_write(offer), "# what it costs, and how to pay: no account"],
        ),
        (premium, [f"HTTP/1.1 {paid.status_code} OK", *left, *_write(paid.json()["matrix"])]),
        (f"curl -s {short}/api/receipt/verify -d @receipt.json", [*_write(verdict), "# signed: anybody can check it"]),
    ]


def draw_session(steps: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the SVG of some commands and their answers."""
    height = TOP + LINE * (MOST_LINES + 2)
    whole = SECONDS * len(steps)
    share = 100 / len(steps)
    rules = "".join(
        f"@keyframes step{at} {{ 0%, {share * at:.2f}% {{ opacity: 0; }} {share * at + 0.6:.2f}%,"
        f" {share * (at + 1) - 0.6:.2f}% {{ opacity: 1; }} {share * (at + 1):.2f}%, 100% {{ opacity: 0; }} }}\n"
        f"@media (prefers-reduced-motion: no-preference) {{ #step{at} {{ animation: step{at} {whole}s linear"
        " infinite; } }\n"
        for at in range(len(steps))
    )
    screens = "".join(_draw_screen(at, command, lines) for at, (command, lines) in enumerate(steps))
    dots = "".join(f'<circle cx="{LEFT + 16 * at}" cy="22" r="5" fill="#333a37"/>' for at in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' aria-label="A terminal: a price, two earthquakes, an offer to pay, a paid answer and its checked receipt">'
        f"<style>{STYLE}{rules}</style>"
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="#111413"/>{dots}'
        f'<text class="title" x="{WIDTH / 2}" y="27" text-anchor="middle">toolserver demo</text>{screens}</svg>\n'
    )


def _draw_screen(at: int, command: str, lines: Sequence[str]) -> str:
    shown = [*lines[: MOST_LINES - 1], "…"] if len(lines) > MOST_LINES else lines
    rows = [f'<tspan class="prompt">$</tspan> {escape(command)}', ""]
    rows += [
        f'<tspan class="soft">{escape(line)}</tspan>' if line.startswith("#") else escape(_cut(line)) for line in shown
    ]
    texts = (f'<text x="{LEFT}" y="{TOP + LINE * row}">{text}</text>' for row, text in enumerate(rows) if text)
    return f'<g class="screen" id="step{at}">{"".join(texts)}</g>'


def _write(value: Mapping[str, Any]) -> list[str]:
    """Return an object as JSON, a line for each member."""
    members = [f"  {json.dumps(name)}: {json.dumps(member, ensure_ascii=False)}" for name, member in value.items()]
    return ["{", *(f"{line}," for line in members[:-1]), *members[-1:], "}"]


def _cut(line: str) -> str:
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"
