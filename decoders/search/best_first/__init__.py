"""Best-first searches: the most promising open text is expanded first."""
