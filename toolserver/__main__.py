"""`python -m toolserver`."""

from toolserver.cli.main import main

main()
