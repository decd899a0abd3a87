"""Sentences for people, made from the codes and numbers of a decision."""
