"""What every small architecture obeys: reading in pieces is reading at once, nothing looks ahead, it loads by
its own model_type, and strategies decode it.
"""

import pytest
import torch

from decoders.engine.state_engine import KEPT_STATES, StateEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.architectures import architectures
from decoders.models.architectures.causal import Architecture
from decoders.models.loading import load
from tests.helpers.tiny_architectures import fresh, small
from tests.helpers.tiny_models import tokenizer

KINDS = sorted(name for name, (model, _) in architectures().items() if issubclass(model, Architecture))
IDS = torch.randint(0, 200, (1, 41), generator=torch.Generator().manual_seed(3))
PROMPT = tokenizer()("the cat sat on a mat; the cat")["input_ids"]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


def test_reading_in_pieces_is_reading_at_once(kind):
    model = fresh(kind)
    whole, state, parts = model(IDS).logits, None, []
    for piece in IDS.split([7, 1, 1, 6, 1, 25], 1):
        states, state = model.read(piece, state)
        parts.append(model.logits_of(states))
    assert torch.cat(parts, 1) == pytest.approx(whole, abs=1e-9)


def test_the_last_token_alone_is_the_last_of_all(kind):
    model = fresh(kind)
    states, state = model.read(IDS[:, :23], last_only=True)
    assert states.shape[1] == 1
    assert model.logits_of(states)[:, 0] == pytest.approx(model(IDS[:, :23]).logits[:, -1], abs=1e-9)
    following = model.logits_of(model.read(IDS[:, 23:], state)[0])
    assert following == pytest.approx(model(IDS).logits[:, 23:], abs=1e-9)


def test_nothing_looks_ahead(kind):
    model, changed = fresh(kind), IDS.clone()
    changed[0, 20] += 1
    before, after = model(IDS).logits, model(changed).logits
    assert after[:, :20] == pytest.approx(before[:, :20], abs=1e-12)
    assert (after[:, 20:] - before[:, 20:]).abs().max() > 1e-6


def test_it_is_saved_and_loaded_like_any_model(kind, tmp_path):
    model = fresh(kind, dtype=torch.float32)
    model.save_pretrained(tmp_path)
    tokenizer.__wrapped__().save_pretrained(tmp_path)
    loaded = load(str(tmp_path), "cpu")
    assert isinstance(loaded.engine, StateEngine) and loaded.model.config.model_type == kind
    assert torch.equal(loaded.model(IDS).logits, model(IDS).logits)


def test_each_branch_of_a_tree_has_a_state_of_its_own(kind):
    loaded = small(kind)
    tree = Tree(PROMPT)
    left, right = tree.add(len(PROMPT) - 1, 4), tree.add(len(PROMPT) - 1, 5)
    nodes = [right, tree.add(left, 6), tree.add(right, 7), left]
    ours = loaded.engine.attach(tree).score(nodes)
    for row, node in zip(ours, nodes, strict=True):
        alone = loaded.model(torch.tensor([tree.text(node)])).logits[0, -1]
        assert row == pytest.approx(alone, abs=1e-4)


def test_a_state_that_was_dropped_is_read_again():
    loaded = small("tiny_yoco")
    tree = Tree(PROMPT)
    scorer = loaded.engine.attach(tree)
    first = tree.add(len(PROMPT) - 1, 4)
    scorer.score([first])
    scorer.score([tree.add(len(PROMPT) - 1, 5 + n) for n in range(KEPT_STATES)])
    assert first not in scorer.states and len(scorer.states) == KEPT_STATES
    behind = tree.add(first, 9)
    alone = loaded.model(torch.tensor([tree.text(behind)])).logits[0, -1]
    assert scorer.score([behind])[0] == pytest.approx(alone, abs=1e-4)


def decoded(strategy, models, parameters, limit=10):
    lane = Lane(strategy, PROMPT, models, parameters, seed=5, limits=Limits(limit))
    return lane.run().output()


def test_strategies_decode_it(kind):
    target, draft = {"target": small(kind)}, {"draft": small(kind, 1)}
    plain = decoded("greedy", target, {})
    ids = torch.tensor([PROMPT])
    generated = target["target"].model.generate(ids, max_new_tokens=10, do_sample=False, pad_token_id=0)
    assert plain == generated[0, len(PROMPT) :].tolist()
    assert decoded("speculative", target | draft, {"temperature": 0.0}) == plain
    assert decoded("beam", target, {"num_beams": 1}) == plain
    assert len(decoded("sample", target, {})) > 0
