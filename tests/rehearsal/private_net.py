"""A network without a way out in which every upstream can be reached by its name, over TLS and HTTP/2.

`unshare --net --mount python -m tests.rehearsal.private_net FOLDER` serves in live mode there, calls every tool, and
writes what it saw to `FOLDER/seen.json`. The names lead to nginx, which has a certificate for each from an authority
of the test and passes requests on to the simulated world. The service is told of neither: it has the authority by
SSL_CERT_FILE, as it would behind a company's proxy, and otherwise only what an operator sets.

With `proxy` after the folder the service is in a network of its own, from which only a company's proxy is reached.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import trustme

from tests.core.company_proxy import company_proxy
from tests.deploy.proxies import find_proxy, nginx_command, running
from tests.extras import is_asked_for, without_extra
from tests.live.processes import ROOT, Program, environment, started
from tests.rehearsal import agents
from tests.rehearsal.walled_net import INSIDE, OUTSIDE, WALLED, run, walled_net
from tests.served import all_tools
from toolserver.calls.arguments import example_call
from toolserver.money.purchases.demo import HOSTS, XPUB
from toolserver.registry.registry import Tier
from toolserver.settings import ProbeSettings
from toolserver.world.model import ROUTES
from toolserver.world.providers import load_providers

ABOUT_ITSELF = {"find_tools", "health", "payment_no_charge_stats", "receipt_verify"}  # free tools without a source
MOMENT = "since"  # an argument that is a time, whose example is long past
OWN_NAME, OWN_PORT = "data.example", 8443  # of the service itself, as its users reach it
LONGEST_S = 30
ROUNDS = 2


def run_in_net(module: str, folder: Path, *words: str, within_s: float) -> dict[str, Any]:
    """Run a module in a network of its own, and return what it saw. Skips where that was not asked for."""
    if not is_asked_for("REHEARSAL") or find_proxy("unshare") is None or find_proxy("nginx") is None:
        without_extra("REHEARSAL")
    entered = ["unshare", "--net", "--mount", sys.executable, "-m", module, str(folder), *words]
    ended = subprocess.run(entered, env=environment({}, folder), cwd=ROOT, capture_output=True, timeout=within_s)
    assert ended.returncode == 0, ended.stderr.decode()
    found: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return found


def seen_in(folder: Path) -> dict[str, Any]:
    """Serve and call in this network, and return the answers of each round and the protocols spoken by host."""
    hosts = list_hosts()
    lead_here([*hosts, OWN_NAME], folder, {agents.AGENT: agents.PUBLIC})
    with started("world", folder=folder) as world, fronted(world, hosts, folder, agents.describe_site(folder)):
        with started("serve", folder=folder, forked=False, **settings_in(folder), **agents.SELLING) as service:
            calls = call_and_buy(service, world) | call_by_name(service, folder)
            calls |= {"signing_in": agents.sign_in(service), "paying": agents.pay_for_one_call(service)}
        return calls | note_requests(world, folder)


def seen_through_proxy(folder: Path) -> dict[str, Any]:
    """Do the same from behind a company's wall. Return also what its proxy was asked for, and who knew the password."""
    hosts = list_hosts()
    lead_here(hosts, folder)
    with started("world", folder=folder) as world, fronted(world, hosts, folder):
        with walled_net(folder) as keeper, company_proxy(folder, OUTSIDE) as proxy:
            more = {WALLED: keeper, "HTTPS_PROXY": proxy.url(), "TOOLSERVER_HOST": INSIDE}
            settings = settings_in(folder) | more
            with started("serve", folder=folder, forked=False, module=walled_net.__module__, **settings) as service:
                seen = call_and_buy(service, world)
            seen["doctor"] = examine(folder, settings)
            seen["doctor_without"] = examine(folder, settings | {"HTTPS_PROXY": ""})
            seen["log"] = service.said + service.rest.decode()
            seen["tunnels"] = sorted({entry.rpartition(":")[0] for entry in proxy.asked})
        return seen | note_requests(world, folder)


def examine(folder: Path, settings: dict[str, str]) -> str:
    """Return what doctor says behind the wall."""
    words = [sys.executable, "-m", walled_net.__module__, "doctor"]
    surroundings = environment(settings | {"TOOLSERVER_DATA_DIR": str(folder / "examined")}, folder)
    said = subprocess.run(words, env=surroundings, cwd=folder, capture_output=True, timeout=LONGEST_S)
    return said.stdout.decode() + said.stderr.decode()


def list_hosts() -> list[str]:
    """Return every host that live mode may ask: those of sources and of the chain, and those that are probed."""
    load_providers()
    return sorted({route.host for route in ROUTES.all} | {*HOSTS, *ProbeSettings().targets.values()})


def settings_in(folder: Path) -> dict[str, str]:
    """Return what an operator sets who sells, and the authority of this network."""
    return {
        "SSL_CERT_FILE": str(folder / "ca.pem"),
        "TOOLSERVER_UPSTREAM__CONTACT": "operator@example.org",
        "TOOLSERVER_SOURCES__LICENCE_POLICY": "any",
        "TOOLSERVER_LIMITS__ENABLED": "false",
        "TOOLSERVER_PAYMENTS__ENABLED": "true",
        "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([f"https://{host}/" for host in HOSTS]),
        "TOOLSERVER_PAYMENTS__XPUB": XPUB,
    }


def call_and_buy(service: Program, world: Program) -> dict[str, Any]:
    """Buy credits and call every tool in each round. Return the answers and the balance that is left."""
    token = buy(service, world)
    rounds = [call_all(service, token) for _ in range(ROUNDS)]
    headers = {"Authorization": f"Bearer {token}"}
    balance = httpx.get(service.ready["base_url"] + "/api/payment/balance", headers=headers).json()
    return {"rounds": rounds, "balance": balance}


def note_requests(world: Program, folder: Path) -> dict[str, Any]:
    """Return the protocols that were spoken with each host, who asked, and requests that the world did not know."""
    unmatched = httpx.get(f"{world.ready['world_url']}/_sim/unmatched").json()
    return {"spoken": spoken_in(folder / "access.log"), "unmatched": unmatched}


def lead_here(hosts: list[str], folder: Path, public: Mapping[str, str] = MappingProxyType({})) -> None:
    """Make each host, a name or an address, lead to this machine, for the processes of this network alone.

    The names in `public` lead to the address of theirs among the hosts.
    """
    run("ip", "link", "set", "lo", "up")
    addresses = [host for host in hosts if host.replace(".", "").isdigit()]
    for address in addresses:
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    names = "".join(f"127.0.0.1 {host}\n" for host in ["localhost", *hosts] if host not in addresses)
    names += "".join(f"{address} {name}\n" for name, address in public.items())
    (folder / "hosts").write_text(names)
    run("mount", "--bind", str(folder / "hosts"), "/etc/hosts")


@contextmanager
def fronted(world: Program, hosts: list[str], folder: Path, more: str = "") -> Iterator[None]:
    """Run nginx in front of the world, as every host. `more` are servers of names that the world does not have."""
    authority = trustme.CA()
    certificate = authority.issue_cert(*hosts, OWN_NAME, agents.AGENT)
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
        f"proxy_set_header Host {behind.removeprefix('http://')}; }} }}\n{more}",
    )
    with running(words, folder, 443):
        yield


def call_by_name(service: Program, folder: Path) -> dict[str, Any]:
    """Call a tool of the service through the bridge, by its name over TLS; then without trust in its authority."""
    place = folder / "own"
    place.mkdir()
    words = nginx_command(
        place,
        f"server {{ listen {OWN_PORT} ssl; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n"
        f"location / {{ proxy_pass {service.ready['base_url']}; proxy_buffering off; }} }}\n",
    )
    asked = [sys.executable, "-m", "toolserver", "call", "earthquakes", "--json"]
    asked += ["--server", f"https://{OWN_NAME}:{OWN_PORT}"]
    outcomes = []
    with running(words, place, OWN_PORT):
        for trust in ({"SSL_CERT_FILE": str(folder / "ca.pem")}, {}):
            surroundings = environment(trust, place)
            ended = subprocess.run(asked, env=surroundings, cwd=place, capture_output=True, timeout=LONGEST_S)
            outcomes.append({"exit": ended.returncode, "said": (ended.stdout + ended.stderr).decode()})
    return {"bridge": outcomes[0], "bridge_untrusting": outcomes[1]}


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
    into = Path(sys.argv[1])
    seen = seen_through_proxy(into) if "proxy" in sys.argv[2:] else seen_in(into)
    (into / "seen.json").write_text(json.dumps(seen))
