"""Simulate Feodo Tracker's block list on the wire: five old servers."""

from datetime import UTC, datetime
from typing import Any

from toolserver.world.model import Ask, Reply, World, serves

SERVERS = 5


@serves(
    "FeodoTracker.c2_servers", "feodotracker.abuse.ch", "/downloads/ipblocklist.json", forms={"empty": Reply.json([])}
)
def block_list(world: World, ask: Ask) -> Reply:
    return Reply.json([server(world, index) for index in range(SERVERS)])


@block_list.form("drift")
def other_types(world: World, ask: Ask) -> Reply:
    """Return the port as text, members in another order, and no name of the network."""
    listed = [dict(reversed(server(world, index).items())) for index in range(SERVERS)]
    return Reply.json([s | {"port": f"{s['port']}", "as_name": None} for s in listed])


def server(world: World, index: int) -> dict[str, Any]:
    """Return a server that was first seen some months ago, and last seen a while later."""
    week = world.now - world.now % (7 * 86400)
    seen = week - world.between("feodo.seen", index, 60, 400) * 86400
    online = seen + world.between("feodo.online", index, 1, 50) * 86400
    return {
        "ip_address": f"192.0.2.{10 + index}",
        "port": world.pick("feodo.port", index, [443, 8080, 995]),
        "status": "online" if index == 1 else "offline",
        "hostname": None if index % 2 else f"box{index}.example",
        "as_number": 64496 + index,
        "as_name": "DOCUMENTATION-ASN",
        "country": world.pick("feodo.country", index, ["US", "GB", "JP"]),
        "first_seen": datetime.fromtimestamp(seen, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "last_online": datetime.fromtimestamp(online, UTC).strftime("%Y-%m-%d"),
        "malware": world.pick("feodo.malware", index, ["QakBot", "Emotet"]),
    }
