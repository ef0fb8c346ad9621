"""Where the command `itrust` and `python -m itrust` start.

Ctrl-C ends the command quietly while the rest of the package is still loading.
"""

import os
import signal
import sys


def main() -> None:
    """Load the package, then hand over."""

    def stop(*_: object) -> None:
        sys.stderr.write("itrust: stopped\n")
        sys.stderr.flush()
        os._exit(130)  # nothing has begun yet, and half-loaded modules print tracebacks

    before = signal.signal(signal.SIGINT, stop)
    from itrust.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
