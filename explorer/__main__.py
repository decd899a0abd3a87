"""`python -m explorer`: strategies, papers, models, train, run, compare, bench."""

from explorer.cli import main

if __name__ == "__main__":
    main()
