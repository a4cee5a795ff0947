"""Faults of the REST face and its pages."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "rest_bridge/pages/operators.py",
        "the operators' page answers to any host name",
        'if name.rpartition(":")[0] not in NAMES and name not in NAMES:',
        "if not name:",
        "tests/rest_bridge/pages/test_operators_face.py",
    ),
    fault(
        "rest_bridge/pages/operators.py",
        "the operators' page is served through a proxy",
        "if PROXY_MARKS & headers.keys():",
        "if PROXY_MARKS <= headers.keys():",
        "tests/rest_bridge/pages/test_operators_face.py",
    ),
    fault(
        "rest_bridge/static_files.py",
        "a browser keeps a file of another version for a year",
        'policy = FOREVER if version == _digest() else b"no-cache"',
        "policy = FOREVER",
        "tests/rest_bridge/test_static_files.py",
    ),
    fault(
        "rest_bridge/pages/buy.py",
        "looking for a payment does not count as a call",
        'limits.take(_find_client(scope, request, addresses), "payment")',
        "_find_client(scope, request, addresses)",
        "tests/rest_bridge/pages/test_buying.py",
    ),
    fault(
        "rest_bridge/pages/buy.py",
        "looking for a link does not count as a call",
        'limits.take(client, "payment")',
        "client",
        "tests/rest_bridge/pages/test_buying.py",
    ),
    fault(
        "rest_bridge/pages/buy.py",
        "a link of an account proves itself",
        "await links.prove(link, token)",
        "pass",
        "tests/rest_bridge/pages/test_buying.py",
    ),
    fault(
        "rest_bridge/headers.py",
        "the parameters of a preference are part of its value",
        'preference.partition(";")[0].partition("=")',
        'preference.partition("=")',
        "tests/rest_bridge/test_headers.py",
    ),
    fault(
        "rest_bridge/headers.py",
        "every payment is answered in both versions",
        'if any(name == b"x-payment" for name, _ in lines):',
        "if lines:",
        "tests/rest_bridge/test_headers.py",
    ),
    fault(
        "rest_bridge/headers.py",
        "an empty request id is taken from its caller",
        'if own and is_sane_request_id(text := own.decode("latin-1")):',
        'if not own or is_sane_request_id(text := own.decode("latin-1")):',
        "tests/rest_bridge/test_headers.py",
    ),
)
