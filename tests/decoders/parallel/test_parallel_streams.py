"""The Parallel Decoder Transformer: what streams see, who rolls back, and that closed gates leave the trunk
alone.
"""

import pytest
import torch

from decoders.heads.parts.taps import Target
from decoders.heads.scorers.streams import CLOSED, ParallelStreams, rolled_back, window
from decoders.lane import Lane, Limits
from decoders.parallel.stream_trunk import Row, StreamTrunk
from decoders.trace.events import Depend, Forward, Note, Propose, Verdict
from decoders.trace.scores import Measure, Score
from tests.helpers import tiny_models
from tests.laws.running import PROMPTS, without_ends

PROMPT = [40, 41, 42, 40, 41]


@pytest.fixture(scope="module")
def model():
    return without_ends(tiny_models.make())


@pytest.fixture(scope="module")
def trunk(model):
    """A trunk that has read the prompt."""
    trunk = StreamTrunk(model.model, model.heads["streams"])
    trunk.read_text(PROMPT)
    return trunk


def lane(model, new_tokens=24, **parameters) -> Lane:
    chosen = {"section_tokens": 12, **parameters}
    return Lane("pdt", PROMPT, {"target": model}, chosen, limits=Limits(new_tokens))


@pytest.fixture(scope="module")
def ran(model):
    """Runs with gamma 0, with one for which some streams are ready at first, and with 1."""
    runs = {
        "never": lane(model, gamma=0.0, horizon=8).run(),
        "always": lane(model, gamma=1.0, horizon=8).run(),
    }
    gamma = sorted(score.total for score in scores(runs["never"].steps[0]).values())[2]
    return runs | {"some": lane(model, gamma=gamma, horizon=8).run()}


def scores(step) -> dict[str, Score]:
    """Readiness in a step, by stream."""
    return {e.level: e for e in step.of(Measure) if e.name == "readiness"}


def snapshot(trunk) -> list[torch.Tensor]:
    return [trunk.streams.snapshot(torch.zeros(trunk.streams.sections, dtype=torch.long))[None]]


# ---- the dossier's examples


def test_three_streams_see_six_notes_and_the_snapshot_and_a_budget_keeps_the_latest():
    notes = [(0, -1), *((u, k) for u in (1, 2) for k in range(3))]
    assert window(notes, round_=3, delay=1, budget=32) == list(range(7))
    assert window(notes, round_=3, delay=1, budget=4) == [3, 4, 5, 6]
    assert window(notes, round_=3, delay=2, budget=32) == [0, 1, 2, 3]
    assert window(notes, round_=1, delay=1, budget=32) == [0]


def test_the_gate_rolls_back_only_who_is_not_ready():
    assert rolled_back([0.5, 0.2, 0.8], 0.3) == [1]
    assert rolled_back([0.5, 0.4, 0.8], 0.3) == []
    assert rolled_back([1e-9, 1.0], 0.0) == [] and rolled_back([1.0, 0.0], 1.0) == [0, 1]


# ---- the trunk


def test_the_trunk_gives_the_models_own_numbers(model, trunk):
    text = [*PROMPT, 7, 9]
    fresh = StreamTrunk(model.model, model.heads["streams"])
    logits = torch.cat([fresh.read_text(text[:3]), fresh.read_text(text[3:])])
    with torch.inference_mode():
        wanted = model.model(torch.tensor([text])).logits[0]
    assert torch.allclose(logits, wanted, atol=1e-4)
    rows = trunk.part([0, 1], PROMPT[-1])
    assert torch.allclose(trunk.advance(rows, snapshot(trunk) * 2, closed=True)[0], wanted[[4, 4]], atol=1e-4)


def test_gates_at_zero_leave_the_trunk_bitwise_as_it_is(model):
    modules = tiny_models.shaken(ParallelStreams(Target.of(model.model)))
    for side in modules.sides:
        side.note_gate.fill_(-torch.inf)
        side.adapter_gate.fill_(-torch.inf)
    shut = StreamTrunk(model.model, modules)
    shut.read_text(PROMPT)
    given, taken = (shut.part([0, 3], PROMPT[-1]) for _ in range(2))
    assert torch.equal(shut.advance(given, snapshot(shut) * 2)[0], shut.advance(taken, [], closed=True)[0])


def test_closed_gates_and_one_stream_are_plain_decoding(model):
    ends = tiny_models.make()
    for prompt in PROMPTS:
        chosen = {"closed": True, "streams": 1, "section_tokens": 5}
        found = Lane("pdt", prompt, {"target": ends}, chosen, limits=Limits(24)).run()
        assert found.badge == "lossless: equal to greedy"
        assert found.output() == tiny_models.generate(ends, prompt, max_new_tokens=24)
    assert lane(model, streams=1).run().badge == lane(model, closed=True).run().badge == "relaxed"


def test_new_modules_hardly_change_the_trunk(model):
    torch.manual_seed(0)
    modules = ParallelStreams(Target.of(model.model)).eval()
    assert all(
        gate == pytest.approx(torch.tensor(CLOSED).sigmoid()) for _, *g in modules.gates() for gate in g
    )


def test_streams_of_different_lengths_do_not_see_each_other(trunk):
    """Together, after a roll back too, each gets the numbers that it gets alone."""

    def run(sections: list[int], cut: int | None) -> list[torch.Tensor]:
        rows, logits = trunk.part(sections, PROMPT[-1]), []
        for step in range(4):
            for row in rows:
                row.pending = [PROMPT[-1], 3, 60 + row.section, 5][step]
            logits = trunk.advance(rows, snapshot(trunk) * len(rows))[0]
            if step == 2 and cut in sections:
                rows[sections.index(cut)].cut(1)
        return dict(zip(sections, logits, strict=True))

    together = run([0, 1, 4], cut=1)
    for section in (0, 1, 4):
        assert torch.allclose(together[section], run([section], cut=1)[section], atol=1e-5)


def test_the_adapters_tell_sections_apart_and_notes_are_read(trunk):
    rows, notes = trunk.part([0, 1], PROMPT[-1]), snapshot(trunk)
    logits, _, looked = trunk.advance(rows, notes * 2)
    assert not torch.allclose(logits[0], logits[1], atol=1e-2)
    assert looked[0] == pytest.approx([1.0])
    other = trunk.advance(trunk.part([0], PROMPT[-1]), [torch.cat([notes[0], -notes[0]])])[0]
    assert not torch.allclose(logits[0], other[0], atol=1e-2)


# ---- rounds


def test_gamma_zero_never_rolls_back(ran):
    assert not [v for s in ran["never"].steps for v in s.of(Verdict) if v.status == "rejected"]


def test_no_token_of_a_stream_counts_as_a_draft_of_the_target_s(ran):
    assert all(one.costs.proposed == one.costs.accepted == 0 for one in ran.values())


def test_gamma_one_rolls_back_until_the_horizon_and_then_commits_with_a_note(ran):
    found = ran["always"]
    forced = [note.text for s in found.steps for note in s.of(Note) if "the horizon" in note.text]
    first = [s for s in found.steps if scores(s)][:3]
    for stream in scores(first[0]):  # blocks of four: two fit into a horizon of eight
        status = [{v.node: v.status for v in s.of(Verdict)}.get(scores(s)[stream].node) for s in first]
        assert status[:2] == ["rejected", "rejected"] and status[2] != "rejected"
    assert len(forced) == sum(len(scores(s)) for s in found.steps) / 3
    assert found.output() == ran["never"].output()  # what nobody sees changes nothing


def test_who_is_rolled_back_writes_again_and_the_others_keep_their_block(ran):
    found, mixed = ran["some"], 0
    for step in found.steps:
        verdicts = {v.node: v.status for v in step.of(Verdict)}
        below = {stream: verdicts.get(score.node) == "rejected" for stream, score in scores(step).items()}
        assert all(
            score.total <= found.parameters["gamma"]
            for stream, score in scores(step).items()
            if below[stream]
        )
        mixed += len(set(below.values())) == 2
    assert mixed


def test_notes_are_seen_from_the_round_after_and_only_of_committed_blocks(ran):
    for found in ran.values():
        posted, plans = 1, 0
        for step in found.steps:
            plans = sum(e.name == "plan item" for e in step.of(Measure))
            posted = 1 if plans else posted
            assert {score.parts["notes"] for score in scores(step).values()} <= {float(posted)}
            edges = [e for e in step.of(Depend) if e.kind == "note"]
            for score in scores(step).values():
                own = [e.weight for e in edges if e.target == score.node]
                assert len(own) == posted and sum(own) == pytest.approx(1.0, abs=1e-4)
            rejected = {v.node for v in step.of(Verdict) if v.status == "rejected"}
            posted += sum(score.node not in rejected for score in scores(step).values())


def test_a_block_says_the_number_of_the_note_that_it_sends_and_the_graph_has_who_read_it(ran):
    """Numbers go up by one, a block that is taken back has none; a reader's weights sum to 1."""
    for found in ran.values():
        graph, posted = found.graph("notes"), 1
        for step in found.steps:
            posted = 1 if any(e.name == "plan item" for e in step.of(Measure)) else posted
            status = {v.node: v.status for v in step.of(Verdict)}
            for score in scores(step).values():
                back = status.get(score.node) == "rejected"
                assert score.parts.get("note") == (None if back else posted)
                assert graph.nodes[score.node].get("note") == (None if back else posted)
                posted += not back
                edges = graph.in_edges(score.node, data=True)
                assert sum(edge["weight"] for *_, edge in edges) == pytest.approx(1.0, abs=1e-4)
                writers = [graph.nodes[source] for source, *_ in edges]
                assert all("note" in one and one["round"] < score.parts["round"] for one in writers)
                assert all(edge["delay"] >= 1 for *_, edge in edges)


def test_keys_and_values_are_as_long_as_what_is_committed(model, ran, monkeypatch):
    cuts = []
    monkeypatch.setattr(Row, "cut", spied(Row.cut, cuts))
    found = lane(model, gamma=ran["some"].parameters["gamma"], horizon=8).run()
    assert cuts and all(before > after == kept for before, kept, after in cuts)
    assert found.output() == ran["some"].output()


def spied(cut, seen: list):
    def wrapped(row: Row, length: int) -> None:
        before = row.length
        cut(row, length)
        seen.append((before, length, row.length))

    return wrapped


def test_one_forward_serves_all_streams_and_sections_stand_in_the_order_of_the_plan(ran):
    found = ran["never"]
    first = found.steps[0].of(Forward)
    assert [(f.kind, f.tokens) for f in first[:2]] == [("prefill", 5), ("decode", 5)]
    tokens = {e.node: e.token for s in found.steps for e in s.of(Propose)}
    merged = [v for s in found.steps for v in s.of(Verdict) if v.status == "merged"]
    assert [tokens[v.node] for v in merged] == [tokens[v.into] for v in merged] == found.output()
    assert [v.into for v in merged] == sorted(v.into for v in merged)


def test_a_model_without_modules_is_refused_with_what_makes_them(model):
    other = tiny_models.make("gpt2")
    with pytest.raises(ValueError, match="has no modules for parallel streams.*train llama-tiny-streams"):
        Lane("pdt", PROMPT, {"target": other})
