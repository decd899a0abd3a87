"""Drafts with another tokenizer: the target's distribution to 1e-12 on tables whose words differ, and its own
greedy text on models whose tokenizers differ, however the text is cut.
"""

from dataclasses import dataclass

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.drafters.other_tokenizer import OwnTokens, carried_over, image
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Propose
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds

WAYS = ["text", "common tokens", "first pieces"]
TARGET_WORDS, DRAFT_WORDS = ["a", "b", "ab"], ["b", "a", "ba", "c"]
TEXT = "the cat sat on a mat; the cat"


def tables(eos: bool = False) -> dict[str, TableModel]:
    """Two tables over texts of a and b, cut in other ways; c is a token of the draft alone."""
    target = TableModel(random_table(1), 3, frozenset({1} if eos else ()), words=TARGET_WORDS)
    return {"target": target, "draft": TableModel(random_table(2, 4), 4, words=DRAFT_WORDS)}


@pytest.mark.parametrize("eos", [False, True])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.6, "top_p": 0.8}])
@pytest.mark.parametrize("through", WAYS)
def test_every_way_has_the_target_s_distribution(through, shape, eos):
    given, found = {"through": through, "num_assistant_tokens": 2} | shape, tables(eos)
    law = law_of_rounds(Exhaustive(), "universal", found, given, length=3)
    assert distance(law, exact_distribution(found["target"], (0,), 3, shape_of(shape))) < 1e-12


def test_what_draft_tokens_stand_for():
    target, draft = tables().values()
    assert image(target, draft, first=False).tolist() == [1, 0, -1, -1]  # b, a
    assert image(target, draft, first=True).tolist() == [1, 0, 1, 0]  # ba begins with b; c is no text of its
    probs = torch.tensor([[0.4, 0.2, 0.3, 0.1], [0.0, 0.0, 1.0, 0.0]], dtype=torch.float64)
    shared = carried_over(probs, image(target, draft, first=False), 3).exp()
    assert shared[0].tolist() == pytest.approx([1 / 3, 2 / 3, 0.0])
    assert shared[1].tolist() == pytest.approx([1 / 3] * 3)  # nothing is shared: any guess will do


def other_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Byte-level too, with other ids and other merges: `the`, `at`, ` c`."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet(), reverse=True)
    vocabulary = {piece: i for i, piece in enumerate([*letters, "he", "the", "at", "Ġc"])}
    merges = [("h", "e"), ("t", "he"), ("a", "t"), ("Ġ", "c")]
    bpe = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="</s>")


@pytest.fixture(scope="module")
def pair(tiny_model) -> dict[str, LoadedModel]:
    torch.manual_seed(3)
    words = other_tokenizer()
    sizes = tiny_models.ROPE | dict(vocab_size=len(words), max_position_embeddings=64, initializer_range=0.35)
    ends = dict(bos_token_id=None, eos_token_id=words.eos_token_id)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **ends)).eval()
    return {"target": tiny_model("llama"), "draft": LoadedModel("other", model, words)}


def run(pair, new_tokens=20, prompt=TEXT, seed=0, **parameters):
    ids = pair["target"].encode(prompt)
    return Lane("universal", ids, pair, parameters, seed, Limits(max_new_tokens=new_tokens)).run()


@pytest.mark.parametrize("through", WAYS)
@pytest.mark.parametrize("prompt", [TEXT, "a", "naïve 東京"])
def test_greedy_text_is_the_target_s(through, prompt, pair):
    found = run(pair, prompt=prompt, through=through, temperature=0.0)
    ids = pair["target"].encode(prompt)
    assert found.output() == tiny_models.generate(pair["target"], ids, max_new_tokens=20)
    drafted = [p for s in found.steps for p in s.of(Propose) if p.source == "draft"]
    assert drafted and found.badge == "lossless: equal to greedy"
    assert any(f.model == "draft" for s in found.steps for f in s.of(Forward))


@dataclass
class Echo(TableModel):
    """Says one text again and again, in its own words."""

    said: tuple[int, ...] = ()

    def __post_init__(self):
        words, said = range(len(self.words)), self.said
        self.table = lambda past: [float(t == said[len(past) % len(said)]) for t in words]


def test_text_carries_over_what_tokens_do_not_share():
    target = Echo(None, 4, words=["ab", "c", "a", "b"], said=(0, 1))  # ab c ab c
    draft = Echo(None, 4, words=["a", "bc", "d", "e"], said=(0, 1))  # a bc a bc
    models = {"target": target, "draft": draft}
    prompt, limits = target.encode("abc"), Limits(max_new_tokens=6)
    settings = {"temperature": 0.0, "num_assistant_tokens": 4}
    found = Lane("universal", prompt, models, settings, limits=limits).run()
    assert found.text() == "abcabcabc" and found.costs.accepted == found.costs.proposed == 4
    common = Lane("universal", prompt, models, settings | {"through": "common tokens"}, limits=limits).run()
    assert common.text() == "abcabcabc" and common.costs.accepted == 0


def test_the_draft_reads_its_own_tokens_and_forgets_what_was_refused(pair):
    lane = Lane(
        "universal", pair["target"].encode(TEXT), pair, {"through": "common tokens"}, limits=Limits(12)
    )
    while lane.advance():
        own = lane.scorers["draft"]
        assert isinstance(own, OwnTokens)
        read = b"".join(map(pair["draft"].bytes_of, own.tree.text(own.place(lane.tip))))
        assert read == own.text(lane.tip).decode("utf-8", "ignore").encode()
        assert set(own.children.values()) <= set(own.tree.path(own.place(lane.tip)))
    assert pair["draft"].engine.cache.used == pair["target"].engine.cache.used == 0


def test_a_draft_whose_context_is_full_drafts_nothing_more(pair):
    found = run(pair, new_tokens=60, through="text", num_assistant_tokens=8, min_new_tokens=60)
    rounds = [any(p.source == "draft" for p in s.of(Propose)) for s in found.steps]
    assert rounds[0] and not rounds[-1] and len(found.output()) > 30


def test_other_strategies_refuse_such_a_pair_and_name_this_one(pair):
    with pytest.raises(
        ValueError, match="has another tokenizer than .* choose Universal drafting, or a draft"
    ):
        Lane("speculative", [5, 6], pair)
    assert Lane("greedy", [5, 6], pair, limits=Limits(2)).run().output()
