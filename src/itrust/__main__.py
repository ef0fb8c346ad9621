"""Where the command `itrust` and `python -m itrust` start.

Ctrl-C ends the command quietly while the rest of the package is still loading.
"""

import os
import signal
from contextlib import suppress
from typing import NoReturn


def occupy_standard_descriptors() -> None:
    """Open the null device on every standard descriptor that is closed.

    A file that is opened later would get its number, and with it what is meant for a terminal.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            taken = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(taken, True)


def stop_while_loading(*_: object) -> NoReturn:
    """End the process at once: nothing has begun yet, and half-loaded modules print tracebacks."""
    with suppress(OSError):
        os.write(2, b"itrust: stopped\n")
    os._exit(130)


def main() -> NoReturn:
    """Load the package, then hand over; `itrust.cli.app` takes the handler away again."""
    occupy_standard_descriptors()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, stop_while_loading)
    from itrust.cli import main as run

    run(stop_while_loading)


if __name__ == "__main__":
    main()
