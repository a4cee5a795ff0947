"""`python -m tests.hosts.browser ADDRESS`: the browser of a person who says yes on the page of consent.

TOKEN is what the person pastes there, CREDITS how much a host may spend.
"""

import os
import sys

import httpx

from tests.live.signing_in import consent


def main(address: str) -> None:
    with httpx.Client(timeout=30, trust_env=False) as http:
        page = http.get(address, follow_redirects=True)
        back = consent(http, page, token=os.environ["TOKEN"], credits=int(os.environ["CREDITS"]))
        http.get(back).raise_for_status()


if __name__ == "__main__":
    main(sys.argv[1])
