"""Tree searches over tokens, with tests, values or constraints."""
