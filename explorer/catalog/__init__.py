"""What there is to choose from: cards of methods, papers, recorded runs."""
