"""One model over a token tree: slots, masks, forwards."""
