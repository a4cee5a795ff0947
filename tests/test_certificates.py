import ssl
import subprocess
import sys
from pathlib import Path

import certifi
import httpx

from tests.certificates import WHOLE
from tests.live.processes import ROOT


def test_a_client_of_the_tests_trusts_one_authority():
    assert len(httpx.create_ssl_context(trust_env=False).get_ca_certs()) == 1
    assert httpx.create_ssl_context(trust_env=False).verify_mode is ssl.CERT_REQUIRED


def test_a_program_that_a_test_starts_trusts_all_of_them():
    asked = "import certifi, httpx; print(certifi.where(), len(httpx.create_ssl_context().get_ca_certs()))"
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True)

    where, count = said.stdout.split()
    assert Path(where) == WHOLE != Path(certifi.where())
    assert int(count) > 100
