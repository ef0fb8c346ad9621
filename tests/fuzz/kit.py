"""Damaged inputs against one door of the package, in a process that may die of them.

A target says what sound inputs look like, how one is damaged and which door it goes through. Input
number i of a target depends on the seed and i alone, so whatever is found can be made again:

    python tests/fuzz/run.py --only feather --seed 0 --first 1234 --count 1
"""

import json
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from itrust import InputError

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
SECONDS = 20  # of processor time; an input that takes more is a failure, on a busy machine, too
ADDRESS_SPACE = 6 * 2**30


class Outcome(Enum):
    """What became of an input; only the first two are right."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  # in a sentence, exit code 2
    CHANGED = "changed"  # accepted, with values that cannot be right
    INTERNAL = "internal"  # any other exception, exit code 70
    MEMORY = "memory"
    SLOW = "slow"
    CRASHED = "crashed"  # the process died

    @property
    def is_right(self) -> bool:
        return self in (Outcome.ACCEPTED, Outcome.REFUSED)


@dataclass(frozen=True)
class Target:
    """One door.

    Parameters
    ----------
    name : str
        Also the folder in `corpus/` that holds what was once found.
    seeds : callable
        Given a folder to work in, sound inputs; called once a process.
    damaged : callable
        Given a generator and a sound input, what to hand in.
    handed_in : callable
        Given the input and a folder: hands it in. Raises `InputError` where it is refused; may
        return an `Outcome`, otherwise the input counts as accepted.
    fresh : int
        How many inputs a test takes, where `make fuzz` takes thousands.
    """

    name: str
    seeds: Callable[[Path], list[bytes]]
    damaged: Callable[[random.Random, bytes], bytes]
    handed_in: Callable[[bytes, Path], Outcome | None]
    fresh: int = 25

    def inputs(self, folder: Path, seed: int, first: int, count: int) -> Iterator[bytes]:
        """Inputs of consecutive numbers."""
        sound = self.seeds(folder)
        for number in range(first, first + count):
            yield self.input_of(sound, seed, number)

    def input_of(self, sound: list[bytes], seed: int, number: int) -> bytes:
        rng = random.Random(f"{self.name} {seed} {number}")
        return self.damaged(rng, rng.choice(sound))

    def outcome(self, given: bytes, folder: Path) -> tuple[Outcome, str]:
        """What becomes of an input, and what was said."""
        try:
            return self.handed_in(given, folder) or Outcome.ACCEPTED, ""
        except InputError as error:
            return Outcome.REFUSED, str(error)
        except MemoryError as error:
            return Outcome.MEMORY, repr(error)
        except Exception as error:
            return Outcome.INTERNAL, repr(error)

    @cached_property
    def corpus(self) -> list[Path]:
        """Inputs that once did harm."""
        return sorted(path for path in (CORPUS / self.name).glob("*") if path.is_file())


@dataclass
class Tally:
    """What became of the inputs of a target."""

    target: str
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    failures: list[tuple[int, Outcome, str]] = field(default_factory=list)

    def add(self, number: int, outcome: Outcome, said: str) -> None:
        self.outcomes[outcome] += 1
        if not outcome.is_right:
            self.failures.append((number, outcome, said))

    def __str__(self) -> str:
        parts = ", ".join(f"{self.outcomes[kind]} {kind.value}" for kind in Outcome)
        return f"{self.target}: {self.outcomes.total()} inputs: {parts}"


def flipped_bytes(rng: random.Random, sound: bytes) -> bytes:
    """Bytes changed, cut out, put in, repeated or cut off, as damage and malice do."""
    found = bytearray(sound)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not found:
            break
        at = rng.randrange(len(found))
        length = min(rng.choice((1, 2, 4, 8, 64)), len(found) - at)
        kind = rng.randrange(7)
        if kind == 0:
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            found[at : at + length] = rng.randbytes(length)
        elif kind == 2:
            value = rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 2**16, -2))
            found[at : at + 4] = value.to_bytes(4, "little", signed=True)
        elif kind == 3:
            del found[at : at + length]
        elif kind == 4:
            found[at:at] = rng.randbytes(length)
        elif kind == 5:
            other = rng.randrange(len(found))
            found[at : at + length] = found[other : other + length]
        else:
            del found[at:]
    return bytes(found)


def work(target: Target, folder: Path, seed: int, first: int, count: int) -> None:
    """Hand in inputs and print a line for each; the parent process reads them."""
    sound = target.seeds(folder)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(first, first + count):
        print(json.dumps({"begun": number}), flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process, whatever it is doing
        signal.alarm(20 * SECONDS)  # also where it waits
        outcome, said = target.outcome(target.input_of(sound, seed, number), folder)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        print(json.dumps({"done": number, "outcome": outcome.value, "said": said}), flush=True)


def fuzz(target: str, seed: int, first: int, count: int, seconds: float) -> Tally:
    """Hand in inputs in child processes until their number or the time is used up."""
    tally, number, end = Tally(target), first, time.monotonic() + seconds
    while number < first + count and time.monotonic() < end:
        left = first + count - number
        arguments = [target, str(seed), str(number), str(left)]
        command = [sys.executable, str(HERE / "run.py"), "--worker", *arguments]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            assert child.stdout is not None
            begun = None
            for line in child.stdout:
                if not line.startswith('{"'):
                    continue  # something that a library printed
                found = json.loads(line)
                if "begun" in found:
                    begun = found["begun"]
                    continue
                tally.add(found["done"], Outcome(found["outcome"]), found["said"])
                number, begun = found["done"] + 1, None
                if time.monotonic() >= end:
                    child.kill()
                    break
        if time.monotonic() >= end:
            break
        if begun is None and child.returncode:
            raise RuntimeError(f"the worker of {target} failed before its first input")
        if begun is not None:
            slow = -(child.returncode or 0) in (signal.SIGALRM, signal.SIGPROF)
            tally.add(begun, Outcome.SLOW if slow else Outcome.CRASHED, f"{child.returncode}")
            number = begun + 1
    return tally
