"""Bytes of tokens: for each kind of tokenizer a text's tokens in a row are what the tokenizer decodes."""

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import CTRLTokenizer, PreTrainedTokenizerFast

from decoders.models.token_bytes import TokenBytes

TEXT = 'Once upon a time, there was a girl. She didn\'t, did she? "No," she said.  Two  spaces\n漢字 🙂 é'
ADDED = " <tool_call>x<｜fim▁hole｜> y"
UNKNOWN = "[UNK]"
END = "</w>"
KINDS = {
    "WordPiece": lambda: (
        models.WordPiece(unk_token=UNKNOWN),
        trainers.WordPieceTrainer(vocab_size=200, special_tokens=[UNKNOWN]),
        pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece(),
    ),
    "ends of words": lambda: (
        models.BPE(unk_token=UNKNOWN, end_of_word_suffix=END),
        trainers.BpeTrainer(vocab_size=200, special_tokens=[UNKNOWN], end_of_word_suffix=END),
        pre_tokenizers.BertPreTokenizer(),
        decoders.BPEDecoder(),
    ),
    "words": lambda: (
        models.WordLevel(unk_token=UNKNOWN),
        trainers.WordLevelTrainer(special_tokens=[UNKNOWN]),
        pre_tokenizers.Whitespace(),
        None,
    ),
    "byte level": lambda: (
        models.BPE(),
        trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    ),
    "SentencePiece": lambda: (
        models.BPE(unk_token=UNKNOWN, byte_fallback=True),
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=[UNKNOWN, *(f"<0x{byte:02X}>" for byte in range(256))]
        ),
        pre_tokenizers.Metaspace(),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
    ),
}


def tokenizer_of(kind: str) -> PreTrainedTokenizerFast:
    """A small tokenizer of this kind, with a word and a control token that nobody marked as special."""
    model, trainer, pre_tokenizer, decoder = KINDS[kind]()
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        made.decoder = decoder
    trainer.show_progress = False
    made.train_from_iterator([TEXT], trainer)
    found = PreTrainedTokenizerFast(tokenizer_object=made)
    found.add_tokens([AddedToken("<tool_call>"), AddedToken("<｜fim▁hole｜>")])
    found.add_tokens([AddedToken("<s>", special=True)], special_tokens=True)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_in_a_row_are_the_decoded_text(kind):
    tokenizer = tokenizer_of(kind)
    bytes_of, ids = TokenBytes(tokenizer), tokenizer(TEXT + ADDED, add_special_tokens=False)["input_ids"]
    ours, theirs = b"".join(map(bytes_of, ids)).decode(), tokenizer.decode(ids)
    assert ours.strip(" ") == theirs.strip(" ") and "she" in ours
    assert all(one in ours for one in ("<tool_call>", "<｜fim▁hole｜>")) or kind == "SentencePiece"


@pytest.mark.parametrize("kind", KINDS)
def test_control_tokens_are_no_piece_of_a_text(kind):
    tokenizer = tokenizer_of(kind)
    bytes_of, known = TokenBytes(tokenizer), tokenizer.get_vocab()
    assert not any(bytes_of.is_text(known[name]) for name in ("<｜fim▁hole｜>", "<s>"))
    assert bytes_of.is_text(known["<tool_call>"]) and not bytes_of.is_text(len(tokenizer))


def test_a_tokenizer_without_a_backend_says_by_its_vocabulary_that_words_go_on(tmp_path):
    pieces = ["<unk>", "un@@", "do@@", "ing", "it", "ha@@", "s"]
    (tmp_path / "vocab.json").write_text(json.dumps({p: n for n, p in enumerate(pieces)}), "utf-8")
    (tmp_path / "merges.txt").write_text("#version\n", "utf-8")
    tokenizer = CTRLTokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    bytes_of = TokenBytes(tokenizer)
    assert b"".join(map(bytes_of, [1, 2, 3, 4, 5, 6])) == b"undoing it has "
    assert tokenizer.decode([1, 2, 3, 4, 5, 6]) == "undoing it has"
