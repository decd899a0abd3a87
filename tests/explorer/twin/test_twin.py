"""The command `twin`: engines and recordings as sides, the page, the table, and refusals."""

import copy
import csv
import io
import json
import math

import pytest
import torch

import decoding_explorer as dx
from decoders.engine.sequence_engine import SequenceEngine
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.refusal import Refusal
from decoders.trace.events import Commit, Distribution
from explorer.cli import main
from explorer.twin.recordings import recording
from explorer.twin.report_page import report_page
from explorer.twin.sides import EngineSide
from explorer.twin.words import as_json, summary, table, verdict_sentences
from tests.helpers import tiny_models
from visualizers.figures import caption
from visualizers.figures.twin import scored_twice

TEXT = "a cat sat on the mat, and a dog saw it."


@pytest.fixture(scope="module")
def model():
    return tiny_models.make()


@pytest.fixture(scope="module")
def trace(model):
    return dx.decode("sample", "a cat", model, max_new_tokens=12, seed=3)


def test_readings_are_those_of_the_model_itself(model):
    tokens = model.encode(TEXT)
    with torch.no_grad():
        rows = model.model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    for step in (1, 5, 64):
        scored = list(EngineSide("m", model, step).score(tokens, 3))
        assert len(scored) == len(tokens) - 3
        for at, (reading, whole) in enumerate(scored, 3):
            row = rows[at - 1]
            torch.testing.assert_close(whole, row, atol=1e-4, rtol=0)
            assert reading.logprob == pytest.approx(float(row[tokens[at]]), abs=1e-5)
            assert reading.rank == 1 + int((row > row[tokens[at]]).sum()) and reading.mass == pytest.approx(1)


def test_one_model_on_two_engines_differs_by_rounding_and_an_edit_by_more(model):
    slow = LoadedModel("slow", model.model, model.tokenizer)
    slow.__dict__["engine"] = SequenceEngine(model.model)
    same = dx.twin(TEXT, model, slow)
    assert set(same.counts) == {"rounding"} and max(one.kl for one in same.places) < 1e-9
    assert verdict_sentences(same)[0].startswith("The same computation up to rounding in float32")
    other = dx.twin(TEXT, model, tiny_models.make(seed=1))
    assert other.counts["other"] > len(other.places) / 2 and "Another computation" in summary(other)


def test_formats_differ_by_no_more_than_their_bounds():
    load_as = {name: load("llama-tiny", "cpu", name) for name in ("float32", "bfloat16", "float16")}
    text = "Once upon a time there was a little girl who liked to play in the park with her dog."
    for name in ("bfloat16", "float16"):
        found = dx.twin(text, load_as["float32"], load_as[name])
        assert found.precision == name and set(found.counts) <= {"rounding", "tie"}
        assert "up to rounding" in verdict_sentences(found)[0]


def test_a_recording_is_compared_from_its_first_token_on(model, trace):
    found = dx.twin(trace, model, trace)
    assert len(found.places) == len(trace.output()) and found.before == trace.text(trace.prompt)
    assert set(found.counts) == {"rounding"} and found.precision == "float32"
    with pytest.raises(Refusal, match="recorded for another text"):
        dx.twin(TEXT, model, trace)
    with pytest.raises(Refusal, match="give it as the text"):
        dx.twin(TEXT, trace, trace)


def test_a_recording_at_a_temperature_says_so(model, trace):
    cooled = copy.deepcopy(trace)
    for event in (event for step in cooled.steps for event in step.events):
        match event:
            case Commit():
                event.logprobs = [None] * len(event.nodes)
            case Distribution():
                whole = math.log(math.fsum(math.exp(one / 0.7) for _, one in event.top))
                event.top = [[token, one / 0.7 - whole] for token, one in event.top]
    assert "a temperature of 0.700 over A's" in verdict_sentences(dx.twin(trace, model, cooled))[0]


def test_page_table_and_picture_say_the_same(model):
    found = dx.twin("<b>a cat</b>", model, tiny_models.make(seed=1))
    page = report_page(found, "python -m explorer twin")
    assert "<b>a cat" not in page and page.count("class='chip verdict-") >= len(found.places)
    rows = list(csv.DictReader(io.StringIO(table(found))))
    assert [float(one["difference"]) for one in rows] == [one.difference for one in found.places]
    assert json.loads(json.dumps(as_json(found)))["counts"] == found.counts
    for look in ("light", "dark"):
        figure = scored_twice(found, look)
        assert caption(figure).startswith(f"{len(found.places)} tokens: {found.counts['other']} other")
        assert [trace.name for trace in figure.data[:2]] == ["A", "B"]


def test_the_command_writes_what_it_is_told(tmp_path, capsys):
    text, out = tmp_path / "text.txt", tmp_path / "twin.csv"
    text.write_text("Once upon a time", "utf-8")
    engines = ["--engine", "llama-tiny", "--engine", "llama-tiny,tokens_per_forward=1"]
    main(["twin", "--text", str(text), *engines, "--device", "cpu", "--out", str(out)])
    assert "B: llama-tiny,tokens_per_forward=1 (float32)" in capsys.readouterr().out
    assert out.read_text("utf-8").startswith("position,token,text,logprob_a")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "llama-tiny"], "give --engine twice, not 1 times"),
        (
            ["--engine", "llama-tiny,speed=2", "--engine", "llama-tiny"],
            "'speed=2' in 'llama-tiny,speed=2' is not an option",
        ),
        (["--engine", "llama-tiny,tokens_per_forward=0"] * 2, "a whole number from 1, not '0'"),
        (["--engine", "llama-tiny"] * 2 + ["--out", "twin.pdf"], "twin.pdf ends in none of them"),
    ],
)
def test_unusable_options_are_one_sentence(options, says, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("Once", "utf-8")
    with pytest.raises(SystemExit):
        main(["twin", "--text", str(text), *options])
    assert says in capsys.readouterr().err


def test_engines_with_other_tokens_or_too_short_a_text_are_refused(model):
    with pytest.raises(Refusal, match="both engines must have the same tokens"):
        dx.twin("Once upon", load("llama-tiny", "cpu"), model)
    with pytest.raises(Refusal, match="too few tokens"):
        dx.twin("a", model, model)
    with pytest.raises(Refusal, match="reads at most 256; shorten it"):
        dx.twin("a cat " * 200, model, model)


def rollout(model, tokens: list[int], first: int) -> dict:
    """A record as prime-rl exports it, with what the model says of the tokens from `first` on."""
    own = [one.logprob for one, _ in EngineSide("m", model).score(tokens, first)]
    nothing = [None] * first
    return {
        "token_ids": tokens,
        "loss_mask": [False] * first + [True] * len(own),
        "inference_logprobs": nothing + own,
        "trainer_logprobs": nothing + own,
    }


def test_rollouts_are_compared_by_their_token_ids(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = [rollout(model, model.encode(text), 4) for text in (TEXT, "the dog saw a cat")]
    records[1]["inference_logprobs"][-1] -= 0.5
    (tmp_path / "rollouts.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    same = dx.twin(recording("rollouts.jsonl"), model, "rollouts.jsonl")
    assert set(same.counts) == {"rounding"} and len(same.places) == len(records[0]["token_ids"]) - 4
    changed = dx.twin(recording("rollouts.jsonl", 2), model, "rollouts.jsonl,record=2")
    assert changed.counts["other"] == 1 and changed.places[-1].verdict == "other"
    with pytest.raises(Refusal, match=r"rollouts.jsonl has 2 records; choose one of them"):
        recording("rollouts.jsonl", 3)


def spelt(model, token: int) -> dict:
    """A token as llama-server names it."""
    return {"id": token, "token": "", "bytes": list(model.bytes_of(token))}


def test_a_servers_answer_is_found_in_the_models_vocabulary(model, tmp_path):
    tokens, first = model.encode(TEXT), 5
    places = []
    for reading, _ in EngineSide("m", model).score(tokens, first):
        own = tokens[first + len(places)]
        top = [spelt(model, token) | {"logprob": value} for token, value in reading.top[:5]]
        places.append(spelt(model, own) | {"logprob": reading.logprob, "top_logprobs": top})
    prompt = b"".join(map(model.bytes_of, tokens[:first])).decode()
    answer = {"completion_probabilities": places, "prompt": prompt, "content": TEXT[first:]}
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer), "utf-8")
    found = dx.twin(recording(str(file)), model, str(file))
    assert set(found.counts) == {"rounding"} and found.precision == "float32"
    file.write_text(json.dumps(answer | {"prompt": None}), "utf-8")
    with pytest.raises(Refusal, match="has no prompt"):
        dx.twin(recording(str(file)), model, str(file))
