"""Loads the models for a command. Imports torch only when it loads."""

from collections.abc import Sequence

from decoders.models.catalog import by_role
from decoders.models.shared_tokens import default_draft
from decoders.refusal import Refusal


def load_models(
    model: str, draft: str | None, needs: tuple[str, ...], device: str, heads: Sequence[str] = ()
) -> dict:
    """The models that a strategy needs, by role, with the user's own heads: those of `heads`, and folders of
    heads that are named in place of a draft model. Raises Refusal with one sentence, also about a draft
    model that is not needed.
    """
    from transformers.utils import logging

    from decoders.models.loading import load
    from decoders.models.named_heads import check_drafts_used, without_heads

    logging.disable_progress_bar()
    named, own = without_heads(by_role(model, draft))
    check_drafts_used(named, needs)
    models = {"target": load(model, device)}
    if "draft" in needs:
        if len(named) == 1 and (usual := default_draft(model)) is None:
            raise Refusal(f"this strategy needs a draft model that fits {model}; name one with --draft.")
        for role, name in (named if len(named) > 1 else by_role(model, usual)).items():
            if role != "target":
                models[role] = load(name, device)
    if own or heads:
        from decoders.models.model_heads import add_heads  # on demand: imports every kind of head

        add_heads(models, [*own, *heads])
    return models
