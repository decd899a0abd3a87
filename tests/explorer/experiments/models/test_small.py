"""What experiments train: text of the target's own law, and a fit that finds a known minimum."""

import torch

from explorer.experiments.models.small import fit, own_text


def test_own_text_is_drawn_from_the_target(tiny_model):
    model = tiny_model("llama")
    text = own_text({"target": model}, rows=70, length=6)
    assert text.shape == (70, 6) and int(text.max()) < model.engine.vocabulary
    assert torch.equal(text, own_text({"target": model}, rows=70, length=6))
    assert not torch.equal(text, own_text({"target": model}, rows=70, length=6, seed=1))


def test_a_fit_finds_the_law_of_what_it_reads():
    """Logits of a bigram table come to the counts of the rows."""
    rows = torch.tensor([[0, 1, 0, 1], [0, 1, 0, 2]])
    table = torch.nn.Parameter(torch.zeros(3, 3))

    def loss(some):
        return torch.nn.functional.cross_entropy(table[some[:, :-1]].flatten(0, 1), some[:, 1:].flatten())

    losses = fit([table], loss, rows, steps=400, rate=0.1)
    assert len(losses) == 400 and losses[-1] < losses[0]
    said = table.detach().softmax(-1)
    assert abs(float(said[0, 1]) - 0.75) < 0.05 and float(said[1, 0]) > 0.95
