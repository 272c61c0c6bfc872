"""`python -m llamasweep` and the `llamasweep` command."""

from llamasweep.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
