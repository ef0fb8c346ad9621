"""Everything in one go: the audit, its charts, its verdict, disclosure control, several models."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
