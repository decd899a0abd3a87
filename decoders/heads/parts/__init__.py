"""What heads share: their base class, its layers, and what it reads from the target."""
