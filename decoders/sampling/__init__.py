"""One token at a time: greedy and sampling."""
