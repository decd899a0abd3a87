"""Checks the envelopes of Gradio's and MCP's calls before anything in them is looked up or run.

Gradio's routes raise if a function, a component, an endpoint or an input does not exist; here such a call is
answered with a sentence. The payload for a server function is checked by `sessions.validated`, with that
function's own model.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from decoders.strategy import shortened
from explorer.schema import Asked, Malformed, Name, read

SessionId = Annotated[str, Field(min_length=1, max_length=100)]  # chosen by the client


class ComponentCall(Asked):
    """A call of a server function; that function checks `data` itself."""

    component_id: int
    fn_name: str
    session_hash: SessionId
    data: Any


class EndpointCall(Asked):
    """A call of an endpoint, by name in the address or by `fn_index`."""

    data: list[Any]
    session_hash: SessionId | None = None
    event_id: SessionId | None = None
    fn_index: int | None = None
    trigger_id: int | None = None
    event_data: Any = None  # only the functions of `Known.picks` read it
    simple_format: bool = False
    batched: Literal[False] | None = None
    oauth_token: str | None = None


class Join(EndpointCall):
    """A call that waits in Gradio's queue."""

    fn_index: int
    session_hash: SessionId


class Message(Asked):
    """A message of MCP, which is JSON-RPC. `id` is None for a notification, which gets no answer."""

    jsonrpc: Literal["2.0"]
    method: Name
    id: Any = None
    params: dict[str, Any] | None = None


class ToolCall(Asked):
    """The params of tools/call."""

    name: Name
    arguments: dict[str, Any] | None = None


@dataclass
class Known:
    """Everything that can be called.

    components: component id -> names of its server functions
    endpoints: name -> its number, and the model of its inputs in order
    events: number of an event in a tab -> the model of its inputs
    picks: number of an event whose function reads event data -> the model of that data
    session_open: whether Gradio has messages for a session
    tools: returns name of an MCP tool -> name of its endpoint
    """

    components: dict[int, frozenset[str]] = field(default_factory=dict)
    endpoints: dict[str, tuple[int, type[Asked]]] = field(default_factory=dict)
    events: dict[int, type[Asked]] = field(default_factory=dict)
    picks: dict[int, type[Asked]] = field(default_factory=dict)
    session_open: Callable[[str], bool] = lambda session: True
    tools: Callable[[], dict[str, str]] = dict


class Refused(Malformed):
    """A malformed request that is answered with a given status."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class BadInput(Malformed):
    """Inputs that an endpoint does not take; answered in the form that Gradio's own clients understand."""

    def body(self) -> dict:
        return {
            "error": str(self),
            "detail": [{"__type__": "validate", "is_valid": False, "message": str(self)}],
        }


class BadMessage(Malformed):
    """A body that is not an MCP message."""

    status = 400

    def body(self) -> dict:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": str(self)}}


class BadTool(Malformed):
    """Arguments that a tool does not take. In MCP this is an ordinary result, which the assistant reads."""

    status = 200

    def __init__(self, message: str, request_id: Any):
        super().__init__(message)
        self.request_id = request_id

    def body(self) -> dict:
        result = {"content": [{"type": "text", "text": str(self)}], "isError": True}
        return {"jsonrpc": "2.0", "id": self.request_id, "result": result}


def check_component_call(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if there is no such component or function."""
    call = read(ComponentCall, given)
    if call.fn_name not in known.components.get(call.component_id, ()):
        raise Refused(404, "There is no such function.")


def check_call(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if the endpoint named in the address does not take these inputs."""
    call, (number, model) = read(EndpointCall, given), find_endpoint(known, path["name"])
    if call.fn_index not in (None, number):
        raise Refused(422, "The address and fn_index name different endpoints.")
    check_inputs("/" + path["name"], model, call.data)


def check_call_by_names(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if the endpoint named in the address does not take these named inputs."""
    check_named_inputs(path["name"], find_endpoint(known, path["name"])[1], given)


def check_join(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if there is no such endpoint, BadInput if it does not take these inputs."""
    call = read(Join, given)
    if call.fn_index in known.events:
        if call.fn_index in known.picks:
            read(known.picks[call.fn_index], call.event_data)
        return check_inputs("this event", known.events[call.fn_index], call.data)
    for name, (number, model) in known.endpoints.items():
        if number == call.fn_index:
            try:
                return check_inputs(f"/{name}", model, call.data)
            except Malformed as error:
                raise BadInput(str(error)) from None
    raise Refused(404, "There is no endpoint with this number.")


def find_endpoint(known: Known, name: str) -> tuple[int, type[Asked]]:
    """The number of an endpoint and the model of its inputs. Raises Refused if there is no such endpoint."""
    if name not in known.endpoints:
        raise Refused(404, f"There is no such endpoint; there are /{', /'.join(known.endpoints)}.")
    return known.endpoints[name]


def check_inputs(name: str, model: type[Asked], data: list) -> None:
    """Raises Malformed unless `data` holds every input of an endpoint, in order and of the right type."""
    inputs = list(model.model_fields)
    if len(data) != len(inputs):
        raise Malformed(f"{name} takes {inputs_text(model)}; {len(data)} were given.")
    read(model, dict(zip(inputs, data, strict=True)))


def check_named_inputs(name: str, model: type[Asked], given: Any) -> None:
    """Raises Malformed unless `given` maps names of an endpoint's inputs to valid values."""
    read(model, given)
    unknown = set(given) - set(model.model_fields)
    if unknown:
        raise Malformed(f"{name} takes no {shortened(min(unknown))}; it takes {inputs_text(model)}.")


def check_message(known: Known, path: re.Match, given: Any) -> None:
    """Raises BadMessage if this is not an MCP message, BadTool if a tool does not take its arguments."""
    if not known.tools():  # the app does not speak MCP
        return
    try:
        message = read(Message, given)
        if "id" in given and type(message.id) not in (int, str):  # MCP's models take it for a notification
            raise Malformed("id must be a whole number or a text; only a notification has none.")
        if not in_protocol(given):
            raise Malformed(f"MCP has no {shortened(message.method)} with such params.")
        call = read(ToolCall, message.params) if message.method == "tools/call" else None
    except Malformed as error:
        raise BadMessage(str(error)) from None
    if call is not None:
        check_tool(known, call, message.id)


def in_protocol(message: dict) -> bool:
    """Whether a message follows MCP's own models."""
    from mcp import types  # installed only where the app speaks MCP

    kind = types.ClientNotification if message.get("id") is None else types.ClientRequest
    try:
        types.JSONRPCMessage.model_validate(message)
        kind.model_validate(message)
    except ValidationError:
        return False
    return True


def check_tool(known: Known, call: ToolCall, request_id: Any) -> None:
    """Raises BadTool if there is no such tool or it does not take these arguments."""
    tools = known.tools()
    if call.name not in tools:
        raise BadTool(f"There is no tool {shortened(call.name)}; there are {', '.join(tools)}.", request_id)
    try:
        check_named_inputs(call.name, known.endpoints[tools[call.name]][1], call.arguments or {})
    except Malformed as error:
        raise BadTool(str(error), request_id) from None


def inputs_text(model: type[Asked]) -> str:
    """Describes the inputs of an endpoint, such as "2 inputs, prompt, seed"."""
    inputs = list(model.model_fields)
    return f"{len(inputs)} inputs, {', '.join(inputs)}" if inputs else "no inputs"


API = r".*/gradio_api/"
NAME = r"(?P<name>[^/]*)/?"
CHECKS = [
    (re.compile(pattern), check)
    for pattern, check in (
        (rf"{API}component_server/?", check_component_call),
        (rf"{API}(run|api|call)/{NAME}", check_call),
        (rf"{API}call/v2/{NAME}", check_call_by_names),
        (rf"{API}queue/join", check_join),
        (rf"{API}mcp/?", check_message),
    )
]
