"""Where the number of keys grows, cuDNN's attention is left out on a GPU, and only there. The switch is
torch's own, which exists without a GPU too.
"""

from contextlib import contextmanager

import pytest
import torch
from torch.backends import cuda
from torch.nn import functional as F

from decoders.engine import model_forwards
from decoders.engine.attention_kernels import any_length, attend
from decoders.engine.engine import Engine
from decoders.engine.tree import Tree
from tests.helpers import tiny_models

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")


@pytest.fixture(autouse=True)
def switch():
    before = cuda.cudnn_sdp_enabled()
    cuda.enable_cudnn_sdp(True)
    yield
    cuda.enable_cudnn_sdp(before)


def test_it_is_off_for_a_gpu_until_the_end_even_after_an_error():
    with any_length(GPU):
        assert not cuda.cudnn_sdp_enabled()
        with any_length(GPU):
            assert not cuda.cudnn_sdp_enabled()
        assert not cuda.cudnn_sdp_enabled()
    assert cuda.cudnn_sdp_enabled()
    with pytest.raises(ValueError), any_length(GPU):
        raise ValueError
    assert cuda.cudnn_sdp_enabled()


def test_it_stays_as_it_is_on_a_cpu_and_where_the_user_has_switched_it_off():
    with any_length(CPU):
        assert cuda.cudnn_sdp_enabled()
    cuda.enable_cudnn_sdp(False)
    with any_length(GPU):
        pass
    assert not cuda.cudnn_sdp_enabled()


def test_attention_has_torchs_numbers():
    q, k, v = (torch.randn(1, 4, count, 8) for count in (2, 5, 5))
    mask = torch.randn(2, 5)
    assert torch.equal(
        attend(q, k, v, attn_mask=mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    )


@pytest.mark.parametrize("captured", [False, True])
def test_forwards_of_an_engine_leave_it_out_unless_they_are_captured(monkeypatch, captured):
    """A captured forward has few shapes."""
    entered = []

    @contextmanager
    def seen(device):
        entered.append(device)
        yield

    engine = Engine(tiny_models.make().model, limit=512)
    if captured:
        engine.capture()
    monkeypatch.setattr(model_forwards, "any_length", seen)
    scorer = engine.attach(Tree([1, 2, 3]))
    scorer.score([2])
    assert entered == ([] if captured else [engine.device])
