"""Lanes with a memory: plain at full budget, lossless for drafts, and what they record."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from decoders import memory_options as options
from decoders import registry
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.memory.engine import MemoryEngine
from decoders.memory.lane_memory import ALL, SCOPE
from decoders.models.loaded_model import LoadedModel
from decoders.suitability import problem
from decoders.trace.events import Cell, Commit, Forward, Note
from decoders.trace.scores import Measure, Score, ScoreName
from tests.helpers import tiny_models
from tests.helpers.served_here import ServedHere

PROMPT = [30 + (5 * i) % 43 for i in range(20)]
# What compresses a short text, and what leaves all of it.
TIGHT = {
    "lm-infinite": {"memory_local": 6, "memory_global": 2},
    "gear": {"memory_buffer": 4},
    "subgen": {"memory_budget": 8},
    "leank": {"memory_mask": "random", "memory_recent": 4, "memory_block": 2, "memory_align": 1},
    "kv-svd": {"memory_heads": 1},
    "flowcut": {"memory_keep": 0.4},
    "mustdrop": {"memory_total": 1.5, "memory_single": 0.2},
}
WHOLE = {
    "lm-infinite": {"memory_local": 200},
    "gear": {"memory_bits": 16},
    "subgen": {"memory_budget": 200},
    "leank": {"memory_mask": "random", "memory_prune": 0.0},
    "kv-svd": {"memory_heads": 2},
    "flowcut": {"memory_keep": 1.0},
    "mustdrop": {"memory_single": 0.0},
}
STREAMING = {"memory": "subgen", "memory_form": "streaming", "memory_values": 8}


@pytest.fixture(scope="module")
def models(tiny_model):
    return {"target": tiny_model(), "draft": tiny_model(seed=1)}


def run(models, strategy="greedy", tokens=16, **parameters):
    return Lane(strategy, PROMPT, models, parameters, limits=Limits(tokens)).run()


def events(trace, kind):
    return [event for step in trace.steps for event in step.of(kind)]


def test_every_memory_is_here():
    assert set(options.memories()) == set(TIGHT) == set(WHOLE)


@pytest.mark.parametrize("name", WHOLE)
def test_at_full_budget_it_is_the_plain_cache(models, name):
    """Token for token; no distribution differs either."""
    trace = run(models, memory=name, **WHOLE[name])
    assert trace.output() == run(models).output()
    assert max(e.total for e in events(trace, Measure) if e.name == ScoreName.KL_FROM_FULL_CACHE) < 1e-6
    last = [e for e in events(trace, Measure) if e.name == ScoreName.MEMORY_BYTES][-1]
    assert last.total == last.parts["full"] and {c.state for c in events(trace, Cell)} <= {"full", "sink"}


@pytest.mark.parametrize("name", [*TIGHT, "streaming"])
def test_a_compressed_draft_cache_is_lossless(models, name):
    """Whatever the draft forgets, the target's tests let through what greedy decoding writes."""
    own = STREAMING if name == "streaming" else {"memory": name, **TIGHT[name]}
    trace = run(models, "speculative", temperature=0, memory_of="draft", **own)
    assert trace.output() == run(models).output()
    assert trace.badge == "lossless: equal to greedy"
    bytes_ = [e for e in events(trace, Measure) if e.name == ScoreName.MEMORY_BYTES]
    assert bytes_ and (name == "streaming" or bytes_[-1].total < bytes_[-1].parts["full"])


@pytest.mark.parametrize("name", TIGHT)
def test_drafts_change_nothing_until_they_are_committed(tiny_model, name):
    """A branch that is scored and given back leaves keys, values, and what follows as they were."""
    parameters = {"memory": name, **run_settings(name)}
    engine, logits = MemoryEngine(tiny_model().engine, parameters), []
    for draws in (False, True):
        tree = Tree(list(PROMPT))
        scorer = engine.attach(tree)
        scorer.score([len(PROMPT) - 1])
        if draws:
            before = scorer.cache.pool[..., : len(PROMPT), :].clone()
            branch = [tree.add(len(PROMPT) - 1, token) for token in (7, 8)]
            below = [tree.add(branch[0], token) for token in (9, 10)]
            scorer.score([*branch, *below])
            assert torch.equal(scorer.cache.pool[..., : len(PROMPT), :], before)
            scorer.release([*branch, *below])
        node = len(PROMPT) - 1
        for token in range(50, 62):
            node = tree.add(node, token)
            last = scorer.score([node])
            scorer.commit(node)
        logits.append(last)
    torch.testing.assert_close(*logits, atol=1e-5, rtol=1e-5)


def run_settings(name):
    """The parameters of a policy with all defaults."""
    return options.check_memory({"memory": name, **TIGHT[name]})


@pytest.mark.parametrize("kind", ["gpt2", "qwen3"])
def test_models_that_run_their_own_forward_read_through_it_too(tiny_model, kind):
    """At full budget as plain, and otherwise not."""
    models = {"target": tiny_model(kind)}
    plain = run(models, tokens=8)
    for name in ("gear", "subgen"):
        assert run(models, tokens=8, memory=name, **WHOLE[name]).output() == plain.output()
        tight = run(models, tokens=8, memory=name, **TIGHT[name])
        assert sum(e.total for e in events(tight, Measure) if e.name == ScoreName.KL_FROM_FULL_CACHE) > 1e-4


def test_drift_is_measured_on_the_committed_text(models):
    """KL(full || compressed) of both models' rows, forward by forward; the lens counts apart."""
    trace = run(models, tokens=6, memory="gear", **TIGHT["gear"])
    text, engine = PROMPT + trace.output(), models["target"].engine
    tree = Tree(list(PROMPT))
    scorer = MemoryEngine(engine, options.check_memory({"memory": "gear", **TIGHT["gear"]})).attach(tree)
    whole = engine.attach(Tree(text))
    full = whole.score(list(range(len(text)))).log_softmax(-1)
    whole.close()
    found = [e for e in events(trace, Measure) if e.name == ScoreName.KL_FROM_FULL_CACHE]
    assert len(found) == len(trace.output())
    node = len(PROMPT) - 1
    for place, token in enumerate(trace.output()):
        own = scorer.score([node])[0].log_softmax(-1)
        reference = full[len(PROMPT) + place - 1]
        kl = float((reference.exp() * (reference - own)).sum())
        assert abs(found[place].total - kl) < 1e-4
        assert found[place].parts["changed"] == float(reference.argmax() != own.argmax())
        node = tree.add(node, token)
        scorer.commit(node)
    scorer.close()
    lens = [f for f in events(trace, Forward) if f.kind == "lens"]
    assert len(lens) == len(found) and {f.scope for f in lens} == {SCOPE}
    assert trace.costs.target_forwards == len(trace.output()) == trace.costs.lens_forwards
    quiet = run(models, tokens=6, memory="gear", memory_drift=False)
    assert "lens" not in {f.kind for f in events(quiet, Forward)}


def test_cells_say_what_every_slot_is(models):
    """Only changes are recorded; together they are the policy's last states."""
    for name in ("lm-infinite", "subgen"):
        trace, last = run(models, memory=name, **TIGHT[name]), {}
        for cell in events(trace, Cell):
            for layer in range(2) if cell.level == ALL else [int(cell.level.split()[1])]:
                last[cell.position, layer] = cell.state
        bytes_ = [e for e in events(trace, Measure) if e.name == ScoreName.MEMORY_BYTES]
        places = len(PROMPT) + len(trace.output()) - 1
        assert len(last) == 2 * places and len(bytes_) == len(events(trace, Commit))
        kept = sum(state != "evicted" for state in last.values())
        assert kept < 2 * places and bytes_[-1].total < bytes_[-1].parts["full"]


def test_other_lanes_are_not_touched(models):
    plain, engine = run(models).output(), models["target"].engine
    used = engine.cache.used
    assert run(models, memory="gear", **TIGHT["gear"]).badge == "relaxed"
    assert run(models).output() == plain and engine.cache.used == used


def test_settings_are_checked_and_those_of_other_memories_left_out():
    greedy = registry.get("greedy")
    assert "memory" not in greedy.check({})
    checked = greedy.check({"memory": "gear", "memory_bits": "4", "memory_local": 7})
    assert checked["memory_bits"] == 4 and "memory_local" not in checked and checked["memory_of"] == "target"
    assert greedy.views_with(checked)[-1] == "memory" and "memory" not in greedy.views_with({})
    assert greedy.check({"memory": "none", "memory_bits": 4}) == greedy.check({})
    with pytest.raises(ValueError, match="memory must be one of"):
        greedy.check({"memory": "goldfish"})
    with pytest.raises(ValueError, match="memory_bits must be a whole number from 1 to 16"):
        greedy.check({"memory": "gear", "memory_bits": 0})


def test_misfits_are_refused_in_one_sentence(models, tiny_model):
    with pytest.raises(ValueError, match="for a draft model; name one, or choose memory_of target"):
        run({"target": models["target"]}, memory="gear", memory_of="draft")
    with pytest.raises(ValueError, match="keeps none in slots; choose memory none"):
        run({"target": ServedHere(tiny_model())}, memory="gear")
    with pytest.raises(ValueError, match="needs rotary positions"):
        run({"target": tiny_model("gpt2")}, memory="lm-infinite")
    other = next(
        s for s in registry.strategies().values() if s.writes_with == "diffusion" and len(s.needs) == 1
    )
    sentence = problem(other, other.check({"memory": "gear"}), {"target": tiny_model("masked")})
    assert "keeps none in slots" in sentence


@pytest.fixture(scope="module")
def one_layer(models):
    """Target and draft, each with a single layer."""
    config = {**tiny_models.ROPE, "num_hidden_layers": 1, "max_position_embeddings": tiny_models.CONTEXT}
    made = {}
    for seed, (role, model) in enumerate(models.items()):
        torch.manual_seed(seed)
        bare = LlamaForCausalLM(LlamaConfig(**config, vocab_size=len(model.tokenizer)))
        made[role] = LoadedModel(f"one layer {seed}", bare.eval().to(tiny_models.DEVICE), model.tokenizer)
    return made


@pytest.mark.parametrize("more", [*({"memory": name, **tight} for name, tight in TIGHT.items()), STREAMING])
def test_every_memory_works_on_a_model_of_one_layer(one_layer, more):
    plain, tight = run(one_layer), run(one_layer, **more)
    assert len(tight.output()) == len(plain.output())
    (name, whole) = more["memory"], WHOLE[more["memory"]]
    assert run(one_layer, memory=name, **whole).output() == plain.output()
    assert events(tight, Score)


@pytest.mark.parametrize("name", ["speculative", "jacobi"])
def test_a_lane_says_that_tokens_stay_exact_until_they_are_committed(models, name):
    """The badge promises nothing, and a note says why the text may be another than without guesses."""
    lossy, own = run(models, name, memory="gear"), {"memory": "gear", "memory_of": "draft"}
    lossless = run(models, name, **(own if name == "speculative" else {}))
    notes = " ".join(note.text for note in lossy.steps[0].of(Note))
    assert (
        "another text than decoding token by token with the same memory" in notes and lossy.badge == "relaxed"
    )
    assert (
        not any("same memory" in note.text for note in events(lossless, Note)) and lossless.badge != "relaxed"
    )
    assert not any("same memory" in note.text for note in events(run(models, memory="gear"), Note))
