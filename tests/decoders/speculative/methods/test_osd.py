"""Online speculative decoding: the slot that is learned at, what a step of training does, and that the text
stays the target's whatever the draft has learned.
"""

import math
from types import SimpleNamespace

import pytest
import torch
import transformers

from decoders.chooser import Exhaustive
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.divergences import forward_kl
from decoders.speculative.drafters import online_distiller
from decoders.speculative.drafters.online_distiller import Correction, LearningDraft, keep_correction
from decoders.speculative.interfaces import Draft, Seen, TokenTest, Verification
from decoders.speculative.theory import best_length, speedup
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds

TOKENS = 6
PROMPT = [40, 41, 42, 40, 41]


def small_draft(seed: int = 0, vocabulary: int = TOKENS) -> LoadedModel:
    """A trainable model over a few tokens, without an end."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config).eval().requires_grad_(False)
    model.generation_config = transformers.GenerationConfig()
    words = SimpleNamespace(eos_token_id=None)
    return NoWords("small", model, words)


class NoWords(LoadedModel):
    """A model whose tokens have no words: it stands beside tables."""

    @property
    def token_key(self) -> str:
        return f"[] {self.engine.vocabulary}"


def topic(step: int) -> TableModel:
    """Texts in which each token is mostly the one before it plus `step`."""
    sure = {token: [0.02] * TOKENS for token in range(TOKENS)}
    for token, row in sure.items():
        row[(token + step) % TOKENS] = 1 - 0.02 * (TOKENS - 1)
    return TableModel(lambda tokens: sure[tokens[-1]], TOKENS)


def serve(target: TableModel, learner: LearningDraft, requests: int, **parameters) -> list[float]:
    """The acceptance of requests that are served one after the other."""
    shares = []
    for seed in range(requests):
        models = {"target": target, "draft": learner}
        trace = Lane("osd", [seed % TOKENS], models, parameters, seed, Limits(12)).run()
        totals = trace.costs.totals()
        shares.append(totals["accepted"] / totals["proposed"])
    return shares


def test_the_slot_that_predicted_the_rejected_token_is_kept():
    """A text of ten tokens, drafts at 10 to 13, the first two accepted, index 12 rejected: slot 11, of twelve
    tokens, and the target's logits there.
    """
    tree = Tree(list(range(10)))
    drafted = [9]
    for token in range(10, 14):
        drafted.append(tree.add(drafted[-1], token))
    draft = Draft(9, drafted[1:])
    verification = Verification([TokenTest(node, node != drafted[3]) for node in drafted[1:4]])
    seen = Seen(drafted, torch.arange(5.0)[:, None].expand(5, 20))
    learner = SimpleNamespace(corrections={})
    assert keep_correction(SimpleNamespace(tree=tree), learner, draft, verification, seen)
    ((text, (kept,)),) = learner.corrections.items()
    assert text == tuple(range(12)) and kept.slot == 11 and kept.logits[0] == 2.0


def test_an_accepted_draft_teaches_nothing_and_a_text_that_grows_is_one_text():
    tree = Tree([0, 1, 2])
    node = tree.add(2, 3)
    seen, learner = Seen([2, node], torch.zeros(2, 5)), SimpleNamespace(corrections={})
    lane = SimpleNamespace(tree=tree)
    assert not keep_correction(lane, learner, Draft(2, [node]), Verification([TokenTest(node, True)]), seen)
    assert not learner.corrections
    for last in (2, node):
        new = tree.add(last, 4)
        seen = Seen([last, new], torch.zeros(2, 5))
        keep_correction(lane, learner, Draft(last, [new]), Verification([TokenTest(new, False)]), seen)
    ((text, kept),) = learner.corrections.items()
    assert text == (0, 1, 2, 3) and [one.slot for one in kept] == [2, 3]


def test_a_step_goes_down_the_divergence_of_the_kept_slots_alone():
    """Its loss is the mean over slots of KL(p || q), computed here from a forward of transformers' own."""
    draft, text = small_draft(), (0, 3, 2, 5, 1)
    learner = LearningDraft.of(draft, 1e-2, "forward KL")
    wanted = {1: torch.randn(TOKENS), 3: torch.randn(TOKENS)}

    def apart(model: torch.nn.Module) -> float:
        logits = model(input_ids=torch.tensor([text])).logits[0, list(wanted)].double()
        return forward_kl(torch.stack(list(wanted.values())).double(), logits).mean().item()

    before = apart(draft.model)
    learner.corrections = {text: [Correction(slot, logits) for slot, logits in wanted.items()]}
    assert learner.waiting == 2
    said, read = learner.learn()
    assert said == pytest.approx(before, abs=1e-5) and read == len(text)
    assert learner.waiting == 0 and learner.updates == 1
    assert apart(learner.model) < before and apart(draft.model) == before  # the copy has learned


def test_what_drafts_after_a_step_are_the_new_weights():
    learner = LearningDraft.of(small_draft(), 1e-1, "forward KL")
    old = learner.engine
    learner.corrections = {(0, 1): [Correction(1, torch.randn(TOKENS))]}
    learner.learn()
    assert learner.engine is not old
    said = learner.engine.attach(Tree([0, 1])).score([1])[0].log_softmax(-1)
    with torch.no_grad():
        true = learner.model(input_ids=torch.tensor([[0, 1]])).logits[0, -1].log_softmax(-1)
    torch.testing.assert_close(said.float(), true, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_frozen_draft_is_plain_speculative_decoding(temperature):
    models = {"target": tiny_models.make(seed=1), "draft": tiny_models.make(seed=2)}
    shared = {"num_assistant_tokens": 4, "temperature": temperature}
    frozen, plain = (
        Lane(name, PROMPT, models, shared | more, limits=Limits(24)).run()
        for name, more in (("osd", {"learning_rate": 0.0, "every": 1}), ("speculative", {}))
    )
    assert frozen.output() == plain.output()
    for one, two in zip(frozen.steps, plain.steps, strict=True):
        for kind in (Propose, Verdict):
            assert one.of(kind) == two.of(kind)
    assert not [f for step in frozen.steps for f in step.of(Forward) if f.kind == "learn"]


@pytest.mark.parametrize("rate", [1e-2, 0.1])
def test_greedy_text_is_the_targets_whatever_the_draft_learns(rate):
    models = {"target": tiny_models.make(seed=1), "draft": tiny_models.make(seed=2)}
    settings = {"learning_rate": rate, "every": 1, "temperature": 0.0}
    trace = Lane("osd", PROMPT, models, settings, limits=Limits(30)).run()
    learned = [f for step in trace.steps for f in step.of(Forward) if f.kind == "learn"]
    assert learned and all(f.model == "draft" and f.tokens > 0 for f in learned)
    assert trace.output() == tiny_models.generate(models["target"], PROMPT, max_new_tokens=30)


@pytest.mark.parametrize("parameters", [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 2}])
def test_the_law_is_the_targets_while_the_draft_learns(parameters):
    """Every outcome of three tokens is walked; the draft takes a large step after each correction."""
    target = TableModel(random_table(3, 3, sharpness=2.0), 3)
    models = {"target": target, "draft": small_draft(vocabulary=3)}
    given = parameters | {"num_assistant_tokens": 1, "every": 1, "learning_rate": 0.05}
    updated = []
    learn = online_distiller.LearningDraft.learn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LearningDraft, "learn", lambda one: (updated.append(1), learn(one))[1])
        law = law_of_rounds(Exhaustive(), "osd", models, given, 3)
    assert updated
    assert distance(law, exact_distribution(target, (0,), 3, shape_of(given))) < 1e-12


def test_acceptance_recovers_after_a_switch_of_topic():
    """Greedily, on two topics one after the other: the last requests of each have more accepted than the
    first, and what was learned of the first topic is no help with the second.
    """
    learner = LearningDraft.of(small_draft(), 5e-3, "forward KL")
    for step in (1, 5):
        shares = serve(topic(step), learner, 24, every=2, temperature=1.0)
        first, last = (math.fsum(part) / 8 for part in (shares[:8], shares[-8:]))
        assert last > first + 0.05, shares


def test_requests_are_served_before_the_prompt_and_the_draft_of_the_pair_stays_as_it_is():
    models = {"target": tiny_models.make(seed=1), "draft": tiny_models.make(seed=2)}
    before = [p.clone() for p in models["draft"].model.parameters()]
    settings = {"requests": 3, "every": 2, "learning_rate": 1e-2}
    trace = Lane("osd", PROMPT, models, settings, limits=Limits(10)).run()
    notes = [note.text for step in trace.steps for note in step.of(Note)]
    served = [text for text in notes if text.startswith("Request ")]
    assert len(served) == 3 and "drafted tokens accepted" in served[0]
    assert all(torch.equal(p, q) for p, q in zip(before, models["draft"].model.parameters(), strict=True))
    assert trace.output() == tiny_models.generate(models["target"], PROMPT, max_new_tokens=10)


def test_the_gauge_counts_the_last_tests():
    models = {"target": tiny_models.make(seed=1), "draft": tiny_models.make(seed=1)}
    trace = Lane("osd", PROMPT, models, {"temperature": 0.0}, limits=Limits(12)).run()
    shares = [s.total for step in trace.steps for s in step.of(Measure) if s.name == "recent acceptance"]
    assert len(shares) == len(trace.output()) and set(shares) == {1.0}  # the draft is the target


def test_a_draft_that_is_too_large_to_learn_ends_the_lane_with_a_sentence(monkeypatch):
    monkeypatch.setattr("decoders.speculative.methods.osd.LARGEST", 100)
    models = {"target": tiny_models.make(seed=1), "draft": tiny_models.make(seed=2)}
    trace = Lane("osd", PROMPT, models, limits=Limits(8)).run()
    assert trace.output() == [] and "a copy of at most 100 learns while a lane runs" in trace.ended


@pytest.mark.parametrize(
    ("cost", "length", "faster"), [(0.01, 7, 2.297), (0.02, 6, 2.170), (0.05, 4, 1.921), (0.1, 3, 1.674)]
)
def test_the_cost_model_has_the_papers_optimum(cost, length, faster):
    assert best_length(0.6, cost) == length
    assert speedup(0.6, length, cost) == pytest.approx(faster, abs=5e-4)
