"""The model card: README.md of a model's folder, from its facts, its loss curve and what was measured.

Knows Markdown and where the texts come from; measures nothing.
"""

from corpus import STORY_MIX

SOURCES = {
    "tinystories_sample": "TinyStories, first part (CDLA-Sharing-1.0)",
    "tinyfabulist_fables": "klusai/tinyfabulist (MIT)",
    "african_storybook_en": "African Storybook, global-asp/asp-source (CC BY 4.0)",
    "pratham_storyweaver_en": "Pratham Books StoryWeaver, global-asp/pb-source (CC BY 4.0)",
}
SNAKES = "erikhyrkas/snakes (MIT), written by Llama 3.1"
WARNING = (
    "A teaching exhibit: it tells simple stories, knows nothing, and must not be used for anything else."
)
BUILT = "Built with Llama: part of the training text was written by Llama 3.1."


def data() -> str:
    """The section on where the texts come from."""
    return "\n".join(["## Data", *(f"- {file}: {SOURCES.get(file, SNAKES)}" for file in STORY_MIX), ""])


def front(name: str, what: str) -> str:
    """What every card begins with."""
    return f"""---
license: apache-2.0
library_name: transformers
language: en
---
# {name}

{what}
"""


def losses(name: str, curve: list[dict]) -> str:
    """The picture of the loss curve, and up to eight of its points."""
    points = [curve[i] for i in sorted({round(k * (len(curve) - 1) / 7) for k in range(8)})]
    columns = ("million_tokens", "training_loss", "held_out_loss")
    rows = ["| " + " | ".join(f"{float(p[c]):.2f}" for c in columns) + " |" for p in points]
    picture = f"![Training and held-out loss of {name} against the tokens read](loss.svg)"
    return "\n".join(
        [picture, "", "| million tokens | training loss | held-out loss |", "|---|---|---|", *rows, ""]
    )


def recipe(name: str) -> str:
    """Where it was trained."""
    return f"`assets/recipes/{name.replace('-', '_')}.py`"


def card(name: str, what: str, facts: dict, curve: list[dict], extra: str) -> str:
    """The whole card of a model. curve: the rows of loss.csv; extra: Markdown with what was measured. Of the
    facts, `architecture` (else Llama) and `tokens_of` (else rows of 256) say how it differs from the target.
    """
    about = f"""{BUILT} {facts.get("architecture", "Llama")} architecture, trained from scratch.

- {facts["parameters"]:,} parameters, context 512, bfloat16 safetensors; byte-level BPE of 4,096 tokens with
  single digits, shared by the family
- trained on {facts["million_tokens"]} million tokens {facts.get("tokens_of", "in rows of 256")}
- recipe: {recipe(name)}
- held-out loss {facts["held_out_loss"]} nats a token (perplexity {facts["held_out_perplexity"]})
"""
    note = facts.get("note", "")
    return "\n".join(
        [front(name, what), about, note, "", losses(name, curve), extra, "", data(), WARNING, ""]
    )
