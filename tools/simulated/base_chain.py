"""Simulate Base's public nodes, with one token: a block every two seconds, USDC transfers as injected or submitted.

Transfers come from the control interface (`POST /_sim/chain/transfer`), which injects events
of kind `base_transfer`, and from signed transactions that call USDC
(`eth_sendRawTransaction`), which are checked as the contract does. Balances are not kept: the
balance of an address is the sum that was sent to it less what it sent, and at least 0, so that
a payer of an injected transfer needs no money of its own. The accounts whose private keys
every local chain publishes begin with a million USDC each.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from toolserver.core.import_guard import recursion_limit_kept
from toolserver.world.chain import block_at, block_time, head_at
from toolserver.world.model import PAID, Ask, Edits, Reply, World, serves
from toolserver.world.rich_accounts import RICH, WEALTH

CHAIN_ID = 8453
SAFE, FINALIZED = 60, 600  # blocks behind the head
BALANCES_CODE = 87  # bytes of the code that reads many balances, before the addresses
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
CODE = "0x60806040523661001357610011610017565b005b6100115b"
USED = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"  # AuthorizationUsed(address,bytes32)
HOSTS = ("mainnet.base.org", "base-rpc.publicnode.com")


class Sent(NamedTuple):
    """A transfer; `amount` in 0.000001 of the token, `nonce` of the authorisation (EIP-3009) that it used, if any.

    `signer` sent the transaction to the contract `called`, with `data`.
    """

    hash: str
    sender: str
    to: str
    amount: int
    block: int
    token: str
    nonce: str | None
    signer: str
    called: str
    data: str


def head(world: World) -> int:
    """Return the number of the newest block."""
    return head_at(world.now)


def sent(world: World) -> list[Sent]:
    """Return every transfer that is in a block by now."""
    return [each for each in map(_sent, world.injected(PAID)) if each.block <= head(world)]


def submitted(world: World) -> list[Sent]:
    """Return every transfer, with those that wait for the next block."""
    return [_sent(event) for event in world.edits.events if event["kind"] == PAID]


def _sent(event: dict[str, Any]) -> Sent:
    sender, to, amount = event["from"].lower(), event["to"].lower(), int(event["amount"])
    token = event.get("token", USDC)
    return Sent(
        hash=event["hash"],
        sender=sender,
        to=to,
        amount=amount,
        block=block_at(event["at"]),
        token=token,
        nonce=event.get("nonce"),
        signer=event.get("signer", sender),
        called=event.get("via", token),
        data=event.get("data", f"0xa9059cbb{to[2:]:0>64}{amount:064x}"),
    )


def block_hash(world: World, number: int) -> str:
    """Return a hash of a block's number and content, so that a block that loses a transfer gets another hash."""
    held = "".join(each.hash for each in sent(world) if each.block == number)
    return f"0x{hashlib.sha256(f'base {number} {held}'.encode()).hexdigest()}"


def block(world: World, number: int) -> dict[str, Any]:
    """Return a block, with the hashes of its transactions."""
    empty = "0x" + "00" * 32
    return {
        "baseFeePerGas": "0x4c4b40",
        "blobGasUsed": "0x0",
        "difficulty": "0x0",
        "excessBlobGas": "0x0",
        "extraData": "0x00000000fa00000006",
        "gasLimit": "0x7270e00",
        "gasUsed": "0x2625a0",
        "hash": block_hash(world, number),
        "logsBloom": "0x" + "00" * 256,
        "miner": "0x4200000000000000000000000000000000000011",
        "mixHash": empty,
        "nonce": "0x0000000000000000",
        "number": hex(number),
        "parentBeaconBlockRoot": empty,
        "parentHash": block_hash(world, number - 1),
        "receiptsRoot": empty,
        "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
        "size": "0x3a98",
        "stateRoot": empty,
        "timestamp": hex(block_time(number)),
        "transactions": [each.hash for each in sent(world) if each.block == number],
        "transactionsRoot": empty,
        "uncles": [],
        "withdrawals": [],
        "withdrawalsRoot": empty,
    }


class BaseRpcError(Exception):
    """The error that a node returns in place of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message}


def _height(world: World, tag: str) -> int:
    back = {"latest": 0, "pending": 0, "safe": SAFE, "finalized": FINALIZED, "earliest": head(world)}
    return max(0, head(world) - back[tag]) if tag in back else int(tag, 16)


def _block_by_number(world: World, params: list[Any]) -> dict[str, Any] | None:
    number = _height(world, params[0])
    if not 0 <= number <= head(world):
        return None
    shown = block(world, number)
    if params[1]:
        shown["transactions"] = [_shown(world, each) for each in sent(world) if each.block == number]
    return shown


def _find(world: World, hash: str) -> Sent | None:
    return next((each for each in sent(world) if each.hash == hash.lower()), None)


def _transaction(world: World, params: list[Any]) -> dict[str, Any] | None:
    if transfer := _find(world, params[0]):
        return _shown(world, transfer)
    waiting = next((each for each in submitted(world) if each.hash == params[0].lower()), None)
    nowhere = {"blockHash": None, "blockNumber": None, "transactionIndex": None}
    return waiting and {**_shown(world.at(block_time(waiting.block)), waiting), **nowhere}


def _shown(world: World, each: Sent) -> dict[str, Any]:
    return {
        **_place(world, each),
        "hash": each.hash,
        "from": each.signer,
        "to": each.called,
        "input": each.data,
        "value": "0x0",
        "gas": "0xfde8",
        "gasPrice": "0x5b8d80",
        "maxFeePerGas": "0x989680",
        "maxPriorityFeePerGas": "0xf4240",
        "nonce": "0x7",
        "type": "0x2",
        "accessList": [],
        "chainId": hex(CHAIN_ID),
        "yParity": "0x0",
        "v": "0x0",
        "r": each.hash,
        "s": each.hash,
    }


def _place(world: World, each: Sent) -> dict[str, Any]:
    return {
        "blockHash": block_hash(world, each.block),
        "blockNumber": hex(each.block),
        "transactionIndex": hex(1 + [s.hash for s in sent(world) if s.block == each.block].index(each.hash)),
    }


def _transfer_log(world: World, each: Sent) -> dict[str, Any]:
    place = _place(world, each)
    return {
        **place,
        "transactionHash": each.hash,
        "address": each.token,
        "topics": [TRANSFER, _word(each.sender), _word(each.to)],
        "data": f"0x{each.amount:064x}",
        "logIndex": hex(2 * int(place["transactionIndex"], 16)),
        "removed": False,
    }


def _logs_of(world: World, each: Sent) -> list[dict[str, Any]]:
    """Return the logs of a transaction: before the transfer, that it used an authorisation, if it did."""
    moved = _transfer_log(world, each)
    if each.nonce is None:
        return [moved]
    index = hex(int(moved["logIndex"], 16) - 1)
    return [{**moved, "topics": [USED, _word(each.sender), each.nonce], "data": "0x", "logIndex": index}, moved]


def _word(address: str) -> str:
    return f"0x{address[2:]:0>64}"


def _receipt(world: World, params: list[Any]) -> dict[str, Any] | None:
    each = _find(world, params[0])
    if each is None:
        return None
    return {
        **_place(world, each),
        "transactionHash": each.hash,
        "from": each.signer,
        "to": each.called,
        "status": "0x1",
        "contractAddress": None,
        "cumulativeGasUsed": "0x1ec30",
        "effectiveGasPrice": "0x5b8d80",
        "gasUsed": "0xb1c5",
        "logs": _logs_of(world, each),
        "logsBloom": "0x" + "00" * 256,
        "type": "0x2",
        "l1Fee": "0x2a1b3c",
        "l1GasPrice": "0x3b9aca00",
        "l1GasUsed": "0x640",
    }


def _logs(world: World, params: list[Any]) -> list[dict[str, Any]]:
    """Return the logs of a range of blocks, by contract and topics."""
    wanted = params[0]
    contracts = [wanted["address"]] if isinstance(wanted["address"], str) else wanted["address"]
    low, high = _height(world, wanted["fromBlock"]), _height(world, wanted["toBlock"])
    written = [entry for each in sent(world) if low <= each.block <= high for entry in _logs_of(world, each)]
    addresses = set(map(str.lower, contracts))
    return [e for e in written if e["address"] in addresses and _is_wanted(e["topics"], wanted["topics"])]


def _is_wanted(topics: list[str], wanted: list[str | list[str] | None]) -> bool:
    """Return True if a log has these topics. Each that is wanted is one value, a list of them, or None for any."""
    return len(topics) >= len(wanted) and all(
        words is None or topic in map(str.lower, [words] if isinstance(words, str) else words)
        for topic, words in zip(topics, wanted, strict=False)
    )


def _asked_about(data: str) -> list[str]:
    """Return the addresses in code that is run without deployment: only the code that reads
    balances of USDC is supported.
    """
    code, words = data[2 : 2 + 2 * BALANCES_CODE], data[2 + 2 * BALANCES_CODE :]
    if not (code.startswith("6370a08231") and USDC[2:] in code and len(words) % 64 == 0):
        raise BaseRpcError(3, "execution reverted")
    return [f"0x{words[start + 24 : start + 64]}".lower() for start in range(0, len(words), 64)]


def balance(moved: list[Sent], owner: str) -> int:
    """Return what an address holds after these transfers, in 0.000001 USDC."""
    ours = [transfer for transfer in moved if transfer.token == USDC]
    came = sum(transfer.amount for transfer in ours if transfer.to == owner) + (WEALTH if owner in RICH else 0)
    return max(0, came - sum(transfer.amount for transfer in ours if transfer.sender == owner))


def _balance(world: World, owner: str, at: int) -> int:
    return balance([transfer for transfer in sent(world) if transfer.block <= at], owner)


def _is_used(moved: list[Sent], payer: str, nonce: str) -> bool:
    return any((transfer.sender, transfer.nonce) == (payer, nonce) for transfer in moved)


def _call(world: World, params: list[Any]) -> str:
    call = params[0]
    data, at = call.get("data") or call.get("input") or "0x", _height(world, params[1])
    if "to" not in call:
        return "0x" + "".join(f"{_balance(world, owner, at):064x}" for owner in _asked_about(data))
    if call["to"].lower() != USDC:
        return "0x"
    if data == "0x313ce567":  # decimals()
        return f"0x{6:064x}"
    if data[:10] == "0x70a08231" and len(data) == 74:  # balanceOf(address)
        return f"0x{_balance(world, f'0x{data[34:]}'.lower(), at):064x}"
    if data[:10] == "0xe94a0102" and len(data) == 138:  # authorizationState(address,bytes32)
        return f"0x{_is_used(sent(world), f'0x{data[34:74]}'.lower(), f'0x{data[74:]}'.lower()):064x}"
    execute(world, call.get("from", f"0x{0:040x}"), data)
    return f"0x{1:064x}"


# --- transactions ---


def execute(world: World, signer: str, data: str) -> dict[str, Any]:
    """Return the event of a call of USDC: `transfer`, or `transferWithAuthorization` with a signature of 65 bytes.

    Raises BaseRpcError if the contract would revert.
    """
    selector, words = data[:10].lower(), [data[start : start + 64] for start in range(10, len(data), 64)]
    try:
        if selector == "0xa9059cbb":
            payer, to, amount, nonce = signer.lower(), f"0x{words[0][24:]}".lower(), int(words[1], 16), None
        elif selector in ("0xe3ee160e", "0xcf092995"):  # v, r and s as words, or as one text of bytes
            signature = _signature(words[6:]) if selector == "0xe3ee160e" else "".join(words[8:])[:130]
            payer, to, nonce = f"0x{words[0][24:]}".lower(), f"0x{words[1][24:]}".lower(), f"0x{words[5]}".lower()
            amount, after, before = (int(word, 16) for word in words[2:5])
            authorize(world, payer, to, amount, after, before, nonce, signature)
        else:
            raise BaseRpcError(3, "execution reverted")
    except (IndexError, ValueError):
        raise BaseRpcError(3, "execution reverted") from None
    if balance(submitted(world), payer) < amount:
        raise BaseRpcError(3, "execution reverted: ERC20: transfer amount exceeds balance")
    event = {"kind": PAID, "at": world.now, "from": payer, "to": to, "amount": amount}
    return event | {"signer": signer.lower(), "data": data} | ({} if nonce is None else {"nonce": nonce})


def _signature(words: list[str]) -> str:
    return words[1] + words[2] + words[0][-2:]


def authorize(
    world: World, payer: str, to: str, amount: int, after: int, before: int, nonce: str, signature: str
) -> None:
    """Check an authorisation (EIP-3009) as the contract does. Raises BaseRpcError with the contract's words."""
    if not after < world.now < before:
        early = "not yet valid" if world.now <= after else "expired"
        raise BaseRpcError(3, f"execution reverted: FiatTokenV2: authorization is {early}")
    if _is_used(submitted(world), payer, nonce):
        raise BaseRpcError(3, "execution reverted: FiatTokenV2: authorization is used or canceled")
    fields = {"from": payer, "to": to, "value": amount, "validAfter": after, "validBefore": before}
    if _signer(fields | {"nonce": bytes.fromhex(nonce[2:])}, bytes.fromhex(signature)) != payer:
        raise BaseRpcError(3, "execution reverted: FiatTokenV2: invalid signature")


_DOMAIN = {"name": "USD Coin", "version": "2", "chainId": CHAIN_ID, "verifyingContract": USDC}
_FIELDS = ("from address", "to address", "value uint256", "validAfter uint256", "validBefore uint256", "nonce bytes32")
_TYPES = {"TransferWithAuthorization": [dict(zip(("name", "type"), field.split(), strict=True)) for field in _FIELDS]}


def _signer(message: dict[str, Any], signature: bytes) -> str | None:
    """Return the account that signed an authorisation; None if the bytes are no signature."""
    with recursion_limit_kept():
        from eth_account import Account
        from eth_account.messages import encode_typed_data
    from eth_keys.exceptions import BadSignature
    from eth_utils.exceptions import ValidationError

    signed = encode_typed_data(domain_data=_DOMAIN, message_types=_TYPES, message_data=message)
    try:
        return str(Account.recover_message(signed, signature=signature)).lower()
    except (BadSignature, ValidationError, LookupError, ValueError):
        return None


def submit(world: World, params: list[Any]) -> dict[str, Any]:
    """Return the event of a signed transaction (EIP-1559) that calls USDC. Raises BaseRpcError if it is refused."""
    with recursion_limit_kept():
        from eth_account import Account
        from eth_account.typed_transactions.typed_transaction import TypedTransaction
    from eth_utils.crypto import keccak
    from hexbytes import HexBytes

    raw = HexBytes(params[0])
    hash = f"0x{keccak(bytes(raw)).hex()}"
    fields = TypedTransaction.from_bytes(raw).as_dict()
    signer, to = str(Account.recover_transaction(raw)).lower(), f"0x{bytes(fields['to']).hex()}"
    if any(each.hash == hash for each in submitted(world)):
        raise BaseRpcError(-32000, "already known")
    if fields["chainId"] != CHAIN_ID or to != USDC:
        raise BaseRpcError(-32000, "this chain has one contract, USDC, and executes nothing else")
    if fields["nonce"] != _count(world, signer):
        raise BaseRpcError(-32000, "nonce too low" if fields["nonce"] < _count(world, signer) else "nonce too high")
    return execute(world, signer, f"0x{bytes(fields['data']).hex()}") | {"hash": hash}


def _count(world: World, signer: str) -> int:
    """Return how many transactions an account has signed. Transfers of the control interface have no signature."""
    return sum("signer" in event and event["signer"] == signer.lower() for event in world.edits.events)


def _estimate(world: World, params: list[Any]) -> str:
    call = params[0]
    if call["to"].lower() != USDC:
        raise BaseRpcError(3, "execution reverted")
    execute(world, call["from"], call.get("data") or call.get("input"))
    return hex(80_000)


METHODS: dict[str, Callable[[World, list[Any]], Any]] = {
    "eth_chainId": lambda world, params: hex(CHAIN_ID),
    "net_version": lambda world, params: str(CHAIN_ID),
    "eth_gasPrice": lambda world, params: hex(6_000_000),
    "eth_getBalance": lambda world, params: hex(10**19),  # fees are not charged
    "eth_getTransactionCount": lambda world, params: hex(_count(world, params[0])),
    "eth_estimateGas": _estimate,
    "eth_blockNumber": lambda world, params: hex(head(world)),
    "eth_getBlockByNumber": _block_by_number,
    "eth_getCode": lambda world, params: CODE if params[0].lower() == USDC else "0x",
    "eth_call": _call,
    "eth_getTransactionReceipt": _receipt,
    "eth_getTransactionByHash": _transaction,
    "eth_getLogs": _logs,
}


def answer(world: World, call: dict[str, Any], records: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the reply to one JSON-RPC call. A submitted transaction is added to `records`; without, none is taken."""
    said = {"jsonrpc": "2.0", "id": call.get("id")}
    name, params = call.get("method", ""), call.get("params") or []
    method = METHODS.get(name)
    if method is None and (name != "eth_sendRawTransaction" or records is None):
        return said | {"error": {"code": -32601, "message": "the method does not exist/is not available"}}
    try:
        if method is not None:
            return said | {"result": method(world, params)}
        assert records is not None
        records.append(submit(world, params))
        return said | {"result": records[-1]["hash"]}
    except BaseRpcError as error:
        return said | {"error": error.body}
    except (LookupError, ValueError, TypeError, AttributeError):
        return said | {"error": {"code": -32602, "message": "invalid argument"}}


def rpc(world: World, ask: Ask) -> Reply:
    """Answer one call, or a list of calls."""
    world = _known_to(ask.host, world)
    request, records = ask.json, list[dict[str, Any]]()
    many = isinstance(request, list)
    said = [answer(world, call, records) for call in (request if many else [request])]
    return Reply.json(said if many else said[0], records=tuple(records))


def _known_to(host: str, world: World) -> World:
    """Return the world as one RPC server shows it, with the payments that it invents and without those of others."""
    events = [event for event in world.edits.events if event.get("known_to") in (None, host)]
    return world if len(events) == len(world.edits.events) else replace(world, edits=Edits(world.edits.pins, events))


def on_another_chain(world: World, ask: Ask) -> Reply:
    """Answer as a node of another chain, which has other contracts and none of our blocks."""
    said = {"eth_chainId": hex(1), "net_version": "1"}
    calls = ask.json if isinstance(ask.json, list) else [ask.json]
    answers = [{"jsonrpc": "2.0", "id": one.get("id"), "result": said.get(one.get("method"))} for one in calls]
    return Reply.json(answers if isinstance(ask.json, list) else answers[0])


def behind(world: World, ask: Ask) -> Reply:
    """Answer as a node that does not know any transaction yet."""
    return Reply.json({"jsonrpc": "2.0", "id": ask.json.get("id"), "result": None})


def too_many(world: World, ask: Ask) -> Reply:
    said = {"jsonrpc": "2.0", "id": ask.json.get("id"), "error": {"code": -32016, "message": "over rate limit"}}
    return Reply.json(said, 429)


for _host in HOSTS:
    _route = serves("Base.rpc", _host, "/", "POST")(rpc)
    _route.form("empty")(behind)
    _route.form("limited")(too_many)
    _route.form("drift:other_chain")(on_another_chain)
