"""What the models read: stories, tasks, fact sheets, and rows of them."""
