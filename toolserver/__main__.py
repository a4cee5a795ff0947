"""`python -m toolserver`."""

from toolserver.cli import main

main()
