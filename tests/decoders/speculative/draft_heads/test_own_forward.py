"""PaSS, PPD and hidden transfer: slots in the target's own forward, its law, the dossier's worked values."""

import pytest
import torch
from torch.nn import functional as F

from decoders.chooser import Exhaustive
from decoders.engine.capabilities import Capability
from decoders.engine.injected_states import Injection, injected_in
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.heads import PPD, HiddenTransfer, PaSS, Target, take_taps
from decoders.heads.path_independent.lookahead_tokens import slots_see
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, TableScorer
from decoders.speculative.draft_heads.pass_ import expected_tokens, truncated
from decoders.testing import distance
from decoders.trace.events import Commit, Distribution, Forward, Note, Propose
from tests.helpers.deep_models import PROMPT, TEXT, deep, run, take_double, with_heads
from tests.helpers.losslessness import law_of_rounds

NAMES = ("pass", "ppd", "hidden_transfer")


def test_slots_see_their_hosts_text_and_the_slots_before_them():
    mask = slots_see(torch.tensor([1, 3]), 2, 5)
    assert [row.nonzero()[:, 0].tolist() for row in mask] == [
        [0, 1, 5],
        [0, 1, 5, 6],
        [0, 1, 2, 3, 7],
        [0, 1, 2, 3, 7, 8],
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("slow", [False, True])
def test_the_engine_runs_slots_as_training_does(name, kind, slow):
    """Logits of slots after two nodes at once, next to real ones: the fast forward, transformers' own, and
    the fallback without a tree mask; real rows are those without slots.
    """
    model = with_heads(kind=kind, layers=4)
    module = model.heads[name]
    if slow:
        model.__dict__["engine"] = SequenceEngine(model.model)
    tokens = TEXT[0].tolist()
    taps = take_double(model.model, TEXT[:1], module.reads)
    expected = module.slot_logits(taps, torch.tensor([9, 11]))[0]  # [2, K, V]
    tree = Tree(tokens[:10])
    scorer = model.engine.attach(tree)
    nodes = [9, tree.add(9, tokens[10])]
    nodes.append(tree.add(nodes[-1], tokens[11]))
    slots = []
    for host in (nodes[0], nodes[2]):
        above = host
        for i in range(1, module.depth + 1):
            above = tree.add(above, tree.tokens[host])
            module.place(scorer, above, host, i)
            slots.append(above)
    logits = scorer.score([*nodes, *slots])
    torch.testing.assert_close(logits[:3], taps.logits[0, 9:12], rtol=1e-4, atol=2e-6)
    torch.testing.assert_close(logits[3:], expected.flatten(0, 1), rtol=1e-4, atol=2e-6)
    scorer.close()


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_real_rows_are_bitwise_the_same_whatever_is_injected_beside_them(kind):
    model = deep(kind=kind, layers=4)
    said = []
    for seed in (1, 2):
        tree = Tree(list(PROMPT))
        scorer = model.engine.attach(tree)
        weight = torch.randn(32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        slot = tree.add(4, 7)
        scorer.injections[slot] = Injection(2, 4, weight)
        said.append(scorer.score([4, slot]))
        scorer.close()
    assert torch.equal(said[0][0], said[1][0]) and not torch.equal(said[0][1], said[1][1])


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_injected_at_the_top_it_is_a_linear_medusa_head(kind):
    """t = L: the map on the last stream, then the model's own norm and head."""
    model, tree = deep(kind=kind, layers=4), Tree(list(PROMPT))
    weight = torch.randn(32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    scorer = model.engine.attach(tree)
    slot = tree.add(4, 7)
    scorer.injections[slot], scorer.taps = Injection(4, 4, weight), True
    logits = scorer.score([4, slot])
    stream = scorer.streams(4)[-1]
    shared = Target.of(model.model)
    medusa = F.linear(F.rms_norm(weight @ stream, (32,), shared.last_norm, shared.eps), shared.head)
    torch.testing.assert_close(logits[1], medusa)
    scorer.close()


def test_an_injected_state_comes_from_a_node_of_its_own_forward():
    assert (
        injected_in({}, [[1, 2]]) is None
        and injected_in({5: Injection(1, 2, torch.eye(2))}, [[1, 2]]) is None
    )
    with pytest.raises(ValueError, match="does not read"):
        injected_in({2: Injection(1, 7, torch.eye(2))}, [[1, 2]])
    with pytest.raises(ValueError, match="none before"):
        HiddenTransfer(Target.of(deep(layers=6).model), layers=(3, 2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_the_law_is_the_targets(three, name, temperature):
    shape = {"temperature": temperature}
    asked = {"num_lookahead_tokens": 2, "draft_top_k": 2} if name == "pass" else {"rows": 10}
    law = law_of_rounds(Exhaustive(), name, {"target": three}, asked | shape, length=3)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": three}, shape, length=3)
    assert distance(law, plain) < 1e-9


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "llama") for name in NAMES), *zip(NAMES, ["qwen2", "mistral", "qwen2"], strict=True)],
)
def test_random_slots_leave_greedys_text(name, kind):
    model = with_heads(kind=kind, layers=4)
    found = run(name, model)
    assert found.output() == run("greedy", model).output()
    assert found.badge == "lossless: equal to greedy" and model.engine.cache.used == 0


@pytest.mark.parametrize(
    ("name", "none"), [("pass", "lookahead"), ("ppd", "prompt"), ("hidden_transfer", "pseudo")]
)
def test_without_slots_it_is_plain_decoding(model, name, none):
    found, greedy = run(name, model, {f"num_{none}_tokens": 0}), run("greedy", model)
    assert found.output() == greedy.output() and found.costs.target_forwards == greedy.costs.target_forwards
    assert found.costs.proposed == 0


def test_typical_acceptance_is_relaxed(model):
    assert run("ppd", model, {"acceptance": "typical", "temperature": 0.7}).badge == "relaxed"


class HalfRight(TableModel):
    """Every token is equally likely to be 0 or 1; slots after a node are sure of 0: each is accepted with
    .5.
    """

    capabilities = frozenset({Capability.FULL_DISTRIBUTION, Capability.EMBEDDINGS})

    def attach(self, tree):
        return HalfScorer(self, tree)


class HalfScorer(TableScorer):
    def __init__(self, model, tree):
        super().__init__(model, tree)
        self.mixed, self.injections = {}, {}

    def score(self, nodes, hidden=False):
        rows = super().score(nodes, hidden)
        sure = torch.tensor([1.0, 0.0], dtype=torch.float64).log()
        return torch.stack(
            [sure if node in self.mixed else row for node, row in zip(nodes, rows, strict=True)]
        )


def half_right(depth: int) -> HalfRight:
    target = HalfRight(lambda tokens: (0.5, 0.5), 2)
    target.heads = {"pass": PaSS(Target.of(deep(layers=2, vocabulary=2).model), depth)}
    return target


def test_half_right_slots_commit_what_the_dossier_says():
    """Alpha .5 and L = 4: 2.9375 tokens per round, 1.469 per pass, exactly, over all outcomes of a round."""
    assert expected_tokens(0.5, 4) == 2.9375 and expected_tokens(0.5, 4) / 2 == pytest.approx(1.469, abs=5e-4)
    target, mean = half_right(4), 0.0

    def committed(chooser) -> int:
        lane = Lane("pass", [0], {"target": target}, {"temperature": 1.0}, limits=Limits(12), chooser=chooser)
        step = lane.advance()
        assert len(step.of(Forward)) == 2
        count = len(step.of(Commit)[0].nodes)
        lane.close()
        return count

    for count, probability in Exhaustive().distribution(committed).items():
        assert count >= 2
        mean += count * probability
    assert mean == pytest.approx(2.9375)


def test_pass_commits_a_token_per_pass_at_least(model):
    for temperature in (0.0, 1.0):
        found = run("pass", model, {"temperature": temperature}, tokens=24)
        for step in found.steps[:-1]:
            assert sum(len(c.nodes) for c in step.of(Commit)) >= len(step.of(Forward))


def test_the_first_token_of_a_round_is_the_targets_own_and_guesses_are_truncated(model):
    found = run("pass", model, {"temperature": 1.0, "draft_top_k": 2}, tokens=24)
    checked = 0
    for step in found.steps[:-1]:
        first, *guesses = [p for p in step.of(Propose) if p.fill == "sampled"] or [None]
        if first is None:  # no room is left to look ahead
            continue
        assert first.source == "target"
        draft = {e.node: e for e in step.of(Distribution) if e.view == "draft"}
        for guess in guesses:
            offer = draft[guess.parent]
            assert len([v for _, v in offer.top if v > -50]) <= 2
            assert guess.token in dict(map(tuple, offer.top))
            checked += 1
    assert checked > 5
    scores = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
    assert truncated(scores, 2).isfinite().tolist() == [[False, True, True, False]]
    assert truncated(scores, 0) is scores


@pytest.mark.parametrize("name", NAMES[1:])
def test_forwards_keep_to_their_rows_and_drafts_to_their_state(model, name):
    found = run(name, model, {"rows": 12}, tokens=40)
    rows = [f.tokens for step in found.steps[1:] for f in step.of(Forward)]
    assert max(rows) <= 12 and len(set(rows)) > 1
    assert any("expected to give" in note.text for note in found.steps[0].of(Note))


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_lane_after_another_one_of_its_prompt_drafts_the_same(model, name):
    """The prompt's forward is the other lane's: hosts of slots are read once more."""
    alone = run(name, model).output()
    first = Lane("greedy", PROMPT, {"target": model}, limits=Limits(8))
    first.advance()
    second = run(name, model)
    first.close()
    assert second.output() == alone


def copy_pairs(count: int, length: int, random: torch.Generator) -> torch.Tensor:
    """Rows of the copy-pair language: 0 with .6 or 1 with .4, each written twice."""
    return (torch.rand(count, length // 2, generator=random) < 0.4).long().repeat_interleave(2, 1)


@pytest.fixture(scope="module")
def speaker():
    """A tiny model that has learned the copy-pair language."""
    model = deep(layers=2, vocabulary=2).model.float()
    model.requires_grad_(True)
    random = torch.Generator().manual_seed(0)
    learn = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(150):
        rows = copy_pairs(32, 16, random)
        model(rows, labels=rows).loss.backward()
        learn.step()
        learn.zero_grad()
    return model.requires_grad_(False)


@pytest.mark.parametrize(
    "make", [lambda t: PaSS(t, 1), lambda t: PPD(t, 1), lambda t: HiddenTransfer(t, (1,))]
)
def test_slots_behave_like_medusa_on_the_copy_pair_language(speaker, make):
    """After a pair the root is chance, and no slot sees it: it can say 0 with .6 at best."""
    torch.manual_seed(0)
    module, random = make(Target.of(speaker)), torch.Generator().manual_seed(1)
    learn = torch.optim.AdamW(module.parameters(), lr=2e-2)
    for _ in range(60):
        module.loss(take_taps(speaker, copy_pairs(16, 16, random), module.reads)).backward()
        learn.step()
        learn.zero_grad()
    tokens = copy_pairs(300, 16, random)
    guess = module.eval().along(take_taps(speaker, tokens, module.reads), 1)[0][:, 1::2]
    right = (guess.argmax(-1) == tokens[:, 3::2])[:, 1:]
    assert right.float().mean().item() == pytest.approx(0.6, abs=0.04)
    assert guess[:, 1:].softmax(-1).mean((0, 1)).tolist() == pytest.approx([0.6, 0.4], abs=0.06)


def test_losses_by_hand(model):
    """PaSS: cross-entropy of the text; PPD: divergences with 0.8^(i - 1) / n; hidden transfer: their sum."""
    taps = take_double(model.model, TEXT, (3,))
    for name in NAMES:
        module, asked = model.heads[name], []
        whole = module.slot_logits(taps, torch.arange(14))

        def noted(logits, places, asked=asked):
            asked.append(places - 1)
            return logits.sum() * 0

        module.slot_loss(taps, noted, [1.0] * module.depth)
        expected = 0.0
        for i, places in enumerate(asked, 1):
            hosts = places - i
            logits = whole[:, hosts, i - 1].log_softmax(-1)
            p = taps.logits[:, places].softmax(-1)
            text = -logits.gather(-1, TEXT[:, places + 1, None]).mean()
            cross = -(p * logits).sum(-1).mean()
            entropy = -(p * p.log()).sum(-1).mean()
            expected += {
                "pass": text / module.depth,
                "ppd": 0.8 ** (i - 1) / module.depth * (cross - entropy),
                "hidden_transfer": cross,
            }[name]
        torch.testing.assert_close(module.loss(taps).double(), expected, rtol=1e-4, atol=1e-4)
