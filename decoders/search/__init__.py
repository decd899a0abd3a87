"""Several hypotheses at once: beams and look-ahead."""
