"""Views: fold a lane's events into scenes that the player draws."""
