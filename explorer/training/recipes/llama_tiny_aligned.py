"""llama-tiny-aligned: a small network after the frozen llama-tiny that makes its stories friendlier, trained
to prefer the best quarter of llama-tiny's own samples to the worst; the aligned model of Transfer Q* (2024).
"""

import random
from argparse import Namespace
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.heads import Aligned, Target
from decoders.search.stepwise.scorers import Text, keyword
from explorer.corpus import read_stories
from explorer.training.modules import continued, frozen, parted, ship_scorer, train_scorer, work_of

TARGET, NAME = "llama-tiny", "llama-tiny-aligned"
REWARD = {"scorer": "keyword", "keywords": "loved, friend, friends, play, home, kind, happy, family"}
MILLION_TOKENS = 0.4  # a token counts each time that it is looked at
TEXTS, PROMPT, WRITTEN, WRITERS = 1536, 16, 64, 64  # WRITERS: texts that are written at a time
QUARTER = 0.25  # of the samples, those with the highest reward; as many with the lowest
BATCH, RATES, HELD_OUT = 8, (1e-3, 1e-3), 8  # BATCH: pairs


def beginnings(tokenizer: PreTrainedTokenizerFast, stories: list[str], count: int) -> torch.Tensor:
    """The first PROMPT tokens [count, PROMPT] of stories."""
    cut = (tokenizer(story)["input_ids"][:PROMPT] for story in stories[: 2 * count])
    return torch.tensor([ids for ids in cut if len(ids) == PROMPT][:count])


@torch.no_grad()
def samples(target: LlamaForCausalLM, begun: torch.Tensor, path: Path) -> torch.Tensor:
    """Texts [R, PROMPT + WRITTEN] that the target sampled at temperature 1 after beginnings [R, PROMPT]; kept
    in `path` as they are written.
    """
    result = torch.load(path, weights_only=True) if path.exists() else []
    for some in begun.split(WRITERS)[len(result) :]:
        torch.manual_seed(len(result))
        wrote = continued(target, some.to(target.device), PROMPT + WRITTEN)
        result.append(wrote.cpu())
        torch.save(result, path)
        print(f"{sum(map(len, result))} texts written", flush=True)
    return torch.cat(result)


def reward(tokenizer: PreTrainedTokenizerFast, text: torch.Tensor) -> float:
    """The share of the friendly words that a text [T] contains after its beginning."""
    written = tokenizer.decode(text[PROMPT:], skip_special_tokens=True)
    return keyword(Text("", written, whole=True), REWARD)


def pairs(tokenizer: PreTrainedTokenizerFast, texts: torch.Tensor) -> tuple[torch.Tensor, list[float]]:
    """(best and worst texts [P, 2, T], paired at random; the rewards of all texts)."""
    rewards, rng = [reward(tokenizer, text) for text in texts], random.Random(0)
    order = sorted(range(len(texts)), key=lambda at: (-rewards[at], rng.random()))
    count = max(2, round(QUARTER * len(texts)))
    return torch.stack([texts[order[:count]], texts[order[-count:]]], 1), rewards


@torch.no_grad()
def states(target: LlamaForCausalLM, texts: torch.Tensor) -> torch.Tensor:
    """The target's states [N, WRITTEN, d] before each written token of texts [N, PROMPT + WRITTEN]."""
    result = []
    for some in texts.split(WRITERS):
        hidden = target.model(input_ids=some.to(target.device)).last_hidden_state
        result.append(hidden[:, PROMPT - 1 : -1].cpu().float())
    return torch.cat(result)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    loaded = frozen(TARGET)
    target, tokenizer = loaded.model, loaded.tokenizer
    stories, _ = read_stories(args.corpus)
    work = work_of(args.work, NAME, TARGET)
    begun = beginnings(tokenizer, stories, TEXTS)
    preferred, rewards = pairs(tokenizer, samples(target, begun, work / "samples.pt"))
    read = states(target, preferred.flatten(0, 1)).view(len(preferred), 2, -1, target.config.hidden_size)
    tokens = preferred[..., PROMPT:]
    torch.manual_seed(0)
    model = Aligned(Target.of(target), reward=REWARD).to(target.device)

    def loss(wrote: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        return model.loss(read[some.cpu()].to(wrote.device), wrote)

    budget = args.million_tokens or MILLION_TOKENS
    curve = train_scorer(model, loss, *parted(tokens, HELD_OUT), budget, work, BATCH, RATES)
    facts = {
        "pairs": len(tokens),
        "tokens_of": "of its own samples, each several times",
        "mean_reward": round(sum(rewards) / len(rewards), 4),
        "note": f"Its reward is the share of these words that occur: {REWARD['keywords']}. Among "
        f"{len(rewards)} samples of `{TARGET}` it learned to prefer the best {len(tokens)} to as many of the "
        "worst, by direct preference optimisation (DPO, 2023); the loss is in nats per pair: 0.69 is "
        "no preference.",
    }
    ship_scorer(NAME, model, TARGET, tokenizer, curve, "pair", facts)
