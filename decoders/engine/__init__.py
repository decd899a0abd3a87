"""One model over a token tree: slots, masks, forwards. Knows token ids and tensors, no strategy."""
