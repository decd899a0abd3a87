"""Linear attention over devices: outputs and states are those of reading in order; what travels, and when."""

from functools import partial

import pytest
import torch

from explorer.experiments.models.device_scans import all_gather, all_scan, apart, serial
from explorer.experiments.models.linear_attention import LinearModel, in_order, on_devices, own_state

KEYS, VALUES, DEVICES = 8, 6, 4
WAYS = [all_gather, serial, *(partial(all_scan, slices=slices) for slices in (1, 3, 8))]


def drawn(length=18):
    torch.manual_seed(0)
    double = dict(dtype=torch.float64)
    q, k = torch.randn(2, 2, 3, length, KEYS, **double).unbind(0)
    return q, k, torch.randn(2, 3, length, VALUES, **double), -torch.rand(2, 3, length, KEYS, **double)


def stretches():
    """(states, decays) of one text's stretches of one head."""
    _, k, v, fall = (one[0, 0] for one in drawn(16))
    parts = zip(*(one.chunk(DEVICES) for one in (k, v, fall)), strict=True)
    return map(list, zip(*(own_state(*part) for part in parts), strict=True))


def test_reading_in_order_by_hand():
    """Decays 1/2 and inputs 1, 2, 3 with keys and queries 1: states 1, 2.5, 4.25."""
    ones = torch.ones(3, 1)
    outputs, state = in_order(ones, ones, torch.tensor([[1.0], [2.0], [3.0]]), ones * torch.tensor(0.5).log())
    assert outputs.flatten().tolist() == pytest.approx([1, 2.5, 4.25]) and state.item() == pytest.approx(4.25)


@pytest.mark.parametrize("scan", WAYS)
@pytest.mark.parametrize("devices", [1, 4, 18, 40])
def test_devices_read_what_one_reads_in_order(scan, devices):
    for found, wanted in zip(on_devices(*drawn(), devices, scan), in_order(*drawn()), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_without_the_states_the_later_devices_read_something_else():
    alone, _ = on_devices(*drawn(16), DEVICES, apart)
    whole, _ = in_order(*drawn(16))
    torch.testing.assert_close(alone[..., :4, :], whole[..., :4, :])
    assert (alone[..., 4:, :] - whole[..., 4:, :]).abs().max() > 0.1


def test_what_travels():
    """A state per device but the last in slices; all but the own one, with decays, where all gather."""
    states, decays = stretches()
    for slices in (1, 3, 8):
        found = all_scan(states, decays, slices)
        for device in range(DEVICES - 1):
            mine = [one for one in found.sent if one.device == device]
            assert len(mine) == slices and sum(one.numbers for one in mine) == KEYS * VALUES
        assert found.held == KEYS * VALUES and all(one.device < DEVICES - 1 for one in found.sent)
    gathered = all_gather(states, decays)
    assert gathered.held == DEVICES * KEYS * VALUES
    for device in range(DEVICES):
        mine = sum(one.numbers for one in gathered.sent if one.device == device)
        assert mine == (DEVICES - 1) * (KEYS * VALUES + KEYS)


def test_when_the_last_device_has_its_state():
    """(P - 2 + K) / K transfers: 1.25 for 4 devices and 8 slices instead of 3."""
    states, decays = stretches()
    assert all_scan(states, decays, 8).ready[-1] == pytest.approx(1.25)
    for slices in (1, 2, 4, 8):
        assert all_scan(states, decays, slices).ready[-1] == pytest.approx((DEVICES - 2 + slices) / slices)


def test_one_slice_is_serial_passing():
    states, decays = stretches()
    one, whole = all_scan(states, decays, 1), serial(states, decays)
    assert (one.sent, one.ready) == (whole.sent, whole.ready) and one.ready == [0, 1, 2, 3]
    assert all(torch.equal(a, b) for a, b in zip(one.before, whole.before, strict=True))


def test_a_link_carries_one_message_at_a_time():
    for sent in (scan(*stretches()).sent for scan in WAYS):
        for device in range(DEVICES):
            mine = sorted((m.start, m.end) for m in sent if m.device == device)
            assert all(a[1] <= b[0] + 1e-9 for a, b in zip(mine, mine[1:], strict=False))


def test_slices_that_do_not_fit_are_told():
    with pytest.raises(ValueError, match="cannot be cut into 9 slices; give 1 to 8"):
        all_scan(*stretches(), 9)


def test_the_model_reads_the_same_in_order_and_on_devices():
    torch.manual_seed(0)
    model = LinearModel(11, width=8, heads=2, size=4).double()
    tokens = torch.randint(11, (2, 9))
    torch.testing.assert_close(
        model(tokens, partial(on_devices, scan=partial(all_scan, slices=4))), model(tokens, in_order)
    )
    changed = tokens.clone()
    changed[:, 6] = (changed[:, 6] + 1) % 11
    torch.testing.assert_close(model(tokens, in_order)[:, :6], model(changed, in_order)[:, :6])
