"""The names that a program may use: builtin functions, and some names of some modules. Plain data, read by
the check before a program is run and by the process that runs it.

Builtins are left out that access attributes by name (getattr, vars), code (eval, type), memory (memoryview,
id) or the system (open, input).
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
ALL = None  # all public names of a module that has only plain functions and numbers
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
    """),  # attrgetter and methodcaller access attributes by name
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
    """A substitute for the types of `typing`, which is slow to load: it can be subscripted and has no
    meaning.
    """

    def __class_getitem__(cls, item: object) -> type:
        return cls


TYPES = {"Dict": dict, "FrozenSet": frozenset, "List": list, "Set": set, "Tuple": tuple}


def exports(name: str) -> SimpleNamespace:
    """What `import name` gives a program: never the module itself, which gives access to others."""
    names = MODULES[name]
    if name == "typing":
        return SimpleNamespace(**{one: TYPES.get(one, Anything) for one in names})
    module = __import__(name)  # only top-level modules; importlib is slow to load
    if names is ALL:
        names = frozenset(one for one in dir(module) if not one.startswith("_"))
    return SimpleNamespace(**{one: getattr(module, one) for one in names})


def functions() -> dict[str, object]:
    """The builtins of a program: name -> function."""
    return {name: getattr(builtins, name) for name in BUILTINS}
