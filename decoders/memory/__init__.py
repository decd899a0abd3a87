"""What is kept of a text's keys and values, one policy per file; knows slots and tensors, no strategy."""
