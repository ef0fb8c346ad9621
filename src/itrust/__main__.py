"""Where the command `itrust` and `python -m itrust` start.

Ctrl-C ends the command quietly while the rest of the package is still loading.
"""

import os
import signal
import sys
from typing import NoReturn


def stop_while_loading(*_: object) -> NoReturn:
    """End the process at once: nothing has begun yet, and half-loaded modules print tracebacks."""
    sys.stderr.write("itrust: stopped\n")
    sys.stderr.flush()
    os._exit(130)


def main() -> NoReturn:
    """Load the package, then hand over; `itrust.cli.exit.loaded` takes the handler away again."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, stop_while_loading)
    from itrust.cli import main as run

    run(stop_while_loading)


if __name__ == "__main__":
    main()
