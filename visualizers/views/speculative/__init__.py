"""Views of lanes that guess several tokens and test them."""
