"""`python -m frazil.cli`: the same as the `frazil` command."""

from frazil.cli.start import main

if __name__ == "__main__":
    main()
