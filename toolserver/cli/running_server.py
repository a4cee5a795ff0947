"""Read from a running server's metrics, for `doctor`, which hosts and sources it is not calling at the moment."""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from toolserver.core.http_client import HttpClient, Unreachable
from toolserver.core.metrics import HOST_REFUSED, SOURCE_CLOSED
from toolserver.serving.running_note import read_running

WITHIN_S, MOST_BYTES = 3.0, 8 * 1024 * 1024


class LeftAlone(NamedTuple):
    """A host that refuses the server (with its status), or a failing source. Skipped for `left_s` more seconds."""

    name: str
    status: str | None
    left_s: float


class RunningServer(NamedTuple):
    """A server that runs on the data directory. `answers` is False if its metrics cannot be read."""

    metrics_url: str
    answers: bool
    left_alone: tuple[LeftAlone, ...]


async def ask_running_server(data_dir: Path) -> RunningServer | None:
    """Read the metrics of the server that is recorded in a data directory. Returns None if there is no record."""
    url = read_running(data_dir)
    if url is None:
        return None
    parts = urlsplit(url)
    client = HttpClient(f"{parts.scheme}://{parts.netloc}", most_bytes=MOST_BYTES)
    try:
        answer = await client.ask("GET", parts.path, headers={"accept": "text/plain"}, within_s=WITHIN_S)
        return RunningServer(url, answer.status == 200, read_left_alone(answer.body.decode()))
    except (Unreachable, ValueError):
        return RunningServer(url, False, ())
    finally:
        await client.aclose()


def read_left_alone(metrics: str) -> tuple[LeftAlone, ...]:
    """Find the skipped hosts and sources in a text of metrics. Raises ValueError if the text is not metrics."""
    found = []
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name == HOST_REFUSED:
                found.append(LeftAlone(sample.labels["host"], sample.labels["status"], sample.value))
            elif sample.name == SOURCE_CLOSED:
                found.append(LeftAlone(sample.labels["source"], None, sample.value))
    return tuple(found)


def describe_server(server: RunningServer | None) -> list[str]:
    """Describe in lines of text which hosts and sources the running server skips."""
    if server is None:
        return ["no server runs on this data directory"]
    if not server.answers:
        return [f"the server recorded at {server.metrics_url} does not answer: it was killed, or is still starting"]
    if not server.left_alone:
        return [f"the running server ({server.metrics_url}) uses every source"]
    lines = [f"the running server ({server.metrics_url}) is currently skipping:"]
    for each in server.left_alone:
        why = f"refuses it (status {each.status})" if each.status else "keeps failing"
        lines.append(f"  {each.name:36} {why}; retried in {each.left_s:.0f} s")
    return lines
