"""Sentences for people, made of the codes and numbers of a decision."""
