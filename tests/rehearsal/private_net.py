"""A network without a way out in which every upstream can be reached by its name, over TLS and HTTP/2.

`unshare --net --mount python -m tests.rehearsal.private_net FOLDER` serves in live mode there, calls every tool, and
writes what it saw to `FOLDER/seen.json`. The names lead to nginx, which has a certificate for each from an authority
of the test and passes requests on to the simulated world. The service is told of neither: it has the authority by
SSL_CERT_FILE, as it would behind a company's proxy, and otherwise only what an operator sets.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import trustme

from tests.deploy.proxies import find_program, nginx_command, running
from tests.live.processes import Program, started
from tests.served import all_tools
from toolserver.calls.arguments import example_call
from toolserver.money.purchases.demo import HOSTS, XPUB
from toolserver.registry.registry import Tier
from toolserver.settings import ProbeSettings
from toolserver.world.model import ROUTES
from toolserver.world.providers import load_providers

ABOUT_ITSELF = {"find_tools", "health", "payment_no_charge_stats", "receipt_verify"}  # free tools without a source
MOMENT = "since"  # an argument that is a time, whose example is long past
LONGEST_S = 30
ROUNDS = 2


def seen_in(folder: Path) -> dict[str, Any]:
    """Serve and call in this network, and return the answers of each round and the protocols spoken by host."""
    load_providers()
    hosts = sorted({route.host for route in ROUTES.all} | {*HOSTS, *ProbeSettings().targets.values()})
    lead_here(hosts, folder)
    with started("world", folder=folder) as world:
        with fronted(world, hosts, folder):
            settings = {
                "SSL_CERT_FILE": str(folder / "ca.pem"),
                "TOOLSERVER_UPSTREAM__CONTACT": "operator@example.org",
                "TOOLSERVER_SOURCES__LICENCE_POLICY": "any",
                "TOOLSERVER_LIMITS__ENABLED": "false",
                "TOOLSERVER_PAYMENTS__ENABLED": "true",
                "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([f"https://{host}/" for host in HOSTS]),
                "TOOLSERVER_PAYMENTS__XPUB": XPUB,
            }
            with started("serve", folder=folder, forked=False, **settings) as service:
                token = buy(service, world)
                rounds = [call_all(service, token) for _ in range(ROUNDS)]
                headers = {"Authorization": f"Bearer {token}"}
                balance = httpx.get(service.ready["base_url"] + "/api/payment/balance", headers=headers).json()
        unmatched = httpx.get(f"{world.ready['world_url']}/_sim/unmatched").json()
    return {"rounds": rounds, "balance": balance, "spoken": spoken_in(folder / "access.log"), "unmatched": unmatched}


def lead_here(hosts: list[str], folder: Path) -> None:
    """Make each host, a name or an address, lead to this machine, for the processes of this network alone."""
    ran("ip", "link", "set", "lo", "up")
    addresses = [host for host in hosts if host.replace(".", "").isdigit()]
    for address in addresses:
        ran("ip", "address", "add", f"{address}/32", "dev", "lo")
    names = "".join(f"127.0.0.1 {host}\n" for host in ["localhost", *hosts] if host not in addresses)
    (folder / "hosts").write_text(names)
    ran("mount", "--bind", str(folder / "hosts"), "/etc/hosts")


def ran(*words: str) -> None:
    subprocess.run([find_program(words[0]), *words[1:]], check=True, timeout=LONGEST_S)


@contextmanager
def fronted(world: Program, hosts: list[str], folder: Path) -> Iterator[None]:
    """Run nginx in front of the world, as every host."""
    authority = trustme.CA()
    certificate = authority.issue_cert(*hosts)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    behind = world.ready["world_url"]
    words = nginx_command(
        folder,
        f"log_format spoken '$host $server_protocol'; access_log {folder}/access.log spoken;\n"
        "server { listen 443 ssl http2 default_server; client_max_body_size 8m;\n"
        f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n"
        f"location / {{ proxy_pass {behind}/u/$host$request_uri; proxy_http_version 1.1;\n"
        f"proxy_set_header Host {behind.removeprefix('http://')}; }} }}\n",
    )
    with running(words, folder, 443):
        yield


def buy(service: Program, world: Program) -> str:
    """Buy credits for 5 USDC on the simulated chain, whose servers have the names of Base's, and return the token."""
    with httpx.Client(base_url=service.ready["base_url"], timeout=LONGEST_S) as http:
        quote = http.post("/api/payment/buy-credits", json={"amount_usd": 5}).raise_for_status().json()
        transfer = {"to": quote["wallet"], "amount_usd": 5}
        paid = httpx.post(f"{world.ready['world_url']}/_sim/chain/transfer", json=transfer).raise_for_status().json()
        confirmation = {"tx_hash": paid["tx_hash"], "nonce": quote["memo"]}
        for _ in range(LONGEST_S):
            answer = http.post("/api/payment/confirm", json=confirmation)
            if answer.status_code == 200 and "token" in answer.json():
                return str(answer.json()["token"])
            time.sleep(1)
    raise AssertionError(f"the payment was not credited: {answer.text}")


def call_all(service: Program, token: str) -> dict[str, Any]:
    """Call each tool that reads sources as its own example says. Return price, status and warnings by tool."""
    found: dict[str, Any] = {}
    with httpx.Client(base_url=service.ready["base_url"], timeout=LONGEST_S) as http:
        for operation in all_tools().listed:
            if operation.tier not in (Tier.FREE, Tier.PREMIUM) or operation.name in ABOUT_ITSELF:
                continue
            arguments = {name: value for name, value in example_call(operation)["arguments"].items() if name != MOMENT}
            headers = {"Authorization": f"Bearer {token}"} if operation.tier is Tier.PREMIUM else {}
            answer = http.get(operation.path, params=arguments, headers=headers)
            body = answer.json()
            found[operation.name] = {
                "tier": operation.tier.value,
                "credits": operation.credits,
                "status": answer.status_code,
                "stale": body.get("stale"),
                "warnings": body.get("warning") or body.get("warnings") or [],
            }
    return found


def spoken_in(log: Path) -> dict[str, list[str]]:
    """Return the protocols that were spoken with each host."""
    spoken: dict[str, set[str]] = {}
    for line in log.read_text().splitlines():
        host, protocol = line.split()
        spoken.setdefault(host, set()).add(protocol)
    return {host: sorted(protocols) for host, protocols in sorted(spoken.items())}


if __name__ == "__main__":
    (into,) = map(Path, sys.argv[1:])
    (into / "seen.json").write_text(json.dumps(seen_in(into)))
