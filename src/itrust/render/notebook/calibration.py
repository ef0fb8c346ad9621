"""Tests of calibration, their findings and their power, as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterable

from itrust.calibration import (
    CalibrationResult,
    Detectable,
    Finding,
    MulticlassResult,
    Refusal,
    RegionPower,
    SampleSize,
    TakenFor,
)
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.calibration import (
    MAX_PAIRS,
    classes_evidence,
    clustering_lines,
    covariates_text,
    meaning,
    null_text,
    pairs_title,
    provenance,
    pvalue_text,
    result_rows,
    rows_text,
    size_text,
)
from itrust.render.text.verdict import coverage_words, refusal_words


@as_html.register
def _(result: CalibrationResult) -> str:
    rows = [
        ("rows", rows_text(result)),
        ("covariates", covariates_text(result)),
        *result_rows(result),
        ("null", null_text(result)),
        ("made with", provenance(result)),
    ]
    return html.card(
        f"p = {pvalue_text(result)}",
        _warnings(result.warnings),
        html.sentence(meaning(result)),
        html.table(["", ""], rows),
        html.notes(result.notes),
    )


@as_html.register
def _(result: Finding) -> str:
    return html.card(result.name, html.sentence(f"p = {result.pvalue:.3g}: {result}"))


@as_html.register
def _(result: TakenFor) -> str:
    return html.card(result.name, html.sentence(f"p = {result.pvalue:.3g}: {result}"))


@as_html.register
def _(result: MulticlassResult) -> str:
    rows = [
        [str(c.name), f"{c.positives:,}", html.number(c.statistic, ".3g"), f"{c.pvalue:.3g}"]
        for c in (result.together, *result.classes)
    ]
    told = [[name, f"{p:.3g}", sentence] for name, p, sentence in classes_evidence(result)]
    return html.card(
        f"p = {result.pvalue:.4g}",
        _warnings(result.warnings),
        html.table(["class", "rows", "KLCE²", "p adjusted"], rows),
        html.table(["class", "p adjusted", "evidence"], told),
        html.notes([f"{result.draws:,} draws, seed {result.seed}", *result.notes]),
    )


@as_html.register
def _(result: Detectable) -> str:
    worst = f"{size_text(result.worst.shift)} at {result.worst.where}"
    simulated = f" (power {result.simulated:.2f} in {result.simulations} simulated samples)"
    pairs = result.worst_pairs[:MAX_PAIRS]
    listed = [html.sentence(pairs_title(result, len(pairs))), _regions(pairs)] if pairs else []
    return html.card(
        f"Smallest bias that these {result.n:,} rows would show",
        html.sentence(f"worst: {worst}{simulated if result.simulations else ''}"),
        _regions(result.regions),
        *listed,
        html.notes(
            [
                f"power {result.power:g} at alpha {result.alpha:g}",
                f"looked {coverage_words(result.coverage)}",
                *clustering_lines(result),
                *result.notes,
            ]
        ),
    )


def _regions(regions: Iterable[RegionPower]) -> str:
    rows = [
        [
            str(region.where),
            f"{100 * region.share:.1f} %",
            size_text(region.up),
            size_text(region.down),
        ]
        for region in regions
    ]
    return html.table(["where", "rows", "too low by", "too high by"], rows)


@as_html.register
def _(result: SampleSize) -> str:
    rows = [[where, f"{rows:,.0f}"] for where, rows in result.by_region.items()]
    return html.card(
        f"{result.rows:,} labelled rows",
        html.sentence(
            f"They show a bias of {result.bias:g} with power {result.power:g} at alpha "
            f"{result.alpha:g}; most are needed for {result.where}."
        ),
        html.table(["where", "rows"], rows),
        html.notes([*clustering_lines(result), *result.notes]),
    )


@as_html.register
def _(result: Refusal) -> str:
    return html.card("No p-value", html.sentence(refusal_words(result)))


def _warnings(warnings: Iterable[str]) -> str:
    return html.notes(f"! {warning}" for warning in warnings)
