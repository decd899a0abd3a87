"""A source and its answer in one stream: each place's logits depend on what stands before it, and on
nothing else.
"""

import pytest
import torch

from decoders.models.architectures.bytenet import ByteNet, ByteNetConfig
from decoders.models.architectures.codet5 import CodeT5Config, CodeT5Stream
from decoders.models.architectures.pervasive_attention import PervasiveAttention, PervasiveConfig
from decoders.models.architectures.recursive_bytes import RecursiveBytes, RecursiveConfig
from decoders.models.architectures.source_stream import begin_of_answer, rows_of

SEPARATOR = (7, 8)
MAKE = {
    "bytenet": lambda: ByteNet(
        ByteNetConfig(vocab_size=12, width=4, dilations=(1, 2), sets=2, unfold=(1.5, 2), separator=SEPARATOR)
    ),
    "pervasive": lambda: PervasiveAttention(
        PervasiveConfig(vocab_size=12, width=4, layers=2, separator=SEPARATOR)
    ),
    "recursive": lambda: RecursiveBytes(
        RecursiveConfig(vocab_size=12, length=8, shortest=2, channels=4, vector=6, separator=SEPARATOR)
    ),
    "codet5": lambda: CodeT5Stream(
        CodeT5Config(
            vocab_size=12,
            d_model=8,
            d_kv=4,
            num_heads=2,
            d_ff=8,
            num_layers=2,
            num_decoder_layers=2,
            dropout_rate=0.0,
            feed_forward_proj="gated-silu",
            pad_token_id=1,
            eos_token_id=0,
            decoder_start_token_id=1,
            separator=SEPARATOR,
        )
    ),
}
TEXTS = [[3, 4, 5, 7, 8, 6, 2, 9], [4, 7, 8, 8, 5, 5, 3, 2], [2, 3, 7, 4, 8, 5, 6, 2]]


def made(name: str):
    """A tiny random model whose logits differ from place to place."""
    torch.manual_seed(0)
    model = MAKE[name]().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def test_the_first_separator_ends_a_source():
    assert [begin_of_answer(text, SEPARATOR) for text in TEXTS] == [5, 3, 0]
    assert begin_of_answer([7], SEPARATOR) == 0 == begin_of_answer([], SEPARATOR)


@pytest.mark.parametrize("name", MAKE)
@torch.no_grad()
def test_a_beginning_has_the_logits_of_the_whole(name):
    model = made(name)
    whole = model(torch.tensor(TEXTS)).logits
    assert whole.shape == (3, 8, 12) and whole.isfinite().all()
    for row, text in enumerate(TEXTS):
        for length in range(1, len(text) + 1):
            part = model(torch.tensor([text[:length]])).logits
            torch.testing.assert_close(part[0, -1], whole[row, length - 1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", MAKE)
@torch.no_grad()
def test_an_answer_is_read_behind_its_source_alone(name):
    model = made(name)
    text = TEXTS[0]
    sources, seen = rows_of([text[:5]], "cpu")
    alone = model.answer_logits(sources, seen, torch.tensor([text[5:]]))
    torch.testing.assert_close(model(torch.tensor([text])).logits[0, 4:], alone[0])


@pytest.mark.parametrize("name", MAKE)
@torch.no_grad()
def test_padding_of_a_source_changes_nothing(name):
    model = made(name)
    sources, seen = rows_of([[3, 7, 8], [3, 4, 5, 6, 2, 7, 8]], "cpu")
    answers = torch.tensor([[5, 6], [6, 5]])
    together = model.answer_logits(sources, seen, answers)
    alone = model.answer_logits(sources[:1, :3], seen[:1, :3], answers[:1])
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(together[0, 0], together[1, 0], atol=1e-3)  # the source counts


@pytest.mark.parametrize("name", MAKE)
def test_weights_come_back_from_a_folder(name, tmp_path):
    model = made(name)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    assert again.config.model_type == model.config.model_type
    row = torch.tensor(TEXTS)
    torch.testing.assert_close(again.eval()(row).logits, model(row).logits)
