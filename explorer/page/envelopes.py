"""The envelopes of Gradio's and MCP's calls: what a body may be, before anything of it is looked up or run.

Gradio's routes raise where a function, a component, an endpoint or an input is not there; here that is said
in a sentence. What a call carries to a server function is read by `sessions.bound`, with the function's own
model. Knows names of what can be called, nothing of how.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from decoders.strategy import shortened
from explorer.schema import Asked, Malformed, Name, read

Secret = Annotated[str, Field(min_length=1, max_length=100)]  # what a client calls its session


class ComponentCall(Asked):
    """A call of a server function; `data` is the function's matter."""

    component_id: int
    fn_name: str
    session_hash: Secret
    data: Any


class EndpointCall(Asked):
    """A call of an endpoint, by name in the address or by `fn_index`."""

    data: list[Any]
    session_hash: Secret | None = None
    event_id: Secret | None = None
    fn_index: int | None = None
    trigger_id: int | None = None
    event_data: Any = None  # what happened; functions of `Known.picks` alone read it
    simple_format: bool = False
    batched: Literal[False] | None = None
    oauth_token: str | None = None


class Join(EndpointCall):
    """A call that waits in Gradio's queue."""

    fn_index: int
    session_hash: Secret


class Message(Asked):
    """A message of MCP, which is JSON-RPC. `id`: None for what wants no answer."""

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
    """What there is to be called.

    components: id -> names of its server functions; endpoints: name -> its number and the model of its
    inputs in their order; events: number of an event in a tab -> the model of its inputs; picks: number of an
    event whose function reads what happened -> the model of that; session_open:
    whether Gradio has messages for a session, by its name; tools: name of an MCP tool -> name of its
    endpoint.
    """

    components: dict[int, frozenset[str]] = field(default_factory=dict)
    endpoints: dict[str, tuple[int, type[Asked]]] = field(default_factory=dict)
    events: dict[int, type[Asked]] = field(default_factory=dict)
    picks: dict[int, type[Asked]] = field(default_factory=dict)
    session_open: Callable[[str], bool] = lambda session: True
    tools: Callable[[], dict[str, str]] = dict


class Refused(Malformed):
    """A malformed request with a status of its own."""

    def __init__(self, status: int, words: str):
        super().__init__(words)
        self.status = status


class BadInput(Malformed):
    """Inputs that an endpoint does not take, told in the form in which Gradio's own clients read it."""

    def body(self) -> dict:
        return {
            "error": str(self),
            "detail": [{"__type__": "validate", "is_valid": False, "message": str(self)}],
        }


class BadMessage(Malformed):
    """What is no message of MCP."""

    status = 400

    def body(self) -> dict:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": str(self)}}


class BadTool(Malformed):
    """Arguments that a tool does not take: by MCP an answer like any other, which an assistant reads."""

    status = 200

    def __init__(self, words: str, asked: Any):
        super().__init__(words)
        self.asked = asked

    def body(self) -> dict:
        result = {"content": [{"type": "text", "text": str(self)}], "isError": True}
        return {"jsonrpc": "2.0", "id": self.asked, "result": result}


def check_component_call(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if there is no such component or function."""
    call = read(ComponentCall, given)
    if call.fn_name not in known.components.get(call.component_id, ()):
        raise Refused(404, "There is no such function.")


def check_call(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if an endpoint that is named in the address does not take this."""
    call, (number, model) = read(EndpointCall, given), named(known, path["name"])
    if call.fn_index not in (None, number):
        raise Refused(422, "The address and fn_index name different endpoints.")
    check_inputs("/" + path["name"], model, call.data)


def check_call_by_names(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if an endpoint does not take these inputs, which are named."""
    check_named_inputs(path["name"], named(known, path["name"])[1], given)


def check_join(known: Known, path: re.Match, given: Any) -> None:
    """Raises Malformed if there is no such endpoint, or BadInput if it does not take this."""
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
    raise Refused(404, "There is no endpoint of this number.")


def named(known: Known, name: str) -> tuple[int, type[Asked]]:
    """Number and inputs of an endpoint. Raises Refused if there is none."""
    if name not in known.endpoints:
        raise Refused(404, f"There is no such endpoint; there are /{', /'.join(known.endpoints)}.")
    return known.endpoints[name]


def check_inputs(name: str, model: type[Asked], data: list) -> None:
    """Raises Malformed if `data` are not all inputs of an endpoint, in their order and of their kinds."""
    inputs = list(model.model_fields)
    if len(data) != len(inputs):
        raise Malformed(f"{name} takes {takes(model)}; {len(data)} were given.")
    read(model, dict(zip(inputs, data, strict=True)))


def check_named_inputs(name: str, model: type[Asked], given: Any) -> None:
    """Raises Malformed if `given` is no object of inputs of an endpoint, of their kinds, by their names."""
    read(model, given)
    unknown = set(given) - set(model.model_fields)
    if unknown:
        raise Malformed(f"{name} takes no {shortened(min(unknown))}; it takes {takes(model)}.")


def check_message(known: Known, path: re.Match, given: Any) -> None:
    """Raises BadMessage for what is none of MCP's, BadTool for what a tool does not take."""
    if not known.tools():  # the app does not speak MCP
        return
    try:
        message = read(Message, given)
        if not in_protocol(given):
            raise Malformed(f"MCP has no {shortened(message.method)} with such params.")
        call = read(ToolCall, message.params) if message.method == "tools/call" else None
    except Malformed as error:
        raise BadMessage(str(error)) from None
    if call is not None:
        check_tool(known, call, message.id)


def in_protocol(message: dict) -> bool:
    """Whether a message follows MCP's own models."""
    from mcp import types  # only there where the app speaks MCP

    kind = types.ClientNotification if message.get("id") is None else types.ClientRequest
    try:
        types.JSONRPCMessage.model_validate(message)
        kind.model_validate(message)
    except ValidationError:
        return False
    return True


def check_tool(known: Known, call: ToolCall, asked: Any) -> None:
    """Raises BadTool if there is no such tool or it does not take these arguments."""
    tools = known.tools()
    if call.name not in tools:
        raise BadTool(f"There is no tool {shortened(call.name)}; there are {', '.join(tools)}.", asked)
    try:
        check_named_inputs(call.name, known.endpoints[tools[call.name]][1], call.arguments or {})
    except Malformed as error:
        raise BadTool(str(error), asked) from None


def takes(model: type[Asked]) -> str:
    """What an endpoint takes, in words."""
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
