"""`make fuzz`: damaged inputs against every door, for some minutes; what became of them, counted.

A target is an entry of `TARGETS` in a module `fuzz_*.py` beside this file.
"""

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from fuzz.kit import Tally, Target, fuzz, work  # noqa: E402

FOUND = HERE.parent.parent / "build" / "fuzz"


def known_targets() -> dict[str, Target]:
    """All targets by name."""
    modules = sorted(path.stem for path in HERE.glob("fuzz_*.py"))
    found = [target for name in modules for target in import_module(f"fuzz.{name}").TARGETS]
    return {target.name: target for target in found}


def target_called(name: str) -> Target:
    """One of them; modules that do not speak of it, which take seconds to load, come last."""
    files = sorted(HERE.glob("fuzz_*.py"), key=lambda path: f'"{name}"' not in path.read_text())
    modules = (import_module(f"fuzz.{path.stem}") for path in files)
    return next(own for module in modules for own in module.TARGETS if own.name == name)


def keep(target: Target, tally: Tally, seed: int) -> None:
    """Write the inputs that did harm into `build/fuzz`, to be looked at and put into the corpus."""
    folder = FOUND / target.name
    with tempfile.TemporaryDirectory() as work_folder:
        sound = target.seeds(Path(work_folder))
    for number, outcome, said in tally.failures[:20]:
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{seed}-{number}-{outcome.value}"
        place.write_bytes(target.input_of(sound, seed, number))
        print(f"  {outcome.value}: {said[:150]} ({place.relative_to(FOUND.parent.parent)})")


def main() -> int:
    """Run all targets, or one; 1 if any input did harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=4, metavar=("TARGET", "SEED", "FIRST", "COUNT"))
    parser.add_argument("--only", action="append", help="a target; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, default=10**9, help="inputs a target")
    parser.add_argument("--seconds", type=float, default=300, help="time for all targets together")
    given = parser.parse_args()
    if given.worker:
        name, *numbers = given.worker
        with tempfile.TemporaryDirectory() as folder:
            work(target_called(name), Path(folder), *map(int, numbers))
        return 0
    targets = known_targets()
    chosen = given.only or list(targets)
    harm = 0
    for name in chosen:
        tally = fuzz(name, given.seed, given.first, given.count, given.seconds / len(chosen))
        print(tally, flush=True)
        keep(targets[name], tally, given.seed)
        harm += len(tally.failures)
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
