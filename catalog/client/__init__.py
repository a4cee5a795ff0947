"""The Python client, which has the tools of the registry as methods. Programs import it from `toolserver.client`."""
