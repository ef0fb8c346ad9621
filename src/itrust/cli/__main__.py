"""`python -m itrust.cli` does what `itrust` does."""

from itrust.cli.app import main

main()
