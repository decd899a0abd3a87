"""What becomes part of an element is text, unless it was made as HTML."""

from html.parser import HTMLParser

from explorer.markup import Html, h, joined

HOSTILE = "<img src=x onerror=\"alert('1')\">&amp;"


class Reader(HTMLParser):
    """The elements of some HTML with their attributes, and its text; checks that what opens is closed."""

    def __init__(self, markup: str):
        super().__init__()
        self.opened, self.elements, self.text = [], [], ""
        self.feed(markup)
        assert self.opened == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "input":
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.text += data

    def of(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def test_text_is_escaped_once_in_elements_and_attributes():
    made = h("p", {"title": HOSTILE, "hidden": True, "id": None}, HOSTILE, h("b", "", "x"), None)
    assert isinstance(made, Html)
    read = Reader(made)
    assert read.elements == [("p", {"title": HOSTILE, "hidden": None}), ("b", {})]
    assert read.text == HOSTILE + "x"


def test_what_is_joined_is_escaped_once():
    assert joined(["<", None, h("b", "", "<")]) == "&lt;<b>&lt;</b>"
