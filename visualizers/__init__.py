"""Views: fold a lane's events into scenes that the player draws. Knows events, never a strategy by name."""
