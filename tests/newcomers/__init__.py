"""What newcomers are asked to do with the app, as a script: `python -m tests.newcomers`."""
