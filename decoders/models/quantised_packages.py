"""The packages that transformers needs to load weights that are quantised in some way."""

from importlib.util import find_spec

from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING

from decoders.refusal import Refusal

PACKAGES = {  # method -> what is to be installed
    "aqlm": ("aqlm", "accelerate"),
    "auto-round": ("auto-round",),
    "awq": ("gptqmodel", "accelerate"),
    "bitsandbytes": ("bitsandbytes", "accelerate"),
    "compressed-tensors": ("compressed-tensors",),
    "fbgemm_fp8": ("fbgemm-gpu", "accelerate"),
    "fp8": ("accelerate",),
    "gptq": ("optimum", "gptqmodel"),
    "hqq": ("hqq", "accelerate"),
    "mxfp4": ("accelerate",),
    "mxfp8": ("accelerate",),
    "quanto": ("optimum-quanto", "accelerate"),
    "torchao": ("torchao",),
}
MODULES = {"optimum-quanto": "optimum", "fbgemm-gpu": "fbgemm_gpu"}  # package -> module, if named otherwise
UNPACKED = frozenset({"fp8", "mxfp4", "mxfp8"})  # methods whose weights the processor computes unpacked


def missing(method: str) -> tuple[str, ...]:
    """The packages that loading weights of a method needs and that are not installed."""
    needed = PACKAGES.get(method, ())
    return tuple(one for one in needed if find_spec(MODULES.get(one, one.replace("-", "_"))) is None)


def check(name: str, method: str) -> None:
    """Raises Refusal with one sentence unless a model's weights, quantised in this way, can be loaded."""
    if method not in PACKAGES.keys() | AUTO_QUANTIZER_MAPPING.keys():
        raise Refusal(f"The model {name!r} is quantised with {method}, which transformers does not know.")
    if packages := missing(method):
        raise Refusal(
            f"The model {name!r} is quantised with {method}; to load it: pip install {' '.join(packages)}."
        )
