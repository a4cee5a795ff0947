import subprocess
import sys

from tests.webhooks.receivers import certificates, receiving
from tests.webhooks.room import open_room


def test_the_library_that_delivers_is_loaded_with_the_first_delivery_only():
    code = "import sys, toolserver.webhooks.service; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_receiver_behind_tls_of_a_private_authority_is_reached_by_those_who_trust_it(tmp_path):
    server, client = certificates("hooks.localhost")
    async with receiving(tls=server) as receiver:
        counted = []
        trusting = {"tls": client, "lookup": lambda host: ["127.0.0.1"], "observe": counted.append}
        async with open_room(tmp_path / "trusting", **trusting) as room:
            await room.subscribe(receiver.url("https", "hooks.localhost"))
            await room.pass_slots()
            assert (len(receiver.requests), await room.spent()) == (1, 1)
            assert counted == ["ok"]
        async with open_room(tmp_path / "not", lookup=lambda host: ["127.0.0.1"]) as room:
            subscription = await room.subscribe(receiver.url("https", "hooks.localhost"))
            await room.pass_slots()
            (fire,) = await room.fires(subscription.id)
            assert (fire.error, len(receiver.requests)) == ("tls", 1)
