"""What may change around a page that is open: the size of its window, and the system's theme."""


def switch(page, scheme: str) -> None:
    """The system changes its theme, and the page follows."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)


def resize(page, width: int, height: int = 844) -> None:
    """Gives the window another size and waits until the page has come to it and nothing sticks out of it."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
