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
BUILT = "Built with Llama: part of the training text was written by Llama 3.1."


def data() -> str:
    """The section on where the texts come from."""
    return "\n".join(["## Data", *(f"- {file}: {SOURCES.get(file, SNAKES)}" for file in STORY_MIX), ""])


def card(name: str, what: str, facts: dict, curve: list[dict], extra: str) -> str:
    """The whole card. curve: the rows of loss.csv; extra: Markdown with what was measured."""
    recipe = name.replace("-", "_")
    points = [curve[round(i * (len(curve) - 1) / 7)] for i in range(8)]
    columns = ("million_tokens", "training_loss", "held_out_loss")
    rows = ["| " + " | ".join(f"{float(p[c]):.2f}" for c in columns) + " |" for p in points]
    head = f"""---
license: apache-2.0
library_name: transformers
language: en
---
# {name}

{what}

{BUILT} Llama architecture, trained from scratch.

- {facts["parameters"]:,} parameters, context 512, bfloat16 safetensors; byte-level BPE of 4,096 tokens with
  single digits, shared by the pair
- trained on {facts["million_tokens"]} million tokens in rows of 256; recipe: `assets/recipes/{recipe}.py`
- held-out loss {facts["held_out_loss"]} nats a token (perplexity {facts["held_out_perplexity"]})
"""
    picture = f"![Training and held-out loss of {name} against the tokens read](loss.svg)"
    table = ["| million tokens | training loss | held-out loss |", "|---|---|---|", *rows]
    warning = (
        "A teaching exhibit: it tells simple stories, knows nothing, and must not be used for anything else."
    )
    note = facts.get("note", "")
    return "\n".join([head, note, "", picture, "", *table, "", extra, "", data(), warning, ""])
