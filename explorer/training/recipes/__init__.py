"""One recipe a model, and heads for one's own models."""
