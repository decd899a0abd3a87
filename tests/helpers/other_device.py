"""A device beside the CPU, on machines that have none. Its tensors hold their numbers in the CPU's memory.
But an operation that mixes them with tensors of the CPU is refused as a GPU refuses it, and they become
numpy's only by way of the CPU. For tests that everything is put on the model's device.
"""

from functools import cache, partial

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten
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
READS = {aten.index.Tensor}  # with indices of the CPU too, as a GPU does
WRITES = {aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
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
    """One operation on the numbers that its tensors hold. Raises RuntimeError for tensors of two devices."""
    flat, form = tree_flatten((args, kwargs))
    check(func, args, flat)
    asked = kwargs.get("device")
    stays = asked is None or asked.type == NAME
    here_args, here_kwargs = tree_unflatten([held(one) for one in flat], form)
    if func is aten.histc.default:  # a GPU counts whole numbers too
        here_args = (here_args[0].float(), *here_args[1:])
    out = func(*here_args, **here_kwargs)
    if not stays:
        return out.clone()
    known = {id(one.held): one for one in flat if isinstance(one, Elsewhere)}
    outs, form = tree_flatten(out)
    # torch refuses a view made in inference mode of a tensor that was made before
    with torch.inference_mode(torch.is_inference_mode_enabled() and not views(func)):
        new = [known.get(id(o), o) for o in outs]
        new = [Elsewhere(o) if type(o) is torch.Tensor else o for o in new]
    return tree_unflatten(new, form)


def held(one):
    """What stands for an argument on the CPU."""
    if isinstance(one, torch.device):
        return torch.device("cpu")
    return one.held if isinstance(one, Elsewhere) else one


def check(func, args: tuple, flat: list) -> None:
    """Raises RuntimeError where a GPU would: single numbers of the CPU may stand beside its tensors."""
    if func in MOVES:
        return
    if func in READS | WRITES and isinstance(args[0], Elsewhere):
        flat = [args[0], *args[2:3]]
    tensors = [one for one in flat if isinstance(one, torch.Tensor)]
    here = [one for one in tensors if not isinstance(one, Elsewhere)]
    if len(here) < len(tensors) and any(one.ndim for one in here):
        raise RuntimeError(f"{func}: its tensors are on two devices.")


def views(func) -> bool:
    """Whether what an operation gives shares its numbers with what it takes."""
    return any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)


def made(name: str, *args, **kwargs) -> Elsewhere:
    """What one of torch's factories makes on the device."""
    op, _, overload = name.partition(".")
    func = getattr(getattr(aten, op), overload or "default")
    return Elsewhere(func(*args, **kwargs | {"device": "cpu", "pin_memory": False}))


def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copies numbers to the device or from it."""
    held(target).copy_(held(source))
    return target
