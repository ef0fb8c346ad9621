"""What a batch is called, and the names that batches of its model have."""

from __future__ import annotations

from dataclasses import dataclass

from itrust.cli.inputs import SPOOLED, InputFiles
from itrust.cli.options import Options
from itrust.data import FORMATS, split_table
from itrust.watch import Watch

MAX_NAME = 200  # characters
ENDINGS = (".gz", *(ending for kind in FORMATS for ending in kind.endings))


@dataclass(frozen=True)
class BatchName:
    """A batch among those of its model."""

    text: str | None
    segment: int
    taken: frozenset[str] = frozenset()
    is_typed: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether rows were counted under this name, be it late."""
        return self.text is not None and bool({self.text, _with(self.text, "late")} & self.taken)

    def free(self, late: bool) -> str | None:
        """A name that no batch of the model has; one that was typed is left to be refused."""
        if self.text is None or (not late and (self.is_typed or self.text not in self.taken)):
            return self.text
        numbers = range(2, len(self.taken) + 3)
        ends = ["late", *(f"late {k}" for k in numbers)] if late else map(str, numbers)
        return next(name for end in ends if (name := _with(self.text, end)) not in self.taken)


def _with(name: str, end: str) -> str:
    """A name with something in brackets behind it, cut where it would be too long."""
    return f"{name[: MAX_NAME - len(end) - 3]} ({end})"


def batch_name(options: Options, source: InputFiles, watch: Watch) -> BatchName:
    """How the batch in some files is called."""
    segment = watch.segments[-1].number
    records = [record for record in watch.history if record.segment == segment]
    taken = frozenset(record.name for record in records if record.name is not None)
    if options.name is not None:
        return BatchName(str(options.name), segment, taken, is_typed=True)
    return BatchName(_of_file(source), segment, taken)


def _of_file(source: InputFiles) -> str | None:
    """The name of the one file without its ending, with the table in it that was named."""
    if source.name == SPOOLED or len(source.files) != 1:
        return None
    path, table = split_table(source.files[0])
    name = path.name
    while name.lower().endswith(ENDINGS):
        name = name.rpartition(".")[0]
    name = (name if table is None else f"{name}::{table}")[:MAX_NAME]
    return name if name.strip() else None
