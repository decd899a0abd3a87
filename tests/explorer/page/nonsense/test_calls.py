"""Nonsense for all that can be called: status 4xx and one sentence, and nothing in the log but lines.

Server functions, endpoints and tools are found where they are registered; their models make the requests.
"""

import asyncio
import json
import random

import gradio as gr
import pytest

from explorer.page.layout import server_functions
from explorer.page_requests import asked_of
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from tests.helpers.random_requests import (
    API,
    BYTES,
    JSON_ADDRESSES,
    ME,
    OTHER,
    by_chance,
    example,
    judge,
    mutations,
)
from tests.helpers.server_log import Heard

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
    "stop_when": ["entropy > 4"],
    "strategy": "sample",
    "target": "llama-tiny-draft",
    "token": 65,
    "view": "text",
    "views": ["text", None],
    "wait": 0,
}
SAYS_NO = {"explorer_lesson"}  # the run does not suit what is asked


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
    run = served.runs.start(check(SETUP), ME)
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
        for path in JSON_ADDRESSES:
            status, answer = served.client.post(path, body)
            judge(findings, f"{path}: {body[:40]!r}", status, answer)
            assert 400 <= status < 500 or path.endswith(("/close", "mcp/")), (path, body, status)


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
            number = [] if isinstance(component, gr.Number | gr.Slider) else [3.5]
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


@pytest.mark.parametrize("method", ["ping", "tools/call", "notifications/initialized"])
def test_a_message_with_an_odd_id_is_refused_in_one_line_of_the_log(served, method):
    """MCP's own models take such a message for a notification, and log 25 to 40 lines about it."""
    headers, heard = {"Accept": "application/json, text/event-stream"}, Heard()
    odd = [1.5, None, True, [], {"a": 1}]
    with heard.listening():
        for one in odd:
            message = {"jsonrpc": "2.0", "method": method, "id": one, "params": {}}
            status, body = served.client.post(f"{API}mcp/", message, **headers)
            assert status == 400 and "id must be" in json.loads(body)["error"]["message"]
    said = [line for record in heard.records for line in record.getMessage().splitlines()]
    assert len(said) == len(odd) and all("was refused: id must be" in line for line in said)
