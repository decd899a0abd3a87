"""The app: runs and lanes, the page, the command line, benchmarks."""
