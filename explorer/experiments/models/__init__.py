"""Small models that only experiments train, and the layers that they are made of."""
