"""The page that asks for the token: a link's set-up survives it."""

import threading

import pytest
import uvicorn
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Route

from explorer.access import Access, Guard

TOKEN = "the-token-of-a-test"


@pytest.fixture(scope="module")
def address():
    """A page behind a guard with a token."""
    inside = Route("/", lambda request: HTMLResponse("<title>inside</title>"))
    guarded = Starlette(routes=[inside], middleware=[Middleware(Guard, access=Access(token=TOKEN))])
    server = uvicorn.Server(uvicorn.Config(guarded, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture
def page(chromium):
    """A browser that was never here."""
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def test_the_set_up_of_a_link_is_there_after_the_token(page, address):
    page.goto(address + "#setup=abc")
    expect(page.get_by_role("heading", name="This app asks for its token")).to_be_visible()
    field = page.get_by_role("textbox", name="Token")
    expect(field).to_be_focused()
    field.fill("a guess")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_contain_text("This is not the token of this app.")
    field.fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page).to_have_title("inside")
    expect(page).to_have_url(address + "#setup=abc")
