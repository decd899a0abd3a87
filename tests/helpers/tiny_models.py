"""Tiny random models with a real byte-level tokenizer, for tests: built in a moment, the same on every
machine and in every run.

Their text means nothing; what matters is that they are real transformers models with sharp, varied
distributions.
"""

import json
import os
from functools import cache, cached_property
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from decoders.heads import DraftModule, ParallelStreams, Target
from decoders.heads.cross_attention.cross_attention import CrossAttentionDrafter
from decoders.heads.path_independent.lookahead_tokens import LookaheadTokens
from decoders.models.flow import FlowModel
from decoders.models.loaded_model import LoadedModel
from decoders.models.lora import Adapter, with_tokens
from tests.helpers.random_heads import DRAFTERS

DEVICE = os.environ.get("DECODING_EXPLORER_TEST_DEVICE", "cpu")  # of tiny models: cuda runs the laws on a GPU
END = "<|end|>"
SIZES = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, pad_token_id=None
)
ROPE = dict(**SIZES, num_key_value_heads=2, tie_word_embeddings=False)
CONTEXT = 256
T = transformers
KINDS = {
    "llama": lambda **c: T.LlamaForCausalLM(T.LlamaConfig(**ROPE, **c)),
    "qwen2": lambda **c: T.Qwen2ForCausalLM(T.Qwen2Config(**ROPE, **c)),
    "qwen3": lambda **c: T.Qwen3ForCausalLM(T.Qwen3Config(**ROPE, head_dim=8, **c)),
    "gpt2": lambda **c: T.GPT2LMHeadModel(
        T.GPT2Config(
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=CONTEXT,
            tie_word_embeddings=False,
            **{k: v for k, v in c.items() if k != "max_position_embeddings"},
        )
    ),
    "gpt_neox": lambda **c: T.GPTNeoXForCausalLM(T.GPTNeoXConfig(**SIZES, tie_word_embeddings=False, **c)),
    "opt": lambda **c: T.OPTForCausalLM(
        T.OPTConfig(
            hidden_size=32,
            ffn_dim=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            word_embed_proj_dim=32,
            pad_token_id=None,
            tie_word_embeddings=False,
            **c,
        )
    ),
    "gemma3": lambda **c: T.Gemma3ForCausalLM(
        T.Gemma3TextConfig(**ROPE, head_dim=8, sliding_window=CONTEXT, **c)
    ),
    "mixtral": lambda **c: T.MixtralForCausalLM(
        T.MixtralConfig(**ROPE, num_local_experts=4, num_experts_per_tok=2, **c)
    ),
    "phi3": lambda **c: T.Phi3ForCausalLM(T.Phi3Config(**ROPE, **c)),
    "forms": lambda **c: T.LlamaForCausalLM(T.LlamaConfig(**ROPE, **c)),  # with tokens of its own
}
# kind -> denoiser; with a mask
MASKED = {"masked": None, "set_block": "set_block", "wedlm": "wedlm", "lud": "lud"}
KINDS |= dict.fromkeys(MASKED, KINDS["llama"])


def flow_model(**config) -> FlowModel:
    """A fresh tiny discrete flow model with a canvas of sixteen positions."""
    torch.manual_seed(0)
    own = {"denoiser": "flow", "writing_layers": 1, "canvas": 16, "source_offset": 1}
    form = {"source_form": "correct: SENTENCE =>"}
    made = T.LlamaConfig(**ROPE, **({"max_position_embeddings": CONTEXT} | config), **own, **form)
    return FlowModel(made).eval()


MAKERS = KINDS | {"flow": flow_model}  # also of what scores no next token
MASK = "<|mask|>"
FORMS = ("<PRE>", "<SUF>", "<MID>", "<EOT>", "<t0>", "<t1>", "<t2>", "<end>", "<e>", "</e>")


@cache
def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE with the 256 bytes, two merges (so that a character may be split or joined) and an end
    token.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: i for i, piece in enumerate([*letters, "th", "Ġa"])}
    bpe = Tokenizer(models.BPE(vocab=vocabulary, merges=[("t", "h"), ("Ġ", "a")]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END)


@cache
def forms_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """The same with sentinels for infilling, with topics, and with tags around units."""
    return with_tokens(tokenizer.__wrapped__(), list(FORMS))


@cache
def masked_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """The same with a mask as its last token."""
    return with_tokens(tokenizer.__wrapped__(), [MASK])


def make(
    kind: str = "llama",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    endings: float = 2.0,
    device: str = DEVICE,
) -> LoadedModel:
    """A fresh tiny model, the same on each device. `endings`: how strongly the logit of its end-of-text token
    varies, so that texts do end.
    """
    torch.manual_seed(seed)
    tokenizers = {"forms": forms_tokenizer} | dict.fromkeys(MASKED, masked_tokenizer)
    words = tokenizers.get(kind, tokenizer)()
    end = words.eos_token_id
    model = MAKERS[kind](
        vocab_size=len(words),
        max_position_embeddings=CONTEXT,
        initializer_range=0.35,
        bos_token_id=None,
        eos_token_id=end,
    )
    if kind in MASKED:
        model.config.mask_token_id, model.config.denoiser = len(words) - 1, MASKED[kind]
    model = model.to(dtype).eval().requires_grad_(False)
    model.get_output_embeddings().weight[end] *= endings
    model.generation_config = transformers.GenerationConfig(eos_token_id=end, pad_token_id=end)
    tokens_of = make(device=device) if kind in (*MASKED, "flow") else None
    made = TinyModel(f"tiny-{kind}", model.to(device), words, tokens_of=tokens_of)
    made.seed = seed
    return made


class TinyModel(LoadedModel):
    """A loaded model with draft heads of random weights, if some are built for it. Heads that draft from part
    of its layers start from the output of these layers, so it needs none. `seed`: determines its weights.
    """

    seed = 0

    @cached_property
    def heads(self) -> dict[str, torch.nn.Module]:
        if type(self.model).__name__ != "LlamaForCausalLM":
            return {}
        target = Target.of(self.model)
        streams = shaken(ParallelStreams(target).to(self.model.dtype)).to(self.model.device)
        return random_modules(target) | {"streams": streams}


def shaken(module: torch.nn.Module) -> torch.nn.Module:
    """A module with random weights everywhere, so that no gate is nearly closed."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=draw, dtype=torch.float32)
            parameter.copy_(noise * parameter.shape[-1] ** -0.5 if parameter.ndim else noise)
    return module.eval().requires_grad_(False)


def random_modules(target: Target) -> dict[str, DraftModule]:
    """A module of each kind that reads a target's states, with random weights everywhere: nothing is
    silent.
    """
    torch.manual_seed(1)
    modules = {}
    inside = (LookaheadTokens, CrossAttentionDrafter)  # they run through the model's own layers
    for kind in sorted(DRAFTERS.keys() - {"kangaroo", "m2r2", "fragments"}):
        if target.model is None and issubclass(DRAFTERS[kind], inside):
            continue
        module = modules[kind] = DRAFTERS[kind](target).to(target.embed.dtype)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        module.to(target.embed.device).eval().requires_grad_(False)
    return modules


CHAT = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def save(folder: Path, chat: bool = False, **options) -> str:
    """A tiny model (see `make`) with its tokenizer as a folder, optionally with a chat template; its name."""
    make(**options).model.save_pretrained(folder)
    words = tokenizer.__wrapped__()
    words.chat_template = CHAT if chat else None
    words.save_pretrained(folder)
    return str(folder)


def save_masked(folder: Path) -> str:
    """A folder with a model that fills masks; its name."""
    name = save(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"mask_token_id": 3}), "utf-8")
    return name


def save_refused(folder: Path) -> str:
    """The name of a folder that is refused only when its weights are read: their quantisation is unknown."""
    name = save(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    unknown = {"quantization_config": {"quant_method": "magic"}}
    (folder / "config.json").write_text(json.dumps(config | unknown), "utf-8")
    return name


def adapter(name: str) -> Adapter:
    """A low-rank module of the tiny Llama with random factors and an added token."""
    draw, matrices = torch.Generator().manual_seed(len(name)), {}
    for layer in range(SIZES["num_hidden_layers"]):
        a, b = torch.randn(2, 32, generator=draw), torch.randn(48, 2, generator=draw)
        matrices[f"model.layers.{layer}.mlp.up_proj"] = (0.1 * a, 0.1 * b)
    return Adapter(Path("tiny"), 2.0, matrices, [f"<{name}>"], torch.zeros(1, 32), {})


def labelled_texts(models: dict[str, LoadedModel], pair: list[Adapter]) -> dict[str, tuple]:
    """Rows and labels [2, 6] of three kinds, the last token of one of them added by the first module."""
    rows = torch.randint(256, (3, 2, 6), generator=torch.Generator().manual_seed(0))
    rows[0, :, -1] = len(models["target"].tokenizer)
    return dict(zip(("Verilog", "summaries", "stories"), zip(rows, rows, strict=True), strict=True))


def generate(model: LoadedModel, prompt: list[int], **options) -> list[int]:
    """The new tokens that transformers' own `generate` gives, up to and with the end token."""
    ids = torch.tensor([prompt], device=model.model.device)
    out = model.model.generate(ids, attention_mask=torch.ones_like(ids), **{"do_sample": False} | options)
    return cut(out[0, len(prompt) :].tolist(), model)


def cut(tokens: list[int], model: LoadedModel) -> list[int]:
    """The tokens without the padding after the end token."""
    ends = [i for i, token in enumerate(tokens) if token in model.eos]
    return tokens[: ends[0] + 1] if ends else tokens
