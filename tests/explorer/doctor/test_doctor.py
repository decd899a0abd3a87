"""The draft doctor: drafts that are broken on purpose, each in one way, and drafts that are not."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models import load, load_heads
from decoders.trace.trace import Trace
from explorer.acceptance.drafters import Drafter, chain_of, drafter
from explorer.doctor.examining import Examination, Settings, in_pieces
from explorer.doctor.recorded import of_counted, of_traces
from explorer.doctor.words import as_json, sentences, summary, verdict
from visualizers.analysis.draft_diagnosis import Cause, Length, of_long_context, too_long
from visualizers.analysis.draft_surface import Cost, Round, of, surface

STORIES = (
    "Once upon a time, there was a little girl named Lily. One day",
    "Tom and his dog went to the park",
)
UNTIMED = Settings(answer=40, timed=False)
FOLDERS = {"eagle": "llama-tiny-heads", "kangaroo": "llama-tiny-heads", "medusa": "llama-tiny-heads"}
FOLDERS |= {"eagle3": "llama-tiny-feature-drafters"}


@pytest.fixture(scope="module")
def target():
    """A target of its own, whose template and engine a test may change."""
    return load("llama-tiny")


def examined(target, one: Drafter) -> Examination:
    """The examination of a draft."""
    *_, found = in_pieces(target, one, [], UNTIMED)
    return found


def with_draft(target, change: Callable) -> Drafter:
    """The shipped draft, changed."""
    draft = load("llama-tiny-draft")
    change(draft)
    one = drafter("llama-tiny-draft", target)
    return replace(one, models={"target": target, "draft": draft}, guesser=draft)


def with_head(target, kind: str, change: Callable) -> Drafter:
    """A shipped head, changed."""
    head = load_heads(FOLDERS[kind], target)[kind].eval()
    change(head)
    return replace(drafter(kind, target), guesser=head)


def scored(change: Callable) -> Callable:
    """Changes the rows that a draft's engine gives: change(logits [N, V], tree, nodes)."""

    def broken(draft) -> None:
        attach = draft.engine.attach

        def attached(tree):
            scorer = attach(tree)
            score = scorer.score
            scorer.score = lambda nodes, hidden=False: change(score(nodes, hidden), tree, nodes)
            return scorer

        draft.engine.attach = attached

    return broken


def random_weights(draft) -> None:
    generator = torch.Generator().manual_seed(0)
    for weight in draft.model.parameters():
        if weight.dim() > 1:
            weight.data.normal_(std=float(weight.std()), generator=generator)


def of_another_model(head) -> None:
    """Its matrices read their inputs in another order."""
    generator = torch.Generator().manual_seed(0)
    for weight in head.parameters():
        if weight.dim() > 1:
            weight.data = weight.data[:, torch.randperm(weight.shape[1], generator=generator)].contiguous()


def permuted(logits, tree, nodes):
    order = torch.randperm(logits.shape[1], generator=torch.Generator().manual_seed(1))
    return logits[:, order]


def beyond(first: int, row: Callable) -> Callable:
    """From the node `first` on: another row."""

    def change(logits, tree, nodes):
        logits = logits.clone()
        for at, node in enumerate(nodes):
            if node >= first:
                logits[at] = row(logits[at], node)
        return logits

    return change


def drawn(row, node):
    return torch.randn(row.shape, generator=torch.Generator().manual_seed(node)) * 3


def one_token(row, node):
    return torch.full_like(row, -20.0).index_fill(0, torch.tensor([7]), 20.0)


def some_nan(logits, tree, nodes):
    odd = torch.tensor([node % 16 == 3 for node in nodes])
    return logits.masked_fill(odd[:, None], float("nan"))


def later(by: int) -> Callable:
    """Each guess is given one place later, or earlier."""

    def change(head) -> None:
        along = head.along
        head.along = lambda taps, depth: [row.roll(by, 1) for row in along(taps, depth)]

    return change


def wrong_exit(head) -> None:
    """Kangaroo's states are taken one layer early; the folder says so too."""
    along, own = head.along, head.reads
    head.reads = (own[0] - 1,)
    head.along = lambda taps, depth: along(replace(taps, states={own[0]: taps.states[own[0] - 1]}), depth)


HEALTHY = (
    "llama-tiny-draft",
    "llama-tiny-draft-distilled",
    "llama-tiny-fastdraft",
    "eagle",
    "kangaroo",
    "hydra",
)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_pair_raises_no_alarm(target, name):
    found = examined(target, drafter(name, target))
    assert found.findings == []
    assert verdict(found).startswith("Healthy")


DRAFTS = {
    "weights not loaded": (Cause.NOISE, 0, random_weights),
    "numbers of tokens off by three": (Cause.MAP, -3, scored(lambda rows, *_: rows.roll(3, -1))),
    "numbers of tokens permuted": (Cause.MAP, 0, scored(permuted)),
    "no numbers at some places": (Cause.NUMERICS, 0, scored(some_nan)),
    "all tokens equally likely": (Cause.NUMERICS, 0, scored(lambda rows, *_: rows * 0)),
    "lost from token 256 on": (Cause.WINDOW, 0, scored(beyond(256, drawn))),
    "dummy drafts from token 256 on": (Cause.DUMMY, 0, scored(beyond(256, one_token))),
}


@pytest.mark.parametrize("way", DRAFTS)
def test_a_broken_draft_model_is_told(target, way):
    cause, shift, change = DRAFTS[way]
    found = examined(target, with_draft(target, change))
    assert (found.findings[0].cause, found.findings[0].shift) == (cause, shift)
    if cause in (Cause.WINDOW, Cause.DUMMY):
        assert abs(found.findings[0].at - 256) <= 32
    assert found.findings[0].places or cause == Cause.NUMERICS


HEADS = {
    "of another model": ("eagle", Cause.NOISE, 0, of_another_model),
    "a place late": ("eagle", Cause.SHIFTED, -1, later(1)),
    "a place early": ("eagle", Cause.SHIFTED, 1, later(-1)),
    "a layer early": ("kangaroo", Cause.LAYERS, 1, wrong_exit),
    "d2t not loaded": ("eagle3", Cause.MAP, 0, lambda head: head.d2t.zero_()),
}


@pytest.mark.parametrize("way", HEADS)
def test_a_broken_head_is_told(target, way):
    kind, cause, shift, change = HEADS[way]
    found = examined(target, with_head(target, kind, change))
    assert (found.findings[0].cause, found.findings[0].shift) == (cause, shift)


def lost_unless(begins: Callable) -> Callable:
    """A draft that only reads a text that begins in its own way, as attention sinks make models do."""
    lost = beyond(0, drawn)
    return scored(lambda rows, tree, nodes: rows if begins(tree) else lost(rows, tree, nodes))


def test_a_draft_that_needs_its_bos_token(target):
    draft = with_draft(target, lost_unless(lambda tree: tree.tokens[0] == target.tokenizer.bos_token_id))
    (found, *_) = examined(target, draft).findings
    assert (found.cause, found.shift) == (Cause.BOS, 1)


def test_a_draft_trained_in_another_chat_template(target):
    own, message = load("llama-tiny"), "{% for one in messages %}{{ one.content }}{% endfor %}"
    own.tokenizer.chat_template = message
    first = target.encode("Q:")[0]
    draft = with_draft(own, lost_unless(lambda tree: tree.tokens[0] == first))
    draft.guesser.tokenizer.chat_template = "Q: " + message
    (found, *_) = examined(own, draft).findings
    assert found.cause == Cause.TEMPLATE


def test_a_drafter_without_weights_is_refused(target):
    from decoders.refusal import Refusal

    with pytest.raises(Refusal, match="without a model or head"):
        examined(target, drafter("prompt_lookup", target))


# ---- what an engine recorded -------------------------------------------------------------------------------


def recorded(strategy: str, models: dict, temperature: float, texts=STORIES, length=4, **more) -> list[Trace]:
    """Traces of a strategy over some texts."""
    traces = []
    for text in texts:
        shape = chain_of(strategy, length) | {"temperature": temperature} | more
        lane = Lane(strategy, models["target"].encode(text), models, shape, 1, Limits(max_new_tokens=48))
        while lane.trace.ended is None:
            lane.advance()
        lane.close()
        traces.append(lane.trace)
    return traces


def engine_with(target, kind: str, change: Callable) -> dict:
    """The models of an engine whose head is changed."""
    import copy

    head = load_heads(FOLDERS[kind], target)[kind].eval()
    change(head)
    engine = copy.copy(target)
    engine.__dict__["heads"] = {kind: head}
    return {"target": engine}


def reads_older_states(head) -> None:
    """The engine hands each token the state of the token before."""
    begin, last = head.begin, {}

    def older(memory, hidden, tokens, states=None):
        before = last.get(id(memory), hidden[:1])
        last[id(memory)] = hidden[-1:].clone()
        return begin(memory, torch.cat([before, hidden[:-1]]), tokens, states)

    head.begin = older


@pytest.mark.parametrize("temperature", (0.0, 1.0))
def test_an_engine_that_computes_what_the_draft_computes_is_healthy(target, temperature):
    one = drafter("eagle", target)
    found = of_traces(recorded("eagle", one.models, temperature), one, target)
    assert found.findings == []
    assert found.engine > 0.999
    assert found.gained.mean > 1.5


ENGINES = {
    "older states": ("eagle", Cause.STATES, -1, reads_older_states),
    "layers below": ("eagle3", Cause.LAYERS, -1, lambda head: setattr(head, "reads", (1, 5, 8))),
    "another head": ("eagle", Cause.OTHER_DRAFT, 0, of_another_model),
}


@pytest.mark.parametrize("way", ENGINES)
def test_an_engine_that_reads_in_another_way_is_told(target, way):
    kind, cause, shift, change = ENGINES[way]
    traces = recorded(kind, engine_with(target, kind, change), 1.0)
    found = of_traces(traces, drafter(kind, target), target)
    assert (found.findings[0].cause, found.findings[0].shift) == (cause, shift)


def test_greedy_drafts_and_relaxed_tests_are_told(target):
    one = drafter("prompt_lookup", target)
    certain = recorded("prompt_lookup", one.models, 1.0, ("The cat sat on the mat. " * 4,) * 2)
    assert Cause.GREEDY in {found.cause for found in of_traces(certain).findings}
    pair = drafter("llama-tiny-draft", target).models
    typical = recorded("typical_acceptance", pair, 1.0)
    assert Cause.RELAXED in {found.cause for found in of_traces(typical).findings}
    assert of_traces(recorded("speculative", pair, 1.0)).findings == []
    lane = Lane("eagle", target.encode(STORIES[0]), {"target": target}, {"temperature": 1.0}, 1, Limits(48))
    while lane.trace.ended is None:  # a tree, whose siblings are tested by other rules
        lane.advance()
    lane.close()
    assert Cause.RELAXED not in {found.cause for found in of_traces([lane.trace]).findings}


def test_counts_say_what_they_can():
    counts = {"num_drafts": 50, "num_draft_tokens": 200, "num_accepted_tokens": 1, "models": []}
    found = of_counted([("log", counts)])
    assert [one.cause for one in found.findings] == [Cause.REJECTED]
    healthy = of_counted([("log", counts | {"num_accepted_tokens": 120})])
    assert healthy.findings == []
    assert "60%" in verdict(healthy)
    assert [one.cause for one in of_long_context(400, 200, 200, 10)] == [Cause.WINDOW]
    assert of_long_context(400, 200, 20, 9) == []


# ---- lengths -----------------------------------------------------------------------------------------------


def test_a_shorter_draft_is_the_beginning_of_a_longer_one():
    assert of(Round((0.9, 0.8, 0.3, 0.9), 2), 4, 0.0) == (4, 3)
    assert of(Round((0.9, 0.8, 0.3, 0.9), 2), 1, 0.0) == (1, 2)
    assert of(Round((0.9, 0.8, 0.3, 0.9), 4), 4, 0.5) == (3, 4)  # it stops after the unsure token


def test_the_best_length_is_that_of_the_arithmetic():
    """Two tokens are accepted in every round, so that drafting two is best, whatever comes after."""
    rounds = [Round((0.9,) * 8, 2)] * 20
    found = surface(rounds, Cost(draft=0.2, plain=1.0, verify=1.0, longest=8), own=8)
    assert found.best == (1, 0)
    assert found.speed[1][0] == pytest.approx(3 / 1.4)
    assert found.gain == pytest.approx((3 / 1.4) / (3 / 2.6))
    assert (found.low, found.high) == pytest.approx((found.gain, found.gain))
    assert [one.shift for one in too_long(found.length)] == [2]
    assert list(too_long(Length(4, 2, 0.0, 1.2, 0.9, 1.5))) == []  # the interval holds 1


def test_an_examination_in_words(target):
    settings = Settings(num_assistant_tokens=3, answer=24)
    *_, found = in_pieces(target, drafter("llama-tiny-draft", target), [], settings)
    assert found.drafted == 3
    assert found.surface.cost.draft > 0.0
    text = summary(found)
    assert "a long context" in text and "Recommended: at most" in text
    record = as_json(found)
    assert record["sentences"] == sentences(found)


def test_the_page_holds_verdict_figures_and_texts(target):
    from explorer.doctor.report_page import report_page

    found = examined(target, with_draft(target, random_weights))
    page = report_page(found, "python -m explorer doctor")
    assert "Noise: the draft agrees" in page
    assert "id='figure-by_text'" in page and "id='figure-along_long'" in page
    assert "figure-speeds" not in page  # nothing was timed


def test_a_server_is_examined_by_its_counts(monkeypatch):
    """A server that counts one more round of three accepted tokens with every request."""
    from explorer.doctor import served

    asked = []

    class Client:
        def get(self, url):
            rounds = len(asked)
            lines = [
                f"vllm:spec_decode_num_drafts_total {rounds * 8}",
                f"vllm:spec_decode_num_draft_tokens_total {rounds * 32}",
                f"vllm:spec_decode_num_accepted_tokens_total {rounds * 24}",
            ]
            return SimpleNamespace(status_code=200, content="\n".join(lines).encode())

    class Server(served.OpenAIServer):
        def __post_init__(self):
            self.http = Client()

        def ask(self, method, path, body=None):
            asked.append(body["prompt"])

        def close(self):
            pass

    monkeypatch.setattr(served, "OpenAIServer", Server)
    *_, found = served.in_pieces("http://localhost:8000/v1#m")
    assert [name for name, _ in found.counts][-1] == "a long context"
    assert all(one["num_accepted_tokens"] == 24 for _, one in found.counts)
    assert found.gained.mean == 4.0
