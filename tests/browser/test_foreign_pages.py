"""Other websites, opened in the same browser, can neither start runs in the app nor read or show it."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from explorer.access import Access, Guard
from explorer.benchmarks.browser import FLAGS, find
from explorer.page.layout import build
from explorer.runs.scheduler import Runs
from tests.helpers.launched import launched
from tests.helpers.ready_loader import ready_loader
from tests.helpers.scripted_lane import ScriptedLane

# All that a page can do with a server it does not belong to; answers what it could read of the answers.
ATTACK = """async ([app, component]) => {
  const server = app + "gradio_api/component_server", read = [];
  const run = {session: "0123456789abcdef", prompt: "Once", max_new_tokens: 2,
    lanes: [{strategy: "greedy", parameters: {}, seed: 0}]};
  const start = JSON.stringify({component_id: component, fn_name: "explorer_start", session_hash: "x",
    data: run});
  const call = JSON.stringify({data: ["Once", "greedy", {}, 2, 0, {}]});
  const tool = JSON.stringify({jsonrpc: "2.0", id: 1, method: "tools/call",
    params: {name: "run", arguments: {prompt: "Once"}}});
  const ask = async (address, options) => {
    try {
      const text = await (await fetch(address, {credentials: "include", ...options})).text();
      if (text && !text.includes("detail")) read.push(address + ": " + text.slice(0, 60));
    } catch { /* it was kept from us */ }
  };
  const calls = [[server, start], [app + "gradio_api/run/run", call], [app + "gradio_api/mcp/", tool]];
  for (const mode of ["no-cors", "cors"])
    for (const type of ["text/plain", "application/json"])
      for (const [address, body] of calls) {
        const headers = {"Content-Type": type, Accept: "application/json, text/event-stream"};
        await ask(address, {method: "POST", mode, body, headers});
      }
  const files = () => {
    const body = new FormData();
    body.append("files", new File(["{}"], "a.json", {type: "application/json"}));
    return body;
  };
  for (const mode of ["no-cors", "cors"])
    await ask(app + "gradio_api/upload", {method: "POST", mode, body: files()});
  navigator.sendBeacon(app + "gradio_api/upload", files());
  await ask(app + "config", {});
  await ask(app, {});
  navigator.sendBeacon(server, start);
  navigator.sendBeacon(server, new Blob([start], {type: "text/plain"}));
  const form = document.createElement("form");  // its body is JSON all the same
  Object.assign(form, {method: "post", enctype: "text/plain", action: server, target: "hidden"});
  const field = document.createElement("input"), frame = document.createElement("iframe");
  field.name = start.slice(0, -1) + ', "a": "';
  field.value = '"}';
  frame.name = "hidden";
  document.body.append(frame, form);
  form.append(field);
  form.submit();
  const upload = document.createElement("form"), file = document.createElement("input");  // of a person's own
  Object.assign(upload, {method: "post", enctype: "multipart/form-data", action: app + "gradio_api/upload",
    target: "second"});
  const chosen = new DataTransfer();
  chosen.items.add(new File(["{}"], "a.json"));
  Object.assign(file, {type: "file", name: "files", files: chosen.files});
  const second = document.createElement("iframe");
  second.name = "second";
  document.body.append(second, upload);
  upload.append(file);
  upload.submit();
  await new Promise(done => setTimeout(done, 700));
  return read;
}"""
SITES = ["http://127.0.0.1:{foreign}/", "http://evil.example:{foreign}/", "http://evil.example:{app}/"]
EVIL = "evil.example"


@pytest.fixture(scope="module")
def foreign():
    """The port of another website on this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body>Win a prize!")

        def log_message(self, *_) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def rebound(chromium):
    """A browser in which a website's name leads to this machine."""
    rule = f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"
    browser = chromium.browser_type.launch(executable_path=find(bare=True), args=[*FLAGS, rule])
    yield browser
    browser.close()


def serving(access: Access | None):
    """The app on scripted lanes, without a guard if `access` is None: `(demo, runs, address, component)`."""
    runs = Runs(lambda request: [ScriptedLane([b" a"])])
    demo, launch = build(runs, ready_loader(), access)
    if access is None:
        kept = [one for one in launch["app_kwargs"]["middleware"] if one.cls is not Guard]
        launch["app_kwargs"]["middleware"] = kept
    address = launched(demo, launch)
    component = next(key for key, block in demo.blocks.items() if block.elem_id == "explorer-drawn-decode")
    return demo, runs, address, component


@pytest.mark.parametrize("site", SITES)
def test_a_foreign_page_starts_nothing_and_reads_nothing(rebound, foreign, site):
    """From another port, from another site, and from a site whose name was pointed at the app itself."""
    demo, runs, address, component = serving(Access())
    port = urlsplit(address).port
    page, began = rebound.new_page(), set(runs.runs)
    page.goto(site.format(foreign=foreign, app=port))
    base = address if "{foreign}" in site else f"http://{EVIL}:{port}/"
    assert page.evaluate(ATTACK, [base, component]) == []
    assert set(runs.runs) == began and not demo.upload_file_set
    page.close()
    demo.close()
    runs.close()


def test_the_same_page_starts_runs_where_no_guard_stands(rebound, foreign):
    """The attack is a real one: without the guard it succeeds."""
    demo, runs, address, component = serving(None)
    page, began = rebound.new_page(), len(runs.runs)
    page.goto(f"http://{EVIL}:{foreign}/")
    page.evaluate(ATTACK, [address, component])
    assert len(runs.runs) > began and demo.upload_file_set
    rebinding = page.goto(f"http://{EVIL}:{urlsplit(address).port}/config")
    assert rebinding.status == 200
    page.close()
    demo.close()
    runs.close()


def test_no_foreign_page_shows_the_app_in_a_frame(chromium, foreign, app):
    page = chromium.new_page()
    page.goto(f"http://127.0.0.1:{foreign}/")
    page.set_content(f'<iframe src="{app.address}" width="900" height="600"></iframe>')
    page.wait_for_timeout(500)
    assert page.frames[1].url.startswith("chrome-error:")
    page.close()


def test_the_token_is_asked_for_once_and_leaves_the_address(chromium):
    demo, runs, address, _ = serving(Access(token="open-sesame"))
    context = chromium.new_context()
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_text("it opens only with its token")).to_be_visible()
    page.get_by_label("Token").fill("open-sesame")
    page.get_by_role("button", name="Open").click()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.app.models.state === 'ready'")
    assert page.url == address
    page.keyboard.press("?")  # the help says what a script must send
    expect(page.get_by_text('headers={"Authorization": "Bearer TOKEN"}')).to_be_visible()
    second = context.new_page()  # the browser knows it now, and a link with a set-up keeps that
    second.goto(f"{address}?token=open-sesame#nothing")
    second.wait_for_function("window.decodingExplorer && decodingExplorer.app.models.state === 'ready'")
    assert second.url == f"{address}#nothing"
    context.close()
    demo.close()
    runs.close()
