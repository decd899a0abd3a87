"""What a program may name: functions of Python's own, and modules with some of what is in them. Plain
data, read on both sides of the wall: by the check in front of it and by the process behind it. Knows
nothing else.

The functions leave out whatever reaches for attributes by their names (getattr, vars), for code (eval,
type), for memory (memoryview, id) or for the system (open, input).
"""

import builtins
from types import SimpleNamespace


def words(listed: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(listed.split())


BUILTINS = words("""
    abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format
    frozenset hex int isinstance issubclass iter len list map max min next oct ord pow print range repr
    reversed round set slice sorted str sum tuple zip
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError MemoryError
    NameError NotImplementedError OverflowError RecursionError RuntimeError StopIteration TypeError
    UnboundLocalError ValueError ZeroDivisionError Ellipsis NotImplemented
""")
ALL = None  # of what is public in a module that holds plain functions and numbers only
MODULES: dict[str, frozenset[str] | None] = {
    "bisect": ALL,
    "cmath": ALL,
    "collections": words("ChainMap Counter OrderedDict defaultdict deque"),  # namedtuple runs code
    "copy": words("copy deepcopy"),
    "functools": words("cache cmp_to_key lru_cache partial reduce"),  # wraps sets any attribute
    "heapq": words("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "itertools": ALL,
    "math": ALL,
    "operator": words("""
        add and_ concat contains countOf eq floordiv ge getitem gt indexOf inv invert is_ is_not itemgetter le
        lshift lt mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor
    """),  # attrgetter and methodcaller reach for attributes by their names
    "re": words("""
        A ASCII DOTALL I IGNORECASE M MULTILINE S VERBOSE X
        compile error escape findall finditer fullmatch match search split sub subn
    """),
    "string": words("""
        ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation
        whitespace capwords
    """),
    "sys": words("maxsize"),
    "typing": words("""
        Any Callable Deque Dict FrozenSet Generator Hashable Iterable Iterator List Mapping Optional Sequence
        Set Tuple Union
    """),
}


class Anything:
    """What stands for a type of `typing`, which is slow to load: it can be subscripted, and says nothing."""

    def __class_getitem__(cls, item: object) -> type:
        return cls


TYPES = {"Dict": dict, "FrozenSet": frozenset, "List": list, "Set": set, "Tuple": tuple}


def exports(name: str) -> SimpleNamespace:
    """What a program gets that imports the module `name`: never the module, in which other modules lie."""
    names = MODULES[name]
    if name == "typing":
        return SimpleNamespace(**{one: TYPES.get(one, Anything) for one in names})
    module = __import__(name)  # all of them are at the top; importlib is slow to load
    if names is ALL:
        names = frozenset(one for one in dir(module) if not one.startswith("_"))
    return SimpleNamespace(**{one: getattr(module, one) for one in names})


def functions() -> dict[str, object]:
    """The functions of Python's own that a program gets, by their names."""
    return {name: getattr(builtins, name) for name in BUILTINS}
