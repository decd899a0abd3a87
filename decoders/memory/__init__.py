"""What is kept of a text's keys and values, one policy per file. Knows slots and tensors, no strategy."""
