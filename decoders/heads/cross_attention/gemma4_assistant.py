"""The assistant of Gemma 4 (Google, 2026): small layers that attend to the target's keys and values.

    x = W [E(token); state], then the layers and a norm give h; logits = head(h), next state = V h

E and the first state are the target's; below a drafted token, the state is V h of that token. A layer has
queries alone: its keys and values are those of the target's last layer of its type (sliding or full) that has
its own, of the tokens that the target has read. All queries of a round stand at the newest token, which is
not among these: as in transformers' `SinglePositionMultiTokenCandidateGenerator`.
"""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from decoders.engine.attention_kernels import attend
from decoders.heads.feature_drafters.multi_token import Appending
from decoders.heads.parts.layers import turned
from decoders.heads.parts.module import ALL, DraftModule, Sees
from decoders.heads.parts.taps import Taps, Target

SLIDING = "sliding_attention"
Shared = dict[str, tuple[torch.Tensor, ...]]  # type of layer -> keys and values, each [1, H, M, D]


@dataclass
class Read:
    """What one lane's target has read (`shared`, of `known` tokens), and the states [1 + drafted, d] after
    the root and the drafted nodes.
    """

    known: int = 0
    shared: Shared = field(default_factory=dict)
    states: torch.Tensor | None = None


@dataclass(frozen=True)
class AssistantForm:
    """Sizes of the network; for each layer the type of the target's layer that it reads, and its head size.
    `centroids`: how many groups of tokens there are, of which the best `groups` are scored; 0: all are.
    """

    width: int
    inner: int
    heads: int
    eps: float
    window: int
    layers: tuple[tuple[str, int], ...]
    centroids: int = 0
    groups: int = 0


class QueryLayer(nn.Module):
    """One layer: attention of queries alone and a gated MLP, with a norm in front of each and behind it."""

    def __init__(self, form: AssistantForm, head_size: int):
        super().__init__()
        width, across = form.width, form.heads * head_size
        self.q, self.out = (
            nn.Linear(width, across, bias=False),
            nn.Linear(across, width, bias=False),
        )
        self.gate, self.up = (nn.Linear(width, form.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(form.inner, width, bias=False)
        self.q_norm = nn.RMSNorm(head_size, form.eps)
        self.before_mixing, self.after_mixing = (nn.RMSNorm(width, form.eps) for _ in range(2))
        self.before_feed, self.after_feed = (nn.RMSNorm(width, form.eps) for _ in range(2))
        self.register_buffer("scale", torch.ones(1))

    def forward(
        self,
        x: torch.Tensor,
        turns: tuple[torch.Tensor, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """x [N, d] over keys and values [1, H, M, D], all of which every row sees; turns: cos and sin [1, 1,
        D] of the rows' place.
        """
        q = self.q_norm(self.q(self.before_mixing(x)).unflatten(-1, (-1, self.q_norm.weight.numel())))
        q = (q * turns[0] + turned(q) * turns[1]).transpose(0, 1)[None]  # [1, heads, N, D]
        mixed = attend(q, keys.to(q.dtype), values.to(q.dtype), scale=1.0, enable_gqa=True)
        x = x + self.after_mixing(self.out(mixed[0].transpose(0, 1).flatten(1)))
        normed = self.before_feed(x)
        fed = self.down(F.gelu(self.gate(normed), approximate="tanh") * self.up(normed))
        return (x + self.after_feed(fed)) * self.scale


class Gemma4Assistant(DraftModule):
    """`sources`: type of layer -> the target's layer whose keys and values are read."""

    kind = "gemma4_assistant"
    sees = Sees(ALL, root=True, path=True, layers=True)

    def __init__(self, target: Target, form: AssistantForm, sources: dict[str, int]):
        super().__init__(target)
        self.form, self.sources = form, sources
        self.reads = tuple(sorted(sources.values()))
        self.enter = nn.Linear(2 * target.width, form.width, bias=False)
        self.leave = nn.Linear(form.width, target.width, bias=False)
        self.layers = nn.ModuleList(QueryLayer(form, size) for _, size in form.layers)
        self.norm = nn.RMSNorm(form.width, form.eps)
        self.head = nn.Linear(form.width, len(target.head), bias=False)
        if form.centroids:
            self.centroids = nn.Linear(form.width, form.centroids, bias=False)
            self.register_buffer("order", torch.zeros(len(target.head), dtype=torch.long))

    def memory(self) -> Read:
        return Read()

    def keys_and_values(self, states: dict[int, torch.Tensor], first: int) -> Shared:
        """The keys and values of the M tokens at places first, first + 1, ..., computed by the target's
        layers from the streams [M, d] in front of them.
        """
        base, shared = self.target.model.base_model, {}
        for kind, at in self.sources.items():
            layer, made = base.layers[at], Appending(None)
            x = layer.input_layernorm(states[at].to(self.target.embed.dtype)[None])
            places = torch.arange(first, first + x.shape[1], device=x.device)[None]
            turns = base.rotary_emb(x, places, kind)
            layer.self_attn(
                x,
                position_embeddings=turns,
                attention_mask=None,
                shared_kv_states={},
                past_key_values=made,
            )
            shared[kind] = made.past
        return shared

    def guess(
        self, shared: Shared, place: int, tokens: torch.Tensor, states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [N, V] and next states [N, d] of N queries at `place`, from tokens [N] and the state [N, d]
        before each.
        """
        model = self.target.model
        embedded = model.get_input_embeddings()(tokens)  # which scales them
        x = self.enter(torch.cat([embedded, states.to(embedded.dtype)], -1))
        at = torch.tensor([[place]], device=x.device)
        for layer, (kind, _) in zip(self.layers, self.form.layers, strict=True):
            keys, values = shared[kind]
            if kind == SLIDING:  # the queries' distance from the oldest is at most the window
                keys, values = (part[:, :, -self.form.window - 1 :] for part in (keys, values))
            x = layer(x, model.base_model.rotary_emb(x, at, kind), keys, values)
        x = self.norm(x)
        return self.words(x), self.leave(x)

    def words(self, x: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] of the layers' outputs [N, d]; with centroids, the lowest number for all tokens but
        those of the best groups.
        """
        logits = self.head(x)
        if not self.form.centroids:
            return logits
        best = self.centroids(x).topk(self.form.groups, dim=-1).indices  # [N, groups]
        scored = self.order.view(self.form.centroids, -1)[best].flatten(1)  # [N, tokens]
        sparse = torch.full_like(logits, torch.finfo(logits.dtype).min)
        return sparse.scatter(1, scored, logits.gather(1, scored))

    def begin(
        self,
        memory: Read,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`."""
        new = self.keys_and_values(states or {}, memory.known)
        if memory.shared:
            new = {
                kind: tuple(torch.cat(pair, 2) for pair in zip(memory.shared[kind], both, strict=True))
                for kind, both in new.items()
            }
        memory.shared, memory.known = new, memory.known + len(tokens)
        logits, memory.states = self.guess(memory.shared, memory.known, tokens[-1:], hidden[-1:])
        return logits[0]

    def expand(self, memory: Read, parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] below new nodes, as `DraftModule.begin` says."""
        logits, states = self.guess(memory.shared, memory.known, tokens, memory.states[parents])
        memory.states = torch.cat([memory.states, states])
        return logits

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """As `DraftModule.along`, row by row: each row sees other keys and values."""
        guesses: list[list[torch.Tensor]] = [[] for _ in range(depth)]
        for text in range(len(taps.tokens)):
            tokens = taps.tokens[text]
            whole = self.keys_and_values({layer: s[text] for layer, s in taps.states.items()}, 0)
            for row in range(taps.rows(1)):
                shared = {k: tuple(part[:, :, : row + 1] for part in both) for k, both in whole.items()}
                state = taps.hidden[text, row : row + 1]
                for k in range(1, depth + 1):
                    if row < taps.rows(k):
                        logits, state = self.guess(shared, row + 1, tokens[row + k : row + k + 1], state)
                        guesses[k - 1].append(logits)
        texts = len(taps.tokens)
        return [torch.cat(rows).unflatten(0, (texts, -1)) for rows in guesses]
