"""Mutations of XML that keep it well-formed, so that they reach the code that interprets it."""

import random
from copy import deepcopy

from lxml import etree

_VALUES = (
    "",
    "0",
    "-1",
    "99999999999",
    "1e309",
    "NaN",
    "#",
    "rId999",
    "é" * 50,
    "../../x",
    "true",
    "A1:XFD1048576",
)


def mutated_tree(content: bytes, chance: random.Random) -> bytes | None:
    """The XML with some elements removed, repeated, moved, renamed or changed; None if it is no XML."""
    try:
        root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError):
        return None
    for _ in range(chance.choice((1, 2, 4, 10))):
        elements = [each for each in root.iter(etree.Element) if each is not root]
        if elements:
            _change(chance.choice(elements), chance.choice(elements), chance)
    return etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True)


def _change(element: etree._Element, other: etree._Element, chance: random.Random) -> None:
    deed = chance.randrange(7)
    parent = element.getparent()
    if deed == 0:
        parent.remove(element)
    elif deed == 1:
        for _ in range(chance.choice((1, 3, 30))):
            parent.append(deepcopy(element))
    elif deed == 2:
        other.append(deepcopy(element))
    elif deed == 3:
        element.tag = other.tag
    elif deed == 4:
        element.text = chance.choice(_VALUES)
    elif element.attrib:
        name = chance.choice(sorted(element.attrib))
        if deed == 5:
            del element.attrib[name]
        else:
            element.attrib[name] = chance.choice((*_VALUES, *map(str, other.attrib.values())))
