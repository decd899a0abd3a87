"""`python -m explorer COMMAND`; `--help` lists the commands."""

from explorer.cli import main

if __name__ == "__main__":
    main()
