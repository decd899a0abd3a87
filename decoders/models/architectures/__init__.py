"""Small architectures from papers, behind the interface of transformers' models, so that `load` and every
strategy take them like any causal language model.

A file of this folder is an architecture if it defines `MODEL`, a PreTrainedModel whose config class has its
own `model_type`, and `PAPERS`, the slugs of the papers that it implements. Files without `MODEL` hold shared
parts.
"""

import importlib
import pkgutil
from functools import cache

from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM, PreTrainedModel


@cache
def architectures() -> dict[str, tuple[type[PreTrainedModel], tuple[str, ...]]]:
    """model_type -> (its class, the slugs of its papers)."""
    classes = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "MODEL"):
            classes[module.MODEL.config_class.model_type] = module.MODEL, module.PAPERS
    return classes


@cache
def register() -> None:
    """Registers them with transformers, so that a folder whose config.json names one loads like any other."""
    for name, (model, _) in architectures().items():
        AutoConfig.register(name, model.config_class)
        AutoModelForCausalLM.register(model.config_class, model)


def register_unless_known(model_type: str | None) -> None:
    """Registers them unless transformers has this architecture itself, and then they are not imported."""
    if model_type not in CONFIG_MAPPING:
        register()
