"""Say where OAuth is served, and write the two documents by which clients find it.

Everything is below the protected endpoint, which is also the issuer, so that the addresses of
both documents contain its path. At the root, hosts that send their own token would find the
documents and ignore that token.
"""

from typing import Any
from urllib.parse import urlsplit

from toolserver.registry.site_facts import PAYMENTS, SERVICE, SIGN_IN, SiteFacts

RESOURCE = SIGN_IN
AUTHORIZE, TOKEN, REGISTER, REVOKE, CONSENT = (
    f"{RESOURCE}/{name}" for name in ("authorize", "token", "register", "revoke", "consent")
)
RESOURCE_WELL_KNOWN = "/.well-known/oauth-protected-resource"
SERVER_WELL_KNOWN = "/.well-known/oauth-authorization-server"
AUTH_METHODS = ["none", "client_secret_post", "client_secret_basic"]
DOCUMENTATION = PAYMENTS


def well_known_path(prefix: str, facts: SiteFacts) -> str:
    """Return the path of a document about the endpoint (RFC 8414, RFC 9728): the prefix and the endpoint's path."""
    return prefix + urlsplit(facts.url(RESOURCE)).path


def well_known_url(prefix: str, facts: SiteFacts) -> str:
    """Return the same as an absolute URL."""
    parts = urlsplit(facts.base_url)
    return f"{parts.scheme}://{parts.netloc}{well_known_path(prefix, facts)}"


def describe_resource(facts: SiteFacts) -> dict[str, Any]:
    """Return the protected resource metadata (RFC 9728)."""
    return {
        "resource": facts.url(RESOURCE),
        "authorization_servers": [facts.url(RESOURCE)],
        "bearer_methods_supported": ["header"],
        "resource_name": f"{SERVICE} at {facts.source}",
        "resource_documentation": facts.url(DOCUMENTATION),
    }


def describe_server(facts: SiteFacts, *, reads_documents: bool = True) -> dict[str, Any]:
    """Return the authorization server metadata (RFC 8414).

    Where client documents cannot be fetched, they are not offered, so that clients register instead.
    """
    documents = {"client_id_metadata_document_supported": True} if reads_documents else {}
    return {
        "issuer": facts.url(RESOURCE),
        "authorization_endpoint": facts.url(AUTHORIZE),
        "token_endpoint": facts.url(TOKEN),
        "registration_endpoint": facts.url(REGISTER),
        "revocation_endpoint": facts.url(REVOKE),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
        "code_challenge_methods_supported": ["S256"],
        **documents,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": facts.url(DOCUMENTATION),
    }


def is_ours(resource: str, facts: SiteFacts) -> bool:
    """Return True if a resource indicator (RFC 8707) names the endpoint. Ignores a query, which some hosts append."""
    return resource.partition("?")[0].rstrip("/") == facts.url(RESOURCE)
