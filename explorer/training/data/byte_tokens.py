"""Bytes as tokens, for models that read and write them: the end of a text, padding, and 256 bytes."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from explorer.corpus import END, PAD, ended


def byte_tokenizer(longest: int) -> PreTrainedTokenizerFast:
    """A tokenizer of 258 tokens: END, PAD, and one per byte. longest: the maximum number of tokens of its
    model.
    """
    symbols = [END, PAD, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={symbol: at for at, symbol in enumerate(symbols)}, merges=[]))
    tokenizer.add_special_tokens([END, PAD])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return ended(tokenizer, longest)
