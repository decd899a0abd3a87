"""The probe of AST-Probe: its losses by hand, and that it learns trees which the states do tell."""

import pytest
import torch

from decoders.heads.scorers.syntax_probe import SyntaxProbe, order_loss
from decoders.lenses.leaf_states import leaf_means, leaf_tokens
from decoders.lenses.python_trees import parse
from explorer.experiments.models import syntax_probes as training
from explorer.tasks.random_functions import functions


def test_the_hinge_of_the_dossier():
    said, heights = torch.tensor([[0.9, 0.5, 0.2]]), torch.tensor([[3, 2, 1]])
    assert order_loss(said, heights).item() == pytest.approx((0.6 + 0.3 + 0.7) / 3)
    padded = order_loss(torch.tensor([[0.9, 0.5, 0.2, 7.0]]), torch.tensor([[3, 2, 1, 0]]))
    assert padded.item() == pytest.approx(1.6 / 3)
    two = order_loss(torch.tensor([[0.9, 0.5, 0.2], [5.0, 0.0, 0.0]]), torch.tensor([[3, 2, 1], [2, 1, 1]]))
    assert two.item() == pytest.approx(0.8 / 3)  # the second text is in order by a margin
    assert order_loss(said, torch.tensor([[2, 2, 2]])).item() == 0


def test_distances_are_squares_in_the_subspace():
    probe = SyntaxProbe(3, ["a", "b"], ["<empty>"], rank=2)
    words = torch.randn(1, 4, 3)
    heights, labels, unary = probe(words)
    places = words[0] @ probe.projection
    assert heights[0, 1].item() == pytest.approx(((places[2] - places[1]) ** 2).sum().item(), rel=1e-4)
    assert labels.shape == (1, 3, 2) and unary.shape == (1, 4, 1)
    with torch.no_grad():
        probe.projection.copy_(torch.eye(3)[:, :2])
    assert probe.apart().item() == 0


def test_leaves_are_encoded_apart_and_the_text_is_whole(tiny_model):
    code = "# hi\ndef f(xs):\n    return max(xs)  # end"
    parsed, model = parse(code), tiny_model()
    tokens, groups = leaf_tokens(model, code, parsed.spans)
    said = b"".join(map(model.bytes_of, tokens)).decode()
    assert said == code[: parsed.spans[-1][1]]
    flat = [at for group in groups for at in group]
    assert flat == sorted(set(flat))  # no token belongs to two leaves
    for group, (begin, end) in zip(groups, parsed.spans, strict=True):
        assert b"".join(model.bytes_of(tokens[at]) for at in group).decode().strip() == code[begin:end]
    states = torch.arange(len(tokens), dtype=torch.float)[:, None]
    assert leaf_means(states, groups)[0, 0] == sum(groups[0]) / len(groups[0])


def test_a_probe_recovers_trees_from_states_that_tell_them(tiny_model, monkeypatch):
    """States made of heights and labels: trained as in the experiment, it reads held-out trees, P'P near
    I.
    """
    monkeypatch.setattr(training, "RATE", 0.03)
    monkeypatch.setattr(training, "BATCH", 4)
    model = tiny_model()
    texts = [training.read_text(model, code) for code in functions(60, 1)]
    names = training.names_of(texts)
    states = [telling(text, names[0]) for text in texts]
    probe = training.fit_probe(texts[:48], states[:48], 8, 60, names, rank=24)
    found = training.measured(probe, texts[48:], states[48:])
    assert found.f1 > 0.9 and found.opens >= found.recall and found.closes >= found.recall
    inner = probe.projection.T @ probe.projection
    assert float((inner - torch.eye(len(inner))).abs().max()) < 0.1
    shuffled = [state[torch.randperm(len(state))] for state in states[48:]]
    assert training.measured(probe, texts[48:], shuffled).f1 < 0.6


def telling(text, labels):
    """States [n, d] whose steps are as long as the root of each gap's height and point along its label."""
    steps = torch.zeros(len(text.groups), len(labels) + 2)
    for at, (height, label) in enumerate(zip(text.truth.heights, text.truth.labels, strict=True)):
        steps[at + 1, labels.index(label)] = height**0.5
    return steps.cumsum(0)
