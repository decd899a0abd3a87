"""Denoising: a canvas of masks after the prompt, filled in any order by a model that looks both ways."""
