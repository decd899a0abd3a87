"""Heads for one's own pair of models: trained by the command, named by --heads, refused where they misfit."""

import csv
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import app
from decoders.heads import Acceptance, Judge, Kangaroo, Outlook
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.model_heads import add_heads
from decoders.trace.events import Note
from explorer import cli, shipped
from explorer.runs.model_pool import Loader
from explorer.training import drafters, loop
from explorer.training.recipes import (
    llama_tiny_acceptance,
    llama_tiny_judge,
    llama_tiny_outlook,
    own_heads,
)
from tests.helpers import tiny_models

TOY = {
    own_heads: dict(ROW=48, WRITERS=32, KANGAROO=replace(own_heads.KANGAROO, batch=2)),
    llama_tiny_acceptance: dict(EPOCHS=4),
    llama_tiny_outlook: dict(TEXTS=48, WRITERS=48, WRITTEN=24),
    llama_tiny_judge: dict(PROBLEMS=96, CHUNK=32, HELD_OUT=2),
    drafters: dict(OWN_SHARE=0.05),
}
STEPS = {"acceptance": 4 * 48, "judge": 64, "outlook": 64, "kangaroo": 2 * 48}  # tokens of one
STRATEGIES = {"acceptance": "specdec_pp", "judge": "judge", "outlook": "specbranch", "kangaroo": "kangaroo"}
CLASSES = {"acceptance": Acceptance, "judge": Judge, "outlook": Outlook, "kangaroo": Kangaroo}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A target, a draft that agrees with it now and then, a stranger, and a file of texts."""
    folder = tmp_path_factory.mktemp("own")
    tiny_models.save(folder / "target")
    tiny_models.save(folder / "stranger", seed=5)
    draft = tiny_models.make()
    weight = draft.model.get_output_embeddings().weight
    weight.add_(0.15 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)))
    draft.model.save_pretrained(folder / "draft")
    draft.tokenizer.save_pretrained(folder / "draft")
    lines = [
        f"Mia had {n} red balls. Ball {n} rolled over the hill, and she ran after it." for n in range(60)
    ]
    (folder / "texts.txt").write_text("\n<|endoftext|>\n".join(lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def train(place):
    """train(head, ...): runs the command at toy scale, once for each head; the folder it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        for recipe, constants in TOY.items():
            for name, value in constants.items():
                patch.setattr(recipe, name, value)
        patch.setattr(loop, "device", lambda: "cpu")

        def trained(head: str):
            out = place / f"{head}-head"
            if not out.exists():
                given = ["--model", str(place / "target"), "--out", str(out), "--work", str(place / "work")]
                given += ["--draft", str(place / "draft")] if "draft" in shipped.OWN_HEADS[head] else []
                given += ["--texts", str(place / "texts.txt")] if "texts" in shipped.OWN_HEADS[head] else []
                cli.main(["train", head, *given, "--million-tokens", str(150 * STEPS[head] / 1e6)])
            return out

        yield trained


def pair(place, target: str = "target", draft: str = "draft") -> dict:
    names = {"target": target, "draft": draft}
    return {role: load(str(place / name), "cpu", "float32") for role, name in names.items()}


def head_of(models: dict, kind: str):
    return models["draft" if kind == "acceptance" else "target"].heads[kind]


@pytest.mark.parametrize("kind", shipped.OWN_HEADS)
def test_a_head_is_trained_on_ones_own_pair_and_decodes_there(kind, train, place):
    """The training loss falls, the lane uses the head and says which, and lossless text stays greedy's."""
    folder = train(kind)
    with (folder / "loss.csv").open(newline="", encoding="utf-8") as file:
        losses = [list(map(float, row.values()))[1] for row in csv.DictReader(file)]
    assert len(losses) == 2 and losses[-1] < losses[0]
    assert load_file(folder / "model.safetensors") and json.loads((folder / "facts.json").read_text("utf-8"))
    models = pair(place)
    add_heads(models, [str(folder)])
    assert isinstance(head_of(models, kind), CLASSES[kind])
    name, parameters = STRATEGIES[kind], {"temperature": 0.0}
    parameters |= {"kangaroo": {"adapter": "shipped"}, "judge": {"delta": 1.0}}.get(kind, {})
    prompt = models["target"].encode("Mia had 7 red")
    found = Lane(name, prompt, models, parameters, limits=Limits(24)).run()
    notes = [note.text for step in found.steps for note in step.of(Note)]
    assert any(f"has the heads '{folder}'" in note for note in notes)
    assert not any("comes with the project" in note for note in notes)
    plain = Lane("greedy", prompt, {"target": models["target"]}, limits=Limits(24)).run()
    assert found.text() == plain.text() and found.text()


def test_the_acceptance_head_ends_drafts(train, place):
    """What it says decides: the same lane with the head that believes everything drafts longer."""
    models = pair(place)
    add_heads(models, [str(train("acceptance"))])
    prompt = models["target"].encode("Mia had")
    lengths = []
    for believes in (False, True):
        if believes:
            models["draft"].heads["acceptance"].scores = lambda hidden: torch.tensor(1.0)
        found = Lane("specdec_pp", prompt, models, {"stop": 0.2}, limits=Limits(30)).run()
        lengths.append(max(found.costs.per_step_drafted))
    assert lengths[0] < lengths[1] == 20


@pytest.mark.parametrize(
    ("kind", "others", "words"),
    [
        ("acceptance", {"target": "stranger"}, "were trained for a pair with '.*target', whose weights"),
        ("acceptance", {"draft": "stranger"}, "were trained on other weights of '.*draft'"),
        ("outlook", {"draft": "stranger"}, "were trained for a pair with '.*draft', whose weights"),
        ("judge", {"target": "stranger"}, "were trained on other weights of '.*target'"),
        ("kangaroo", {"target": "stranger"}, "were trained on other weights of '.*target'"),
    ],
)
def test_a_head_of_other_models_is_refused(kind, others, words, train, place):
    with pytest.raises(ValueError, match=words) as refused:
        add_heads(pair(place, **others), [str(train(kind))])
    assert str(refused.value).count(". ") == 0


def test_models_by_another_name_are_the_same_models(train, place):
    """Checksums decide, not how a folder is called."""
    (place / "moved").symlink_to(place / "target")
    models = pair(place, target="moved")
    add_heads(models, [str(train("acceptance"))])
    assert models["draft"].heads["acceptance"].settings["against"] == models["target"].name


def test_a_head_without_its_pair_or_of_a_wrong_shape_is_refused(train, place, tmp_path):
    folder = train("acceptance")
    with pytest.raises(ValueError, match="need a draft model"):
        add_heads({"target": load(str(place / "target"), "cpu")}, [str(folder)])
    with pytest.raises(ValueError, match="no draft heads 'nowhere'"):
        add_heads(pair(place), ["nowhere"])
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["modules"]["acceptance"]["settings"]["shared"] = False
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="cannot be read"):
        add_heads(pair(place), [str(tmp_path)])


def test_the_command_and_the_app_take_heads(train, place, capsys):
    heads = str(train("acceptance"))
    given = ["--strategy", "specdec_pp", "--prompt", "Mia", "--max-new-tokens", "8", "--device", "cpu"]
    models = ["--model", str(place / "target"), "--draft", str(place / "draft")]
    cli.main(["run", *given, *models, "--heads", heads, "--json"])
    assert json.loads(capsys.readouterr().out)
    loader = Loader(str(place / "target"), str(place / "draft"), "cpu", heads=[heads])
    loader.load()
    assert loader.state == "ready" and isinstance(loader.models["draft"].heads["acceptance"], Acceptance)
    loader = Loader(str(place / "stranger"), str(place / "draft"), "cpu", heads=[heads])
    loader.load()
    assert loader.state == "failed" and "choose that pair" in loader.sentence


def test_the_app_passes_heads_on(monkeypatch):
    monkeypatch.setattr("explorer.page.layout.build", lambda *parts: (None, {}))
    _, _, loader = app.make(app.arguments(["--draft", "none", "--heads", "one", "--heads", "two"]))
    assert loader.heads == ["one", "two"]


def test_training_goes_on_where_it_was_cut_off(train, place, monkeypatch):
    """A second training with the same models and texts finds its checkpoint, its own text and the same
    weights.
    """
    first = load_file(train("acceptance") / "model.safetensors")
    steps = []
    monkeypatch.setattr(Acceptance, "loss", lambda *given: steps.append(given))
    out = place / "again"
    given = ["--model", str(place / "target"), "--draft", str(place / "draft"), "--out", str(out)]
    given += ["--texts", str(place / "texts.txt"), "--work", str(place / "work")]
    cli.main(["train", "acceptance", *given, "--million-tokens", str(150 * STEPS["acceptance"] / 1e6)])
    again = load_file(out / "model.safetensors")
    assert not steps and all(torch.equal(first[key], again[key]) for key in first)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["acceptance"], "name its target with --model"),
        (["acceptance", "--model", "{t}"], "name its draft model with --draft"),
        (["acceptance", "--model", "{t}", "--draft", "{d}"], "name its texts with --texts"),
        (["kangaroo", "--model", "{t}", "--texts", "{t}"], "name its folder with --out"),
        (["judge", "--model", "{t}", "--draft", "no-such", "--out", "{o}"], "There is no model 'no-such'"),
        (["kangaroo", "--model", "{t}", "--texts", "{t}", "--out", "{o}"], "There are no texts at"),
        (
            ["kangaroo", "--model", "{t}", "--texts", "{short}", "--out", "{o}", "--draft", "no-such"],
            "The head kangaroo is trained without a draft model; leave --draft no-such out.",
        ),
        (
            ["llama-tiny-draft", "--corpus", "{t}", "--draft", "no-such"],
            "The recipe llama-tiny-draft trains a shipped model; leave --draft no-such out.",
        ),
        (
            ["kangaroo", "--model", "{t}", "--texts", "{short}", "--out", "{o}"],
            "are needed; name more of them",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_line(given, words, place, capsys):
    (place / "short.txt").write_text("Too little.", "utf-8")
    names = {"t": place / "target", "d": place / "draft", "o": place / "out", "short": place / "short.txt"}
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", *(one.format(**names) for one in given), "--work", str(place / "work")])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and words in said and said.count("\n") == 1
