"""The app: runs and lanes, the page, the command line, benchmarks. Knows strategies by the registry alone."""
