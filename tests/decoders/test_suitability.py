"""One comparison of what a strategy reads with what an engine gives, and a sentence where they do not fit."""

from dataclasses import dataclass

import pytest

from decoders import registry, suitability
from decoders.engine.capabilities import Capability
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace import trace as traces

TITLES = {one.title for one in registry.strategies().values()}


@dataclass
class FewTokens(TableModel):
    """A table that stands for a server which names the most likely tokens alone."""

    capabilities = frozenset()


def table(kind=TableModel) -> TableModel:
    return kind(lambda past: (0.5, 0.3, 0.2), 3)


def reading(capability: Capability, role: str = "target") -> list[str]:
    """The strategies that with their defaults read this."""
    every = registry.strategies().values()
    return [one.name for one in every if capability in one.reads(one.check({})).get(role, ())]


def refusal(name: str, target: TableModel, **parameters) -> str:
    with pytest.raises(ValueError) as refused:
        Lane(name, [0], {"target": target, "draft": target}, parameters)
    return str(refused.value)


@pytest.mark.parametrize(
    ("capability", "some"),
    [
        (Capability.LAYERS, {"layerskip", "swift", "clasp", "kangaroo", "m2r2", "dola"}),
        (Capability.HIDDEN_STATES, {"contrastive_search"}),
        (Capability.EMBEDDINGS, {"superposed"}),
        (Capability.OUTPUT_EMBEDDING, {"lantern"}),
        (Capability.WEIGHTS, {"scmoe"}),
    ],
)
def test_what_a_table_does_not_give_is_named_with_a_strategy_that_fits(capability, some):
    assert some <= set(reading(capability))
    for name in reading(capability):
        sentence, strategy = refusal(name, table()), registry.get(name)
        start = f"{strategy.title} reads {capability} of the target, which a table does not give; choose "
        assert sentence.startswith(start)
        other = sentence.removeprefix(start).removesuffix(" or a model built like Llama.")
        fits = next(one for one in registry.strategies().values() if one.title == other)
        assert fits.family == strategy.family
        Lane(fits.name, [0], {"target": table(), "draft": table()}, limits=Limits(2)).run()


@pytest.mark.parametrize("name", ["guidance", "context_aware", "instructive", "lm_guidance", "exact_extract"])
def test_rows_that_are_subtracted_or_asked_for_unlikely_tokens_must_name_all_tokens(name):
    assert "reads the probabilities of all tokens of the target" in refusal(name, table(FewTokens))


def test_the_amateur_of_contrastive_decoding_must_name_all_tokens_and_the_expert_need_not():
    few, all_of_them = table(FewTokens), table()
    Lane("contrastive_decoding", [0], {"target": few, "draft": all_of_them})
    with pytest.raises(ValueError, match="reads the probabilities of all tokens of the draft"):
        Lane("contrastive_decoding", [0], {"target": all_of_them, "draft": few})


def test_settings_that_do_not_fit_are_told_apart_from_strategies_that_do_not():
    sentence = refusal("fsd", table(), form="states")
    assert "choose Frustratingly simple decoding with its default settings or" in sentence
    assert not suitability.problem(registry.get("fsd"), {"form": "n-grams"}, {"target": table()})


def test_a_missing_model_is_still_asked_for():
    with pytest.raises(ValueError, match="Speculative decoding needs a draft model; name one."):
        Lane("speculative", [0], {"target": table()})


def test_a_trace_says_what_could_not_be_recorded(tiny_model):
    lane = Lane("greedy", [0], {"target": table(FewTokens)}, limits=Limits(2))
    record = lane.run().to_json()
    assert record["lacks"] == ["the probabilities of all tokens", "attention weights"]
    assert traces.from_json(record).lacks == record["lacks"]
    whole = Lane("greedy", [1], {"target": tiny_model()}, limits=Limits(1))
    assert "lacks" not in whole.run().to_json()
