"""Trained heads as drafters: exact whatever their weights, in any tree; they read what they learned from."""

import itertools
import shutil

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import KINDS, DraftModule, Target, take_taps
from decoders.heads.cross_attention.cross_attention import CrossAttentionDrafter
from decoders.lane import Lane, Limits
from decoders.models import catalog, head_files
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.table_model import exact_distribution
from decoders.registry import strategies
from decoders.speculative.draft_heads.trees import TREES
from decoders.speculative.drafters.trained_head import TrainedHead, head_of_kind
from decoders.testing import distance, random_table, shape_of
from tests.helpers import tiny_models
from tests.helpers.headed_tables import HeadedTable
from tests.helpers.losslessness import law_of_rounds

HEADED = sorted(
    name
    for name, one in strategies().items()
    if any(p.name == "tree" and set(p.choices) == set(TREES) for p in one.parameters)
)
# those that read the target's own weights are walked in test_cross_attention.py
TABLED = [name for name in HEADED if not issubclass(KINDS.get(name, DraftModule), CrossAttentionDrafter)]
SMALL = {"nodes": 3, "depth": 2, "width": 2}


def turns(names: list[str], turn: int) -> list[tuple[str, str]]:
    """Every third pair of a strategy and a tree: each strategy with three trees, each tree with a third of
    the strategies. A tree knows no head and a head no tree. Another turn has other pairs.
    """
    ways = itertools.product(enumerate(names), enumerate(TREES))
    return [(name, tree) for (i, name), (j, tree) in ways if (i + j) % 3 == turn]


@pytest.mark.parametrize(("strategy", "tree"), turns(TABLED, 0))
def test_random_heads_leave_the_targets_law(strategy, tree):
    """Every outcome of every draw: the output has the target's distribution, whatever the heads say."""
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    parameters = {"temperature": 1.2, "tree": tree, **SMALL}
    law = law_of_rounds(Exhaustive(), strategy, {"target": target}, parameters, 4, rounds=2)
    assert distance(law, exact_distribution(target, (0,), 4, shape_of(parameters))) < 1e-12


@pytest.fixture(scope="module")
def greedy(tiny_model):
    """A target, a prompt and what transformers' generate writes."""
    target = tiny_model("llama", 2)
    prompt = target.encode("the cat sat")
    return target, prompt, tiny_models.generate(target, prompt, max_new_tokens=30)


@pytest.mark.parametrize(("strategy", "tree"), turns(HEADED, 1))
def test_at_temperature_0_random_heads_write_greedys_text(strategy, tree, greedy):
    target, prompt, text = greedy
    asked = {"temperature": 0.0, "tree": tree, **SMALL}
    assert Lane(strategy, prompt, {"target": target}, asked, limits=Limits(30)).run().output() == text


@pytest.mark.parametrize("strategy", HEADED)
def test_a_target_without_the_head_is_refused_with_a_sentence(strategy):
    target = tiny_models.make("llama")
    target.heads = {}
    with pytest.raises(ValueError, match=r"has no .*: choose llama-tiny, or train heads for it .*--heads\.$"):
        Lane(strategy, [1, 2], {"target": target})


class Endless(tiny_models.TinyModel):
    eos = frozenset()


def qwen2() -> Endless:
    """A target that runs transformers' own forward, with a random layer."""
    tiny = tiny_models.make("qwen2", seed=5)
    target = Endless(tiny.name, tiny.model, tiny.tokenizer)
    target.heads = tiny_models.random_modules(Target.of(target.model))
    return target


@pytest.mark.parametrize("second", [False, True], ids=["alone", "after another lane"])
@pytest.mark.parametrize("made", [lambda: load("llama-tiny"), qwen2], ids=["shipped", "qwen2"])
def test_drafting_reads_what_measuring_reads(made, second, monkeypatch):
    """Round by round, an EAGLE layer's first guess is the one that `along` gives over the finished text: the
    states of the prompt and of what was accepted are the target's own, in their places. A lane that comes
    after another one of the same prompt, which kept no states, has the same.
    """
    target, guesses, begin = made(), {}, TrainedHead.begin

    def noted(self, lane):
        logits = begin(self, lane)
        guesses[lane.tree.depths[lane.tip]] = logits[0]  # by the place of the root
        return logits

    monkeypatch.setattr(TrainedHead, "begin", noted)
    prompt = target.encode("One day, a cat sat on a mat. The cat")
    first = Lane("greedy", prompt, {"target": target}, limits=Limits(8))
    if second:
        first.advance()
    lane = Lane("eagle", prompt, {"target": target}, {"tree": "chain"}, limits=Limits(40))
    text = torch.tensor([[*prompt, *lane.run().output()]])
    first.close()
    along = target.heads["eagle"].along(take_taps(target.model, text), 1)[0][0]
    assert len(guesses) > 8
    for place, guess in guesses.items():
        if place - 1 < len(along):
            torch.testing.assert_close(guess, along[place - 1], rtol=1e-3, atol=2e-3)


def test_heads_of_several_folders_are_found_by_name(tmp_path, monkeypatch):
    """Two shipped folders for one target: a lane finds the heads of both."""
    target = load(tiny_models.save(tmp_path / "target", seed=3))
    modules = tiny_models.random_modules(Target.of(target.model))
    monkeypatch.setattr(catalog, "SHIPPED", tmp_path)
    for kind in ("medusa", "eagle"):
        head_files.save(
            tmp_path / f"{kind}-heads",
            {kind: modules[kind]},
            target.name,
            tmp_path / "target",
            target.tokenizer,
        )
    assert LoadedModel(target.name, target.model, target.tokenizer).heads.keys() == {"medusa", "eagle"}
    shutil.rmtree(tmp_path / "eagle-heads")
    assert LoadedModel(target.name, target.model, target.tokenizer).heads.keys() == {"medusa"}


def test_a_strategy_asks_the_model_for_its_head():
    assert head_of_kind("medusa")(object()) is None
