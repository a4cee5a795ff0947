"""The log is what RFC 6962 and C2SP say, checked by a verifier written from their text alone."""

import base64
import hashlib
import struct

import nacl.exceptions
import nacl.signing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import Key, make_key

# --- a tree in memory for ours ---


class Tree:
    """Entries and the nodes above them."""

    def __init__(self, entries=()):
        self.nodes, self.size, self.entries = {}, 0, []
        for entry in entries:
            self.add(entry)

    def node(self, level, index):
        return self.nodes[level, index]

    def add(self, entry):
        for level, index, value in merkle.grow(self.node, self.size, entry):
            assert (level, index) not in self.nodes  # what is written once is never written again
            self.nodes[level, index] = value
        self.entries.append(entry)
        self.size += 1


# --- the other side: RFC 6962, section 2.1, word for word ---


def mth(d):
    if not d:
        return hashlib.sha256(b"").digest()
    if len(d) == 1:
        return hashlib.sha256(b"\x00" + d[0]).digest()
    k = largest(len(d))
    return hashlib.sha256(b"\x01" + mth(d[:k]) + mth(d[k:])).digest()


def largest(n):
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def path(m, d):
    if len(d) == 1:
        return []
    k = largest(len(d))
    if m < k:
        return [*path(m, d[:k]), mth(d[k:])]
    return [*path(m - k, d[k:]), mth(d[:k])]


def subproof(m, d, b):
    n = len(d)
    if m == n:
        return [] if b else [mth(d)]
    k = largest(n)
    if m <= k:
        return [*subproof(m, d[:k], b), mth(d[k:])]
    return [*subproof(m - k, d[k:], False), mth(d[:k])]


def proof(m, d):
    return subproof(m, d, True)


def root_from_path(leaf, index, size, steps):
    """RFC 9162, section 2.1.3.2: what a client computes from an inclusion proof."""
    assert index < size
    fn, sn, r = index, size - 1, hashlib.sha256(b"\x00" + leaf).digest()
    for p in steps:
        assert sn != 0
        if fn & 1 or fn == sn:
            r = hashlib.sha256(b"\x01" + p + r).digest()
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = hashlib.sha256(b"\x01" + r + p).digest()
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0
    return r


def consistent(first, second, first_root, second_root, steps):
    """RFC 9162, section 2.1.4.2: whether a proof leads from one root to the other."""
    if first == second:
        return not steps and first_root == second_root
    steps = list(steps)
    if not steps:
        return False
    if first & (first - 1) == 0:
        steps.insert(0, first_root)
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = steps[0]
    for c in steps[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr = hashlib.sha256(b"\x01" + c + fr).digest()
            sr = hashlib.sha256(b"\x01" + c + sr).digest()
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = hashlib.sha256(b"\x01" + sr + c).digest()
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and (fr, sr) == (first_root, second_root)


def opened(note, vkey):
    """C2SP signed-note: the text, if a signature of the key is below it. Raises ValueError."""
    name, key_id, encoded = vkey.split("+", 2)
    raw = base64.b64decode(encoded)
    kind, public = raw[:1], raw[1:]
    if kind != b"\x01" or hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() != key_id:
        raise ValueError("not such a key")
    cut = note.rindex("\n\n")
    text, below = note[: cut + 1], note[cut + 2 :]
    if not below.endswith("\n") or any(ord(c) < 32 and c != "\n" for c in note):
        raise ValueError("not a note")
    for line in below.removesuffix("\n").split("\n"):
        dash, by, signature = line.split(" ")
        value = base64.b64decode(signature, validate=True)
        if dash == "—" and by == name and value[:4].hex() == key_id:
            try:
                nacl.signing.VerifyKey(public).verify(text.encode(), value[4:])
            except nacl.exceptions.BadSignatureError as error:
                raise ValueError("wrong signature") from error
            return text
    raise ValueError("not signed by this key")


def state(note, vkey):
    """C2SP tlog-checkpoint: origin, size and root."""
    origin, size, root, end = opened(note, vkey).split("\n", 3)
    assert (end, str(int(size))) == ("", size)
    return origin, int(size), base64.b64decode(root, validate=True)


def unbundled(data):
    """C2SP tlog-tiles: the entries of a bundle."""
    found = []
    while data:
        (length,) = struct.unpack(">H", data[:2])
        found.append(data[2 : 2 + length])
        assert len(found[-1]) == length
        data = data[2 + length :]
    return found


def root_from_tiles(size, fetch):
    """C2SP tlog-tiles: the root of a log of that size, from its tiles alone. `fetch(level, tile, width)`."""

    def hashes(level, first, last):
        """MTH(D[i * 256**level : (i + 1) * 256**level]) for `first <= i < last`."""
        found, whole = [], size // 256**level
        for n in range(first // 256, -(-last // 256)):
            width = min(256, whole - n * 256)
            tile = fetch(level, n, width)
            assert len(tile) == 32 * width
            found += [tile[32 * i : 32 * i + 32] for i in range(width)]
        return found[first % 256 :][: last - first]

    def joined(row):
        if len(row) == 1:
            return row[0]
        k = largest(len(row))
        return hashlib.sha256(b"\x01" + joined(row[:k]) + joined(row[k:])).digest()

    def of(first, last):
        count, level = last - first, 0
        while count % 256 ** (level + 1) == 0 and first % 256 ** (level + 1) == 0:
            level += 1
        step = 256**level
        if count // step <= 256 and count % step == 0 and (count // step) & (count // step - 1) == 0:
            return joined(hashes(level, first // step, last // step))
        k = largest(count)
        return hashlib.sha256(b"\x01" + of(first, first + k) + of(first + k, last)).digest()

    return of(0, size) if size else hashlib.sha256(b"").digest()


# --- the tests ---

# The leaves and roots with which implementations of Certificate Transparency are tested.
LEAVES = [bytes.fromhex(x) for x in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")]
LEAVES.append(bytes(range(0x60, 0x70)))
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
PROOFS = {
    (0, 1): "",
    (0, 8): "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    (5, 8): "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    (2, 3): "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
}
BIG = [b"entry %d" % number for number in range(1100)]


@pytest.mark.parametrize("size", range(9))
def test_roots_are_those_of_the_known_vectors(size):
    assert merkle.root(Tree(LEAVES[:size]).node, size).hex() == ROOTS[size]
    assert merkle.root(Tree(LEAVES).node, size).hex() == ROOTS[size]


@pytest.mark.parametrize(("place", "steps"), PROOFS.items())
def test_inclusion_proofs_are_those_of_the_known_vectors(place, steps):
    assert b"".join(merkle.prove_inclusion(Tree(LEAVES).node, *place)).hex() == steps


def test_a_consistency_proof_is_that_of_the_example_in_the_standard():
    """RFC 6962, section 2.1.3: between the trees of 3, 4, 6 and 7 leaves, by the names of their nodes."""
    tree = Tree(LEAVES[:7])
    c, d, g = tree.node(0, 2), tree.node(0, 3), tree.node(1, 0)
    last = merkle.root(lambda level, index: tree.node(level, index + (4 >> level)), 3)
    assert merkle.prove_consistency(tree.node, 3, 7) == [c, d, g, last]
    assert merkle.prove_consistency(tree.node, 4, 7) == [last]
    assert merkle.prove_consistency(tree.node, 6, 7) == [tree.node(1, 2), tree.node(0, 6), tree.node(2, 0)]


def test_every_proof_of_every_small_tree_is_the_one_of_the_standard_and_proves_it():
    tree = Tree(BIG[:40])
    for size in range(1, 41):
        d = BIG[:size]
        assert merkle.root(tree.node, size) == mth(d)
        for index in range(size):
            steps = merkle.prove_inclusion(tree.node, index, size)
            assert steps == path(index, d)
            assert root_from_path(d[index], index, size, steps) == mth(d)
        for old in range(1, size + 1):
            steps = merkle.prove_consistency(tree.node, old, size)
            assert steps == proof(old, d)
            assert consistent(old, size, mth(d[:old]), mth(d), steps)


@given(st.data())
def test_a_changed_leaf_or_step_proves_nothing(data):
    size = data.draw(st.integers(2, 200))
    index = data.draw(st.integers(0, size - 1))
    tree = Tree(BIG[:size])
    steps = merkle.prove_inclusion(tree.node, index, size)
    at = data.draw(st.integers(0, len(steps) - 1))
    forged = [*steps[:at], hashlib.sha256(steps[at]).digest(), *steps[at + 1 :]]
    assert root_from_path(BIG[index], index, size, steps) == merkle.root(tree.node, size)
    assert root_from_path(BIG[index] + b"!", index, size, steps) != merkle.root(tree.node, size)
    assert root_from_path(BIG[index], index, size, forged) != merkle.root(tree.node, size)


@given(st.data())
def test_a_log_that_was_rewritten_is_not_consistent_with_what_it_was(data):
    old = data.draw(st.integers(1, 120))
    new = data.draw(st.integers(old, 200))
    changed = data.draw(st.integers(0, old - 1))
    before = merkle.root(Tree(BIG[:old]).node, old)
    forged = Tree([*BIG[:changed], b"forged", *BIG[changed + 1 : new]])
    steps = merkle.prove_consistency(forged.node, old, new)
    assert not consistent(old, new, before, merkle.root(forged.node, new), steps)


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_there_is_no_proof_of_a_leaf_outside_the_tree(index, size):
    with pytest.raises(IndexError):
        merkle.prove_inclusion(Tree(LEAVES).node, index, size)


@pytest.mark.parametrize(("old", "new"), [(0, 3), (4, 3), (-1, 3)])
def test_there_is_no_proof_that_leads_back(old, new):
    with pytest.raises(IndexError):
        merkle.prove_consistency(Tree(LEAVES).node, old, new)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 511, 512, 700, 1024, 1100])
def test_the_root_follows_from_the_tiles_alone(size):
    tree = Tree(BIG[:size])

    def fetch(level, number, width):
        tile = merkle.Tile(level, number, width)
        assert tile.within(size)
        return merkle.hashes(tree.node, tile)

    assert root_from_tiles(size, fetch) == mth(BIG[:size])


def test_tiles_are_those_of_the_example_in_the_specification():
    size = 70_000
    full = [merkle.Tile(0, n, 256) for n in range(273)] + [merkle.Tile(1, 0, 256)]
    partial = [merkle.Tile(0, 273, 112), merkle.Tile(1, 1, 17), merkle.Tile(2, 0, 1)]
    assert all(tile.within(size) for tile in full + partial)
    missing = [merkle.Tile(0, 273, 113), merkle.Tile(0, 273, 256), merkle.Tile(1, 1, 18), merkle.Tile(2, 0, 2)]
    assert not any(tile.within(size) for tile in [*missing, merkle.Tile(3, 0, 1), merkle.Tile(63, 0, 1)])
    assert merkle.Tile(1, 0, 1).within(256)
    assert not merkle.Tile(1, 0, 1).within(255)


@pytest.mark.parametrize(
    ("written", "tile"),
    [
        ("0/000", (0, 0, 256)),
        ("0/x001/x234/067", (0, 1234067, 256)),
        ("1/067.p/5", (1, 67, 5)),
        ("63/x001/000.p/255", (63, 1000, 255)),
        ("entries/x001/234.p/1", (None, 1234, 1)),
    ],
)
def test_tiles_are_addressed_as_the_specification_says(written, tile):
    assert merkle.tile_at(written) == tile


@pytest.mark.parametrize(
    "written",
    [
        *("", "0", "0/", "0/0", "0/00", "0/0000", "00/000", "64/000", "-1/000", "0/-01", "0/x000/067", "0/001/067"),
        *(
            "0/x001/x067",
            "0/000.p/0",
            "0/000.p/256",
            "0/000.p/05",
            "0/000.p/",
            "0/000.p",
            "data/000",
            "0/000/",
            "0/٠٠٠",
        ),
        *("0/000\n", " 0/000", "0/../000", "0/" + "x001/" * 7 + "000"),
    ],
)
def test_any_other_address_is_none(written):
    assert merkle.tile_at(written) is None


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_entries_are_told_apart_in_a_bundle(entries):
    assert unbundled(merkle.bundle(entries)) == entries


def test_notes_are_those_of_the_reference_implementation():
    """The example of Go's golang.org/x/mod/sumdb/note."""
    private = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
    seed = base64.b64decode(private.split("+", 4)[4])[1:]
    key = Key("x", bytes(nacl.signing.SigningKey(seed).verify_key), seed)
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    signature = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    assert merkle.signed_note(text, "PeterNeumann", key) == f"{text}\n— PeterNeumann {signature}\n"
    vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    assert merkle.verifier("PeterNeumann", key.public) == vkey
    assert opened(merkle.signed_note(text, "PeterNeumann", key), vkey) == text


def test_a_checkpoint_says_origin_size_and_root_and_cannot_be_changed():
    key, tree = make_key(), Tree(LEAVES)
    origin = "data.example/api/payment/no-charge-log"
    note = merkle.checkpoint(origin, 8, merkle.root(tree.node, 8), key)
    vkey = merkle.verifier(origin, key.public)
    assert state(note, vkey) == (origin, 8, bytes.fromhex(ROOTS[8]))
    with pytest.raises(ValueError, match="wrong signature"):
        state(note.replace("\n8\n", "\n7\n"), vkey)
    with pytest.raises(ValueError, match="not signed by this key"):
        state(note, merkle.verifier(origin, make_key().public))
