"""The watermark is transformers' own, and so is what a reader with the key finds."""

import pytest
import torch
from transformers import WatermarkDetector, WatermarkingConfig

from decoders.lane import Lane, Limits
from decoders.logits.watermark import GREEN
from decoders.trace.events import Note
from decoders.trace.scores import Measure, ScoreName
from tests.helpers import tiny_models

PROMPT = [40, 41, 42, 40]
ASKED = [
    {"watermark_bias": 2.5},
    {"watermark_bias": 1.5, "watermark_ratio": 0.5, "watermark_key": 77},
    {"watermark_bias": 2.0, "watermark_scheme": "selfhash", "watermark_context": 2},
]


def config(asked: dict) -> WatermarkingConfig:
    """The same in transformers' words."""
    return WatermarkingConfig(
        bias=asked["watermark_bias"],
        greenlist_ratio=asked.get("watermark_ratio", 0.25),
        hashing_key=asked.get("watermark_key", 15485863),
        seeding_scheme=asked.get("watermark_scheme", "lefthash"),
        context_width=asked.get("watermark_context", 1),
    )


@pytest.mark.parametrize("asked", ASKED, ids=range(3))
@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample"])
def test_text_and_score_are_those_of_transformers(strategy, asked):
    model = tiny_models.make("llama", seed=3)
    model.model.config.bos_token_id = 258  # or the detector leaves a first token out
    more = {"sample": {"temperature": 0.0}, "beam": {"num_beams": 3}, "greedy": {}}[strategy]
    trace = Lane(strategy, PROMPT, {"target": model}, asked | more, limits=Limits(14)).run()
    ids = torch.tensor([PROMPT])
    made = model.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=14,
        watermarking_config=config(asked),
        num_beams=more.get("num_beams", 1),
    )
    assert trace.output() == tiny_models.cut(made[0, 4:].tolist(), model)
    plain = Lane(strategy, PROMPT, {"target": model}, more, limits=Limits(14)).run()
    assert plain.output() != trace.output()
    scores = [s for step in trace.steps for s in step.of(Measure) if s.name == ScoreName.WATERMARK]
    selfhash = asked.get("watermark_scheme") == "selfhash"
    before = PROMPT[-asked.get("watermark_context", 1) + selfhash :]
    read = torch.tensor([before + trace.output()])
    found = WatermarkDetector(model.model.config, "cpu", config(asked))(read, return_dict=True)
    assert len(scores) == int(found.num_tokens_scored[0]) == len(trace.output())
    assert sum(s.level == GREEN for s in scores) == int(found.num_green_tokens[0])
    assert scores[-1].total == pytest.approx(float(found.z_score[0]))
    assert f"z = {scores[-1].total:.2f}" in trace.steps[-1].of(Note)[-1].text


def test_the_text_shows_green_and_red_and_nothing_without_a_watermark():
    from visualizers.registry import build
    from visualizers.scene.layout import to_json
    from visualizers.scene.view import Header

    def spans(parameters):
        trace = Lane(
            "greedy", PROMPT, {"target": tiny_models.make("llama", seed=3)}, parameters, limits=Limits(10)
        ).run()
        text = build("text", Header(trace.prompt, trace.vocabulary, trace.shaping, trace.title))
        ops = [op for step in trace.steps for op in to_json(text.feed(step))]
        return [op["set"]["span"] for op in ops if op.get("set", {}).get("span")]

    assert spans({"watermark_bias": 2.5}) == ["green"] * 10
    assert set(spans({"watermark_bias": 0.01})) == {"green", "red"}  # too weak to change the text
    assert spans({}) == []
