"""The command line inside the test process."""

import inspect

from click.testing import CliRunner

from itrust.cli import app

# Older versions of click mix both streams unless told not to.
APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


def invoke(*args, **settings):
    return CliRunner(**APART).invoke(app, [str(arg) for arg in args], **settings)
