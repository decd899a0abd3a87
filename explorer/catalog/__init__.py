"""The catalogue: cards of methods, papers and recorded runs, and maps of them."""
