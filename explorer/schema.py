"""How requests are parsed: types of values, and one sentence for a value that does not fit. See
page_requests.py.

A request that no page can send is `Malformed`; whatever users type is text or a number here and is checked
later.
"""

import math
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError, from_json

from decoders.refusal import Refusal
from decoders.strategy import shortened

MAX_VALUES = 1000  # entries of a list that is the value of a parameter
MAX_CHARACTERS = 120  # of a quotation in a sentence


class Malformed(Refusal):
    """A request that no page sends: one sentence and the matching HTTP status."""

    status = 422

    def body(self) -> dict:
        """The body of the answer."""
        return {"detail": str(self)}


class NotJson(Malformed):
    """Bytes that are not JSON."""

    status = 400


class Asked(BaseModel):
    """The base of all requests. Types are strict, values are not converted, and unknown fields are
    ignored.
    """

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, frozen=True)


def typed(value: Any) -> int | float | str:
    """Accepts what a user typed into a field for a whole number: a finite number, or text that is not a
    number.
    """
    endless = isinstance(value, float) and not math.isfinite(value)
    if isinstance(value, bool) or endless or not isinstance(value, int | float | str):
        raise PydanticCustomError("kind", "a whole number")
    return encodable(value) if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """Accepts a value of a parameter: true or false, a number, text, or a list of these."""
    if isinstance(value, list) and len(value) <= MAX_VALUES:
        return [value_of_list(one) for one in value]
    return value_of_list(value)


def value_of_list(value: Any) -> Any:
    """Accepts a plain value that is not a list."""
    if isinstance(value, bool):
        return value
    try:
        return typed(value)
    except PydanticCustomError:
        raise PydanticCustomError("kind", "a number, text, true or false, or a list of these") from None


def encodable(text: str) -> str:
    """Accepts text that can be encoded; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("kind", "valid Unicode text") from None
    return text


Whole = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(ge=-1e300, le=1e300)]
Name = Annotated[str, Field(max_length=100)]  # a name that the app itself has given
Typed = Annotated[Any, PlainValidator(typed), WithJsonSchema({"type": "integer"})]
Value = Annotated[Any, PlainValidator(plain), WithJsonSchema({"type": "number"})]

Model = TypeVar("Model", bound=Asked)


def parsed(body: bytes) -> Any:
    """The JSON value of a body. Raises NotJson with one sentence, also for NaN and lone surrogates."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise NotJson(f"The body is not JSON: {error}.") from error


def read(model: type[Model], given: Any) -> Model:
    """Parses `given` as `model`. Raises Malformed with a sentence about the first value that does not fit."""
    if isinstance(given, model):
        return given
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    raise Malformed(sentence(first))


def sentence(error: dict[str, Any]) -> str:
    """One of pydantic's errors in our words: "Lane 1: seed must be a number, not a list."."""
    where, kind = place(error["loc"]), error["type"]
    if kind == "missing":
        return f"{where} is missing."
    if kind == "says":  # a sentence of our own
        return error["msg"]
    if kind in LENGTHS:
        return f"{where} must have {LENGTHS[kind].format(**error['ctx'])}."
    return f"{where} must be {wanted(kind, error)}, not {quoted(error['input'])}."


def place(where: tuple[str | int, ...]) -> str:
    """The place of an error; lanes are counted from 1, as on the page."""
    if where[:1] == ("lanes",) and len(where) > 1:
        rest = dotted(where[2:])
        return f"Lane {where[1] + 1}{': ' if rest else ''}{rest}"
    return dotted(where) or "The request"


def dotted(where: tuple[str | int, ...]) -> str:
    """`begin.tokens[3]`; names from the request are shortened."""
    words = [
        f"[{one}]" if isinstance(one, int) else f".{one if str(one).isidentifier() else shortened(one)}"
        for one in where
        if one != "[key]"
    ]
    return "".join(words).lstrip(".")[:MAX_CHARACTERS]


KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "valid Unicode text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
}
LENGTHS = {
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} or fewer entries",
    "string_too_short": "{min_length} or more characters",
    "string_too_long": "{max_length} or fewer characters",
}


def wanted(kind: str, error: dict[str, Any]) -> str:
    """Describes what would have been accepted."""
    context = error.get("ctx", {})
    if kind == "literal_error":
        return "one of " + context["expected"].replace("'", "").replace(" or ", ", ")
    return KINDS.get(kind, error["msg"]).format(**context)


def quoted(value: Any) -> str:
    """Quotes what was given instead, shortened to one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return shortened(value)
