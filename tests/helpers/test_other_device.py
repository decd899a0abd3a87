"""The device that tests use in place of a GPU is as strict as one."""

import pytest
import torch

from tests.helpers.other_device import device


@pytest.fixture
def there():
    return torch.arange(4, device=device())


def test_numbers_come_and_go(there):
    assert there.device.type == torch.ones(1).to(device()).device.type == device()
    assert there.tolist() == there.cpu().tolist() == [0, 1, 2, 3]
    assert there.cpu().device.type == "cpu"
    assert there[2].item() == 2


def test_tensors_of_two_devices_are_refused(there):
    for mixed in (lambda: there + torch.ones(4), lambda: torch.cat([there, torch.ones(4)])):
        with pytest.raises(RuntimeError, match="two devices"):
            mixed()
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()


def test_what_a_gpu_allows_is_allowed(there):
    assert (there + torch.tensor(1)).tolist() == [1, 2, 3, 4]
    assert there[torch.tensor([3, 0])].tolist() == [3, 0]
    there[torch.tensor([1])] = 7
    view = there[:2]
    view.mul_(2)
    assert there.tolist() == [0, 14, 2, 3]
