"""What llama-tiny-aligned, as the aligned model of Transfer Q*, gains in reward on held-out stories: compared
with the target's own text, its own text, and the paper's baselines, prompt by prompt.
"""

import math
from pathlib import Path

import torch

from decoders.models.loaded_model import LoadedModel
from decoders.search.stepwise.scorers import Text, keyword
from explorer.corpus import read_stories
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with, traces
from explorer.training.recipes.llama_tiny_aligned import REWARD, beginnings

PROMPTS, NEW_TOKENS, FILE = 200, 24, "rewards.json"
SHAPE = {**REWARD, "candidates": 6, "guidance": 20.0, "rollout_tokens": 12}
VARIANTS = ("direct", "cd", "args")
BASE = "cd"  # what every other row is compared with


def reward(text: str) -> float:
    """The share of the friendly words that occur."""
    return keyword(Text("", text, whole=True), REWARD)


def written(model: LoadedModel, strategy: str, settings: dict, begun: torch.Tensor) -> list[float]:
    """The reward of a strategy's continuation of each beginning [R, T]."""
    lanes = traces(strategy, begun.tolist(), {"target": model}, settings, NEW_TOKENS)
    rewards = [reward(trace.text()) for trace in lanes]
    print(strategy, settings.get("variant", ""), round(sum(rewards) / len(rewards), 4), flush=True)
    return rewards


@torch.no_grad()
def sampled(model: LoadedModel, begun: torch.Tensor, aligned: bool) -> list[float]:
    """The reward of text sampled from the target, or from the aligned model, at temperature 1."""
    torch.manual_seed(0)
    ids, new, past = begun, begun, None
    for _ in range(NEW_TOKENS):
        out = model.model.model(input_ids=new, past_key_values=past, use_cache=True)
        hidden, past = out.last_hidden_state[:, -1], out.past_key_values
        logits = model.heads["aligned"](hidden) if aligned else model.model.lm_head(hidden)
        new = torch.multinomial(logits.float().softmax(-1), 1)
        ids = torch.cat([ids, new], 1)
    texts = (model.tokenizer.decode(row[begun.shape[1] :], skip_special_tokens=True) for row in ids)
    return [reward(text) for text in texts]


def compared(rewards: list[float], base: list[float]) -> dict[str, float]:
    """Mean reward, its lead over the base, prompt by prompt, and twice the standard error."""
    gaps = [a - b for a, b in zip(rewards, base, strict=True)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / max(1, len(gaps) - 1) / len(gaps))
    return {"reward": sum(rewards) / len(rewards), f"above {BASE}": mean, "2 s.e.": 2 * spread}


def measure(folder: Path, corpus: Path) -> Findings:
    """Row -> mean reward, and its lead over controlled decoding's; as a fact how that was compared."""
    model = model_with(folder)
    begun = beginnings(model.tokenizer, read_stories(corpus)[1], PROMPTS)
    result = {"greedy": written(model, "greedy", {}, begun)}
    result["sampled"] = sampled(model, begun, aligned=False)
    result["aligned model, sampled"] = sampled(model, begun, aligned=True)
    for variant in VARIANTS:
        result[variant] = written(model, "transfer_q", {**SHAPE, "variant": variant}, begun)
    rows = {name: compared(rewards, result[BASE]) for name, rewards in result.items()}
    shape = "{candidates} candidates, guidance {guidance:g} and {rollout_tokens} tokens ahead".format(**SHAPE)
    compared_as = {"prompts": len(begun), "tokens": NEW_TOKENS, "shape": shape}
    return Findings({FILE: rows}, {"compared": compared_as})
