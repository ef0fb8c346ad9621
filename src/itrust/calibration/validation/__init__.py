"""What validators print about the predictions alone, beside what the test given X says."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
