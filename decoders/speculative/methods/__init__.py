"""The methods that draft and verify, one a file; each puts parts together."""
