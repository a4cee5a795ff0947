"""Find what an operator should look at, for `doctor` and the operators' page: a code, a sentence, what to do."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolserver.core.caller import Addresses
from toolserver.serving.data_directory import read_untrusted_proxy
from toolserver.settings import Settings

BACKUPS = "backups"
FILLING = 0.10  # free part of a disk below which it is filling up, as in deploy/prometheus/rules.yml


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding. `urgent`: a person has to act, because the service cannot (safely) do what it is set to do."""

    code: str
    urgent: bool
    told: str


def give_advice(
    settings: Settings,
    ready: Mapping[str, bool],
    reached: Sequence[bool],
    unwell: Sequence[str] = (),
    network: Sequence[Advice] = (),
) -> list[Advice]:
    """Return all findings.

    `reached` says for each source that was tried whether it could be reached at all. `unwell`
    names sources whose recording needs attention. `network` has what an examination of the
    network found, which says more than that no source was reached.
    """
    findings = [
        *network,
        *_judge_recording(unwell),
        *_judge_running(settings, ready, [] if any(each.urgent for each in network) else reached),
        *_judge_disk(settings),
        *_judge_exposure(settings),
        *_judge_selling(settings),
    ]
    return sorted(findings, key=lambda advice: not advice.urgent)


def describe_verdict(advice: Sequence[Advice]) -> str:
    """Return one line that says whether a person has to act."""
    urgent = sum(each.urgent for each in advice)
    if urgent:
        return f"verdict: {urgent} of {len(advice)} findings need attention"
    return "verdict: well, with some advice" if advice else "verdict: well"


def _judge_running(settings: Settings, ready: Mapping[str, bool], reached: Sequence[bool]) -> Iterator[Advice]:
    for name, well in ready.items():
        if not well:
            yield Advice("not_ready", True, f"The check {name} fails: nothing is sold until this is fixed.")
    if reached and not any(reached):
        finding = "No source can be reached: this machine is offline, or a firewall or a proxy setting blocks it."
        yield Advice("no_network", True, finding)
    if settings.upstream.contact is None:
        finding = "Public services want to know who is calling: set upstream.contact to an address that you read."
        yield Advice("no_contact", False, finding)


def _judge_recording(unwell: Sequence[str]) -> Iterator[Advice]:
    if unwell:
        finding = f"{len(unwell)} sources did not answer as their parsers expect: {', '.join(unwell)}."
        yield Advice(
            "sources_unwell", True, f"{finding} Their exchanges are in the recording, each source in its folder."
        )


def _judge_disk(settings: Settings) -> Iterator[Advice]:
    try:
        disk = os.statvfs(settings.data_dir)
    except OSError:  # nothing was stored yet, or the disk is gone, which the checks say
        return
    if disk.f_bavail < FILLING * disk.f_blocks:
        full, least = 100 * (1 - disk.f_bavail / disk.f_blocks), settings.storage.least_free_mb
        finding = f"The disk of {settings.data_dir} is {full:.0f} % full; with less than {least:g} MB free, nothing is"
        yield Advice("disk_filling", False, f"{finding} sold. Free space, or close months (`toolserver books close`).")


def _judge_exposure(settings: Settings) -> Iterator[Advice]:
    encrypted = (settings.base_url or "").startswith("https:")
    if not settings.loopback and not encrypted:
        finding = "It listens beyond this machine without TLS: tokens can be read in transit. Put a proxy with TLS"
        yield Advice("no_tls", True, f"{finding} in front of it and set base_url to its https address.")
    peer = read_untrusted_proxy(settings.data_dir)
    if peer is not None and not Addresses(settings.limits.trusted_proxies).is_trusted(peer):
        finding = f"{peer} sends X-Forwarded-For and is not trusted: all callers behind it share one client's limits."
        yield Advice("untrusted_proxy", True, f"{finding} If it is your proxy, name it in limits.trusted_proxies.")


def _judge_selling(settings: Settings) -> Iterator[Advice]:
    if not (settings.payments.enabled or settings.x402.enabled):
        return
    if "licence_policy" not in settings.sources.model_fields_set:
        finding = "Credits are sold without a decision about source licences: set sources.licence_policy."
        yield Advice("no_licence_decision", True, finding)
    if settings.database_url is None and _on_one_disk(settings.data_dir):
        finding = (
            "Backups are on the same disk as the data directory, so a disk failure loses both: mount another disk at"
        )
        yield Advice(
            "one_disk", False, f"{finding} {settings.data_dir / BACKUPS}, or copy with `db backup --to` elsewhere."
        )


def _on_one_disk(folder: Path) -> bool:
    backups = folder / BACKUPS
    return not backups.exists() or os.stat(backups).st_dev == os.stat(folder).st_dev
