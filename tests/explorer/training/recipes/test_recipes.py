"""Every recipe runs end to end at toy scale, one after the other as they build on each other, and what it
ships loads through plain transformers.
"""

import csv
import importlib
import json
from argparse import Namespace
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from decoders.heads import read_answers, take_taps
from decoders.lane import Lane, Limits
from decoders.models.catalog import kind
from decoders.models.loading import load
from decoders.models.model_files import tokenizer_of
from decoders.models.model_heads import load_heads
from explorer import shipped
from explorer.corpus import IGNORED, STORY_MIX
from explorer.tasks import Problem
from explorer.training import answers, check, loop, low_rank, own_text, recipe, small
from explorer.training.data.sentences import story_sentences
from explorer.training.rows.table import ROWS
from tests.helpers.toy_recipes import TOYS

BUDGET = 0.002  # million tokens: one batch, or a few where a toy's batches are small
PARTS = ("training", "held_out")
MEASURED = (
    *("llama-tiny", "llama-tiny-moe", "llama-tiny-diffusion", "llama-tiny-reward", "llama-tiny-seq2seq"),
    "llama-tiny-flow",
)


@pytest.fixture(scope="module")
def toys(tmp_path_factory, toy_corpus):
    """toys(name): trains a recipe at the scale of TOYS, and those that it builds on, once; its folder.

    Nothing is compiled, and nothing is written to assets/models.
    """
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "MODELS", folder)
        patch.setattr(torch, "compile", lambda model, **options: model)  # by whatever name a recipe calls it
        patch.setattr(own_text, "WRITERS", 4)
        patch.setattr(small, "STORIES", tuple(STORY_MIX))  # a few files of toy stories fill no row

        def toy(name: str):
            if not (folder / name).exists():
                needs, constants = TOYS[name]
                for need in needs:
                    toy(need)
                if name in ROWS:
                    patch.setitem(ROWS, name, replace(ROWS[name], **constants))
                else:
                    own = importlib.import_module("explorer.training.recipes." + name.replace("-", "_"))
                    for constant, value in constants.items():
                        patch.setattr(own, constant, value)
                work = tmp_path_factory.getbasetemp() / "work"
                recipe.run(name, Namespace(corpus=toy_corpus, work=work, million_tokens=BUDGET))
            return folder / name

        yield toy


SCORERS = {  # heads that score tokens, and what they read
    "llama-tiny-acceptance": "llama-tiny-draft-distilled",
    "llama-tiny-adaeagle": "llama-tiny",
    "llama-tiny-aligned": "llama-tiny",
    "llama-tiny-autodeco": "llama-tiny",
    "llama-tiny-filter": "llama-tiny-diffusion",
    "llama-tiny-judge": "llama-tiny",
    "llama-tiny-leank": "llama-tiny",
    "llama-tiny-lens": "llama-tiny",
    "llama-tiny-outlook": "llama-tiny",
    "llama-tiny-planner": "llama-tiny-summaries",
    "llama-tiny-ranker": "llama-tiny",
    "llama-tiny-streams": "llama-tiny",
}
DRAFTERS = {
    "llama-tiny-heads": {"medusa", "eagle", "kangaroo"},
    "llama-tiny-feature-drafters": {"eagle3", "chimera", "falcon", "gumiho"},
    "llama-tiny-block-drafters": {"dflash", "peagle"},
    "llama-tiny-lookahead-heads": {
        *("pass", "ppd", "hidden_transfer"),
        *("glide", "mixture_of_attentions", "dream"),
    },
    "llama-tiny-recurrent-heads": {
        *("hydra", "hydra_plus", "mlp_speculator", "redrafter"),
        *("clover", "clover2", "amphista", "blockwise"),
    },
    "llama-tiny-m2r2": {"m2r2"},
    "llama-tiny-verilog-heads": {"fragments"},
}
HEADS = {*DRAFTERS, "llama-tiny-reward", *SCORERS}


def test_no_recipe_is_left_out():
    assert list(TOYS) and sorted(TOYS) == shipped.recipes()


@pytest.mark.parametrize("name", sorted(TOYS.keys() - HEADS))
def test_a_recipe_ships_a_model_with_curve_picture_and_facts(name, toys):
    """Losses are finite, the budget was read, the facts are those of the weights."""
    folder = toys(name)
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    with (folder / "loss.csv").open(newline="", encoding="utf-8") as file:
        curve = [[float(value) for value in row.values()] for row in csv.DictReader(file)]
    assert curve and all(0 < value < 20 for row in curve for value in row)
    assert facts["million_tokens"] == pytest.approx(curve[-1][0], abs=0.01) and curve[-1][0] >= BUDGET
    assert facts["parameters"] > 1000 and facts["held_out_loss"] > 0
    assert name in (folder / "loss.svg").read_text("utf-8")
    assert len(tokenizer_of(folder)) >= 256


@pytest.mark.parametrize("name", ["llama-tiny", "llama-tiny-draft", "llama-tiny-moe"])
def test_a_causal_model_loads_through_transformers_and_writes(name, toys):
    model = AutoModelForCausalLM.from_pretrained(toys(name))
    assert model.dtype == torch.bfloat16 and kind(model.config.to_dict()) == "causal"
    wrote = model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, min_new_tokens=4)
    assert wrote.shape == (1, 7)


def test_the_target_went_through_its_three_stages(toys):
    """It has the layers of the second one, and read the budget three times."""
    folder = toys("llama-tiny")
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert json.loads((folder / "config.json").read_text("utf-8"))["num_hidden_layers"] == 3
    assert facts["exits"] == [1, 2] and facts["million_tokens"] == pytest.approx(3 * 0.004096, abs=0.005)


def test_the_distilled_draft_kept_the_shape_of_the_draft_and_moved(toys):
    draft, distilled = (
        AutoModelForCausalLM.from_pretrained(toys(name))
        for name in ("llama-tiny-draft", "llama-tiny-draft-distilled")
    )
    pairs = list(zip(draft.parameters(), distilled.parameters(), strict=True))
    assert all(a.shape == b.shape for a, b in pairs) and any(not torch.equal(a, b) for a, b in pairs)


def test_the_diffusion_model_has_one_more_token_and_says_so(toys):
    folder = toys("llama-tiny-diffusion")
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert kind(model.config.to_dict()) == "diffusion" and model.config.mask_token_id == 4096
    assert AutoTokenizer.from_pretrained(folder).mask_token == "<|mask|>"
    assert model.get_input_embeddings().weight.shape[0] == 4097


@pytest.mark.parametrize("denoiser", ["set_block", "wedlm"])
def test_models_that_fill_masks_behind_a_causal_past_say_which_strategy_they_are_for(toys, denoiser):
    folder = toys(f"llama-tiny-{denoiser.replace('_', '-')}")
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert kind(json.loads((folder / "config.json").read_text("utf-8"))) == denoiser
    mean = (facts["next_token_loss"] + facts["masked_loss"]) / 2
    assert facts["held_out_loss"] == pytest.approx(mean, abs=1e-4)
    target = load(str(folder))
    assert target.engine.mask == 4096 == target.engine.vocabulary
    assert Lane(denoiser, [5, 6, 7], {"target": target}, limits=Limits(4)).run().output()


@pytest.mark.parametrize("name", DRAFTERS)
def test_heads_are_shipped_with_curves_pictures_and_facts_and_load_on_their_target(toys, name):
    folder = toys(name)
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    with (folder / "loss.csv").open(newline="", encoding="utf-8") as file:
        curve = list(csv.DictReader(file))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    heads = load_heads(str(folder), load(str(toys(config["target"]))))
    assert heads.keys() == facts["held_out_losses"].keys() == DRAFTERS[name]
    assert kind(config) == ("m2r2" if "m2r2" in heads else "heads")
    for head, module in heads.items():
        assert sum(p.numel() for p in module.parameters()) == facts["parameters_of"][head]
        assert all(0 < float(row[f"{head}_{part}_loss"]) < 60 for row in curve for part in PARTS)
        assert head in (folder / f"loss-{head}.svg").read_text("utf-8")
    assert facts["check_losses"] == pytest.approx(check.check_losses(folder))
    assert len(facts["check_losses"]) == len(heads) * len(check.TEXTS)


def test_the_encoder_decoder_loads_through_transformers(toys):
    """It writes after a source as its tokenizer cuts it."""
    folder = toys("llama-tiny-seq2seq")
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert kind(model.config.to_dict()) == "seq2seq"
    wrote = model.generate(**tokenizer("copy: 1 2 3 =>", return_tensors="pt"), max_new_tokens=4)
    assert wrote[0, 0] == model.config.decoder_start_token_id == tokenizer.pad_token_id


def test_sources_and_answers_of_a_batch_are_those_of_its_problems(texts):
    """Answers end with the end of text; what pads them is not counted; held-out problems are never fed."""
    recipe = importlib.import_module("explorer.training.recipes.llama_tiny_seq2seq")
    told = story_sentences(["He was happy. Did she see it? The old fox, at last, ran away. No."])
    assert told == ["He was happy.", "The old fox, at last, ran away."]
    rows, labels = recipe.batch_after(texts.tokenizer, told, seen=0)
    assert len(rows) == len(labels) == recipe.BATCH
    again = recipe.batch_after(texts.tokenizer, told, seen=0)
    assert torch.equal(rows, again[0]) and torch.equal(labels, again[1])
    for row, answer in zip(rows, labels, strict=True):
        counted = answer[answer != IGNORED]
        assert counted[-1] == 0 and not (counted[:-1] == 0).any()
        assert not (row == 0).any() and row[0] != recipe.PAD
    fed = {texts.tokenizer.decode(row[row != recipe.PAD]) for row in rows}
    for name, asked in recipe.held_out(told):
        assert asked and not fed & {p.prompt for p in asked}, name


def test_a_recipe_that_begins_with_another_model_says_so(toys, monkeypatch, tmp_path):
    monkeypatch.setattr(loop, "MODELS", tmp_path)
    with pytest.raises(ValueError, match="train llama-tiny first"):
        loop.trained("llama-tiny")


def test_reward_heads_load_on_their_target_only_and_score_every_token(toys, tmp_path):
    folder = toys("llama-tiny-reward")
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert kind(json.loads((folder / "config.json").read_text("utf-8"))) == "reward"
    assert facts["answers"] > 0 and "nats per question" in (folder / "loss.svg").read_text("utf-8")
    assert facts["check_losses"] == pytest.approx(check.check_losses(folder))
    target = load(str(toys("llama-tiny")))
    head = load_heads(str(folder), target)["reward"]
    assert sum(p.numel() for p in head.parameters()) == facts["parameters"]
    hidden, log_p = read_answers(take_taps(target.model, torch.tensor([[5, 6, 7]])), torch.tensor([0]), 2)
    scores = head.scores(hidden[0], log_p[0])
    assert scores.keys() == {"steps", "prefix", "outcome"}
    assert all(s.shape == (3,) and ((s > 0) & (s < 1)).all() for s in scores.values())
    with pytest.raises(ValueError, match="trained on other weights"):
        load_heads(str(folder), load(str(toys("llama-tiny-draft"))))


@pytest.mark.parametrize("name", SCORERS)
def test_a_head_that_scores_tokens_loads_on_the_model_that_it_reads(name, toys):
    folder, reads = toys(name), toys(SCORERS[name])
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert kind(json.loads((folder / "config.json").read_text("utf-8"))) == name.removeprefix("llama-tiny-")
    picture, unit = "loss.svg", "nats per "
    if name == "llama-tiny-leank":  # how far states are apart
        picture, unit = "loss-distance.svg", "loss of distance"
    assert unit in (folder / picture).read_text("utf-8")
    assert facts["check_losses"] == pytest.approx(check.check_losses(folder))
    target = load(str(reads))
    (head,) = load_heads(str(folder), target).values()
    assert sum(p.numel() for p in head.parameters()) == facts["parameters"]
    scores = head.along(take_taps(target.model, torch.tensor([[5, 6, 7]]), head.reads))
    assert scores.shape in ((1, 3), (1, 2)) and scores.isfinite().all()
    if head.kind != "adaeagle":  # what it says is a length in tokens, which is rounded and cut off at 0
        assert ((scores >= 0) & (scores <= 1)).all()


def test_acceptance_is_learned_from_tokens_that_the_draft_drew(toys):
    """Where nothing is asked stands the text's own token; elsewhere the truth is min(1, p/q)."""
    recipe = importlib.import_module("explorer.training.recipes.llama_tiny_acceptance")
    target, draft = (loop.trained(name) for name in ("llama-tiny", "llama-tiny-draft-distilled"))
    texts = torch.randint(2, 300, (3, 20), generator=torch.Generator().manual_seed(0))
    rows, truth = recipe.labelled(target, draft, texts)
    asked = truth >= 0
    assert (
        not asked[:, 0].any() and 0.6 < asked.float().mean() < 1 and torch.equal(rows[~asked], texts[~asked])
    )
    p, q = (model(texts).logits[:, :-1].softmax(-1) for model in (target, draft))
    drawn = rows[:, 1:, None]
    ratio = (p.gather(-1, drawn) / q.gather(-1, drawn))[..., 0].clamp(max=1.0)
    torch.testing.assert_close(truth[:, 1:][asked[:, 1:]], ratio[asked[:, 1:]])


def test_the_fate_of_a_window_is_how_many_of_its_guesses_stand_in_greedy_text():
    """Row n tells of the four guesses after token n + 1; near the end there is no whole window."""
    recipe = importlib.import_module("explorer.training.recipes.llama_tiny_outlook")
    guessed = torch.ones(1, recipe.PROMPT + 9, dtype=torch.bool)
    guessed[0, recipe.PROMPT + 4] = False
    at = recipe.PROMPT - 1
    truth = recipe.fates(guessed)[0]
    assert truth[at : at + 6].tolist() == [recipe.ALL, *[recipe.SOME] * 3, recipe.NONE, recipe.UNASKED]
    assert set(truth[:at].tolist()) == {recipe.UNASKED}


def test_the_judge_learns_where_an_answer_goes_wrong():
    """A wrong digit is wrong; what follows is not asked about, and a right answer is right whole."""
    recipe = importlib.import_module("explorer.training.recipes.llama_tiny_judge")
    problem = Problem("sum", "12+30=", "42")
    assert recipe.truths(problem, ["4", "2", ""]) == [1, 1, 1]
    assert recipe.truths(problem, ["4", "3", "1", ""]) == [1, 0, recipe.UNASKED, recipe.UNASKED]
    assert recipe.truths(problem, ["4", ""]) == [1, 0]


def test_all_models_are_measured_and_told_of_by_one_command(toys, toy_corpus, capsys, monkeypatch):
    """Every card names its recipe and has what was measured; the scores never choose a right answer where
    none of the samples is right.
    """
    folders = {name: toys(name) for name in sorted(TOYS)}
    measure = importlib.import_module("explorer.training.evaluation.measure")
    few = ("copy", "sum", "chain")
    small = {
        "measure_tasks": dict(NAMES=few, PROBLEMS=2, SAMPLES=2),
        "measure_seq2seq": dict(LONGEST=8),
        "measure_acceptance": dict(TASKS=few, STORIES=2, PROBLEMS=1, NEW_TOKENS=4),
        "measure_drafts": dict(NEW_TOKENS=8),
        "measure_diffusion": dict(PROBLEMS=1, INDEPENDENT=("copy",), DEPENDENT=("sum",), TOKENS_A_STEP=(8,)),
        "measure_reward": dict(SCORED=("sum", "chain"), PROBLEMS=2, SAMPLES=2),
        "measure_acceptance_head": dict(NEW_TOKENS=4, DRAFTED=3),
        "measure_outlook": dict(NEW_TOKENS=4, KINDS=("stories",)),
        "measure_ranker": dict(CUTS=20),
        "measure_causal_past": dict(TASKS=("copy", "json"), PROBLEMS=2, NEW_TOKENS=8),
        "measure_adaeagle": dict(ASKED=1, NEW_TOKENS=8),
        "measure_deer": dict(STORIES=1, PROBLEMS=0, NEW_TOKENS=4),
        "measure_filter": dict(TASKS=("copy",), PROBLEMS=1, STORIES=0, NEW_TOKENS=4),
        "measure_aligned": dict(PROMPTS=2, NEW_TOKENS=2),
        "measure_autodeco": dict(
            ROWS=1,
            SAMPLED=1,
            ASKED=("sum",),
            PROBLEMS=2,
            NEW_TOKENS=4,
            TEMPERATURES=(1.0,),
            TOP_PS=(0.5, 1.0),
        ),
        "measure_flaws": dict(PROGRAMS=2, TOKENS=6),
        "measure_verilog": dict(MODULES=2, TOKENS=6),
        "measure_forms": dict(FILLED={"list_program": 2, "story": 1}, STORIES=2, TOKENS=4),
        "measure_streams": dict(RECORDS=2, NEW_TOKENS=8),
        "measure_summaries": dict(SHEETS=3, STEERED=2),
        "measure_flow": dict(PROBLEMS=2, WAYS={"1 step": {"num_steps": 1}}),
        "measure_leank": dict(HELD_ROWS=1, SEEDS=1),
        "measure_lens": dict(HELD_ROWS=2),
        "measure_judge": dict(ASKED=("sum",), PROBLEMS=2, NEW_TOKENS=4),
    }
    monkeypatch.setattr(answers, "NEW_TOKENS", 4)
    for name, constants in small.items():
        module = importlib.import_module(f"explorer.training.evaluation.{name}")
        for constant, value in constants.items():
            monkeypatch.setattr(module, constant, value)
    measure.main(Namespace(names=[], corpus=toy_corpus))

    cards = {name: (folder / "README.md").read_text("utf-8") for name, folder in folders.items()}
    solved = {name: json.loads((folders[name] / "accuracies.json").read_text("utf-8")) for name in MEASURED}
    assert all(f"| {task} |" in cards[name] for name in MEASURED for task in solved[name])
    assert solved["llama-tiny"]["sum"].keys() == {"greedy", "sampled", "best", "majority"}
    assert solved["llama-tiny"]["copy"].keys() == {"greedy"}
    assert all(row["chosen"] <= row["best"] for row in solved["llama-tiny-reward"].values())
    assert {"copy", "correct (stories)"} <= solved["llama-tiny-seq2seq"].keys()
    for name, card in cards.items():
        file = shipped.recipe_file(name).relative_to(shipped.TRAINING).as_posix()
        assert f"`explorer/training/{file}`" in card and "(loss" in card, name
    tempered = json.loads((folders["llama-tiny-autodeco"] / "temperatures.json").read_text("utf-8"))
    assert all(row["best single T"] <= row["T 1"] for row in tempered["losses"].values())
    assert "## What the heads predict" in cards["llama-tiny-autodeco"]
    assert "T5 architecture" in cards["llama-tiny-seq2seq"] and "Mixtral" in cards["llama-tiny-moe"]
    assert "### exit 1" in cards["llama-tiny"] and "### medusa" in cards["llama-tiny-heads"]
    drafts = [f"## Acceptance of `{draft}`" for draft in ("llama-tiny-draft", "llama-tiny-draft-distilled")]
    assert all(told in cards["llama-tiny"] for told in drafts) and "## A sample" in cards["llama-tiny"]
    assert (
        0
        <= json.loads((folders["llama-tiny-draft"] / "facts.json").read_text("utf-8"))["greedy_acceptance"]
        <= 1
    )
    assert "area under the ROC curve" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no shipped model 'llama-huge'; choose one of: llama-tiny, "):
        measure.main(Namespace(names=["llama-huge"], corpus=toy_corpus))


def test_the_adapter_computes_what_was_trained(toys):
    """Merged from its files it has the losses of its facts; the base's weights are not shipped again."""
    folder = toys("llama-tiny-forms")
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert not (folder / "model.safetensors").exists() and not (folder / "tokenizer.json").exists()
    model = load(str(folder), "cpu", "float32")
    assert facts["check_losses"] == pytest.approx(check.text_losses(model.model, model.tokenizer), abs=1e-4)
    assert sum(p.numel() for p in model.model.parameters()) == facts["parameters"]
    fresh = low_rank.adapted(loop.trained("llama-tiny"), ["<e>", "</e>"], 4)
    plain = loop.trained("llama-tiny")
    row = torch.tensor([[5, 6, 7]])
    torch.testing.assert_close(fresh(row).logits[..., :4096], plain(row).logits)  # it begins as its base
