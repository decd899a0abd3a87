"""KL-tracing: which later predictions move when one token is changed; on tables, tiny models and canvases."""

import pytest
import torch

from decoders.engine.tree import Tree
from decoders.lenses import token_tracers as tracing
from decoders.models.table_model import TableModel
from tests.helpers.copier import LENGTH, copier, strings

TEXT = [5, 9, 5, 40, 41, 7, 9, 12]


def of_swaps(put_in):
    return lambda clean: put_in


def drawn(text, seed=0):
    return lambda clean: tracing.swaps(tracing.unigrams(clean), text, 4, seed)


def test_kl_of_the_dossiers_pair():
    p, q = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    assert float(tracing.kl(p, q)) == pytest.approx(0.51083, abs=1e-5)
    assert float(tracing.kl(torch.tensor([0.0, -torch.inf]), torch.zeros(2))) == pytest.approx(
        0.69315, abs=1e-5
    )


def test_the_tree_gives_what_separate_passes_give(tiny_model):
    """Also before the changed place, where a causal model must not move: that is read off whole texts."""
    model = tiny_model("llama")
    put_in = [[token + 1, token + 2] for token in TEXT]
    found, forwards, read = tracing.text_trace(model.engine, TEXT, of_swaps(put_in))
    size = len(TEXT)
    assert read == size + 2 * size * (size + 1) // 2 and forwards == 2
    clean = model.model(torch.tensor([TEXT])).logits[0]
    expected = torch.zeros(size, size, dtype=torch.float64)
    for place, tokens in enumerate(put_in):
        for token in tokens:
            copy = [*TEXT[:place], token, *TEXT[place + 1 :]]
            expected[place] += tracing.kl(clean, model.model(torch.tensor([copy])).logits[0]) / 2
    assert float((found - expected).abs().max()) < 1e-5
    assert (found.tril(-1) == 0).all() and float(expected.tril(-1).max()) < 1e-9
    assert float(found.triu(1).max()) > 0.01  # and later places do move


def test_several_forwards_give_what_one_gives(tiny_model, monkeypatch):
    put_in = [[token + 1] for token in TEXT]
    once, _, _ = tracing.text_trace(tiny_model().engine, TEXT, of_swaps(put_in))
    monkeypatch.setattr(tracing, "NODES", 6)
    again, forwards, _ = tracing.text_trace(tiny_model().engine, TEXT, of_swaps(put_in))
    assert forwards > 3 and float((once - again).abs().max()) < 1e-5
    assert tiny_model().engine.cache.used == 0  # all slots are given back


def test_copies_equal_to_the_text_change_nothing(tiny_model):
    put_in = [[token] * 3 for token in TEXT]
    assert float(tracing.text_trace(tiny_model().engine, TEXT, of_swaps(put_in))[0].max()) < 1e-9
    table = TableModel(lambda text: [0.1, 0.2, 0.3, 0.4] if text[-1] % 2 else [0.4, 0.3, 0.2, 0.1], 4)
    same = [[token] * 2 for token in (1, 2, 3)]
    assert float(tracing.text_trace(table, [1, 2, 3], of_swaps(same))[0].max()) == 0.0


def test_a_bigram_model_listens_to_the_last_token_alone():
    rows = torch.rand(6, 6, generator=torch.Generator().manual_seed(0)).double() + 0.1
    rows = rows / rows.sum(-1, keepdim=True)
    bigram = TableModel(lambda text: rows[text[-1]].tolist(), 6)
    text = [0, 3, 5, 1, 1, 2]
    found, _, _ = tracing.text_trace(bigram, text, drawn(text))
    assert (found.triu(1) == 0).all() and (found.tril(-1) == 0).all() and (found.diagonal() > 0).all()
    assert tracing.peaks(found) == [None] * len(text)


def test_the_peak_of_a_copied_letter_is_where_its_copy_is_predicted():
    """Texts `b d a = b d a`: place i is said again after place i + LENGTH."""
    model, hits, seen = copier(), 0, 0
    for text in strings(12, seed=9).tolist():
        found, _, _ = tracing.text_trace(model.engine, text, drawn(text))
        found_peaks = tracing.peaks(found)
        hits += sum(found_peaks[place] == place + LENGTH for place in range(LENGTH))
        seen += LENGTH
    assert hits >= 0.9 * seen, f"{hits} of {seen}"


def test_swapped_tokens_are_drawn_by_weight_and_never_the_one_that_stands_there():
    weights = torch.tensor([0.7, 0.2, 0.1, 0.0])
    drawn = tracing.swaps(weights, [0, 1, 3] * 200, 4, 0)
    assert (
        drawn
        == tracing.swaps(weights, [0, 1, 3] * 200, 4, 0)
        != tracing.swaps(weights, [0, 1, 3] * 200, 4, 1)
    )
    flat = [token for row in drawn[::3] for token in row]
    assert set(flat) == {1, 2} and 0.6 < flat.count(1) / len(flat) < 0.75
    assert all(1 not in row for row in drawn[1::3])
    assert tracing.swaps(torch.tensor([1.0, 0.0]), [0], 2, 0) == [[1, 1]]  # nothing else was ever predicted


def test_noise_moves_an_embedding_by_a_share_of_its_norm(tiny_model):
    embedding = torch.tensor([3.0, 4.0, 0.0])
    moved = tracing.noisy_embeddings(embedding, 4, 0.5, 0)
    assert all(float((one - embedding).norm()) == pytest.approx(2.5, abs=1e-5) for one in moved)
    model = tiny_model()
    table = model.model.get_input_embeddings().weight
    still = [[table[token]] for token in TEXT]
    assert float(tracing.text_trace(model.engine, TEXT, of_swaps(still))[0].max()) < 1e-9
    loud = [tracing.noisy_embeddings(table[token], 2, 0.5, 0) for token in TEXT]
    assert float(tracing.text_trace(model.engine, TEXT, of_swaps(loud))[0].diagonal().min()) > 0


def test_peaks_look_behind_a_guard():
    row = torch.tensor([[9.0, 5.0, 1.0, 2.0]] * 4).triu()
    assert tracing.peaks(row)[:2] == [1, 3] and tracing.peaks(row, guard=1)[0] == 3
    assert tracing.peaks(row)[3] is None


def test_a_canvas_is_traced_on_both_sides(tiny_model):
    """Against single forwards, place by place; what is not measured is NaN."""
    model = tiny_model("masked")
    mask, sets = model.engine.mask, [[1, 4], [0, 4, 7]]
    put_in = [[token + 1, token + 2] for token in TEXT]
    denoiser = model.engine.attach(Tree(TEXT))
    found, forwards, read = tracing.canvas_trace(denoiser, mask, TEXT, sets, put_in)
    assert read == 8 * (1 + 6 * 2 + 1 + 5 * 2) and forwards == 4
    expected = torch.full((8, 8), torch.nan, dtype=torch.float64)

    def canvas(hidden, place=None, token=None):
        row = [mask if at in hidden else TEXT[at] for at in range(8)]
        if place is not None:
            row[place] = token
        return denoiser.denoise([row], 0, 8)[0]

    for i in range(8):
        for j in range(8):
            fit = [s for s in sets if i not in s and j in s]
            if fit:
                values = [tracing.kl(canvas(s)[j], canvas(s, i, t)[j]) for s in fit for t in put_in[i]]
                expected[i, j] = sum(values) / len(values)
    assert (found.isnan() == expected.isnan()).all()
    assert float((found - expected).nan_to_num().abs().max()) < 1e-5
    assert found[5, 4] > 0 and found[5, 7] > 0  # on both sides


def test_hidden_places_leave_something_to_change():
    sets = tracing.hidden_places(10, 0.5, 4, 0)
    assert len(sets) == 4 and all(len(set(one)) == 5 for one in sets) and len(set(map(tuple, sets))) > 1
    assert tracing.hidden_places(2, 1.0, 1, 0)[0] in ([0], [1])
