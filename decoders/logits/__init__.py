"""From logits to a distribution: processors, probabilities, entropies. Knows tensors, no models."""
