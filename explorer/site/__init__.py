"""The app as static files for any web host: replays, lessons, experiments, papers and documentation."""
