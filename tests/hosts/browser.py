"""`python -m tests.hosts.browser ADDRESS`: the browser of a person who says yes on the page of consent, or pays on the
page of a call that a chat asked for.

TOKEN is what the person pastes there, CREDITS how much a host may spend.
"""

import os
import sys

import httpx

from tests.live.signing_in import consent
from toolserver.registry.site_facts import BUY, LINK, PAY_CALL


def main(address: str) -> None:
    with httpx.Client(timeout=30, trust_env=False) as http:
        asked = httpx.URL(address)
        if asked.path == BUY:
            paid = http.post(
                asked.join(PAY_CALL),
                json={"link": asked.params[LINK]},
                headers={"authorization": f"Bearer {os.environ['TOKEN']}"},
            )
            paid.raise_for_status()
            return
        page = http.get(address, follow_redirects=True)
        back = consent(http, page, token=os.environ["TOKEN"], credits=int(os.environ["CREDITS"]))
        http.get(back).raise_for_status()


if __name__ == "__main__":
    main(sys.argv[1])
