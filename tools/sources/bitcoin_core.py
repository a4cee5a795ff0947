"""Read Bitcoin from your own Bitcoin Core node over JSON-RPC: height, fees, mining power, waiting transactions.

BITCOIN_RPC_URL is its address with user name and password, which travel in a header and stand
in no URL. There is no public node. Everything is asked in batches, so that a node that is far
away costs one exchange.

https://developer.bitcoin.org/reference/rpc/
https://github.com/bitcoin/bitcoin/blob/master/doc/JSON-RPC-interface.md
"""

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from tools.parsing.bitcoin import Backlog, Fees, MiningPower, fee_rate, satoshi, txid
from tools.parsing.fields import clean_or_none, from_epoch, number, positive, within
from tools.sources.hosts import BITCOIN_NODE, HOUR
from toolserver import (
    MIB,
    Keys,
    KeyTerms,
    Licence,
    Post,
    Proof,
    Source,
    SourceChanged,
    SourceEmpty,
    SourceFrozen,
    SourceRefused,
    read_rows,
)

KEY = "BITCOIN_RPC_URL"
# The state of a chain has no owner, and the node is the operator's own.
LICENCE = Licence("yes", "Bitcoin (public chain data)")
TERMS = {KEY: KeyTerms(LICENCE, alone=True)}
TARGETS = (1, 3, 6, 144)  # blocks: next, half an hour, an hour, a day
A_DAY = 144  # blocks over which the hash rate is estimated
SAT, SAT_A_VBYTE = 10**8, 10**5  # satoshi of a bitcoin; sat/vB of a BTC/kvB
HASHES_AN_EXAHASH = 10**18
LOWEST = 800_000  # a main chain that is lower is not read to its end
STARTING, UNKNOWN = -28, -5  # codes of errors: the node is loading; it does not know the transaction
UNSPENT = "0e3e2357e806b6cdb1f70b54c3a3a17b6714ee1f0e68bebb44a74b1efd512098"  # of block 1, unspent: a probe
ADDRESS = 100  # characters; the longest real one has 90

Call: TypeAlias = tuple[Any, ...]
"""A method and its parameters."""
Outpoint: TypeAlias = tuple[str, int]
"""A transaction and the number of one of its outputs."""


class NodeState(NamedTuple):
    """The chain and the waiting transactions as the node sees them. `block_time` is that of the newest block."""

    height: int
    block_time: datetime
    power: MiningPower
    backlog: Backlog


class NodeOutput(NamedTuple):
    """An output of a transaction: its recipient, if the script has an address, and its value."""

    address: str | None
    value_sat: int


class NodeTx(NamedTuple):
    """A waiting transaction. `at` is when the node first had it; `spends` are the outputs that it spends."""

    txid: str
    at: datetime
    fee_sat: int
    vsize: int
    outputs: tuple[NodeOutput, ...]
    spends: tuple[Outpoint, ...]


def ask(keys: Keys, calls: Sequence[Call]) -> Post | None:
    """Return one request for all calls, which are numbered from 0. None without a node."""
    if KEY not in keys:
        return None
    address = urlsplit(keys[KEY])
    host = address.netloc.rpartition("@")[2]
    headers = {}
    if address.username is not None:
        login = f"{unquote(address.username)}:{unquote(address.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    body = [{"jsonrpc": "2.0", "id": n, "method": call[0], "params": [*call[1:]]} for n, call in enumerate(calls)]
    url = urlunsplit((address.scheme, host, address.path or "/", address.query, ""))
    return Post(url, headers=headers, json=body, under=KEY)


def read_results(body: Any, count: int) -> list[Any]:
    """Return the results of as many calls, in order; None for a transaction or output that the node does not know.

    Raises:
        SourceEmpty: the node is still loading.
        SourceRefused: it refuses a call.
    """
    if isinstance(body, dict):  # the node refuses the whole batch
        raise _refusal(body.get("error"))
    replies = {reply["id"]: reply for reply in body}
    if replies.keys() != set(range(count)):
        raise SourceChanged(f"{len(body)} replies to {count} calls")
    return [_read_reply(replies[n]) for n in range(count)]


def _read_reply(reply: dict[str, Any]) -> Any:
    error = reply.get("error")
    if error is None:
        return reply["result"]
    if isinstance(error, dict) and error.get("code") == UNKNOWN:
        return None
    raise _refusal(error)


def _refusal(error: Any) -> SourceEmpty | SourceRefused:
    """Describe an error by its code: its text may quote what was sent."""
    code = error.get("code") if isinstance(error, dict) else None
    if code == STARTING:
        return SourceEmpty("the node is starting")
    return SourceRefused(f"RPC error {code}")


def state_request(query: None, keys: Keys) -> Post | None:
    return ask(keys, [("getblockchaininfo",), ("getnetworkhashps", A_DAY), ("getmempoolinfo",)])


def parse_state(body: Any, query: None) -> NodeState:
    """Return the state. Raises SourceFrozen for a node that is still downloading the chain."""
    chain, hashes, mempool = read_results(body, 3)
    if chain["chain"] != "main":
        raise SourceChanged(f"a node of {chain['chain']!r:.20}")
    if chain["initialblockdownload"] is not False:
        raise SourceFrozen("the node is downloading the chain")
    if mempool.get("loaded", True) is not True:
        raise SourceEmpty("the node is loading its mempool")
    return NodeState(
        height=int(within(number(chain["blocks"]), LOWEST, 1e8)),
        block_time=from_epoch(chain.get("time", chain["mediantime"])),
        power=MiningPower(
            within(positive(hashes) / HASHES_AN_EXAHASH, 1e-6, 1e6),
            positive(chain["difficulty"]),
            mean_days=1,
        ),
        backlog=Backlog(
            waiting=int(within(positive(mempool["size"]), 1, 1e8)),
            vsize=int(positive(mempool["bytes"])),
            total_fee_sat=_satoshi_of(mempool["total_fee"]),
        ),
    )


def fees_request(query: None, keys: Keys) -> Post | None:
    return ask(keys, [*(("estimatesmartfee", blocks, "economical") for blocks in TARGETS), ("getmempoolinfo",)])


def parse_fees(body: Any, query: None) -> Fees:
    """Return the node's estimates, none below what enters its mempool. Raises SourceEmpty until it has any."""
    *estimates, mempool = read_results(body, len(TARGETS) + 1)
    minimum = fee_rate(number(mempool["mempoolminfee"]) * SAT_A_VBYTE)
    if any("feerate" not in estimate for estimate in estimates):
        raise SourceEmpty("no estimates yet")
    rates = [max(minimum, fee_rate(number(estimate["feerate"]) * SAT_A_VBYTE)) for estimate in estimates]
    fastest, half_hour, hour, economy = (round(rate, 3) for rate in rates)
    return Fees(fastest, half_hour, hour, economy, round(minimum, 3))


def ids_request(query: None, keys: Keys) -> Post | None:
    return ask(keys, [("getrawmempool", False)])


def parse_ids(body: Any, query: None) -> frozenset[str]:
    """Return the ids of all waiting transactions."""
    return frozenset(read_rows(read_results(body, 1)[0], txid))


def transactions_request(query: tuple[str, ...], keys: Keys) -> Post | None:
    calls = [[("getrawtransaction", each, True), ("getmempoolentry", each)] for each in query]
    return ask(keys, [call for pair in calls for call in pair])


def parse_transactions(body: Any, query: tuple[str, ...]) -> tuple[NodeTx, ...]:
    """Return these transactions without those that no longer wait, as they were mined or replaced."""
    results = read_results(body, 2 * len(query))
    pairs = zip(query, results[::2], results[1::2], strict=True)
    return read_rows([pair for pair in pairs if None not in pair], _read_transaction)


def _read_transaction(row: tuple[str, dict[str, Any], dict[str, Any]]) -> NodeTx:
    name, transaction, entry = row
    if transaction["txid"] != name:
        raise ValueError(f"transaction {transaction['txid']!r:.20} for {name}")
    return NodeTx(
        txid=txid(name),
        at=from_epoch(entry["time"]),
        fee_sat=_satoshi_of(entry["fees"]["base"]),
        vsize=int(positive(entry["vsize"])),
        outputs=tuple(_read_output(output) for output in transaction["vout"]),
        spends=tuple((txid(spent["txid"]), int(number(spent["vout"]))) for spent in transaction["vin"]),
    )


def _read_output(output: dict[str, Any]) -> NodeOutput:
    return NodeOutput(clean_or_none(output["scriptPubKey"].get("address"), ADDRESS), _satoshi_of(output["value"]))


def owners_request(query: tuple[Outpoint, ...], keys: Keys) -> Post | None:
    return ask(keys, [("gettxout", transaction, n, False) for transaction, n in query])


def parse_owners(body: Any, query: tuple[Outpoint, ...]) -> tuple[NodeOutput | None, ...]:
    """Return these outputs of confirmed transactions; None for one that is spent, or whose transaction still waits."""
    return tuple(output and _read_output(output) for output in read_results(body, len(query)))


def _satoshi_of(bitcoin: Any) -> int:
    """Return an amount that the node writes in BTC with eight decimals, which a float holds exactly enough."""
    return satoshi(round(number(bitcoin) * SAT))


def find_newest(transactions: tuple[NodeTx, ...]) -> datetime | None:
    return max((each.at for each in transactions), default=None)


STATE = Source(
    "BitcoinCore.network",
    state_request,
    parse_state,
    licence=LICENCE,
    terms=TERMS,
    hosts=BITCOIN_NODE,
    fresh_s=30,
    timeout_s=6,
    newest=lambda state: state.block_time,
    newest_max_s=3 * HOUR,  # once in a million years blocks are so far apart
)
FEES = Source(
    "BitcoinCore.network",
    fees_request,
    parse_fees,
    licence=LICENCE,
    terms=TERMS,
    hosts=BITCOIN_NODE,
    fresh_s=30,
    timeout_s=6,
    ageless="estimates carry no timestamp and may stay the same from block to block",
)
WAITING_IDS = Source(
    "BitcoinCore.mempool",
    ids_request,
    parse_ids,
    licence=LICENCE,
    terms=TERMS,
    hosts=BITCOIN_NODE,
    fresh_s=20,
    keep_s=HOUR,
    timeout_s=8,
    max_bytes=24 * MIB,
    least=20,
    moves=hash,
    size_varies="few transactions wait after some quick blocks, and very many in a rush",
    user_input=True,  # no caller's input, but keeps the list off the disk: it is large and soon useless
)
WAITING: Source[tuple[str, ...], tuple[NodeTx, ...]] = Source(
    "BitcoinCore.mempool",
    transactions_request,
    parse_transactions,
    licence=LICENCE,
    terms=TERMS,
    hosts=BITCOIN_NODE,
    fresh_s=HOUR,
    keep_s=HOUR,
    timeout_s=8,
    max_bytes=16 * MIB,
    least=0,
    proof=Proof.harmless("transactions that no longer wait were mined or replaced, so nothing is missing"),
    newest=find_newest,
    ageless="a transaction does not change while it waits",
    user_input=True,
    untrusted=True,
    probe=(UNSPENT,),
)
OWNERS: Source[tuple[Outpoint, ...], tuple[NodeOutput | None, ...]] = Source(
    "BitcoinCore.mempool",
    owners_request,
    parse_owners,
    licence=LICENCE,
    terms=TERMS,
    hosts=BITCOIN_NODE,
    fresh_s=HOUR,
    keep_s=HOUR,
    timeout_s=8,
    max_bytes=4 * MIB,
    ageless="an output of a confirmed transaction does not change",
    user_input=True,
    untrusted=True,
    probe=((UNSPENT, 0),),
)
