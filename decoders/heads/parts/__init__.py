"""What heads are made of: the module that all are, its layers, and what it reads of the target."""
