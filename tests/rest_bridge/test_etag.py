"""An ETag names one representation: the same answer in another content coding has another one."""

import pytest

from rest_bridge.etag import etag_of, holds_etag


def test_every_content_coding_has_a_tag_of_its_own():
    assert [etag_of("abc", encoding) for encoding in (None, "gzip", "br")] == [b'"abc"', b'"abc-gzip"', b'"abc-br"']


@pytest.mark.parametrize("header", [b'"abc"', b'W/"abc"', b'"x", "abc"', b'"x",W/"abc" , "y"', b"*", b" * "])
def test_a_header_that_names_the_tag_holds_it(header):
    assert holds_etag(header, b'"abc"')


@pytest.mark.parametrize("header", [b"", b"abc", b'"abc-gzip"', b'"ab"', b'"xabc"', b'"x", "y"', b'"*"', b'"abd"'])
def test_a_header_that_names_another_tag_does_not(header):
    assert not holds_etag(header, b'"abc"')
