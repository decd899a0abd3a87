"""One file per view, which folds a lane's events into a scene. Files here are found automatically."""
