"""The roles of the draft models that a lane may have."""

DRAFT_ROLES = ("draft", "draft 2", "draft 3", "draft 4")
