"""Who may speak to the app: hosts, origins, JSON and the token, for pages, calls, endpoints and MCP."""

import asyncio
import functools
import json

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AuthenticationError
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

import app
from explorer.access import Access, Guard
from explorer.page.layout import build
from explorer.runs.scheduler import Runs
from tests.helpers.launched import launched
from tests.helpers.ready_loader import ready_loader
from tests.helpers.scripted_lane import ScriptedLane

TOKEN = "open-sesame"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ELSEWHERE = {"Host": "evil.example"}
HERE = "127.0.0.1:7860"


def small(access: Access) -> TestClient:
    """An app behind the guard that says `reached` to everything."""

    async def reached(request) -> PlainTextResponse:
        return PlainTextResponse("reached")

    async def talk(socket: WebSocket) -> None:
        await socket.accept()

    methods = ["GET", "POST", "DELETE", "PUT"]
    routes = [WebSocketRoute("/ws", talk), Route("/{path:path}", reached, methods=methods)]
    guarded = Starlette(routes=routes, middleware=[Middleware(Guard, access=access)])
    return TestClient(guarded, base_url=f"http://{HERE}", follow_redirects=False)


@pytest.mark.parametrize(
    ("listens", "origins", "host", "answers"),
    [
        ("127.0.0.1", [], "127.0.0.1:7860", True),
        ("127.0.0.1", [], "localhost:9000", True),  # a tunnel's other end
        ("127.0.0.1", [], "[::1]:7860", True),
        ("127.0.0.1", [], "evil.example:7860", False),  # a name that was pointed at this machine
        ("127.0.0.1", [], "127.0.0.1.evil.example", False),
        ("127.0.0.1", [], "localhost.evil.example", False),
        ("127.0.0.1", [], "192.168.0.7:7860", False),
        ("127.0.0.1", [], "", False),
        ("127.0.0.1", [], "[", False),
        ("127.0.0.1", [], "LOCALHOST:7860", True),
        ("127.0.0.1", [], "evil.example@127.0.0.1", False),  # no browser says so
        ("127.0.0.1", [], "127.0.0.1@evil.example", False),
        ("127.0.0.1", [], "[::1].evil.example", False),  # some parsers stop at the bracket
        ("127.0.0.1", [], "[::1].evil.example:7860", False),
        ("127.0.0.1", [], "[::1]evil.example", False),
        ("127.0.0.1", [], "evil.example[::1]", False),
        ("127.0.0.1", [], "::1", False),
        ("127.0.0.1", [], "localhost:7860.evil.example", False),
        ("127.0.0.1", [], "localhost:7860:7861", False),
        ("127.0.0.1", [], "localhost/evil.example", False),
        ("127.0.0.1", [], "localhost?evil.example", False),
        ("127.0.0.1", [], "localhost#evil.example", False),
        ("127.0.0.1", [], "localhost\\evil.example", False),
        ("127.0.0.1", [], "localhost,evil.example", False),
        ("127.0.0.1", [], "localhost evil.example", False),
        ("0.0.0.0", [], "[fe80::1].evil.example", False),
        ("0.0.0.0", [], "192.168.0.7.evil.example", False),
        ("192.168.0.7", [], "192.168.0.7:7860", True),
        ("0.0.0.0", [], "192.168.0.7:7860", True),
        ("0.0.0.0", [], "[fe80::1]:7860", True),
        ("0.0.0.0", [], "evil.example", False),
        ("0.0.0.0", ["https://demo.example.org"], "demo.example.org", True),
        ("127.0.0.1", ["https://demo.example.org"], "127.0.0.1:7860", True),
    ],
)
def test_the_app_answers_only_as_what_it_was_started_for(listens, origins, host, answers):
    got = small(Access(listens, origins)).get("/any", headers={"Host": host})
    assert (got.status_code, got.text == "reached") == ((200, True) if answers else (421, False))
    assert answers or "open the address that it printed" in got.json()["detail"]


def test_a_space_answers_under_its_public_name(monkeypatch):
    monkeypatch.setenv("SPACE_HOST", "owner-explorer.hf.space")
    got = small(Access("0.0.0.0")).get("/", headers={"Host": "owner-explorer.hf.space"})
    assert got.status_code == 200
    assert "https://huggingface.co" in got.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("origin", "origins", "answers"),
    [
        (None, [], True),  # a program
        (f"http://{HERE}", [], True),
        (f"https://{HERE}", [], True),  # a proxy that speaks TLS for it
        ("http://127.0.0.1:7861", [], False),
        ("http://localhost:7860", [], False),
        ("http://evil.example", [], False),
        ("null", [], False),
        ("http://[", [], False),
        ("http://[::1].evil.example:7860", ["http://[::1]:7860"], False),
        ("http://[::1]:7860", ["http://[::1]:7860"], True),
        (f"http://evil.example@{HERE}", [], False),
        (f"http://{HERE}@evil.example", [], False),
        ("", [], False),
        ("https://demo.example.org", ["https://demo.example.org"], True),
        ("https://demo.example.org", ["https://demo.example.org:443/"], True),
        ("https://demo.example.org.evil.example", ["https://demo.example.org"], False),
    ],
)
def test_only_the_app_s_own_pages_may_ask(origin, origins, answers):
    client, headers = small(Access(origins=origins)), {} if origin is None else {"Origin": origin}
    for got in (client.get("/a", headers=headers), client.post("/a", json={}, headers=headers)):
        assert got.status_code == (200 if answers else 403)
        assert answers or got.json()["detail"].startswith("A page of another website")


@pytest.mark.parametrize(
    ("site", "mode", "status"),
    [
        ("cross-site", "navigate", 200),  # a link to the app
        ("cross-site", "no-cors", 403),  # an image or a script of another website
        ("same-site", "no-cors", 403),  # another app on this machine
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
    ],
)
def test_what_a_browser_asks_without_an_origin_is_told_by_its_site(site, mode, status):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert small(Access()).get("/", headers=headers).status_code == status


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "multipart/form-data; boundary=x",
        "",
        "application/jsonp",
        "application/x-www-form-urlencoded",
    ],
)
def test_a_body_must_be_json(kind):
    client = small(Access())
    assert client.post("/a", content="{}", headers={"Content-Type": kind}).status_code == 415
    charset = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/a", content="{}", headers=charset).is_success
    assert client.put("/a", json={}).status_code == 405 and client.delete("/a").is_success


UPLOAD = "/gradio_api/upload"
OURS = f"http://{HERE}"


@pytest.mark.parametrize(
    ("origin", "site", "path", "status"),
    [
        (OURS, "same-origin", UPLOAD, 200),
        (OURS, None, UPLOAD, 200),  # over plain HTTP a browser does not name the site
        ("https://demo.example.org", "same-origin", UPLOAD, 200),
        (None, None, UPLOAD, 403),  # a program, or a browser that hides where the form stands
        (None, "same-origin", UPLOAD, 403),
        (None, "none", UPLOAD, 403),
        ("null", "same-origin", UPLOAD, 403),
        ("http://evil.example", "cross-site", UPLOAD, 403),
        ("http://127.0.0.1:7861", "same-site", UPLOAD, 403),  # another app on this machine
        (OURS, "same-site", UPLOAD, 403),
        (OURS, "cross-site", UPLOAD, 403),
        (OURS, "same-origin", UPLOAD + "/", 415),  # a form is taken at one address only
        (OURS, "same-origin", "/gradio_api/run/run", 415),
        (OURS, "same-origin", "/x/gradio_api/upload", 415),
    ],
)
def test_a_form_with_a_file_must_say_that_it_stands_on_our_own_page(origin, site, path, status):
    headers = {"Origin": origin, "Sec-Fetch-Site": site}
    headers = {name: value for name, value in headers.items() if value is not None}
    client = small(Access(origins=["https://demo.example.org"]))
    assert client.post(path, files={"files": ("a.json", b"{}")}, headers=headers).status_code == status
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert client.post(path, content="{}", headers=headers | {"Content-Type": kind}).status_code > 400


def test_an_upload_needs_host_and_token_too():
    files, headers = {"files": ("a.json", b"{}")}, {"Origin": OURS, "Sec-Fetch-Site": "same-origin"}
    client = small(Access(token=TOKEN))
    assert client.post(UPLOAD, files=files, headers=headers).status_code == 401
    assert client.post(UPLOAD, files=files, headers=headers | BEARER).is_success
    rebound = headers | BEARER | ELSEWHERE | {"Origin": "http://evil.example"}
    assert client.post(UPLOAD, files=files, headers=rebound).status_code == 421


def test_no_web_socket_and_no_frame_of_another_website():
    client = small(Access(origins=["https://demo.example.org"]))
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws"):
        pass
    policy = client.get("/").headers["content-security-policy"]
    assert policy.startswith("frame-ancestors 'self' https://demo.example.org;")


def test_the_token_opens_the_app_by_address_cookie_or_header():
    client = small(Access(token=TOKEN))
    for given, wrong in (({}, False), ({"token": "guess"}, True), ({"token": ""}, False)):
        shut = client.get("/", params=given)
        assert shut.status_code == 401 and "name='token'" in shut.text and TOKEN not in shut.text
        assert ("This is not the token" in shut.text, "guess" in shut.text) == (wrong, False)
    assert client.get("/config").json()["detail"].startswith("This app needs its token")
    assert client.post("/gradio_api/run/run", json={}).status_code == 401
    assert client.get("/gradio_api/startup-events").is_success  # Gradio asks it of itself
    led = client.get("/", params={"token": TOKEN, "__theme": "dark"})
    assert (led.status_code, led.headers["location"]) == (303, "./?__theme=dark")
    assert "HttpOnly" in led.headers["set-cookie"] and "explorer-token-7860=" in led.headers["set-cookie"]
    assert client.get("/").text == "reached"  # the cookie
    client.cookies.clear()
    assert client.post("/gradio_api/mcp/", params={"token": TOKEN}, json={}).text == "reached"
    assert client.get("/config", headers=BEARER).text == "reached"
    assert client.get("/config", headers={"Authorization": "Bearer guess"}).status_code == 401


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ([], True),
        (["--models", "embedded"], False),
        (["--models", "llama-tiny"], False),
        (["--host", "0.0.0.0"], False),  # others reach it, so only what comes with it can be chosen
        (["--host", "0.0.0.0", "--models", "any"], True),
    ],
)
def test_an_app_that_may_load_any_model_has_a_token(given, has, monkeypatch):
    monkeypatch.delenv("EXPLORER_TOKEN", raising=False)
    first, second = (app.arguments(given).access.token for _ in range(2))
    assert (first is not None) is has and (not has or (len(first) >= 32 and first != second))
    monkeypatch.setenv("EXPLORER_TOKEN", "chosen-by-hand")
    assert app.arguments(given).access.token == ("chosen-by-hand" if has else None)


def test_a_token_that_does_not_fit_into_an_address_is_a_sentence(monkeypatch, capsys):
    monkeypatch.setenv("EXPLORER_TOKEN", "a&b=c d/e")
    with pytest.raises(SystemExit):
        app.arguments([])
    assert "EXPLORER_TOKEN takes 8 to 200 letters" in capsys.readouterr().err


@pytest.mark.parametrize("origin", ["demo.example.org", "ftp://demo.example.org", "https://", "http://["])
def test_an_origin_that_is_none_is_a_sentence(origin, capsys):
    with pytest.raises(SystemExit) as ended:
        app.arguments(["--allow-origin", origin])
    assert ended.value.code == 2 and "such as https://demo.example.org" in capsys.readouterr().err


@pytest.fixture(scope="module")
def guarded():
    """The whole app with a token, on scripted lanes: its address."""
    runs = Runs(lambda request: [ScriptedLane([b" a"])])
    demo, launch = build(runs, ready_loader(), Access(token=TOKEN))
    address = launched(demo, launch)
    yield address
    demo.close()
    runs.close()


def test_the_page_knows_whether_its_link_needs_the_token(guarded):
    assert '"guarded":true' in httpx.get(guarded, headers=BEARER).text


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1"])
def test_a_page_of_another_website_gets_no_permission_before_the_guard_refuses_it(guarded, origin):
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    for got in (
        httpx.options(f"{guarded}gradio_api/run/run", headers=asks),  # what a browser asks beforehand
        httpx.get(guarded, headers=asks | BEARER),
        httpx.post(f"{guarded}gradio_api/run/run", json={}, headers={"Origin": origin} | BEARER),
    ):
        assert got.status_code == 403 and got.json()["detail"].startswith("A page of another website")
        assert not [name for name in got.headers if name.startswith("access-control")]


def test_clients_with_the_token_reach_endpoints_and_tools_and_others_nothing(guarded):
    client = Client(guarded, headers=BEARER, verbose=False, analytics_enabled=False)
    assert client.predict("Once", api_name="/run")["output_tokens"]
    with pytest.raises(AuthenticationError):
        Client(guarded, verbose=False, analytics_enabled=False)

    async def tools(address: str, headers: dict) -> list[str]:
        async with (
            streamablehttp_client(address, headers=headers) as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            return sorted(tool.name for tool in (await session.list_tools()).tools)

    at = f"{guarded}gradio_api/mcp/"
    for address, headers in ((at, BEARER), (f"{at}?token={TOKEN}", {})):
        assert asyncio.run(tools(address, headers)) == ["run", "strategies", "trace"]


PAGES = [
    "",
    "config",
    "gradio_api/info",
    "gradio_api/mcp/",
    "gradio_api/queue/data?session_hash=a",
    "theme.css",
    "gradio_api/heartbeat/a",
    "static/img/logo.svg",
    "explorer-files/a",
]
CALLS = [
    "gradio_api/component_server",
    "gradio_api/run/run",
    "gradio_api/call/run",
    "gradio_api/queue/join",
    "gradio_api/upload",
    "gradio_api/mcp/",
    "explorer-leave",
    "login",
]


def test_every_address_of_the_app_is_behind_the_guard(guarded):
    with httpx.Client(base_url=guarded) as client:
        for path in PAGES + CALLS:
            ask = client.get if path in PAGES else functools.partial(client.post, json={})
            assert ask(path).status_code == 401, path
            assert ask(path, headers=BEARER | ELSEWHERE).status_code == 421, path
            assert ask(path, headers=BEARER | {"Origin": "http://evil.example"}).status_code == 403, path
        for path in CALLS:
            assert client.post(path, content="{}", headers=BEARER).status_code == 415, path
        stranger = client.post("gradio_api/upload", files={"files": ("a.json", b"{}")}, headers=BEARER)
        assert stranger.status_code == 403 and "Only the app's own pages" in stranger.json()["detail"]
        assert json.loads(client.get("config", headers=BEARER).text)["version"]
