"""What each paper's architecture promises: worked numbers, and the cases in which it is a plain model."""

import pytest
import torch

from decoders.models.architectures import flow_attention, mblm, megabyte, sambay, yoco
from decoders.models.architectures.layers import Retention, attention_stack, numbers_in
from tests.helpers.tiny_architectures import fresh

IDS = torch.randint(0, 200, (2, 29), generator=torch.Generator().manual_seed(7))


def read_by_one(model, ids):
    """All logits, token by token, and the sizes of the state on the way."""
    state, said, sizes = None, [], []
    for one in ids.split(1, 1):
        states, state = model.read(one, state)
        said.append(model.logits_of(states))
        sizes.append(numbers_in(state))
    return torch.cat(said, 1), sizes


def test_yoco_keeps_1256_rows_where_a_plain_model_keeps_8000():
    assert yoco.kept_rows(1000, 8, 64) == 1256
    assert round(8 * 1000 / 1256, 2) == 6.37


def test_yocos_cache_has_the_rows_of_the_formula():
    model = fresh("tiny_yoco")
    _, sizes = read_by_one(model, IDS[:1])
    row = 2 * 1 * 8  # one KV head of 8 numbers, keys and values
    # the last of a window's rows is the new token's own: what is kept for the next one is one row less
    assert sizes[-1] == row * (yoco.kept_rows(29, 4, 3) - 4 // 2)


@pytest.mark.parametrize("lower", ["window", "retention"])
def test_yocos_prefill_skips_the_upper_half_and_says_the_same(lower):
    model, read = fresh("tiny_yoco", lower=lower), []
    model.upper[0].register_forward_hook(lambda _, given, __: read.append(given[0].shape[1]))
    states, _ = model.read(IDS, last_only=True)
    assert read == [1]
    assert model.logits_of(states)[:, 0] == pytest.approx(model(IDS).logits[:, -1], abs=1e-9)


def test_retention_in_steps_is_retention_at_once():
    torch.manual_seed(0)
    layer, x = Retention(16, 2).double(), torch.randn(1, 12, 16, dtype=torch.float64)
    whole, matrix = layer(x, None, 0)
    state, parts = None, []
    for t in range(12):
        y, state = layer(x[:, t : t + 1], state, t)
        parts.append(y)
    assert torch.cat(parts, 1).detach().numpy() == pytest.approx(whole.detach().numpy(), abs=1e-12)
    assert state.detach().numpy() == pytest.approx(matrix.detach().numpy(), abs=1e-12)


def test_a_memory_unit_reads_only_the_current_tokens_readout():
    torch.manual_seed(0)
    unit, x, memory = sambay.MemoryUnit(8, 16), torch.randn(1, 5, 8), torch.randn(1, 5, 16)
    changed = memory.clone()
    changed[:, :4] += 1
    before, after = unit(x, memory, 0)[0], unit(x, changed, 0)[0]
    assert torch.equal(before[:, 4], after[:, 4]) and not torch.equal(before[:, 3], after[:, 3])


def test_sambay_without_memory_units_has_yocos_upper_half():
    with_units, without = fresh("tiny_sambay"), fresh("tiny_sambay", memory_units=False)
    assert [type(block.mixer).__name__ for block in with_units.upper] == ["MemoryUnit", "CrossAttention"]
    assert {type(block.mixer) for block in without.upper} == {yoco.CrossAttention}
    skipped = without.logits_of(without.read(IDS, last_only=True)[0])
    assert skipped[:, 0] == pytest.approx(without(IDS).logits[:, -1], abs=1e-9)


def test_upper_layers_read_l_half_l_and_quarter_l_caches_per_token():
    reads = [sambay.read_per_token(100, 8, 4, kind) // 400 for kind in ("plain", "yoco", "sambay")]
    assert reads == [8, 4, 2]
    uppers = [fresh("tiny_sambay").full, *fresh("tiny_sambay").upper]  # the model has eight layers
    assert sum(isinstance(block.mixer, yoco.CrossAttention) for block in uppers) == 2


def test_flow_attention_in_steps_is_the_formula_and_its_state_stays_small():
    torch.manual_seed(0)
    q, k, v = (torch.rand(1, 1, 9, 4, dtype=torch.float64) for _ in range(3))
    whole, _ = flow_attention.flow(q, k, v, None, 0)
    state, e, d = None, flow_attention.EPS, 4
    i, o, src, comp, m = [], [], [], [], torch.zeros(4, 4, dtype=torch.float64)
    for n in range(9):  # the paper's sums, written out
        t, qs, ks, vs = n + 1, q[0, 0, : n + 1], k[0, 0, : n + 1], v[0, 0, : n + 1]
        i.append(t / ((qs[n] + e) @ (ks.sum(0) + e)))
        o.append(t / ((ks[n] + e) @ (qs.sum(0) + e)))
        sink = (qs[n] + e) @ sum(x * y for x, y in zip(ks, o, strict=True)) / t
        src.append(((ks[n] + e) @ sum(x * y for x, y in zip(qs, i, strict=True)) / t).clamp(-1, 1))
        comp.append(t * src[n].exp() / torch.stack(src).exp().sum())
        m = m + torch.outer(ks[n], comp[n] * vs[n])
        assert whole[0, 0, n] == pytest.approx(sink.sigmoid() * i[n] / t * (qs[n] @ m), abs=1e-9)
        part = (x[:, :, n : n + 1] for x in (q, k, v))
        y, state = flow_attention.flow(*part, state, n)
        assert y[0, 0, 0] == pytest.approx(whole[0, 0, n], abs=1e-9)
        assert numbers_in(state) == d * d + 4 * d + 1


def test_megabytes_serial_steps():
    assert megabyte.serial_steps(8, 8, 2) == (24, 80)


def test_stages_compute_once_per_stride():
    model = fresh("tiny_mblm")
    read_by_one(model, IDS[:1])
    assert mblm.calls_of(30, (3, 2)) == [5, 15, 30]
    # positions 0 and 1 are the first call's, which reads at once
    assert [calls + own for calls, own in zip(model.calls, (1, 1, 2), strict=True)] == [5, 15, 30]
    model = fresh("tiny_megabyte")
    read_by_one(model, IDS[:1])
    assert [model.calls[0] + 1, model.calls[1] + 2] == mblm.calls_of(30, (4,))


def as_mblm(model):
    """A two-stage MBLM with the weights of a MEGABYTE."""
    p, wide, width = model.patch, 32, 16
    own = dict(patches=(p,), widths=(wide, width), layers=(2, 1), heads=(2, 2), mixers=("attention",) * 2)
    twin = fresh("tiny_mblm", plain=True, **own)
    top, bottom = twin.stages
    for theirs, ours in ((top.stack, model.slow), (bottom.stack, model.fast), (top.embed, model.bytes)):
        theirs.load_state_dict(ours.state_dict())
    for theirs, ours in (
        (top.norm, model.slow_norm),
        (bottom.norm, model.fast_norm),
        (twin.embed, model.embed),
    ):
        theirs.load_state_dict(ours.state_dict())
    bottom.embed.load_state_dict(model.local.state_dict())
    twin.norm.load_state_dict(model.norm.state_dict())
    top.start.copy_(model.start)
    bottom.start.copy_(model.pad)
    bottom.told.weight.copy_(torch.block_diag(*[model.slice.weight] * p))
    return twin


def test_two_stages_are_megabyte():
    model = fresh("tiny_megabyte")
    twin = as_mblm(model)
    assert twin(IDS).logits == pytest.approx(model(IDS).logits, abs=1e-9)
    assert read_by_one(twin, IDS)[0] == pytest.approx(read_by_one(model, IDS)[0], abs=1e-9)


def test_patches_of_one_byte_are_a_plain_model_on_a_plain_model():
    model = fresh("tiny_megabyte", patch=1, global_width=32)
    start = model.start.expand(2, 1, -1)
    y, _ = model.slow(torch.cat([start, model.bytes(IDS)], 1), None, 0)
    x = model.slice(model.slow_norm(y)) + model.pad  # each patch has one slot, the pad's
    alone, _ = model.fast(x.flatten(0, 1)[:, None], None, 0)
    plain = model.logits_of(model.fast_norm(alone).view(2, 30, -1)[:, 1:])
    assert model(IDS).logits == pytest.approx(plain, abs=1e-9)


def test_without_its_two_paths_chunked_memory_is_a_plain_transformer():
    model = fresh("tiny_chunked_memory")
    plain = attention_stack(16, 24, 2, 2).double()
    for block, ours in zip(plain.blocks, model.layers, strict=True):
        ours.local.o.weight.zero_()
        ours.memory.o.weight.zero_()
        block.mixer = ours.whole
        block.net, block.norm, block.net_norm = ours.net, ours.norm, ours.net_norm
    states, _ = plain(model.embed(IDS), None, 0)
    assert model(IDS).logits == pytest.approx(model.logits_of(states), abs=1e-9)


def test_the_memory_is_a_queue_of_at_most_m_slots_in_order_of_age():
    model = fresh("tiny_chunked_memory", whole_path=False)
    state, before = None, None
    _, sizes = read_by_one(model, IDS)
    for piece in IDS[:, :28].split(4, 1):
        _, state = model.read(piece, state)
        slots = state[1][0][3]
        assert slots.shape[1] <= 3
        if before is not None:  # what was there moved one place towards the old end
            assert torch.equal(slots[:, :-1], before[:, -2:])
        before = slots
    assert sizes[15] == sizes[19] == sizes[23]  # without the whole path, a size that does not grow


def test_dna_on_one_path_with_gate_one_is_a_plain_model():
    model = fresh("tiny_dna", pool=4)
    model.forced = [0, 1, 2, 3]
    plain = attention_stack(16, 24, 4, 2)
    plain.blocks = model.pool
    states, _ = plain(model.embed(IDS), None, 0)
    assert model(IDS).logits == pytest.approx(model.logits_of(states), abs=1e-9)


def test_dnas_paths_count_every_token_once_at_each_step():
    model = fresh("tiny_dna")
    paths = model.paths(IDS)
    assert paths.shape == (2, 29, 4) and paths.min() >= 0 and paths.max() <= 3
    for step in range(4):
        assert torch.bincount(paths[..., step].flatten(), minlength=4).sum() == IDS.numel()


def test_who_stays_is_not_changed_and_who_visits_others_is_not_seen():
    model = fresh("tiny_dna")
    model.forced = [3, 3, 3, 3]  # stay
    assert model.read(IDS)[0] == pytest.approx(model.embed(IDS), abs=0)
