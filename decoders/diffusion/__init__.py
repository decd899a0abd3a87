"""Denoising: a model with bidirectional attention fills a canvas of masks after the prompt, in any order."""
