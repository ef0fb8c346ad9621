"""`Result`: what every outcome that a user can hold knows how to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from itrust._core.arrays import plain
from itrust._core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def in_pandas(table: pa.Table) -> pd.DataFrame:
    """Give a table as a data frame; needs pandas."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise InputError("pandas is not installed; pip install pandas, or use to_arrow()") from None
    frame: pd.DataFrame = table.to_pandas()
    return frame


class WithFacts:
    """Values with names, some of which follow from others."""

    _derived: ClassVar[tuple[str, ...]] = ()  # properties that are facts, too
    _untold: ClassVar[tuple[str, ...]] = ()  # fields that are none

    def _facts(self) -> Mapping[str, Any]:
        """All that was found, by name; of a dataclass, its fields and what follows from them."""
        this: Any = self
        names = [own.name for own in fields(this) if own.name not in self._untold]
        return self._by_name(*names, *self._derived)

    def _by_name(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            Plain numbers, texts and lists; None where there is no number.
        """
        facts: dict[str, Any] = plain(self._facts())
        return facts


class Result(WithFacts):
    """An outcome: values inside, shown as text, HTML or a picture when it is asked for.

    A subclass gives its facts (`_facts`), if they are not its fields, and, where it is a table, its
    rows (`_rows`). Words and pictures stand in `itrust.render`, to which alone results look down.
    """

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """The result as rows of a table; by default one row of all that is a single value."""
        single = str | int | float | bool | None
        return [{k: v for k, v in self.to_dict().items() if isinstance(v, single)}]

    def to_arrow(self) -> pa.Table:
        """Give the result as a table.

        Returns
        -------
        pyarrow.Table
            One row for each part of the result.
        """
        return pa.Table.from_pylist([plain(row) for row in self._rows()])

    def to_pandas(self) -> pd.DataFrame:
        """Give the result as a data frame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            The rows of `to_arrow`.
        """
        return in_pandas(self.to_arrow())

    def plot(self, ax: Any = None, **settings: Any) -> Any:
        """Draw the result with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        **settings : object
            What the display of this result takes.

        Returns
        -------
        Display
            It keeps the figure (`figure_`) and the axes (`ax_`).
        """
        from itrust.render import as_figure

        return as_figure(self, ax=ax, **settings)

    def __str__(self) -> str:
        from itrust.render import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from itrust.render import in_notebook

        return in_notebook(self)


@dataclass(frozen=True)
class Provenance:
    """How an audit, or the report of a watch, can be made again.

    Page and files show it, so that a reader can check what was looked at.

    Attributes
    ----------
    command : str
        The command line, or the lines of Python.
    file : str or None
        Name of the file that was audited, or of the last batch.
    sha256 : str or None
        Checksum of the file; of several files, of what `sha256sum` prints for them.
    title : str or None
        Of the page.
    model : str or None
        What the model is called, with its version.
    date : str or None
        That is to stand on the page.
    """

    command: str
    file: str | None = None
    sha256: str | None = None
    title: str | None = None
    model: str | None = None
    date: str | None = None
