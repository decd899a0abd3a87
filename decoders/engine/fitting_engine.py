"""Which engine a model needs: decided by a small tree on which its numbers must be the model's own."""

from collections.abc import Callable
from typing import Any

import torch

from decoders.engine.engine import Engine
from decoders.engine.kv_cache import is_recurrent
from decoders.engine.partial_forward import agree
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree

# words in the names of a config's sizes of attention
WINDOWS = ("window", "chunk", "local_attention", "index_topk")
LONGEST_TRIAL = 512  # tokens
# what models raise that do not take what an engine gives them
UNFIT = (AttributeError, TypeError, ValueError, RuntimeError, LookupError, StopIteration, AssertionError)


def trial_prompt(config: Any, vocabulary: int) -> list[int]:
    """A short prompt; where a config names a window of attention, or a chunk, that a trial can fill, one that
    is longer than it.
    """
    sizes = [size for name, size in config.to_dict().items() if any(word in name for word in WINDOWS)]
    fit = [size for size in sizes if isinstance(size, int) and size <= LONGEST_TRIAL]
    return [place % vocabulary for place in range(1, 4 + max(fit, default=0))]


def trial_rows(scorer: Any, tree: Tree, last: int) -> torch.Tensor:
    """Logits [5, V] after two branches of different lengths below the node `last`, after a node that takes a
    freed slot before those of its parents, after a third branch, and after three more nodes below it.
    """
    vocabulary = scorer.engine.vocabulary
    scorer.score([last])
    left, right = (tree.add(last, token % vocabulary) for token in (4, 5))
    leaf = tree.add(left, 6 % vocabulary)
    first = scorer.score([right, leaf])
    scorer.release([right])
    deeper, third = tree.add(leaf, 7 % vocabulary), tree.add(last, 8 % vocabulary)
    second, node = scorer.score([deeper, third]), third
    for token in (9, 10, 11):
        node = tree.add(node, token % vocabulary)
    return torch.cat([first, second, scorer.score([node])])


def own_cache(model: torch.nn.Module) -> SequenceEngine:
    """The engine that continues from copies of the model's own cache."""
    from decoders.engine.state_engine import OwnCacheEngine

    return OwnCacheEngine(model)


def engine_of(model: torch.nn.Module) -> Engine | SequenceEngine:
    """The first engine that gives this model's own numbers on a small tree: a tree engine, copies of the
    model's cache, whole sequences. Decided by a test and not by a list of models.

    A small architecture (`decoders.models.architectures`) that can continue from a state does so.
    """
    if hasattr(model, "logits_of"):
        from decoders.engine.state_engine import StateEngine

        return StateEngine(model)
    whole, config = SequenceEngine(model), model.config.get_text_config()
    candidates: list[Callable[[torch.nn.Module], Engine | SequenceEngine]] = [Engine, own_cache]
    if any(map(is_recurrent, model.modules())):
        from decoders.engine.recurrent_engine import RecurrentEngine

        candidates[0] = RecurrentEngine
    prompt = trial_prompt(config, whole.vocabulary)
    theirs = None
    for make in candidates:
        try:
            engine, tree = make(model), Tree(prompt)
            scorer = engine.attach(tree)
            ours = trial_rows(scorer, tree, len(prompt) - 1)
            scorer.close()
        except UNFIT:
            continue
        if theirs is None:
            tree = Tree(prompt)
            theirs = trial_rows(whole.attach(tree), tree, len(prompt) - 1)
        if agree(ours, theirs, model.dtype):
            return engine
    return whole
