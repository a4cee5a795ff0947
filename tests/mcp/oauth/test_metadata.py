"""The two documents, and where they stand."""

from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from tests.arranged import FACTS
from toolserver.mcp.oauth.metadata import (
    RESOURCE,
    RESOURCE_WELL_KNOWN,
    SERVER_WELL_KNOWN,
    describe_resource,
    describe_server,
    is_ours,
    well_known_path,
    well_known_url,
)
from toolserver.mcp.oauth.service import can_read_documents
from toolserver.registry.site_facts import SERVICE, SiteFacts
from toolserver.settings import Settings, UpstreamSettings

BELOW = SiteFacts("https://data.example:8443/below", "data.example")


def test_the_documents_are_what_the_sdk_reads():
    server = OAuthMetadata.model_validate(describe_server(FACTS))
    resource = ProtectedResourceMetadata.model_validate(describe_resource(FACTS))
    assert str(server.issuer) == str(resource.resource) == FACTS.url(RESOURCE)
    assert server.code_challenge_methods_supported == ["S256"]
    assert server.client_id_metadata_document_supported
    assert server.authorization_response_iss_parameter_supported


def test_the_documents_name_every_address_and_what_it_takes():
    at = f"https://data.example:8443/below{RESOURCE}"
    methods = ["none", "client_secret_post", "client_secret_basic"]
    docs = BELOW.url("/docs/payments")
    assert describe_resource(BELOW) == {
        "resource": at,
        "authorization_servers": [at],
        "bearer_methods_supported": ["header"],
        "resource_name": f"{SERVICE} at data.example",
        "resource_documentation": docs,
    }
    assert describe_server(BELOW) == {
        "issuer": at,
        "authorization_endpoint": f"{at}/authorize",
        "token_endpoint": f"{at}/token",
        "registration_endpoint": f"{at}/register",
        "revocation_endpoint": f"{at}/revoke",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": docs,
    }


def test_client_documents_are_offered_only_where_they_can_be_fetched(monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert can_read_documents(Settings())
    assert not can_read_documents(Settings(upstream=UpstreamSettings(via="http://127.0.0.1:9")))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert not can_read_documents(Settings())
    without = describe_server(FACTS, reads_documents=False)
    assert describe_server(FACTS).keys() - without.keys() == {"client_id_metadata_document_supported"}
    assert "registration_endpoint" in without


def test_their_addresses_have_the_path_of_the_endpoint_behind_the_prefix():
    assert well_known_path(RESOURCE_WELL_KNOWN, FACTS) == RESOURCE_WELL_KNOWN + RESOURCE
    assert well_known_path(SERVER_WELL_KNOWN, BELOW) == f"{SERVER_WELL_KNOWN}/below{RESOURCE}"
    assert well_known_url(SERVER_WELL_KNOWN, BELOW) == f"https://data.example:8443{SERVER_WELL_KNOWN}/below{RESOURCE}"


def test_a_resource_is_ours_by_its_whole_address():
    ours = FACTS.url(RESOURCE)
    assert all(is_ours(given, FACTS) for given in (ours, ours + "/", ours + "?toolset=all"))
    others = (
        "https://data.example",
        FACTS.url("/api/mcp"),
        ours + "/x",
        ours.upper(),
        "https://evil.example/?" + ours,
        "",
    )
    assert not any(is_ours(given, FACTS) for given in others)
