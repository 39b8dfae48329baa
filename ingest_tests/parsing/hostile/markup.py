"""Markup that expands, or is nested without end."""

_ENTITIES = '<!ENTITY l0 "lollollollol">' + "".join(
    f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 10)
)


def billion_laughs(root: str, body: str = "&l9;", prolog: str = '<?xml version="1.0"?>') -> str:
    """Ten to the power of nine copies of a word."""
    return f"{prolog}<!DOCTYPE {root} [{_ENTITIES}]><{root}>{body}</{root}>"


def quadratic_blowup(root: str, size: int = 100_000) -> str:
    """One long entity, used as often as it is long."""
    return (
        f'<?xml version="1.0"?><!DOCTYPE {root} [<!ENTITY a "{"a" * size}">]>'
        f"<{root}><p>{'&a;' * size}</p></{root}>"
    )


def external_entity(root: str, uri: str) -> str:
    """A reference to a file or an external address."""
    return (
        f'<?xml version="1.0"?><!DOCTYPE {root} [<!ENTITY x SYSTEM "{uri}">]>'
        f"<{root}><body><p>Bees and trees &x;</p></body></{root}>"
    )


def deep_html(depth: int, tag: str = "div") -> str:
    """Nested elements with a word in the innermost one."""
    return f"<html><body><h1>T</h1>{f'<{tag}>' * depth}Bees and trees{f'</{tag}>' * depth}</body></html>"


def unclosed_html(count: int, tag: str = "font") -> str:
    """Elements without closing tags, as old editors wrote them."""
    return "<html><body><h1>T</h1>" + "".join(f"<{tag}>word{at} " for at in range(count)) + "</body></html>"


def resources(uri: str) -> str:
    """HTML that refers to an external resource in every possible way."""
    return (
        f"<html><head><link rel=stylesheet href='{uri}'><base href='{uri}'><script src='{uri}'></script>"
        f"<style>@import url({uri});</style></head><body background='{uri}'><h1>T</h1><p>Bees and trees</p>"
        f"<img src='{uri}' srcset='{uri} 2x'><picture><source srcset='{uri}'><img src='{uri}'></picture>"
        f"<iframe src='{uri}'></iframe><object data='{uri}'></object><embed src='{uri}'>"
        f"<video src='{uri}' poster='{uri}'></video><svg><image href='{uri}'/><use href='{uri}#a'/></svg>"
        f"<table background='{uri}'><tr><td><img src='{uri}'>x</td></tr></table></body></html>"
    )


def endless_entity(root: str) -> str:
    """An entity that contains itself."""
    return f'<?xml version="1.0"?><!DOCTYPE {root} [<!ENTITY a "&b;"><!ENTITY b "x&a;">]><{root}>&a;</{root}>'


def with_external_entity(document: str, uri: str) -> str:
    """The document with a reference to an external entity."""
    declared = document.replace('.dtd">', f'.dtd" [<!ENTITY x SYSTEM "{uri}">]>')
    return declared.replace("Fifteen kilograms.", "Fifteen &x; kilograms.")
