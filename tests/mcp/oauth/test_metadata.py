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
from toolserver.registry.site_facts import SiteFacts

BELOW = SiteFacts("https://data.example:8443/below", "data.example")


def test_the_documents_are_what_the_sdk_reads():
    server = OAuthMetadata.model_validate(describe_server(FACTS))
    resource = ProtectedResourceMetadata.model_validate(describe_resource(FACTS))
    assert str(server.issuer) == str(resource.resource) == FACTS.url(RESOURCE)
    assert server.code_challenge_methods_supported == ["S256"]
    assert server.client_id_metadata_document_supported
    assert server.authorization_response_iss_parameter_supported


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
