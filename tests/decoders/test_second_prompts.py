"""Guidance, context-aware and instructive decoding: generate's tokens, what the second view reads, costs."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.registry import get
from decoders.sampling.contrastive import instructive
from decoders.sampling.contrastive.prompt_split import first_part, last_part
from decoders.trace.events import Distribution, Forward, Note
from decoders.trace.scores import Measure
from tests.helpers import tiny_models
from tests.helpers.in_company import in_company

STORY = "Mia has a red hat.\nTom has a dog.\nThe hat is"


@pytest.fixture(scope="module")
def model(tiny_model):
    return tiny_model("llama", 0, torch.float64)


def lane(name, model, text, parameters=None, tokens=12, seed=0) -> Lane:
    prompt = model.encode(text) if isinstance(text, str) else text
    return Lane(name, prompt, {"target": model}, parameters, seed, Limits(tokens))


def trace(*given, **how):
    return lane(*given, **how).run()


def offers(found, view):
    return [e for s in found.steps for e in s.of(Distribution) if e.view == view]


def reads(name, model, text, parameters=None) -> str:
    """What the second view reads, as text."""
    made = lane(name, model, text, parameters)
    made.advance()
    (other,) = (s for role, s in made.scorers.items() if role != "target")
    said = b"".join(map(model.bytes_of, other.tree.tokens[: other.tree.trunk])).decode()
    made.close()
    return said


# ---- guidance against generate ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("negative", ["", "a dog"])
def test_guidance_is_generates(model, prompt, scale, negative):
    ids = {"negative_prompt_ids": torch.tensor([model.encode(negative)])} if negative else {}
    want = tiny_models.generate(model, prompt, guidance_scale=scale, max_new_tokens=12, **ids)
    found = trace("guidance", model, prompt, {"guidance_scale": scale, "negative_prompt": negative})
    assert found.output() == want


def test_second_views_of_several_lanes_share_their_forwards(model):
    texts = ["Mia has", "Tom has a dog"]
    makers = [
        lambda calls, text=text: Lane(
            "guidance", model.encode(text), {"target": model}, {}, 0, Limits(6), callbacks=calls
        )
        for text in texts
    ]
    traces = [one.trace for one in in_company(makers)]
    alone = [trace("guidance", model, text, tokens=6) for text in texts]
    assert [t.output() for t in traces] == [t.output() for t in alone]
    for found in traces:
        views = [f for s in found.steps for f in s.of(Forward) if f.scope]
        assert len(views) == 6 and {f.lanes for f in views} == {2}


def test_guidance_comes_before_penalties_as_in_generate(model, prompt):
    shaped = {"repetition_penalty": 0.3, "no_repeat_ngram_size": 2}
    want = tiny_models.generate(model, prompt, guidance_scale=2.0, max_new_tokens=12, **shaped)
    assert trace("guidance", model, prompt, {"guidance_scale": 2.0, **shaped}).output() == want
    assert want != trace("guidance", model, prompt, {"guidance_scale": 2.0}).output()


# ---- all three ---------------------------------------------------------------------------------------------

OFF = {"guidance": {"guidance_scale": 1.0}, "context_aware": {"alpha": 0.0}, "instructive": {"epsilon": 0.0}}


@pytest.mark.parametrize("name", OFF)
def test_switched_off_it_is_greedy_with_one_stream(model, name):
    found, greedy = trace(name, model, STORY, OFF[name]), trace("greedy", model, STORY)
    assert found.output() == greedy.output()
    assert found.costs.totals()["target_forwards"] == len(found.output())
    assert not offers(found, "unwanted") and not offers(found, "combined")


@pytest.mark.parametrize("name", OFF)
def test_each_token_costs_two_forwards_and_tells_three_rows(model, name):
    found = trace(name, model, STORY)
    count, totals = len(found.output()), found.costs.totals()
    assert totals["target_forwards"] == 2 * count and totals["draft_forwards"] == 0
    assert {len(offers(found, view)) for view in ("target", "unwanted", "combined")} == {count}
    forwards = [f for s in found.steps for f in s.of(Forward)]
    assert [f.kind for f in forwards[:2]] == ["prefill", "prefill"]
    assert all(f.tokens == 1 for f in forwards[2:])  # the chosen token goes into both caches
    parts = [e for s in found.steps for e in s.of(Measure) if e.name == "contrast"]
    assert len(parts) == count and all(len(e.parts) == 2 for e in parts)


@pytest.mark.parametrize("name", OFF)
def test_the_second_row_is_that_of_a_fresh_forward(model, name):
    """After every token: the second view's cache gets what was chosen."""
    made = lane(name, model, STORY)
    made.advance()
    (other,) = (s for role, s in made.scorers.items() if role != "target")
    start = other.tree.tokens[: other.tree.trunk]
    found = made.run()
    for place, offer in enumerate(offers(found, "unwanted")):
        text = [*start, *found.output()[:place]]
        fresh = model.model(torch.tensor([text])).logits[0, -1].log_softmax(-1)
        told = [x for _, x in offer.top]
        assert [fresh[int(t)].item() for t, _ in offer.top] == pytest.approx(told, abs=1e-4)


def test_three_names_for_one_text(model):
    """With the same two views: alpha = gamma - 1 = e / (1 - e)."""
    second = "Tom has a dog.\nThe hat is"
    full = "Mia has a red hat.\n" + second
    cad = trace("context_aware", model, full, {"alpha": 0.3 / 0.7, "context": "Mia has a red hat.\n"})
    cfg = trace("guidance", model, full, {"guidance_scale": 1 / 0.7, "negative_prompt": second})
    own = trace(
        "instructive",
        model,
        full,
        {"noise": "own text", "noisy_instruction": "Tom has a dog.", "epsilon": 0.3},
    )
    assert cad.output() == cfg.output()
    same = {"guidance_scale": 1 / 0.7, "negative_prompt": "Tom has a dog.\n" + second}
    assert own.output() == trace("guidance", model, full, same).output()


def test_views_that_agree_change_nothing_greedily_but_a_reduced_one_is_flatter(model):
    first = STORY.split("\n")[0]
    for name, parameters in (
        ("guidance", {"guidance_scale": 5.0, "negative_prompt": STORY}),
        ("instructive", {"noise": "own text", "noisy_instruction": first}),
    ):
        found = trace(name, model, STORY, parameters)
        assert found.output() == trace("greedy", model, STORY).output()
        for one, both in zip(offers(found, "target"), offers(found, "combined"), strict=True):
            if name == "guidance":
                assert both.entropy == pytest.approx(one.entropy)
            else:
                assert both.entropy > one.entropy


def test_drawn_text_has_the_combined_law():
    """Exactly, on a table that looks at the first token only: 0 with the prompt, 1 without it."""
    model = TableModel(lambda past: (0.6, 0.3, 0.1) if past[0] == 0 else (0.2, 0.3, 0.5), 3)
    parameters = {"guidance_scale": 2.0, "temperature": 1.0}

    def text(chooser):
        made = Lane("guidance", [0, 1], {"target": model}, parameters, 0, Limits(2), chooser)
        return tuple(made.run().output())

    raw = torch.tensor([0.6**2 / 0.2, 0.3**2 / 0.3, 0.1**2 / 0.5])
    one = (raw / raw.sum()).tolist()
    found = Exhaustive().distribution(text)
    assert len(found) == 9
    for (a, b), probability in found.items():
        assert probability == pytest.approx(one[a] * one[b], rel=1e-6)


def test_a_second_prompt_that_does_not_fit_is_refused_with_a_sentence(model):
    found = trace("guidance", model, STORY, {"negative_prompt": "x" * 250})
    assert found.ended == (
        "The second prompt has 250 tokens, and with 12 new ones the model cannot read it: its context is "
        "256. Shorten it, or ask for fewer tokens, by 6."
    )
    with pytest.raises(ValueError, match="negative_prompt must be a text of at most 4,000 characters, not "):
        get("guidance").check({"negative_prompt": "x" * 4001})
    with pytest.raises(ValueError, match="negative_prompt must be a text"):
        get("guidance").check({"negative_prompt": 7})


# ---- where prompts are cut ---------------------------------------------------------------------------------


def test_the_context_is_all_before_the_last_line_or_what_is_named(model):
    assert reads("context_aware", model, STORY) == "The hat is"
    assert reads("context_aware", model, "A cat. A dog! It is") == " It is"
    assert reads("context_aware", model, "One sentence") == "e"  # nothing before it: the last token alone
    assert reads("context_aware", model, STORY, {"context": "Tom has a dog."}) == (
        "Mia has a red hat.\n\nThe hat is"
    )
    found = trace("context_aware", model, STORY, {"context": "Tom has a cat."})
    assert found.ended.startswith("The context does not occur in the prompt; copy it from there")


def test_the_instruction_is_the_first_line(model):
    kept = "\nTom has a dog.\nThe hat is"
    assert reads("instructive", model, STORY) == instructive.OPPOSITE + kept
    assert reads("instructive", model, STORY, {"noise": "none"}) == kept[1:]
    own = {"noise": "own text", "noisy_instruction": "No."}
    assert reads("instructive", model, STORY, own) == "No." + kept
    assert reads("instructive", model, "Add them. 3 4", own) == "No. 3 4"
    shuffled = reads("instructive", model, STORY, {"noise": "shortened and shuffled"})
    words = shuffled.removesuffix(kept).split()
    assert len(words) == 3 and set(words) < {"Mia", "has", "a", "red", "hat."}  # 60 % of five
    assert reads("instructive", model, STORY, {"noise": "random words"}) == kept[1:]  # no words to draw


def test_drawn_noise_follows_the_seed(model):
    told = {
        seed: trace("instructive", model, STORY, {"noise": "shortened and shuffled"}, seed=seed, tokens=1)
        .steps[0]
        .of(Note)[0]
        .text
        for seed in range(6)
    }
    assert len(set(told.values())) > 1
    assert get("instructive").badge({"noise": "random words", "temperature": 0.0}) == "contrasted"
    assert get("instructive").badge({"noise": "opposite", "temperature": 0.0}) == "deterministic"


@pytest.mark.parametrize(
    "text, last, first",
    [
        ("a.\nb\nc", 5, 3),
        ("a.\nb\n", 3, 3),
        ("a. b", 2, 2),
        ("ab", 0, 2),
        ("a\n\n", 0, 3),
        ("a! b? c", 5, 2),
    ],
)
def test_cuts(text, last, first):
    letters = [ord(c) for c in text]
    assert last_part(letters, lambda t: bytes([t])) == last
    assert first_part(letters, lambda t: bytes([t])) == first
