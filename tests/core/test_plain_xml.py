"""XML is read as the document declares, and one with a document type is not read at all."""

from xml.etree.ElementTree import ParseError

import pytest

from toolserver.core.plain_xml import read_xml


def test_the_declared_encoding_is_used():
    root = read_xml('<?xml version="1.0" encoding="ISO-8859-1"?><a b="1">é</a>'.encode("latin-1"))
    assert (root.tag, root.text, root.get("b")) == ("a", "é", "1")


def test_a_document_type_is_refused():
    with pytest.raises(ValueError, match="document type"):
        read_xml(b'<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>')


@pytest.mark.parametrize("body", [b"", b"<a>", b"text", b"<a></b>"])
def test_what_is_no_xml_is_refused(body):
    with pytest.raises(ParseError):
        read_xml(body)
