"""Models of the inputs of a tab's events, derived from the components that are their inputs.

Gradio's own code raises if an input is not a value that its component can have. With these models, such a
call is answered with a sentence before anything runs (explorer/page/envelopes.py).
"""

from typing import Annotated, Any

import gradio as gr
from gradio.blocks import BlockFunction
from pydantic import ConfigDict, Field, PlainValidator, create_model
from pydantic_core import PydanticCustomError

from explorer.schema import Asked, Whole

Text = Annotated[str, Field(max_length=20_000)]
Carried = Annotated[str, Field(max_length=100_000)]  # written by our scripts: a prompt as JSON, for example
Cell = Annotated[str, Field(max_length=1000)] | int | float | bool | None
ROWS, COLUMNS = 100_000, 100  # the largest table in which a cell can be selected


class Picked(Asked):
    """The event data when a cell of a table is selected, for functions that take `gr.SelectData`."""

    model_config = ConfigDict(extra="forbid")
    index: Annotated[list[Whole], Field(min_length=2, max_length=2)]
    value: Cell
    row_value: Annotated[list[Cell], Field(min_length=1, max_length=COLUMNS)]
    col_value: Annotated[list[Cell], Field(max_length=ROWS)] = []
    selected: bool = True


def inputs(event: BlockFunction) -> type[Asked]:
    """Makes the model of an event's inputs, in order."""
    kinds = {f"input_{at}": (kind(one), ...) for at, one in enumerate(event.inputs, 1)}
    return create_model("Inputs", __base__=Asked, **kinds)


def kind(component: gr.components.Component) -> Any:
    """The type of a component's value. Raises TypeError for a component that no tab has used as an input."""
    match component:
        case gr.Dropdown(allow_custom_value=True, multiselect=False | None):
            return Text | None
        case gr.Dropdown() | gr.Radio():
            if getattr(component, "multiselect", False):
                raise TypeError("Declare the type of several choices in explorer/page/tabs/events.py.")
            return one_of(component)
        case gr.State():
            return None  # it stays on the server
        case gr.HTML():
            return Carried
        case gr.UploadButton():  # what it uploaded is named in another input
            return None
        case gr.Textbox():
            return Text | None
        case gr.Checkbox():
            return bool
        case gr.Slider() | gr.Number():
            return float | None
    raise TypeError(
        f"Declare the type of a {type(component).__name__}'s value in explorer/page/tabs/events.py."
    )


def one_of(component: gr.Dropdown | gr.Radio) -> Any:
    """The type of a choice; None means that nothing is chosen. The choices are looked up when one is checked:
    an event may have added some.
    """

    def chosen(value: Any) -> Any:
        if value is not None and value not in [value for _, value in component.choices]:
            raise PydanticCustomError("kind", "one of the choices")
        return value

    return Annotated[Any, PlainValidator(chosen)]
