"""What every package needs, loaded when it is asked for: a wrong option needs no NumPy."""

from itrust._core.later import offered

__getattr__, __dir__, __all__ = offered(__name__)
