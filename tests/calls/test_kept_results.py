"""What is kept of a result: its own part, its receipt, and bytes that are hashed and compressed once for all."""

import hashlib
import zlib

from toolserver.calls.idempotency import KeptResult, KeyedCall, KeyTaken, SharedBytes, join_result


def test_a_whole_result_has_its_receipt_on_a_line_between_its_parts():
    assert KeptResult(b"own\n", SharedBytes(b"shared"), "a.b.c").whole == b"own\na.b.c\nshared"
    assert (
        join_result(b"own\n", "", b"shared") == KeptResult(b"own\n", SharedBytes(b"shared")).whole == b"own\n\nshared"
    )


def test_a_result_that_shares_nothing_is_its_own_part():
    assert KeptResult(b"own").whole == b"own"


def test_shared_bytes_are_hashed_and_compressed_once():
    shared = SharedBytes(b"payload " * 100)
    assert shared.sha256 == hashlib.sha256(shared.content).digest()
    assert zlib.decompress(shared.packed) == shared.content
    assert shared.packed is shared.packed
    assert len(shared.packed) < len(shared.content)


def test_a_key_that_is_taken_names_the_call_that_has_it():
    known = KeyedCall("r", "call_1")
    assert (KeyTaken(known).earlier, str(KeyTaken(known))) == (known, "call_1")
