"""Nonsense at every address of the real app: status 4xx and one sentence, and nothing in the log but lines.

Server functions, endpoints and tools are found where they are registered; their models make the requests.
"""

import asyncio
import json
import random
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import gradio as gr
import pytest

from explorer.page.layout import EXAMPLE, build, server_functions
from explorer.page.save_and_open import shown
from explorer.page.uploads import MAX_FILE_BYTES
from explorer.page_requests import asked_of
from explorer.runs.lane_factory import lane_maker
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from tests.helpers.bad_files import damaged
from tests.helpers.random_requests import BYTES, Client, Findings, by_chance, example, judge, mutations
from tests.helpers.ready_loader import ready_loader
from tests.helpers.server_log import Heard

API = "/gradio_api/"
ME, OTHER = "me" * 12, "you" * 8
CHANCES = 12  # values by chance for each function
SETUP = {
    "prompt": "Once",
    "max_new_tokens": 6,
    "lanes": [{"strategy": "greedy"}, {"strategy": "speculative", "parameters": {"temperature": 1.0}}],
}
# What a part of a valid request is, by its name; else the simplest that its model allows.
NAMED = {
    "action": "pause",
    "begin": {"tokens": [65], "forced": [0]},
    "chat": None,
    "device": "auto",
    "draft": None,
    "dtype": "auto",
    "lane": 1,
    "lesson": "draft-trees",
    "max_new_tokens": 4,
    "name": "greedy",
    "node": 4,
    "number": 1,
    "packed": "q1YqSy0qzszPU7JSMNRRUCooys8tKAFylBKVgNzcxIr4vNTy-JL87NS8YqCwCVAwJzEvFcSOrlYqLilKLElNrwRpS"
    "C9KTU2pVKqNrQUA",  # of one lane, greedy
    "parameters": {"temperature": 0.5},
    "prompt": "Once",
    "session": ME,
    "strategy": "sample",
    "target": "llama-tiny-draft",
    "token": 65,
    "view": "text",
    "views": ["text", None],
    "wait": 0,
}
SAYS_NO = {"explorer_lesson"}  # the run does not suit what is asked


@pytest.fixture(scope="module")
def served():
    """The app on tiny models: `client`, `demo`, `runs`, `functions` by name, `call`."""
    loader = ready_loader()
    runs = Runs(lane_maker(loader))
    demo, launch = build(runs, loader)
    _, address, _ = demo.launch(prevent_thread_lock=True, **launch)
    home = next(block for block in demo.blocks.values() if getattr(block, "server_fns", None))
    client = Client(address)

    def call(name: str, data: object) -> tuple[int, bytes]:
        body = {"component_id": home._id, "fn_name": name, "session_hash": "x", "data": data}
        return client.post(f"{API}component_server", body)

    functions = {function.__name__: function for function in home.server_fns}
    yield SimpleNamespace(
        client=client,
        demo=demo,
        runs=runs,
        functions=functions,
        call=call,
        component=home._id,
        address=address,
    )
    demo.close()
    runs.close()


@pytest.fixture
def findings():
    """What is wrong with the answers to a test's nonsense, and with the log; there must be nothing."""
    found, heard = Findings(), Heard()
    with heard.listening():
        yield found
    assert not found.wrong, found.told()
    assert not heard.bad(), "\n".join(heard.bad()[:3])


def valid_request(served, name: str) -> dict:
    """A request that the function takes, for a run of its own."""
    schema = asked_of(served.functions[name]).model_json_schema()
    made = example(schema, schema.get("$defs", {}), NAMED)
    if name == "explorer_call":
        made["name"] = "flows-with-feedback"
    if "run" not in made:
        made["session"] = OTHER
    else:
        made["run"] = run_of(served)
    return made


def run_of(served) -> str:
    """The id of a run that has ended."""
    run = served.runs.start(SETUP, ME)
    every = [{"view": "text", "ops": 2**31, "rows": 2**31} for _ in SETUP["lanes"]]
    while run.state == "running":
        asyncio.run(served.runs.pull(run.id, every, 2.0, "running"))
    return run.id


def functions() -> list[str]:
    """The names of all server functions, as the page has them."""
    return [function.__name__ for function in server_functions(Runs(None), Loader("tiny", None))]


@pytest.mark.parametrize("name", functions())
def test_a_server_function_refuses_nonsense_with_a_sentence(served, findings, name):
    valid, chance = valid_request(served, name), random.Random(name)
    before = judge(findings, f"{name} as it should be", *served.call(name, valid))
    assert name in SAYS_NO or "error" not in before, before
    for what, malformed, request in mutations(valid):
        judge(findings, f"{name}: {what}", *served.call(name, request), malformed)
    for _ in range(CHANCES):
        request = by_chance(chance)
        judge(findings, f"{name}: {request!r}", *served.call(name, request))
    after = judge(findings, f"{name} afterwards", *served.call(name, valid_request(served, name)))
    assert name in SAYS_NO or "error" not in after, after


def test_calls_of_what_is_not_there_and_bodies_that_are_no_json_are_refused(served, findings):
    valid = {"component_id": served.component, "fn_name": "explorer_hello", "session_hash": "x", "data": {}}
    for path in (f"{API}component_server", f"{API}component_server/"):
        for what, malformed, body in mutations(valid):
            judge(findings, f"{path}: {what}", *served.client.post(path, body), malformed)
    for body in BYTES:
        for path in addresses(served):
            status, answer = served.client.post(path, body)
            judge(findings, f"{path}: {body[:40]!r}", status, answer)
            assert 400 <= status < 500 or path.endswith(("/close", "mcp/")), (path, body, status)


def addresses(served) -> list[str]:
    """Where JSON is taken."""
    calls = [f"{API}{way}/run" for way in ("run", "api", "call", "call/v2")]
    others = [f"{API}{name}" for name in ("component_server", "queue/join", "cancel", "reset", "stream/x")]
    return [*calls, *others, "/explorer-leave"]


def endpoints(served) -> dict[str, dict]:
    """Name -> its valid inputs by name."""
    found = {}
    for name, told in served.demo.get_api_info()["named_endpoints"].items():
        inputs = {p["parameter_name"]: p["parameter_default"] for p in told["parameters"]}
        found[name[1:]] = inputs | ({"prompt": "Once", "max_new_tokens": 2} if inputs else {})
    return found


@pytest.mark.parametrize("way", ["run", "api", "call", "call/v2", "queue/join"])
def test_an_endpoint_refuses_other_inputs_than_its_own(served, findings, way):
    numbers = {one.api_name: number for number, one in served.demo.fns.items()}
    chance = random.Random(way)
    for name, inputs in endpoints(served).items():
        path = API + (way if way == "queue/join" else f"{way}/{name}")

        def body(inputs: dict, number: int = numbers[name]) -> dict:
            if way == "call/v2":
                return inputs
            named = {"fn_index": number, "session_hash": "s"} if way == "queue/join" else {}
            return {"data": list(inputs.values()), **named}

        status, answer = served.client.post(path, body(inputs))
        judge(findings, f"{path} as it should be", status, answer)
        assert status == 200, answer
        for what, malformed, request in mutations(body(inputs)):
            judge(findings, f"{path}: {what}", *served.client.post(path, request), malformed)
        for count in (0, 1, 5, 7, 40):
            if count != len(inputs) and way != "call/v2":
                request = {**body(inputs), "data": (list(inputs.values()) * 40 + [1] * 40)[:count]}
                judge(findings, f"{path}: {count} inputs", *served.client.post(path, request), True)
        for _ in range(CHANCES):
            request = by_chance(chance)
            judge(findings, f"{path}: {request!r}", *served.client.post(path, request))
    for name in ("nothing", "__proto__", "%00", "a" * 300):
        path = API + (way if way == "queue/join" else f"{way}/{name}")
        request = {"data": [], "fn_index": 99, "session_hash": "s"}
        judge(findings, path, *served.client.post(path, request), malformed=True)


# What a browser says of a click on a cell of a table, and what of it no table can have.
PICKED = {"index": [0, 0], "value": "the", "row_value": ["the", 3], "col_value": ["the", "a"]}
NOT_PICKED = (
    {"index": [0]},
    {"index": 3},
    {"index": [-1, 0]},
    {"value": {"path": "/etc/passwd"}},
    {"value": "x" * 1001},
    {"row_value": []},
    {"row_value": [["the"]]},
    {"row_value": ["x"] * 101},
    {"col_value": [{"path": "/etc/passwd"}]},
    {"meta": {"path": "/etc/passwd"}},
)


def test_an_event_of_a_tab_refuses_other_inputs_than_its_components_can_have(served, findings):
    named = {one.api_name for one in served.demo.fns.values()} & {"strategies", "run", "trace"}
    events = [one for one in served.demo.fns.values() if one.fn and one.api_name not in named]
    assert events and len(named) == 3
    path, chance = f"{API}queue/join", random.Random("events")
    for event in events:
        inputs = [getattr(one, "value", None) for one in event.inputs]
        body = {"data": inputs, "fn_index": event._id, "session_hash": "s"}
        if event.collects_event_data:
            body["event_data"] = PICKED
            for odd in (None, [], "x", {}, *(PICKED | one for one in NOT_PICKED)):
                told = f"event {event._id}: picked {str(odd)[:40]}"
                judge(findings, told, *served.client.post(path, {**body, "event_data": odd}), True)
        status, answer = served.client.post(path, body)
        judge(findings, f"event {event._id} as it should be", status, answer)
        assert status == 200, answer
        for at, component in enumerate(event.inputs):
            number = [] if isinstance(component, gr.Number) else [3.5]
            for odd in ([], {}, *number, "no such thing" * 9999, {"path": "/etc/passwd"}, [None]):
                request = {**body, "data": [*inputs[:at], odd, *inputs[at + 1 :]]}
                told = f"event {event._id}: {str(odd)[:40]}"
                judge(findings, told, *served.client.post(path, request), True)
        for count in {0, len(inputs) + 1, 40} - {len(inputs)}:
            request = {**body, "data": ([*inputs, *[None] * 40])[:count]}
            judge(findings, f"event {event._id}: {count} inputs", *served.client.post(path, request), True)
        for _ in range(CHANCES):
            request = {**body, "data": by_chance(chance)}
            judge(findings, f"event {event._id}: {request!r}", *served.client.post(path, request))


def test_an_mcp_tool_refuses_other_arguments_than_its_own(served, findings):
    headers = {"Accept": "application/json, text/event-stream"}

    def asked(what: str, message: object, malformed: bool = False) -> dict:
        """The result, if there is one; a tool says in it what is wrong."""
        status, body = served.client.post(f"{API}mcp/", message, **headers)
        told = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
        found = json.loads(told[-1] if told else body or b"{}")
        result = found.get("result", {})
        if result.get("isError"):
            found["error"] = result["content"][0]["text"]
        elif isinstance(found.get("error"), dict):
            found["error"] = found["error"]["message"]
        known = malformed and "error" not in found and status != 202  # notifications have no answer
        judge(findings, f"MCP: {what}", status, json.dumps(found).encode(), known)
        return result

    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    tools = asked("tools", message)["tools"]
    assert len(tools) == 3
    for tool in tools:
        required = dict.fromkeys(tool["inputSchema"].get("required", []), "Once")
        few = {"max_new_tokens": 2} if required else {}
        call = message | {
            "method": "tools/call",
            "params": {"name": tool["name"], "arguments": required | few},
        }
        assert asked(tool["name"], call)["isError"] is False
        for what, malformed, request in mutations(call):
            asked(f"{tool['name']}: {what}", request, malformed and not what.startswith("id"))
    for body in BYTES:
        asked(f"{body[:40]!r}", body, True)


def test_a_page_that_leaves_says_so_in_json(served, findings):
    for what, malformed, body in mutations({"session": ME}):
        judge(findings, f"leave: {what}", *served.client.post("/explorer-leave", body), malformed)
    assert served.client.post("/explorer-leave", {"session": ME})[0] == 204


ODD = [
    "%00",
    "%ff%fe",
    "..%2f..%2fetc%2fpasswd",
    "a" * 300,
    "~nosuch",
    "-1",
    "99999999999999999999",
    "%0a%0d",
    "http:%2f%2f%5b",
]


def test_addresses_that_lead_nowhere_are_refused(served, findings):
    paths = sorted({path for route in served.demo.app.routes for path in paths_of(route)} - {"/"})
    assert len(paths) > 40
    for path in paths:
        for odd in ODD:
            address = "/".join(odd if part.startswith("{") else filled(part, odd) for part in path.split("/"))
            status, body = served.client.send("GET", address)
            findings.asked += 1
            if status == 0 or status >= 500:
                findings.add("500", f"GET {address}: {status} {body[:100]!r}")
    queries = (
        "page=%00",
        "page=x",
        "view=%ff&&&=",
        "deep_link=%00",
        "deep_link=..%2f",
        "a" * 3000,
        "__theme=%F0%9F",
        "%",
    )
    for query in queries:
        for path in (
            "/",
            "/config",
            f"{API}info",
            f"{API}queue/data",
            f"{API}deep_link",
            f"{API}upload_progress",
        ):
            for more in ("", "&session_hash=%00", "&session_hash=nobody&upload_id=x"):
                status, body = served.client.send("GET", f"{path}?{query}{more}")
                findings.asked += 1
                if status == 0 or status >= 500:
                    findings.add("500", f"GET {path}?{query}{more}: {status} {body[:100]!r}")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"):
        for path in ("/", *addresses(served), f"{API}file=x"):
            status, body = served.client.send(method, path, b"\xff")
            judge(findings, f"{method} {path}", status, body, malformed=True)
    assert served.client.send("GET", "/")[0] == 200


def paths_of(route) -> list[str]:
    """The addresses of a route, or of those that it includes."""
    inner = getattr(route, "original_router", None)
    if inner is not None:
        return [path for one in inner.routes for path in paths_of(one)]
    slow = ("dev/reload", "mcp", "heartbeat")  # streams without end
    path = getattr(route, "path", "")
    return (
        [path]
        if "GET" in (getattr(route, "methods", None) or ()) and not any(s in path for s in slow)
        else []
    )


def filled(part: str, odd: str) -> str:
    """`file={path}` with something in its place."""
    return part.split("{")[0] + odd if "{" in part else part


def test_a_file_that_is_damaged_or_lies_is_one_sentence_and_what_opens_can_be_saved(served, findings):
    for what, data in damaged(random.Random(7)):
        try:
            found = json.dumps(shown(served.runs, data, OTHER), allow_nan=False)
        except ValueError as error:
            found = json.dumps({"error": str(error)})
        found = judge(findings, f"open {what}", 200, found.encode())
        if found and "run" in found:
            for form in ("run", "page", "costs"):
                asked = {"session": OTHER, "run": found["run"], "form": form}
                judge(findings, f"save as {form} {what}", *served.call("explorer_save", asked))
    status, body = served.client.post(f"{API}component_server", b'"' + b"A" * (25 * 2**20) + b'"')
    judge(findings, "larger than any file", status, body, malformed=True)
    assert status == 413


def test_an_upload_that_is_none_is_one_sentence_and_leaves_no_file(served, findings):
    path, edge = f"{API}upload", b"--edge\r\n"
    ours = {"Origin": served.address, "Content-Type": "multipart/form-data; boundary=edge"}
    kept = served.demo.upload_file_set
    head = edge + b'Content-Disposition: form-data; name="files"; filename="a.json"\r\n\r\n'
    sound = head + b"{}\r\n--edge--\r\n"
    bodies = [
        *BYTES,
        sound[:-9],
        sound.replace(b"files", b"file"),
        head + b"{}\r\n" + sound,
        edge * 1000,
        head,
    ]
    bodies += [sound.replace(b"\r\n\r\n", b"\n\n"), head + b"a" * (MAX_FILE_BYTES + 1) + b"\r\n--edge--\r\n"]
    before = set(kept)
    for body in bodies:
        judge(findings, f"upload {body[:40]!r}", *served.client.post(path, body, **ours), malformed=True)
    for kind in ("", "multipart/form-data", "multipart/form-data; boundary=é", "text/plain", "multipart/x"):
        status, answer = served.client.post(path, sound, **(ours | {"Content-Type": kind.encode()}))
        judge(findings, f"upload as {kind!r}", status, answer, malformed=True)
    assert kept == before and served.demo.max_file_size == MAX_FILE_BYTES  # which browsers are told
    status, answer = served.client.post(path + "?upload_id=x", sound, **ours)
    (uploaded,) = json.loads(answer)
    assert status == 200 and Path(uploaded).read_bytes() == b"{}" and "a.json" not in uploaded
    Path(uploaded).unlink()


def test_the_app_fetches_no_file_from_another_machine(served, findings):
    for address in ("http://example.org/a", "https:%2f%2fexample.org/a", "HTTP://127.0.0.1/a"):
        status, body = served.client.send("GET", f"{API}file={address}")
        judge(findings, address, status, body, malformed=True)
        assert status == 404 and b"nothing at this address" in body


def test_a_line_in_the_log_is_one_line_and_names_no_more_than_its_address(served):
    heard = Heard()
    with heard.listening():
        served.call("explorer_trace", {"run": EXAMPLE, "lane": "one\nERROR two\x1b[31m"})
        served.client.post(f"{API}run/{quote('x' + chr(10) + 'ERROR')}", {"data": []})
    lines = [record.getMessage() for record in heard.records]
    assert len(lines) == 2 and all("\n" not in line and "\x1b" not in line for line in lines)
    assert (
        lines[0] == r"explorer_trace was refused: lane must be a whole number, not 'one\nERROR two\x1b[31m'."
    )
    assert "was refused: There is no such endpoint" in lines[1]
