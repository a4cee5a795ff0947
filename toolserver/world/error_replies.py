"""Write refusals and errors for upstreams that define none of their own."""

from http import HTTPStatus

from toolserver.world.model import Reply

HTML = "text/html; charset=utf-8"
CHALLENGE = """<!DOCTYPE html><html lang="en"><head><title>Just a moment...</title></head>
<body><h1>Checking your browser before accessing this site.</h1><p>Enable JavaScript and cookies to continue.</p>
</body></html>"""
BLOCKED = """<!DOCTYPE html><html lang="en"><head><title>Access denied</title></head><body><h1>Access denied</h1>
<p>This service is not available in your region.</p></body></html>"""
ERROR = """<html><head><title>{code} {reason}</title></head><body><center><h1>{code} {reason}</h1></center>
<hr><center>gateway</center></body></html>"""


def challenge() -> Reply:
    """Reply with an HTML page for browsers and status 200."""
    return Reply.text(CHALLENGE, 200, HTML)


def barred_reply(code: int) -> Reply:
    return Reply.text(BLOCKED, code, HTML)


def unauthorized_reply() -> Reply:
    return Reply.json({"error": "unauthorized", "message": "Missing or invalid API key"}, 401)


def limited_reply(retry_after_s: int) -> Reply:
    return Reply.json({"error": "Too Many Requests"}, 429, headers={"Retry-After": str(retry_after_s)})


def error_in_200() -> Reply:
    return Reply.json({"error": {"code": 400, "message": "Unable to complete operation"}})


def unresolved_reply() -> Reply:
    """Return the reply for a name that does not resolve. Readers of the simulated world treat 599 as no connection."""
    return Reply.json({"error": "name not resolved"}, 599)


def error(code: int, retry_after_s: int | None = None) -> Reply:
    """Reply with a gateway's page for 5xx, and with a line of JSON for every other status."""
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    reason = reason_of(code)
    if code >= 500:
        return Reply.text(ERROR.format(code=code, reason=reason), code, HTML, headers=headers)
    if code in (204, 304):
        return Reply(b"", code, headers=headers)
    return Reply.json({"error": reason, "status": code}, code, headers=headers)


def reason_of(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
