"""How the shipped models were made: recipes, data, the loop, measurements and cards."""
