"""A keeper that dies at a chosen move, alone or together with the process that started it.

It starts as keepers do, without the package: the module of the real one is loaded from its file.
"""

import importlib.util
import os
import signal
import sys

moves = 0


def main():
    global moves
    where, who, at = os.environ["ITRUST_KILL"].split(" ", 2)[::-1]
    spec = importlib.util.spec_from_file_location("replacement", where)
    real = importlib.util.module_from_spec(spec)
    sys.modules["replacement"] = real
    spec.loader.exec_module(real)

    def dying(call):
        def move(*args):
            global moves
            moves += 1
            if moves - 1 == int(at):
                if who == "both":
                    os.kill(os.getppid(), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            call(*args)

        return move

    os.rename, os.replace = dying(os.rename), dying(os.replace)
    real.keep(0)


if __name__ == "__main__":
    main()
