"""Audits in other people's machinery; each module wants the package that it is named after."""

__all__: list[str] = []
__dir__ = __all__.copy  # what tab completion offers
