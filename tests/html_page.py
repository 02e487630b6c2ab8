"""HTML as a browser reads it, for tests of what is shown there."""

from html.parser import HTMLParser

VOID = {"meta", "wbr"}


class Elements(HTMLParser):
    """Elements in order, each with its attributes and its text; nesting is checked on the way."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.feed(html)
        self.close()
        assert not self._open, "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute is there twice"
        if tag not in VOID:
            self._open.append(len(self.elements))
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for number in self._open:
            self.elements[number][2].append(data)
