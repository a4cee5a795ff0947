"""The Python client, whose methods are the tools of the registry. Programs import it from `toolserver.client`."""
