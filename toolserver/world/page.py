"""Render the control page: the state of the simulated world, and buttons to change it."""

import base64
import hashlib
from datetime import UTC, datetime
from html import escape

from toolserver.world.faults import Rule
from toolserver.world.model import Reply
from toolserver.world.state import WorldState

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mark: #2563eb; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .6rem; } p { margin: .2rem 0; }
main { display: grid; gap: 1rem; margin-top: 1rem; grid-template-columns: minmax(0, 1fr); }
section { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; min-width: 0; }
.wide { overflow-x: auto; }
@media (min-width: 64rem) { main { grid-template-columns: 1fr 1fr; } .all { grid-column: 1 / -1; } }
.buttons { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); }
.row { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .6rem; }
button { font: inherit; text-align: left; padding: .6rem .8rem; min-height: 2.75rem; border-radius: .5rem;
  border: 1px solid var(--line); background: var(--soft); color: inherit; cursor: pointer; }
button:hover, button:focus-visible { border-color: var(--mark); outline: none; }
button[aria-pressed=true] { border: 2px solid var(--mark); }
button small { display: block; opacity: .75; font-size: .8rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; } td { overflow-wrap: anywhere; }
td button, .row button { white-space: nowrap; }
.time { font-size: 1.35rem; font-variant-numeric: tabular-nums; } code { font-size: .9em; }
"""
SCRIPT = """
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-path]");
  if (!button) return;
  button.disabled = true;
  const body = button.dataset.body;
  const answer = await fetch("/_sim/" + button.dataset.path, { method: button.dataset.method, body });
  if (answer.ok) location.reload();
  else { document.getElementById("said").textContent = (await answer.json()).error; button.disabled = false; }
});
"""


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


POLICY = (
    f"default-src 'none'; style-src 'sha256-{_hash(STYLE)}'; script-src 'sha256-{_hash(SCRIPT)}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page(state: WorldState) -> Reply:
    """Render the page for the current state."""
    text = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Simulated world</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><header><h1>Simulated world</h1>
<p>Stand-ins for every upstream, on this machine only. Control interface: <a href="/_sim"><code>/_sim</code></a>.</p>
<p id="said" role="alert"></p></header>
<main>{_clock(state)}{_counts(state)}{_scenarios(state)}{_rules(state)}{_served(state)}</main>
<script>{SCRIPT}</script></body></html>"""
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
    return Reply.text(text, content_type="text/html; charset=utf-8", headers=headers)


def _button(label: str, method: str, path: str, body: str = "", *, note: str = "", pressed: bool = False) -> str:
    small = f"<small>{escape(note)}</small>" if note else ""
    sent = f' data-body="{escape(body)}"' if body else ""
    return (
        f'<button type="button" data-method="{method}" data-path="{escape(path)}"{sent} '
        f'aria-pressed="{str(pressed).lower()}">{escape(label)}{small}</button>'
    )


def _clock(state: WorldState) -> str:
    clock = state.clock
    shown = datetime.fromtimestamp(clock.now(), UTC).strftime("%a %Y-%m-%d %H:%M:%S UTC")
    frozen = clock.frozen_at is not None
    buttons = [
        _button("Run" if frozen else "Freeze", "PUT", "clock", f'{{"freeze": {str(not frozen).lower()}}}'),
        *(_button(f"+ {name}", "PUT", "clock", f'{{"advance_s": {s}}}') for name, s in _STEPS),
        *(_button(f"× {x}", "PUT", "clock", f'{{"speed": {x}}}', pressed=clock.speed == x) for x in (1, 60, 600)),
    ]
    how = "frozen" if frozen else f"running at {clock.speed:g} × real time"
    ahead = f"{round(clock.offset_s):+d} s from this machine"
    return (
        f'<section><h2>Clock</h2><p class="time">{shown}</p><p>{how}, {ahead}</p>'
        f'<div class="row">{"".join(buttons)}</div></section>'
    )


_STEPS = (("1 min", 60), ("1 h", 3600), ("1 day", 86_400))


def _counts(state: WorldState) -> str:
    rows = [
        ("Seed", str(state.seed)),
        ("Requests answered", str(sum(state.log.served.values()))),
        ("Not simulated", str(state.log.unmatched_count)),
        ("Pinned values", str(len(state.edits.pins))),
        ("Injected events", str(len(state.edits.events))),
        ("Recorded bodies replayed", ", ".join(sorted(state.replays)) or "none"),
    ]
    lines = "".join(f'<tr><th scope="row">{name}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    reset = _button("Reset all", "POST", "reset")
    return f'<section><h2>State</h2><table>{lines}</table><div class="row">{reset}</div></section>'


def _scenarios(state: WorldState) -> str:
    buttons = (
        _button(name, "PUT", "scenario", f'{{"name": "{name}"}}', note=one.text, pressed=name == state.scenario)
        for name, one in state.scenarios.items()
    )
    return f'<section class="all"><h2>Scenarios</h2><div class="buttons">{"".join(buttons)}</div></section>'


def _rules(state: WorldState) -> str:
    if not state.faults.rules:
        return '<section class="all"><h2>Fault rules</h2><p>None.</p></section>'
    head = '<tr><th>Rule</th><th>For</th><th>Fault</th><th class="n">Fired</th><th></th></tr>'
    rows = "".join(_rule(rule) for rule in state.faults.rules)
    remove = _button("Remove all", "DELETE", "faults")
    return (
        f'<section class="all"><h2>Fault rules</h2><div class="wide"><table>{head}{rows}</table></div>'
        f'<div class="row">{remove}</div></section>'
    )


def _rule(rule: Rule) -> str:
    terms = ", ".join(f"{k} {v}" for k, v in rule.terms.items() if v is not None)
    fault = escape(f"{rule.kind} {terms}".strip())
    return (
        f"<tr><td>{escape(rule.id)}</td><td>{escape(rule.match)}</td><td>{fault}</td>"
        f'<td class="n">{rule.uses.fired}</td><td>{_button("Remove", "DELETE", f"faults/{rule.id}")}</td></tr>'
    )


def _served(state: WorldState) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{count}</td></tr>'
        for name, count in state.log.served.most_common(200)
    )
    body = (
        f'<table><tr><th>Source</th><th class="n">Requests</th></tr>{rows}</table>' if rows else "<p>Nothing yet.</p>"
    )
    return f'<section class="all"><h2>Served</h2>{body}</section>'
