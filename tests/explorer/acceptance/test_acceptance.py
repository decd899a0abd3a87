"""The command `acceptance`: prompts of a file, guesses along a text, a page whose links lead somewhere."""

import json
import re

import pytest
import torch

from decoders.heads import Eagle, Medusa, Target, take_taps
from decoders.lane import Lane, Limits
from decoders.refusal import Refusal
from explorer.acceptance.along_text import guesses_along, target_along
from explorer.acceptance.drafters import Drafter, chain_of, drafter
from explorer.acceptance.measuring import Settings, report
from explorer.acceptance.prompts import Prompt, read_prompts
from explorer.acceptance.report_page import FIGURES, report_page
from explorer.acceptance.words import summary
from explorer.cli import main
from tests.helpers import tiny_models
from visualizers.figures import acceptance as charts
from visualizers.figures import caption

EVIL = "<img onerror=alert(1)> the"


@pytest.fixture(scope="module")
def target():
    return tiny_models.make()


@pytest.fixture(scope="module")
def draft():
    return tiny_models.make(seed=1)


@pytest.fixture(scope="module")
def found(target, draft):
    drafters = [
        Drafter("other", "speculative", {"target": target, "draft": draft}, draft),
        Drafter("itself", "speculative", {"target": target, "draft": target}, target),
    ]
    prompts = [Prompt("a cat", "story"), Prompt(EVIL), Prompt("the")]
    return report(target, drafters, prompts, Settings(max_new_tokens=20))


def test_prompts_come_from_lines_of_text_or_of_json(tmp_path):
    text, lines = tmp_path / "p.txt", tmp_path / "p.jsonl"
    text.write_text("one\n\ntwo\n", "utf-8")
    rows = ['{"prompt": "one", "category": "c"}', '"two"', '{"turns": ["three", "more"]}', '{"text": "four"}']
    lines.write_text("\n".join(rows), "utf-8")
    assert read_prompts(text) == [Prompt("one"), Prompt("two")]
    assert read_prompts(lines) == [Prompt("one", "c"), Prompt("two"), Prompt("three"), Prompt("four")]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("p.txt", "\n \n", "contains no prompt"),
        ("p.jsonl", '{"prompt": "a"}\n{', "p.jsonl, line 2 is not valid JSON"),
        ("p.jsonl", '{"question": "a"}', "p.jsonl, line 1 has no prompt"),
        ("p.txt", "x\n" * 1001, "at most 1,000"),
    ],
)
def test_a_file_that_holds_no_prompts_is_refused_with_a_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=says):
        read_prompts(tmp_path / name)


def test_a_draft_model_is_asked_behind_every_true_prefix(target, draft):
    ids, start = [40, 41, 42, 9, 200, 3, 77], 3
    wrote = target_along(target, ids, start, 0.0)
    guesses = guesses_along(draft, target, ids, start, wrote, 0.0)
    for place, at in enumerate(range(start, len(ids))):
        with torch.inference_mode():
            p, q = (
                m.model(torch.tensor([ids[:at]])).logits[0, -1].double().softmax(-1) for m in (target, draft)
            )
        assert guesses.right[place] == (int(q.argmax()) == ids[at])
        assert guesses.rank[place] == 1 + int((q > q[ids[at]]).sum())
        assert guesses.q[place] == pytest.approx(float(q.max()), abs=1e-5)
        assert guesses.overlap[place] == pytest.approx(float(torch.minimum(p, q).sum()), abs=1e-5)
        assert wrote.entropy[place] == pytest.approx(float(-(p * p.log2()).sum()), abs=1e-4)


@pytest.mark.parametrize("kind", [Medusa, Eagle])
def test_a_head_is_asked_with_the_targets_true_features_and_cannot_look_ahead(kind, target):
    torch.manual_seed(0)
    head = kind(Target.of(target.model)).eval()
    ids, start = [40, 41, 42, 9, 200, 3], 1
    wrote = target_along(target, ids, start, 0.0)
    guesses = guesses_along(head, target, ids, start, wrote, 0.0)
    assert guesses.right[0] is None and guesses.q[0] is None  # one token is too few for a head
    assert guesses.sees_path == (kind is Eagle)
    for at in range(2, len(ids)):
        with torch.inference_mode():
            taps = take_taps(target.model, torch.tensor([[*ids[:at], 0]]), head.reads)
            q = head.along(taps, 1)[0][0, -1].double().softmax(-1)
        assert guesses.q[at - start] == pytest.approx(float(q.max()), abs=1e-4)


def test_a_draft_that_is_the_target_is_right_everywhere(found):
    other, itself = found["drafts"]
    assert itself["causes"] == {} and itself["rejections"] == []
    assert found["sides"]["shares"][1] == 1.0 and found["sides"]["only_a"] == 0
    assert other["causes"] and found["sides"]["neither"] == 0


def test_greedy_texts_are_the_same_for_every_drafter(target, found):
    for at, text in enumerate(found["prompts"]):
        prompt = target.encode(text["prompt"])
        want = Lane("greedy", prompt, {"target": target}, {}, 0, Limits(20)).run()
        assert len(text["tokens"]) == len(want.output())
        assert all(len(draft["prompts"][at]["marks"]) == len(want.output()) for draft in found["drafts"])


def test_the_page_is_whole_and_its_links_lead_to_places(found):
    page = report_page(found, "python -m explorer acceptance")
    ids, links = set(re.findall(r" id='([^']+)'", page)), set(re.findall(r"href='#([^']+)'", page))
    assert links and links <= ids
    assert "<img onerror" not in page and "&lt;img onerror" in page
    assert "default-src 'none'" in page and 'src="http' not in page
    assert all(f"figure-{name}" in ids for name in FIGURES)


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_says_in_words_what_it_shows(found, name, look):
    figure = getattr(charts, name)(found, look)
    assert caption(figure)
    nothing = {
        **found,
        "sides": None,
        "drafts": [
            {
                **d,
                "causes": {},
                "depths": [],
                "entropies": [],
                "positions": [],
                "prompts": [{**p, "mean_acceptance_length": None} for p in d["prompts"]],
            }
            for d in found["drafts"]
        ],
    }
    assert getattr(charts, name)(nothing, look).layout.annotations  # says that there is nothing


def test_a_strategy_that_drafts_by_itself_is_a_drafter_and_others_are_refused(target):
    one = drafter("prompt_lookup", target)
    assert (one.strategy, list(one.models), one.guesser) == ("prompt_lookup", ["target"], None)
    with pytest.raises(ValueError, match="drafts nothing by itself"):
        drafter("beam", target)
    with pytest.raises(ValueError, match="There is no model 'nonsense'"):
        drafter("nonsense", target)


def test_a_draft_with_other_tokens_is_refused(tmp_path, target):
    folder = tiny_models.save(tmp_path)
    other = tiny_models.make("forms")
    with pytest.raises(ValueError, match="another tokenizer"):
        drafter(folder, other)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--out", "r.txt"], "does not end in .html"),
        (["--temperature", "-1"], "must be from 0 to 100"),
        (["--draft", "a"] * 5, "at most 4 drafters"),
    ],
)
def test_unusable_options_end_with_one_line(tmp_path, capsys, options, says):
    file = tmp_path / "p.txt"
    file.write_text("the\n", "utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["acceptance", "--prompts", str(file), *options])
    assert ended.value.code == 2 and says in capsys.readouterr().err


def test_the_command_prints_json_and_writes_the_page(tmp_path, capsys):
    file, page = tmp_path / "p.jsonl", tmp_path / "r.html"
    file.write_text('{"prompt": "the cat"}\n', "utf-8")
    folder = tiny_models.save(tmp_path / "t")
    names = ["--target", folder, "--draft", folder, "--draft", "prompt_lookup"]
    main(
        ["acceptance", *names, "--prompts", str(file), "--out", str(page), "--json", "--max-new-tokens", "8"]
    )
    found = json.loads(capsys.readouterr().out)
    assert [draft["name"] for draft in found["drafts"]] == [folder, "prompt_lookup"] and found[
        "sides"
    ] is None
    assert "mean_acceptance_length" in page.read_text("utf-8")


@pytest.mark.parametrize("name", ["eagle", "eagle2", "adaeagle", "medusa", "gumiho"])
def test_a_chain_of_k_for_any_head_or_a_sentence(target, draft, name):
    """What vLLM runs: chains of three tokens where the text lets them be so long; then their own shapes."""
    one = Drafter(name, name, {"target": target}, None)
    if name == "gumiho":
        with pytest.raises(
            Refusal, match="Gumiho drafts in its own shape and not in chains of 3 tokens; leave"
        ):
            report(target, [one], [Prompt("a cat")], Settings(20, num_assistant_tokens=3))
        return
    (found,) = report(target, [one], [Prompt("a cat")], Settings(20, num_assistant_tokens=3))["drafts"]
    values = {metric["name"]: metric["value"] for metric in found["metrics"]}
    assert found["shape"] == "chains of up to 3 tokens"
    assert values["num_draft_tokens"] == values["draft_token_candidates"] <= 3 * values["num_drafts"]
    assert len(values["acceptance_rate_per_pos"]) == 3


def test_without_a_length_every_drafter_drafts_in_its_own_shape(target):
    drafters = [Drafter(name, name, {"target": target}, None) for name in ("eagle2", "prompt_lookup")]
    made = report(target, drafters, [Prompt("the cat and the cat and the")], Settings(20))
    shapes = [one["shape"] for one in made["drafts"]]
    assert shapes[0].startswith("trees of up to 24 tokens on up to ")
    assert shapes[1].startswith("chains of up to ")
    assert f"  shape of the draft           {shapes[0]}" in summary(made)
    (rate, drafted, accepted) = (
        next(one["value"] for one in made["drafts"][0]["metrics"] if one["name"] == name)
        for name in ("draft_acceptance_rate", "num_draft_tokens", "num_accepted_tokens")
    )
    assert rate == accepted / drafted
    assert drafted == sum(one["num_draft_tokens"] for one in made["drafts"][0]["prompts"])


def test_a_length_that_is_too_large_is_refused(target):
    with pytest.raises(Refusal, match="EAGLE-2 drafts chains of at most 16 tokens, not 17; ask for fewer"):
        chain_of("eagle2", 17)
    with pytest.raises(Refusal, match="leave --num-assistant-tokens out"):
        chain_of("token_recycling", 4)
    assert chain_of("pass", 4) == {"num_lookahead_tokens": 3}  # the first of its four is the target's own


def test_strategies_that_share_a_head_are_compared_at_the_same_positions(target):
    pair = [drafter(name, target) for name in ("eagle2", "adaeagle")]
    assert all(one.guesser is target.heads["eagle"] for one in pair)
    sides = report(target, pair, [Prompt("a cat")], Settings(8))["sides"]
    assert sides["names"] == ["eagle2", "adaeagle"] and sides["places"] and sides["difference"] == 0.0
