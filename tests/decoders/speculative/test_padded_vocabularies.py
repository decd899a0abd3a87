"""Models of one family pad their vocabulary differently, and draft for each other all the same: rows that
stand for no token have probability 0 in both.
"""

import json

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.shared_tokens import same_tokens
from decoders.refusal import Refusal
from decoders.registry import strategies
from decoders.suitability import problem, with_shared_rows
from decoders.testing import shape_of
from explorer import cli
from explorer.acceptance.drafters import drafter
from explorer.acceptance.measuring import Settings, report
from explorer.acceptance.prompts import Prompt
from explorer.runs.model_pool import Loader
from tests.helpers import tiny_models

PADDING = {"target": (5, 0), "draft": (0, 5), "both": (2, 7)}  # rows more than tokens: of target, of draft
PROMPT = [40, 41, 42]
SHAPE = {"temperature": 0.7, "top_k": 2}


def padded(seed: int, rows: int, kind: str = "llama") -> LoadedModel:
    """A tiny model with so many rows more than tokens, all of them likelier than those of tokens."""
    made = tiny_models.make(kind, seed)
    if rows:
        made.model.resize_token_embeddings(len(made.tokenizer) + rows, mean_resizing=False)
        head = made.model.get_output_embeddings().weight.data
        head[-rows:] = 3 * head[:rows]
    return made


@pytest.fixture(scope="module", params=PADDING)
def pair(request) -> dict[str, LoadedModel]:
    torch.set_num_threads(1)
    return {role: padded(seed, PADDING[request.param][seed]) for seed, role in enumerate(("target", "draft"))}


@torch.inference_mode()
def exact(target: LoadedModel, length: int) -> dict[tuple[int, ...], float]:
    """The law of the target's text over its tokens alone, from the model's own forward."""
    law, shape = {(): 1.0}, shape_of(SHAPE)
    for _ in range(length):
        longer = {}
        for text, mass in law.items():
            if text and text[-1] in target.eos:
                longer[text] = mass
                continue
            row = target.model(torch.tensor([[*PROMPT, *text]])).logits[0, -1, : len(target.tokenizer)]
            p = shape(row.double().log_softmax(-1)[None])[0]
            longer |= {(*text, token): mass * float(p[token]) for token in p.nonzero().flatten().tolist()}
        law = longer
    return law


@pytest.mark.parametrize("strategy", ["speculative", "specinfer"])
def test_the_text_has_the_law_of_the_target_over_its_tokens(strategy, pair):
    def run(chooser) -> tuple[int, ...]:
        own = {"num_assistant_tokens": 1} if strategy == "speculative" else {"expansion": [2]}
        lane = Lane(strategy, PROMPT, pair, SHAPE | own, limits=Limits(2), chooser=chooser)
        said = tuple(lane.run().output())
        lane.close()
        return said

    law, want = Exhaustive().distribution(run), exact(pair["target"], 2)
    assert law.keys() == want.keys() and len(want) > 2
    assert all(law[text] == pytest.approx(want[text], abs=1e-5) for text in want)


def test_all_have_as_many_rows_as_there_are_tokens_and_share_their_weights(pair):
    both, tokens = with_shared_rows(pair), len(pair["target"].tokenizer)
    for role, model in both.items():
        assert model.engine.vocabulary == tokens == len(model.embedding)
        whole = pair[role].model.get_output_embeddings().weight
        assert model.embedding.data_ptr() == whole.data_ptr() and len(whole) == tokens + model.left_out
        assert ("correspond to no token and are left out" in (model.note or "")) == bool(model.left_out)
    assert with_shared_rows(both) == both and with_shared_rows(pair) == both  # they are made once


@pytest.mark.parametrize(
    "name", [name for name, one in strategies().items() if "draft" in one.needs and not one.follows]
)
def test_every_strategy_with_a_draft_takes_the_pair(name):
    models = {"target": padded(0, 5), "draft": padded(1, 0)}
    strategy = strategies()[name]
    if why := problem(strategy, strategy.check({}), models):
        assert "tokenizer" not in why
        return
    trace = Lane(name, PROMPT, models, limits=Limits(6)).run()
    assert trace.output() and max(trace.output()) < len(models["target"].tokenizer)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2", "gpt_neox", "opt", "gemma3", "phi3"])
def test_other_families_can_be_cut_too(kind):
    model = padded(0, 4, kind)
    few = model.narrower(len(model.tokenizer))
    ids = torch.tensor([PROMPT])
    want = model.model(ids).logits[..., : len(model.tokenizer)]
    assert torch.allclose(few.model(ids).logits, want, atol=1e-5)
    assert Lane("greedy", PROMPT, {"target": few}, limits=Limits(4)).run().output()


def test_an_output_matrix_that_is_no_plain_one_is_refused():
    model = padded(0, 3)
    model.model.lm_head = torch.nn.Sequential(model.model.lm_head)
    model.model.lm_head.weight = model.model.lm_head[0].weight
    with pytest.raises(Refusal, match="its output matrix cannot be cut; choose a pair with as many rows"):
        model.narrower(len(model.tokenizer))


def test_folders_of_such_a_pair_are_taken_by_command_page_and_report(tmp_path, capsys):
    names = []
    for seed, rows in enumerate((5, 0)):
        folder = tmp_path / str(seed)
        made = padded(seed, rows)
        made.model.save_pretrained(folder)
        made.tokenizer.save_pretrained(folder)
        names.append(str(folder))
    assert same_tokens(*names)
    asked = ["--strategy", "speculative", "--prompt", "the cat", "--model", names[0], "--draft", names[1]]
    cli.main(["run", *asked, "--device", "cpu", "--max-new-tokens", "6", "--json"])
    assert json.loads(capsys.readouterr().out)["totals"]["proposed"] > 0
    loader = Loader(*names, "cpu")
    loader.load()
    assert loader.state == "ready" and "tokenizer" not in loader.sentence
    target = load(names[0], "cpu")
    found = report(target, [drafter(names[1], target, "cpu")], [Prompt("the cat")], Settings(4))
    assert found["drafts"][0]["along"]
