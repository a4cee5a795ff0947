"""Simulate Blockstream's explorer on the wire: fee estimates by the number of blocks to wait."""

from tools.simulated import bitcoin
from tools.simulated.mempool import RECENT, backlog
from toolserver.world.model import Ask, Reply, World, serves

NAME, HOST = "Blockstream.network", "blockstream.info"
TARGETS = (*range(1, 26), 144, 504, 1008)


def estimates(world: World) -> dict[str, float]:
    """Return estimates, highest first: the fees of mempool.space, and interpolated ones."""
    fees = dict(zip((1, 3, 6, 144, 1008), bitcoin.fees(world), strict=True))
    return {str(target): max(fee for at, fee in fees.items() if at >= target) for target in TARGETS}


REFUSALS = {"limited": Reply.text("Too Many Requests", 429)}
JUST_STARTED = REFUSALS | {"empty": Reply.json({})}


@serves(NAME, HOST, "/api/blocks/tip/height", forms=REFUSALS | {"empty": Reply.text("")})
def tip(world: World, ask: Ask) -> Reply:
    return Reply.text(str(bitcoin.height(world)), content_type="text/plain")


@serves(NAME, HOST, "/api/fee-estimates", forms=JUST_STARTED)
def fees(world: World, ask: Ask) -> Reply:
    return Reply.json(estimates(world))


@serves(NAME, HOST, "/api/mempool", forms=JUST_STARTED)
def mempool(world: World, ask: Ask) -> Reply:
    return Reply.json(backlog(world))


@serves(NAME, HOST, "/api/mempool/recent", forms=REFUSALS | {"empty": Reply.json([])})
def newest(world: World, ask: Ask) -> Reply:
    """Return the newest transactions; virtual sizes are whole here."""
    transactions = bitcoin.newest(world, RECENT)
    return Reply.json(
        [{"txid": t.txid, "fee": t.fee_sat, "vsize": t.vsize, "value": t.total_sat} for t in transactions]
    )


@fees.form("drift")
def texts(world: World, ask: Ask) -> Reply:
    return Reply.json({target: str(fee) for target, fee in reversed(estimates(world).items())})
