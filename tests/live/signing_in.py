"""A host that signs in at a running program, and the person who says yes, both without a browser."""

import base64
import hashlib
import re
import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

PROTECTED, BACK = "/api/mcp/auth", "http://127.0.0.1:9/back"


def read_request(page: httpx.Response) -> str:
    """The id of the request on a page of consent."""
    request = re.search(r'name="request" value="([0-9a-f]+)"', page.text)
    assert request is not None, page.text
    return request[1]


def consent(http: httpx.Client, page: httpx.Response, *, token: str, credits: int) -> str:
    """Say yes on a page of consent with a token: the address to which the browser is sent back."""
    form = {"request": read_request(page), "do": "allow", "token": token, "credits": str(credits), "days": "1"}
    answer = http.post(page.url.copy_with(path=f"{PROTECTED}/consent", query=None), data=form)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


class SigningIn:
    """The dance, step by step. `tokens` are what it ended in; `secrets` is everything on the way that must not leak."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False)
        self.url = url
        self.secrets: dict[str, str] = {}
        self.tokens: dict[str, Any] = {}

    def __enter__(self) -> "SigningIn":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def allow(self, token: str, credits: int) -> None:
        """Register, say yes with a token, and exchange the code."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        body = {"client_name": "A host", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
        self.client = self.http.post(f"{PROTECTED}/register", json=body).json()["client_id"]
        asked = {"response_type": "code", "client_id": self.client, "redirect_uri": BACK, "code_challenge": challenge}
        asked |= {"code_challenge_method": "S256", "resource": self.url + PROTECTED}
        page = self.http.get(f"{PROTECTED}/authorize", params=asked, follow_redirects=True)
        (code,) = parse_qs(urlsplit(consent(self.http, page, token=token, credits=credits)).query)["code"]
        self.exchange(grant_type="authorization_code", code=code, redirect_uri=BACK, code_verifier=verifier)
        self.secrets |= {"code": code, "page": read_request(page), "verifier": verifier}

    def exchange(self, **given: str) -> None:
        """Get tokens for a code or a refresh token."""
        answer = self.http.post(f"{PROTECTED}/token", data={"client_id": self.client} | given)
        assert answer.status_code == 200, answer.text
        self.tokens = answer.json()
        named = {f"{name} {len(self.secrets)}": self.tokens[name] for name in ("access_token", "refresh_token")}
        self.secrets |= named

    def call(self, tool: str) -> httpx.Response:
        """Call a tool with the access token."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        headers = {"authorization": f"Bearer {self.tokens['access_token']}"}
        return self.http.post(PROTECTED, json=message, headers=headers)
