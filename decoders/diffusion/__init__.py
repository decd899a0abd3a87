"""Denoising: a canvas of masks behind the prompt, filled in any order by a model that looks both ways."""
