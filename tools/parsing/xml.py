"""Read XML and RSS for sources, with the engine's reader of plain XML."""

from typing import TYPE_CHECKING

from toolserver import SourceChanged

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def xml_root(body: bytes) -> "Element":
    """Return the root element, decoded as the document declares. Raises SourceChanged for anything but plain XML."""
    from xml.etree.ElementTree import ParseError  # loaded with the first document

    from toolserver import read_xml

    try:
        return read_xml(body)
    except (ParseError, LookupError, ValueError) as error:
        raise SourceChanged(f"not XML: {error}") from error


def rss_channel(body: bytes) -> "Element":
    """Return the channel of an RSS 2.0 document. Raises SourceChanged."""
    root = xml_root(body)
    channel = root.find("channel")
    if root.tag != "rss" or channel is None:
        raise SourceChanged("no channel")
    return channel


def rss_items(body: bytes) -> "list[Element]":
    """Return the items of an RSS 2.0 document, in its order. Raises SourceChanged."""
    return list(rss_channel(body).iter("item"))
