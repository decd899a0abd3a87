"""One file a view: it folds a lane's events into a scene. A view is found by being here."""
