"""Views of lanes that weigh several texts."""
