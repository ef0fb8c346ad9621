"""Whether "a bias of 0.05 would have been seen" holds in every region that the sentence names."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import itrust as it
from hard.kit import Section, decimal, repeated, share, table
from itrust.auditing import Verdict
from itrust.calibration.power import Sensitivity

TOLERANCE = 0.05
OFF = 0.07
SIMULATIONS = 200
DRAWS = 99
LEVELS = "abcdefgh"


def survey(rows: int, levels: int, seed: int, off: float = 0.0) -> it.Sample:
    """Two categories; where both have their third level, the truth is off."""
    rng = np.random.default_rng(seed)
    one, two = (rng.choice(list(LEVELS[:levels]), rows) for _ in range(2))
    p = rng.uniform(0.02, 0.12, rows)
    truth = p + off * ((one == "c") & (two == "c"))
    return it.Sample(rng.random(rows) < truth, p, {"one": one, "two": two})


def with_number(rows: int, seed: int) -> it.Sample:
    """A category with missing values, two numbers, one of them skewed."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["u", "v", ""], rows, p=[0.6, 0.3, 0.1]).astype(object)
    group[group == ""] = None
    age = rng.normal(size=rows)
    x = {"group": group, "age": age, "income": np.exp(0.5 * age + rng.normal(size=rows))}
    p = rng.uniform(0.2, 0.8, rows)
    return it.Sample(rng.random(rows) < p, p, x, missing="level")


def _verdict(rows: int, levels: int, off: float, seed: int) -> tuple[Verdict, bool]:
    """The verdict, and whether margins alone would have made the promise."""
    sample = survey(rows, levels, seed, off)
    audit = it.audit(sample, draws=DRAWS, rng=seed, tolerance=TOLERANCE, charts=False)
    margins = max(region.shift for region in audit.missed.detectable.regions)
    return audit.verdict, margins <= TOLERANCE and audit.test.pvalue > audit.alpha


def _powers(make: partial[it.Sample], shift: float | None, place: tuple[bool, int]) -> list[float]:
    """Simulated power in one region, up and down: at a shift, or at the smallest that is quoted."""
    setting = Sensitivity.of(make(), draws=DRAWS, rng=0)
    is_pair, number = place
    region = list(setting.pairs() if is_pair else setting.regions())[number]
    if shift is not None:
        signs = setting._directions(region, shift)
        shifts = [sign * shift for sign in signs]
    else:
        up, down = setting.smallest_both(region)
        shifts = [shift for shift in (up, -down) if np.isfinite(shift)]
    return [setting.simulated_power(region.where, shift, SIMULATIONS) for shift in shifts]


def _places(make: partial[it.Sample], number: int) -> list[tuple[bool, int]]:
    """Some single regions and some pairs, evenly chosen."""
    setting = Sensitivity.of(make(), draws=DRAWS, rng=0)
    places = []
    for is_pair, found in ((False, setting.regions()), (True, list(setting.pairs()))):
        chosen = np.unique(np.linspace(0, len(found) - 1, min(number, len(found))).astype(int))
        places += [(is_pair, int(k)) for k in chosen]
    return places


def _quoted(pool: ProcessPoolExecutor, name: str, make: partial[it.Sample], number: int) -> list:
    places = _places(make, number)
    powers = list(pool.map(partial(_powers, make, None), places))
    rows = []
    for is_pair, kind in ((False, "single"), (True, "pair")):
        found = [
            p for (pair, _), own in zip(places, powers, strict=True) if pair == is_pair for p in own
        ]
        rows.append((name, kind, len(found), decimal(min(found), 2), decimal(np.mean(found), 2)))
    return rows


def make(pool: ProcessPoolExecutor, runs: int) -> str:
    """Verdicts where a pair is off; power where the promise is made, and at quoted shifts."""
    verdicts = []
    for rows, levels, off in ((6_000, 8, OFF), (18_000, 4, 0.0)):
        found = repeated(pool, partial(_verdict, rows, levels, off), runs, 2)
        promised = share(verdict is Verdict.NO_EVIDENCE for verdict, _ in found)
        before = share(margins for _, margins in found)
        verdicts.append((f"{rows:,}", levels**2, off or "nowhere", before, promised))
    promise = partial(survey, 18_000, 4, 1)
    places = _places(promise, 100)
    held = [p for powers in pool.map(partial(_powers, promise, TOLERANCE), places) for p in powers]
    number = max(3, runs // 4)
    quoted = [
        *_quoted(pool, "two categories, 6,000 rows", partial(survey, 6_000, 8, 1), number),
        *_quoted(
            pool, "a category and two numbers, 5,000 rows", partial(with_number, 5_000, 1), number
        ),
    ]
    return f"""\
An audit promised that a bias of {TOLERANCE} "would have been seen", and one pair of levels
(1.6 % of 6,000 rows) was off by {OFF}: only single groups and tenths of numbers had been looked at.
Now pairs of groups with at least 1 % of the rows count as well, and the sentence names them. {runs}
audits for each line ({DRAWS} draws); how often the promise was made:

{table(["rows", "pairs", "one pair off by", "by single groups alone", "now"], verdicts)}

Where it is made (18,000 rows, 16 pairs), the power against a bias of {TOLERANCE}, up and down, in
each of the {len(places)} regions that the sentence names, in {SIMULATIONS} simulated samples each:
lowest {decimal(min(held), 2)}, mean {decimal(float(np.mean(held)), 2)}.

`detectable` quotes the smallest bias that is seen with power .8. The power found in {SIMULATIONS}
simulated samples at the quoted bias, for pairs with a check of their own, pairs of a level and a
part of a number, and pairs of two parts of numbers:

{table(["rows are from", "regions", "biases tried", "lowest power", "mean power"], quoted)}

No audit promises what it cannot see; where the promise is made, it holds. Pairs that no check is
made for have more power than is quoted, for several checks see them a little.
"""


SECTION = Section(
    name="detectable", title="A bias of 0.05 would have been seen", runs=30, make=make
)
