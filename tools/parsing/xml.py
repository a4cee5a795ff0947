"""XML and RSS, read without document types or entities: feeds need neither, and both are ways in."""

from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from toolserver import SourceChanged


class _Plain(TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise SourceChanged("XML with a document type")


def xml_root(body: bytes) -> Element:
    """The root element, decoded as the document declares. Raises SourceChanged for anything but plain XML."""
    parser = XMLParser(target=_Plain())  # nosec B314 # _Plain refuses document types, and so every entity
    try:
        parser.feed(body)
        root = parser.close()
    except (ParseError, LookupError, ValueError) as error:
        raise SourceChanged(f"not XML: {error}") from error
    if not isinstance(root, Element):
        raise SourceChanged("not XML")
    return root


def rss_channel(body: bytes) -> Element:
    """The channel of an RSS 2.0 document. Raises SourceChanged."""
    root = xml_root(body)
    channel = root.find("channel")
    if root.tag != "rss" or channel is None:
        raise SourceChanged("no channel")
    return channel


def rss_items(body: bytes) -> list[Element]:
    """The items of an RSS 2.0 document, in its order. Raises SourceChanged."""
    return list(rss_channel(body).iter("item"))
