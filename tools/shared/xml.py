"""XML read without document types or entities: feeds need neither, and both are ways in."""

from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from toolserver.errors import SourceChanged


class _Plain(TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise SourceChanged("XML with a document type")


def xml_root(body: bytes) -> Element:
    """The root element, decoded as the document declares. Raises SourceChanged for anything but plain XML."""
    parser = XMLParser(target=_Plain())
    try:
        parser.feed(body)
        root = parser.close()
    except (ParseError, LookupError, ValueError) as error:
        raise SourceChanged(f"not XML: {error}") from error
    if not isinstance(root, Element):
        raise SourceChanged("not XML")
    return root
