"""Values of parameters between which all others lie."""

from decoders.strategy import Parameter


def extremes(parameter: Parameter) -> list:
    """The values of a parameter between which all others lie, and its choices."""
    if parameter.kind == "bool":
        return [False, True]
    values = parameter.choices or [parameter.default]
    values = [*values, *(v for v in (parameter.low, parameter.high) if v is not None)]
    if parameter.kind in ("ints", "floats"):
        number = float if parameter.kind == "floats" else int
        return [v if isinstance(v, list) else [number(v)] for v in values]
    return values
