"""From logits to a distribution: processors, probabilities, entropies."""
