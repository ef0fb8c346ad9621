"""How biases are judged: the rows, how their labels are redrawn, how much error is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from itrust._core import InputError, Rng, as_seed, checked_reach, counted
from itrust.bias.averages import PlaceSet, average_all
from itrust.bias.bands import Averages
from itrust.calibration import null_warnings
from itrust.data import Extract, Sample, Scan, Source, checked_sample, rows_at_hand
from itrust.engines import Auto, Engine, EngineChoice, Survey, as_engine
from itrust.nulls import RowwiseNull, places_null


@dataclass(frozen=True, eq=False)
class Redraws:
    """A sample and how its labels are redrawn: everything is checked here, once."""

    sample: Sample
    null: RowwiseNull
    draws: int
    seed: int
    alpha: float
    extract: Extract | None = None
    engine: Engine = field(default_factory=Auto)

    def __post_init__(self) -> None:
        if self.extract is None:
            object.__setattr__(self, "engine", self.engine.in_memory)

    @classmethod
    def of(
        cls,
        sample: Sample | Scan,
        *,
        alpha: float,
        draws: int,
        rng: Rng = None,
        parts: int = 1,
        engine: EngineChoice = "auto",
    ) -> Redraws:
        """Check the rows and the settings; of very many rows, random ones are at hand.

        Rows that come from a design are loaded: their clusters have to stay whole.
        """
        number, seed = checked_reach(draws, alpha, parts), as_seed(rng)
        chosen, rows = as_engine(engine), sample
        if isinstance(rows, Scan) and not rows.is_simple:
            rows = rows.load()
        if not isinstance(rows, Scan):
            rows = checked_sample(rows)
            if not rows.design.is_simple or rows.n <= rows_at_hand():
                return cls(rows, places_null(rows), number, seed, float(alpha), None, chosen)
        extract = chosen.extract(rows)
        return cls.of_extract(extract, alpha=float(alpha), draws=number, seed=seed, engine=chosen)

    @classmethod
    def of_extract(
        cls, extract: Extract, *, alpha: float, draws: int, seed: int, engine: Engine
    ) -> Redraws:
        """Take rows that were extracted already."""
        some = None if extract.is_all else extract
        return cls(extract.some, places_null(extract.some), draws, seed, alpha, some, engine)

    @property
    def source(self) -> Source:
        """All rows."""
        return self.sample if self.extract is None else self.extract.source

    @property
    def n(self) -> int:
        """Number of all rows."""
        return self.sample.n if self.extract is None else self.extract.n

    @cached_property
    def survey(self) -> Survey:
        """What the engine has to know of the rows."""
        if self.extract is None:
            return self.engine.survey(self.sample)
        return self.engine.survey_of(self.extract)

    def averages(self, *sets: PlaceSet, title: str) -> list[Averages]:
        """Mean residuals of the data and of every redraw at some places, over all rows."""
        asked = (self.source, sets, self.laws, self.draws, self.seed)
        survey = None if self.extract is None else self.survey
        return average_all(*asked, title=title, engine=self.engine, survey=survey)

    def again(
        self,
        sample: Sample,
        *,
        alpha: float | None = None,
        draws: int | None = None,
        rng: Rng = None,
        parts: int = 1,
    ) -> Redraws:
        """Take these settings along to another question, unless others are given."""
        allowed = self.alpha if alpha is None else alpha
        number = checked_reach(self.draws if draws is None else draws, allowed, parts)
        seed, allowed = self.seed if rng is None else as_seed(rng), float(allowed)
        if sample is not self.sample:
            return Redraws(sample, self.null, number, seed, allowed)
        if (number, seed, allowed) == (self.draws, self.seed, self.alpha):
            return self  # with the laws that it has found
        return replace(self, draws=number, seed=seed, alpha=allowed)

    @cached_property
    def laws(self) -> tuple[RowwiseNull, ...]:
        """What labels may be redrawn by; none where replicate weights are all that is known."""
        return () if self.null.keeps_residuals else self.null.laws(self.sample, self.seed)

    @property
    def settings(self) -> dict[str, Any]:
        """What a table of biases keeps of all this."""
        return {
            "alpha": self.alpha,
            "null": self.null,
            "draws": self.draws,
            "seed": self.seed,
            "notes": self.notes,
            "out_of_fold": bool(self.sample.folds),
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes to read beside a table of biases."""
        sample = self.sample
        said = [*sample.notes, *null_warnings(sample, self.null)]
        if sample.impossible.size:
            said.append(
                f"{counted(sample.impossible.size, 'row')} with a label that the model called "
                f"impossible (p = 0 and y = 1, or p = 1 and y = 0): the model is miscalibrated "
                f"there, whatever the size"
            )
        if sample.design.known_by_replicates:
            said.append(
                "where few events may happen, replicate weights alone give no p-value, and 1 "
                "stands in its place; clusters would give one"
            )
        if sample.clusters is not None:
            said.append(
                f"p-values and bands are approximate, by clusters ({sample.clusters:,} of them); "
                f"sizes count clusters"
            )
        return tuple(said)


Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Question(Generic[Made]):
    """Places whose bias is wanted, and what is made of their mean residuals."""

    redraws: Redraws
    places: PlaceSet
    finished: Callable[[Averages], Made]
    title: str

    def made(self) -> Made:
        """The answer, by a pass of its own."""
        return self.finished(*self.redraws.averages(self.places, title=self.title))


def names_of(names: object) -> tuple[str, ...]:
    """One name of a covariate or several, each once; refuse what is no name.

    >>> names_of("age"), names_of(["sex", "race", "sex"])
    (('age',), ('sex', 'race'))
    """
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        problem = "name covariates by text, such as 'sex' or ['sex', 'race'], not {value}"
        raise InputError(problem, argument="names", value=names)
    return tuple(dict.fromkeys(names))
