"""What a draft is made from and which shape it has."""
