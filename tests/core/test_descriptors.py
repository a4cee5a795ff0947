"""The limit of descriptors, from which the sizes of queues and tables of connections follow."""

import resource

import pytest

from toolserver.core.descriptors import read_descriptor_limit


@pytest.mark.parametrize(("soft", "limit"), [(256, 256), (resource.RLIM_INFINITY, None)])
def test_the_soft_limit_counts(monkeypatch, soft, limit):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, resource.RLIM_INFINITY))

    assert read_descriptor_limit() == limit
