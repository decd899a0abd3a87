"""Some rows of the table of architectures in docs/models.md, found anew. All of them:
`python -m tests.models --all --write`.
"""

import pytest

from tests.models import table
from tests.models.check import checked

SMALL = [  # a plain model, and one for each way to differ from it
    "llama",
    "gpt2",
    "mistral",
    "gemma3_text",
    "gemma3n_text",
    "gemma4_text",
    "gpt_oss",
    "llama4_text",
    "deepseek_v3",
    "deepseek_v32",
    "gpt_neo",
    "mamba",
    "roberta",
    "xlm",
]


@pytest.mark.parametrize("architecture", SMALL)
def test_the_documented_row_is_what_happens(architecture):
    assert table.line(checked(architecture)) == table.written()[architecture]


def test_the_table_is_in_order_and_whole():
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as NAMES

    assert list(table.written()) == sorted(NAMES)
