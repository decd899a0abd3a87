"""A simulated device beside the CPU, for machines that have none. Its tensors hold their numbers in the CPU's
memory, but an operation that mixes them with CPU tensors is refused, as a GPU refuses it, and they become
numpy arrays only by way of the CPU. For tests that everything is put on the model's device.
"""

from functools import cache, partial

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "elsewhere"
aten = torch.ops.aten
FACTORIES = (
    "empty.memory_format",
    "empty_strided",
    "arange.start_step",
    "arange.start",
    "arange",
    "eye",
    "eye.m",
)
MOVES = {aten.copy_.default, aten._to_copy.default}
# These take indices of the CPU too, as on a GPU.
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
kept: list[torch.library.Library] = []  # what it registers is gone with it


@cache
def device() -> str:
    """The device's name, which torch knows from now on."""
    _setup_privateuseone_for_python_backend(NAME)
    library = torch.library.Library("aten", "IMPL")
    for name in FACTORIES:
        library.impl(name, partial(made, name), "PrivateUse1")
    library.impl("_copy_from", copy_from, "PrivateUse1")
    kept.append(library)
    return NAME


class Elsewhere(torch.Tensor):
    """A tensor of the device; `held` has its numbers."""

    @staticmethod
    def __new__(cls, held: torch.Tensor):
        place = dict(
            strides=held.stride(), storage_offset=held.storage_offset(), device=torch.device(NAME, 0)
        )
        new = torch.Tensor._make_wrapper_subclass(cls, held.size(), dtype=held.dtype, **place)
        new.held = held
        return new

    def __repr__(self) -> str:
        return f"Elsewhere({self.held})"

    def tolist(self) -> list:
        return self.cpu().tolist()

    def numpy(self, *args, **kwargs):
        raise TypeError(f"can't convert a tensor of the device {NAME} to numpy; use Tensor.cpu() first")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def run(func, args: tuple, kwargs: dict):
    """Runs one operation on the numbers of its tensors. Raises RuntimeError for tensors of two devices."""
    tensors: list[torch.Tensor] = []
    here_args, here_kwargs = held(args, tensors), {name: held(one, tensors) for name, one in kwargs.items()}
    check(func, args, tensors)
    asked = kwargs.get("device")
    if func is aten.histc.default:  # a GPU counts whole numbers too
        here_args = (here_args[0].float(), *here_args[1:])
    out = func(*here_args, **here_kwargs)
    if asked is not None and asked.type != NAME:
        return out.clone()
    known = {id(one.held): one for one in tensors if type(one) is Elsewhere}
    if torch.is_inference_mode_enabled() and views(func):
        # torch refuses a view made in inference mode of a tensor that was made before
        with torch.inference_mode(False):
            return there(out, known)
    return there(out, known)


def held(one, tensors: list[torch.Tensor]):
    """The CPU equivalent of an argument; its tensors, of either device, are added to `tensors`."""
    if isinstance(one, torch.Tensor):
        tensors.append(one)
        return one.held if type(one) is Elsewhere else one
    if isinstance(one, (list, tuple)):
        return type(one)([held(part, tensors) for part in one])
    return torch.device("cpu") if isinstance(one, torch.device) else one


def there(out, known: dict[int, Elsewhere]):
    """The results of an operation as tensors of the device; `known`: those that it may have changed."""
    if type(out) is torch.Tensor:
        return known[id(out)] if id(out) in known else Elsewhere(out)
    if isinstance(out, (list, tuple)):
        return type(out)([there(part, known) for part in out])
    return out


def check(func, args: tuple, tensors: list[torch.Tensor]) -> None:
    """Raises RuntimeError where a GPU would: single CPU numbers may be mixed with its tensors."""
    if func in MOVES:
        return
    if func in INDEXED and isinstance(args[0], Elsewhere):
        tensors = [one for one in (args[0], *args[2:3]) if isinstance(one, torch.Tensor)]
    here = [one for one in tensors if type(one) is not Elsewhere]
    if len(here) < len(tensors) and any(one.ndim for one in here):
        raise RuntimeError(f"{func}: its tensors are on two devices.")


@cache
def views(func) -> bool:
    """Whether the result of an operation shares its numbers with its arguments."""
    return any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)


def made(name: str, *args, **kwargs) -> Elsewhere:
    """The result of one of torch's factories on the device."""
    op, _, overload = name.partition(".")
    func = getattr(getattr(aten, op), overload or "default")
    return Elsewhere(func(*args, **kwargs | {"device": "cpu", "pin_memory": False}))


def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copies numbers to the device or from it."""
    held(target, []).copy_(held(source, []))
    return target
