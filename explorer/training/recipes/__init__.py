"""One recipe per model, and heads for a user's own models."""
