"""The command line: promised forms, and one line with exit status 2 for every mistake of a user."""

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from decoders import registry
from decoders.engine.kv_cache import pool_bytes
from decoders.lenses.registry import lenses
from decoders.limits import MEMORY_VARIABLE
from decoders.memory_options import memories
from decoders.models import catalog
from decoders.trace import trace
from decoding_explorer import __main__ as installed
from explorer import cli, shipped
from explorer.catalog import papers
from explorer.cli_options import parser
from explorer.experiments import experiments
from explorer.export import run_file

ROOT = Path(__file__).resolve().parents[2]


def call(capsys, *arguments: str) -> str:
    cli.main(list(arguments))
    return capsys.readouterr().out


def refused(capsys, *arguments: str) -> str:
    """The line that a mistake is answered with."""
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    assert stop.value.code == 2 and captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_strategies_are_listed_with_the_promised_fields(capsys):
    listed = json.loads(call(capsys, "strategies", "--json"))
    assert [d["name"] for d in listed] == list(registry.strategies())
    told = call(capsys, "strategies")
    for declared in listed:
        assert {"name", "title", "family", "papers", "needs", "parameters", "views"} <= set(declared)
        assert declared["name"] in told
    lines = [line for line in told.splitlines() if line.startswith("  ")]
    assert len(lines) == sum(1 + len(declared["parameters"]) for declared in listed)


def test_papers_knows_all_and_says_how_far_each_is_here(capsys):
    rows = json.loads(call(capsys, "papers", "--json"))
    with (ROOT / "assets" / "papers.csv").open(newline="", encoding="utf-8") as file:
        slugs = [row["slug"] for row in csv.DictReader(file)]
    assert len(rows) == len(slugs) == 193 and [r["slug"] for r in rows] == slugs
    kinds = registry.strategies(), experiments(), lenses(), memories()
    claimed = {slug for kind in kinds for one in kind.values() for slug in one.papers}
    claimed |= {slug for one in papers.claims() if one.kind == "model" for slug in one.papers}
    assert claimed <= set(slugs)
    assert {r["slug"] for r in rows if r["status"] == "works"} == claimed
    cards = {row["slug"]: row for row in papers.table("far_papers")}
    assert claimed | cards.keys() == set(slugs)
    for row in (r for r in rows if r["slug"] not in claimed):
        kind = "miniature" if cards[row["slug"]]["miniature"] else "card"
        assert row["status"] == kind and row["how"] == [], row["slug"]
    assert papers.published_claims() == papers.claims(), "run: python -m explorer.catalog.publish_claims"
    told = call(capsys, "papers")
    assert papers.summary(rows) in told
    assert {row["slug"]: row["lacks"] for row in rows if row["lacks"]} == papers.WITHOUT
    assert "(model tiny-retro; Retro without instruction tuning)" in told


def test_models_says_what_a_model_will_take(capsys):
    told = call(capsys, "models", "llama-tiny-draft", "--dtype", "bfloat16", "--device", "cpu")
    assert told.startswith("llama-tiny-draft: 926,336 parameters × 2 bytes (bfloat16)")
    (part,) = json.loads(call(capsys, "models", "llama-tiny-draft", "--json"))
    assert part["parameters"] == 926_336 and part["missing"] == []
    assert "There is no model './none'" in refused(capsys, "models", "./none")


def test_models_lists_what_is_shipped_with_its_facts(capsys):
    listed = json.loads(call(capsys, "models", "--json"))
    text = call(capsys, "models")
    assert set(catalog.shipped()) <= {m["name"] for m in listed}
    for model in listed:
        folder = ROOT / "assets" / "models" / model["name"]
        own = model.get("trained_parameters", model["parameters"])  # an adapter has its base's beside it
        headers = [path.read_bytes()[:100_000] for path in folder.glob("*.safetensors")]
        each = 1 if any(b'"I8"' in header for header in headers) else 2  # bytes per number
        if not (folder / "change.json").is_file():  # weights that are the base's are not stored again
            assert own * each < model["bytes"]
        assert model["bytes"] == sum(f.stat().st_size for f in folder.iterdir())
        assert {"kind", "million_tokens", "held_out_loss", "greedy_acceptance"} <= set(model)
        assert model["about"] and f"{model['name']}: {model['kind']}" in text and model["about"] in text


def test_train_runs_the_recipe_of_that_name(capsys, monkeypatch, tmp_path):
    """With both ways to write a name; the recipe gets the folders and the budget."""
    (tmp_path / "stories").mkdir()
    recipe = importlib.import_module("explorer.training.recipe")
    got = []
    monkeypatch.setattr(recipe, "run", lambda name, options: got.append((name, options)))
    for name in ("llama-tiny-draft", "llama_tiny_draft"):
        call(capsys, "train", name, "--corpus", str(tmp_path), "--million-tokens", "0.5")
    told = [(name, o.corpus, o.work, o.million_tokens) for name, o in got]
    assert told == [("llama-tiny-draft", tmp_path, Path("training"), 0.5)] * 2


def test_run_gives_all_sequences_that_were_asked_for(capsys, tmp_path):
    asked = ["--strategy", "beam", "--set", "num_beams=3", "--set", "num_return_sequences=3"]
    arguments = [*asked, "--prompt", "Once upon a time", "--max-new-tokens", "6"]
    printed = json.loads(call(capsys, "run", "--json", *arguments))
    texts = [one["text"] for one in printed["sequences"]]
    scores = [one["score"] for one in printed["sequences"]]
    assert len(set(texts)) == 3 and texts[0] == printed["text"]
    assert scores == sorted(scores, reverse=True) and scores[0] < 0
    assert printed["sequences"][0]["output_tokens"] == printed["output_tokens"]
    said = call(capsys, "run", *arguments)
    assert all(
        f"{place}. ({score:.4f}) Once upon a time{text}" in said
        for place, (score, text) in enumerate(zip(scores, texts, strict=True), 1)
    )
    alone = json.loads(call(capsys, "run", "--strategy", "greedy", "--json", *arguments[-4:]))
    assert [one["text"] for one in alone["sequences"]] == [alone["text"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch", "--corpus", "."], f"choose one of: {', '.join(shipped.recipes())}."),
        (["llama-tiny"], "--corpus"),
        (["llama-tiny", "--corpus", "./nosuch"], "no folder 'stories'"),
        (["llama-tiny", "--corpus", "{empty}"], "lacks stories/tinystories_sample.txt"),
        (["llama-tiny", "--corpus", "{empty}", "--million-tokens", "0"], "above 0"),
        (["llama-tiny", "--corpus", "{empty}", "--million-tokens", "nan"], "above 0"),
    ],
)
def test_mistakes_in_training_get_one_line_and_status_2(capsys, tmp_path, arguments, words):
    (tmp_path / "stories").mkdir()
    given = [str(tmp_path) if argument == "{empty}" else argument for argument in arguments]
    assert words in refused(capsys, "train", *given, "--work", str(tmp_path / "work"))


def test_run_prints_the_promised_object(capsys, tmp_path):
    out = tmp_path / "trace.json"
    printed = json.loads(
        call(
            capsys,
            "run",
            "--strategy",
            "greedy",
            "--prompt",
            "Once upon a time",
            "--max-new-tokens",
            "5",
            "--json",
            "--out",
            str(out),
        )
    )
    assert {"strategy", "parameters", "prompt_tokens", "output_tokens", "text", "totals"} <= set(printed)
    assert len(printed["output_tokens"]) == 5
    wanted = (
        "steps",
        "target_forwards",
        "draft_forwards",
        "target_tokens",
        "draft_tokens",
        "proposed",
        "accepted",
        "seconds",
        "tokens_per_second",
    )
    assert set(wanted) <= set(printed["totals"])
    assert trace.load(out).output() == printed["output_tokens"]


def test_run_takes_a_folder_a_prompt_file_and_settings(capsys, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("The fox and the crow 🦊", "utf-8")
    folder = str(ROOT / "assets" / "models" / "llama-tiny")
    arguments = ["--model", folder, "--prompt-file", str(prompt), "--max-new-tokens", "4"]
    text = call(capsys, "run", "--strategy", "beam", "--set", "num_beams=2", *arguments)
    assert text.startswith("The fox and the crow 🦊") and "target forwards" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strategy", "nosuch", "--prompt", "a"], "choose one of"),
        (["--strategy", "beam", "--prompt", "a", "--set", "num_beams=0"], "from 1 to"),
        (["--strategy", "beam", "--prompt", "a", "--set", "num_beams=many"], "whole number"),
        (["--strategy", "beam", "--prompt", "a", "--set", "beams=2"], "no parameter"),
        (["--strategy", "beam", "--prompt", "a", "--set", "num_beams"], "KEY=VALUE"),
        (["--strategy", "greedy", "--prompt", ""], "empty"),
        (["--strategy", "greedy"], "--prompt"),
        (["--strategy", "greedy", "--prompt", "a", "--max-new-tokens", "0"], "at least 1"),
        (["--strategy", "greedy", "--prompt", "a", "--max-new-tokens", "x"], "invalid int"),
        (["--strategy", "greedy", "--prompt", "a" * 20000], "shorten the prompt"),
        (["--strategy", "greedy", "--prompt", "a", "--model", "nosuch"], "Hub id"),
        (["--strategy", "greedy", "--prompt", "a", "--model", "./nosuch/folder"], "no model"),
        (["--strategy", "greedy", "--prompt-file", "nosuch.txt"], "nosuch.txt"),
        (["--strategy", "speculative", "--prompt", "a", "--model", "other/model"], "The Hub did not give"),
        (["--strategy", "greedy", "--prompt", "a", "--device", "cuda"], "CUDA"),
    ],
)
def test_mistakes_get_one_line_and_status_2(capsys, monkeypatch, arguments, words):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    import torch

    if "cuda" in arguments and torch.cuda.is_available():
        return
    assert words in refused(capsys, "run", *arguments)


def test_a_folder_without_weights_is_refused(capsys, tmp_path):
    assert "config.json" in refused(
        capsys, "run", "--strategy", "greedy", "--prompt", "a", "--model", str(tmp_path)
    )
    (tmp_path / "config.json").write_text("{}", "utf-8")
    assert "safetensors" in refused(
        capsys, "run", "--strategy", "greedy", "--prompt", "a", "--model", str(tmp_path)
    )


def test_a_draft_with_another_tokenizer_is_refused(capsys, tmp_path, tiny_model):
    other = tiny_model("llama")
    other.model.save_pretrained(tmp_path)
    other.tokenizer.save_pretrained(tmp_path)
    line = refused(capsys, "run", "--strategy", "speculative", "--prompt", "a", "--draft", str(tmp_path))
    assert "another tokenizer" in line


def test_json_output_is_one_object_even_in_a_fresh_process():
    """Progress bars and warnings go elsewhere."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "explorer",
            "run",
            "--strategy",
            "greedy",
            "--prompt",
            "Hi",
            "--max-new-tokens",
            "2",
            "--json",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(done.stdout)["output_tokens"]) <= 2
    assert "Traceback" not in done.stderr


def test_compare_writes_a_page_that_holds_every_lane(capsys, tmp_path):
    out = tmp_path / "page.html"
    printed = json.loads(
        call(
            capsys,
            "compare",
            "--prompt",
            "Once upon a time",
            "--strategy",
            "beam",
            "--set",
            "num_beams=2",
            "--strategy",
            "greedy",
            "--max-new-tokens",
            "4",
            "--seed",
            "3",
            "--out",
            str(out),
            "--json",
        )
    )
    assert [lane["strategy"] for lane in printed["lanes"]] == ["beam", "greedy"]
    assert printed["lanes"][0]["parameters"]["num_beams"] == 2
    assert all(lane["totals"]["new_tokens"] == 4 for lane in printed["lanes"])
    setup, traces = run_file.unpack(out.read_bytes())
    assert setup["prompt"] == "Once upon a time" and setup["max_new_tokens"] == 4
    assert [t.output() for t in traces] == [lane["output_tokens"] for lane in printed["lanes"]]
    assert [lane["seed"] for lane in setup["lanes"]] == [3, 3]


def test_compare_prints_each_lane_and_saves_data_by_the_name(capsys, tmp_path):
    out = tmp_path / "run.json"
    prompt = ["--prompt", "Hi", "--max-new-tokens", "2", "--out", str(out)]
    text = call(capsys, "compare", "--strategy", "greedy", "--strategy", "sample", *prompt)
    assert "1. Greedy" in text and "2. Sampling" in text and text.count("target forwards") == 2
    assert "Lanes 1 and 2" in text.split("max_new_tokens = 2.")[-1]
    assert len(run_file.unpack(out.read_bytes())[1]) == 2
    call(
        capsys, "run", "--set", "num_beams=2", "--strategy", "beam", *prompt[:-1], str(tmp_path / "one.html")
    )
    _, (one,) = run_file.unpack((tmp_path / "one.html").read_bytes())
    assert one.parameters["num_beams"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prompt", "a"], "--strategy"),
        (["--prompt", "a", "--strategy", "nosuch"], "choose one of"),
        (
            ["--prompt", "a", "--strategy", "beam", "--strategy", "greedy", "--set", "num_beams=2"],
            "greedy has",
        ),
        (["--prompt", "a", *["--strategy", "greedy"] * 5], "at most 4"),
        (["--prompt", "", "--strategy", "greedy"], "empty"),
        (["--prompt", "a", "--strategy", "greedy", "--out", "nosuch/folder/page.html"], "nosuch/folder"),
    ],
)
def test_mistakes_in_a_comparison_get_one_line_and_status_2(capsys, arguments, words):
    assert words in refused(capsys, "compare", *arguments)


def test_run_writes_a_graph(capsys, tmp_path):
    out = tmp_path / "tokens.graphml"
    asked = ("run", "--strategy", "beam", "--prompt", "Once", "--max-new-tokens", "4", "--graph", "tokens")
    call(capsys, *asked, "--out", str(out))
    assert out.read_text("utf-8").count("<node ") > 8
    assert "name it with --out" in refused(capsys, *asked)
    assert "saved as .graphml" in refused(capsys, *asked, "--out", str(tmp_path / "a.png"))


def test_run_writes_a_figure(capsys, tmp_path):
    out = tmp_path / "beams.html"
    asked = ("run", "--strategy", "beam", "--prompt", "Once", "--max-new-tokens", "4", "--figure", "entropy")
    call(capsys, *asked, "--out", str(out))
    assert "Entropy" in out.read_text("utf-8")
    assert "name it with --out" in refused(capsys, *asked)
    assert "saved as .html" in refused(capsys, *asked, "--out", str(tmp_path / "a.txt"))


def test_run_writes_a_figure_for_print_with_its_caption(capsys, tmp_path):
    out = tmp_path / "beams.svg"
    decode = ("run", "--strategy", "beam", "--prompt", "Once", "--max-new-tokens", "4", "--width-mm")
    call(capsys, *decode, "84", "--figure", "beam_tree", "--out", str(out))
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in out.read_text("utf-8")
    assert 'width="84mm"' in out.read_text("utf-8")
    assert out.with_suffix(".txt").read_text("utf-8").startswith("Beam tree of Beam search.")
    assert "name its view" in refused(capsys, *decode, "84", "--out", str(out))
    assert "60 to 1,000 mm" in refused(capsys, *decode, "8", "--figure", "beam_tree", "--out", str(out))


def test_run_takes_one_strategy(capsys):
    assert "use compare" in refused(
        capsys, "run", "--prompt", "a", "--strategy", "greedy", "--strategy", "beam"
    )


def test_run_stops_where_a_condition_holds(capsys):
    run = ("run", "--strategy", "greedy", "--prompt", "Once", "--max-new-tokens", "8")
    told = call(capsys, *run, "--stop-when", "token = upon", "--stop-when", "entropy > 99")
    assert told.endswith("Stopped after step 1: token “␣upon”, at token 1.\n") and told.startswith(
        "Once upon\n"
    )
    assert "it can when: entropy > 4" in refused(capsys, *run, "--stop-when", "boredom")
    assert "several lanes" in refused(capsys, *run, "--stop-when", "lanes differ")


def test_run_writes_the_drafted_tokens_as_csv(capsys, tmp_path):
    out = tmp_path / "drafted.csv"
    run = ("run", "--strategy", "speculative", "--prompt", "Once", "--max-new-tokens", "8")
    assert call(capsys, *run, "--drafted-tokens", "--out", str(out))
    header, *rows = out.read_text("utf-8").splitlines()
    assert header.startswith("step,round,node,position,context,token") and len(rows) > 4


def test_the_memory_of_the_kv_pool_reaches_every_engine(monkeypatch, capsys):
    monkeypatch.setenv(MEMORY_VARIABLE, "")  # so that it is taken back
    given = ["run", "--prompt", "a", "--strategy", "greedy", "--kv-memory"]
    parser().parse_args([*given, "0.5"])
    assert pool_bytes("cpu") == 500_000_000
    with pytest.raises(SystemExit):
        parser().parse_args([*given, "-1"])
    assert "--kv-memory must be a number of gigabytes, such as 8, not -1." in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["site"], ["run", "--strategy", "greedy", "--prompt", ""]])
def test_a_mistake_is_answered_with_the_command_that_was_typed(arguments, capsys):
    with pytest.raises(SystemExit):
        installed.main(arguments)
    assert capsys.readouterr().err.startswith(f"decoding-explorer {arguments[0]}: ")
