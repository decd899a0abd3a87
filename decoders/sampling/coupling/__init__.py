"""A message hidden in samples: two distributions coupled with little entropy."""
