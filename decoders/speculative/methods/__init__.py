"""Methods that draft and verify, one per file; each combines parts."""
