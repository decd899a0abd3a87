"""The app behind a proxy that shows it under a path and strips that path, as nginx and JupyterHub do."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import BEEN_HERE, watched
from tests.browser.test_page import finished, press

PATH = "/user/ada/demo"


@pytest.fixture
def proxied(app):
    """The address of a proxy of the app; whatever is asked beside its path is not found."""

    class Proxy(BaseHTTPRequestHandler):
        def forward(self) -> None:
            if not self.path.startswith(PATH + "/"):
                return self.send_error(404)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = http.client.HTTPConnection("127.0.0.1", int(app.address.rstrip("/").rsplit(":", 1)[1]))
            asked.request(self.command, self.path.removeprefix(PATH), body, dict(self.headers))
            answer = asked.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.end_headers()
            while data := answer.read1(65536):
                self.wfile.write(data)
                self.wfile.flush()
            asked.close()

        do_GET = do_POST = do_HEAD = forward  # noqa: N815

        def log_message(self, *words) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}{PATH}/"
        server.shutdown()


def test_the_page_works_under_a_path(proxied, chromium):
    """Calls of our scripts, Gradio's own events, and a look whether the app is there."""
    errors = []
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.add_init_script(BEEN_HERE)
    page = watched(context, proxied, errors)  # whatever is asked for beside the path is an error
    page.on("response", lambda answer: answer.status < 400 or errors.append(answer.url))
    page.goto(proxied)
    page.wait_for_function("window.decodingExplorer && decodingExplorer.app.models.state === 'ready'")
    page.evaluate("decodingExplorer.app.applySetup({prompt: 'the cat', max_new_tokens: 5})")
    press(page, "Run")
    finished(page)
    assert page.evaluate("decodingExplorer.lanes.map((lane) => lane.count > 0)") == [True, True]
    page.get_by_role("tab", name="Traces", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save", exact=True).click()
    assert saved.value.suggested_filename == "the-cat.page.html"
    page.get_by_role("tab", name="Experiments", exact=True).click()
    expect(page.get_by_role("textbox", name="Search experiments")).to_be_visible()
    page.evaluate("ExplorerPage.connection.look()")
    assert page.evaluate("ExplorerPage.connection.state") == "there"
    context.close()
    assert not errors
