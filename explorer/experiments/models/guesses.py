"""The guesses of drafters along texts that the target wrote, with every drafter at the same positions."""

from collections.abc import Callable

import torch

from decoders.heads import Taps, take_taps
from decoders.models.loaded_model import LoadedModel

RANKS = 8
Guess = Callable[[Taps, int], list[torch.Tensor]]  # as DraftModule.along


@torch.no_grad()
def written(
    target: LoadedModel, prompts: list[list[int]], new_tokens: int, temperature: float = 0.0
) -> list[list[int]]:
    """Each prompt with the target's continuation, up to its end token: greedy or sampled, seed 0."""
    longest, pad = max(map(len, prompts)), 0
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts], device=target.model.device)
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=ids.device)
    torch.manual_seed(0)
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    )
    wrote = target.model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=new_tokens, pad_token_id=pad, **sampling
    )[:, longest:].tolist()
    texts = []
    for prompt, new in zip(prompts, wrote, strict=True):
        ends = [at for at, token in enumerate(new) if token in target.eos]
        texts.append(prompt + (new[: ends[0] + 1] if ends else new))
    return texts


class Tally:
    """Sums of one drafter's guesses over texts."""

    def __init__(self, depth: int):
        self.right = torch.zeros(depth, RANKS)
        self.overlap, self.places = torch.zeros(depth), torch.zeros(depth)
        self.accepted = 0

    def add(self, guesses: list[torch.Tensor], taps: Taps, start: int) -> None:
        """guesses: as `DraftModule.along`, of one text. start: the first row n whose root was written by the
        target.
        """
        tokens, running = taps.tokens[0], None
        for at, logits in enumerate(guesses):
            k, logits = at + 1, logits[0, start:].float()  # [N, V]
            if not len(logits):
                break
            following = tokens[start + 1 + k :]  # [N]
            hits = logits.topk(RANKS).indices == following[:, None]
            p = taps.p[0, start + k : start + k + len(logits)]
            self.right[at] += hits.sum(0).cpu()
            self.overlap[at] += torch.minimum(p, logits.softmax(-1)).sum().cpu()
            self.places[at] += len(logits)
            running = hits[:, 0] if running is None else running[: len(hits)] & hits[:, 0]
            self.accepted += int(running.sum())

    def numbers(self) -> dict:
        """See `measured`."""
        places = self.places.clamp(min=1)
        return {
            "places": int(self.places[0]),
            "accuracy": (self.right / places[:, None]).tolist(),
            "accepted": self.accepted / places[0].item(),
            "overlap": (self.overlap / places).tolist(),
        }


@torch.no_grad()
def along_texts(
    target: LoadedModel,
    guesses: dict[str, Guess],
    texts: list[list[int]],
    starts: list[int],
    layers,
    depth: int,
) -> dict[str, dict]:
    """The numbers of each drafter over `texts`, in which every token after the first `starts` tokens is the
    target's.
    """
    tallies = {name: Tally(depth) for name in guesses}
    for text, start in zip(texts, starts, strict=True):
        taps = take_taps(target.model, torch.tensor([text], device=target.model.device), layers)
        for name, along in guesses.items():
            tallies[name].add(along(taps, depth), taps, start - 1)
    return {name: tally.numbers() for name, tally in tallies.items()}
