"""The address that starts a Ray cluster on this machine."""

LOCAL = "local"
