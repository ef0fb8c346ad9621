"""Margins of the gate as they are typed: 'odds:1.2', or several with commas between them."""

from __future__ import annotations

from itrust._core import InputError
from itrust.auditing import as_margins
from itrust.cli.options import Options
from itrust.cli.values import finite_number

EXAMPLE = "'odds:1.2' or 'label-error:0.02'"


def margins_of(options: Options) -> dict[str, float] | None:
    """Read the margins of the gate; refuse those that have no gate, or nothing to be read from."""
    texts = [part.strip() for text in options.robust_to or () for part in text.split(",")]
    if not texts:
        return None
    if not options.gate:
        raise InputError(
            "{argument} is a margin of the gate: give --gate, too", argument="robust_to"
        )
    dependent = options.cluster or options.strata or options.replicate_weights
    if dependent and options.gate != "tasks":
        raise InputError(
            "{argument} needs independent rows: how a violation would act on rows that go together "
            "is not known; leave it out, or ask about numbers alone with --gate tasks",
            argument="robust_to",
        )
    if options.no_robustness:
        raise InputError(
            "{argument} needs what --no-robustness leaves out; give one of them",
            argument="robust_to",
        )
    found: dict[str, float] = {}
    for text in texts:
        name, _, size = text.partition(":")
        try:
            number = finite_number(size)
        except ValueError:
            raise InputError(
                f"{{argument}} takes a name and a size, such as {EXAMPLE}, not {{value}}",
                argument="robust_to",
                value=text,
            ) from None
        if name.strip() in found:
            raise InputError(
                "{argument} names {value} twice", argument="robust_to", value=name.strip()
            )
        found[name.strip()] = number
    as_margins(found)
    return found
