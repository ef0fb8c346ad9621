"""The command line: `itrust audit | demo | recalibrate | tasks | doctor`."""

from itrust.cli.app import app, main

__all__ = ["app", "main"]
