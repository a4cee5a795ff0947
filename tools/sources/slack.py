"""Read Slack's status page (JSON, no key).

https://docs.slack.dev/reference/slack-status-api
"""

from typing import Any, Literal, NamedTuple

from tools.parsing.fields import clean
from tools.sources.hosts import MINUTE, STATUS
from toolserver import Get, Licence, Source, SourceChanged, read_rows

LICENCE = Licence("unclear", "Slack status page", "https://slack-status.com")


class SlackIncident(NamedTuple):
    """`kind` is Slack's word for it: incident, notice, outage or maintenance."""

    title: str
    kind: str


class SlackStatus(NamedTuple):
    """`active` is Slack's word for "there is an incident"."""

    status: Literal["ok", "active"]
    incidents: tuple[SlackIncident, ...]


def parse(body: Any, query: None) -> SlackStatus:
    """Return every active incident."""
    status = body["status"]
    if status not in ("ok", "active"):
        raise SourceChanged(f"status is {status!r:.40}")
    listed = body.get("active_incidents") or []
    return SlackStatus(status, read_rows(listed, lambda i: SlackIncident(clean(i["title"]), clean(i["type"], 40))))


SLACK_STATUS = Source(
    "Slack.current_status",
    Get("https://slack-status.com/api/v2.0.0/current"),
    parse,
    licence=LICENCE,
    hosts=STATUS,
    fresh_s=60,
    ageless="the page is dated by its last incident, which may be weeks ago",
    keep_s=15 * MINUTE,
    timeout_s=5,
    untrusted=True,
)
