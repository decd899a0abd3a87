"""`python -m explorer`: strategies, papers, run, bench."""

from explorer.cli import main

if __name__ == "__main__":
    main()
