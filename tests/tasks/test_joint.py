"""Tasks of several classes: closed forms, a naive oracle, identities, coverage."""

import itertools

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust.bias import Redraws
from itrust.data import design_variance
from itrust.engines import run_together
from itrust.nulls import Bernoulli, redrawn_classes
from itrust.tasks import LabelLaw, LabelledTask, class_tasks, evaluate_tasks, task_part
from itrust.tasks.uncertainty import law_sums

NAMES = ("win", "tie", "loss")
MIXED = (
    'prevalence("win") - prevalence("loss")',
    'mean(age | y == "win") - mean(age | y == "tie")',
    'prevalence("tie" | region == "south") / prevalence("win")',
    'coef("tie" ~ age ; age + region) - coef("win" ~ age ; age + region)',
)


def drawn(n=500, seed=0, names=NAMES, shift=(0.0, 0.3, -0.2), error=0.0):
    """Classes drawn from p, whose log odds of the first class are `error` too low in the south."""
    rng = np.random.default_rng(seed)
    age, region = rng.normal(50, 10, n), rng.choice(["south", "north"], n)
    height = np.tile(shift, (n, 1)).astype(float)
    height[:, 0] += 0.03 * (age - 50)
    height[:, 1] += 0.4 * (region == "south")
    p = _softmax(height)
    height[:, 0] += error * (region == "south")
    codes = (rng.random(n)[:, None] > _softmax(height).cumsum(axis=1)).sum(axis=1)
    return it.MulticlassSample(
        np.array(names)[codes], p, {"age": age, "region": region}, classes=list(names)
    )


def _softmax(height):
    odds = np.exp(height)
    return odds / odds.sum(axis=1, keepdims=True)


def designed(plain, settings):
    """The same rows, drawn by a design."""
    x = {column.name: _told(column) for column in plain.columns}
    labels = np.array(NAMES)[plain.codes]
    return it.Sample(labels, plain.p, x, classes=list(NAMES), **settings)


def _told(column):
    return (
        np.array(column.levels)[column.values.astype(int)] if column.is_category else column.values
    )


def parsed(texts, sample):
    return class_tasks([tasks.parse(text) for text in texts], sample)


def test_a_gap_between_classes_is_what_numpy_makes_of_it():
    s = drawn()
    (found,) = evaluate_tasks(s, [tasks.parse(MIXED[0])], rng=0)
    label = (s.codes == 0).astype(float) - (s.codes == 2)
    assert found.from_labels == pytest.approx(label.mean())
    assert found.plugin == pytest.approx((s.p[:, 0] - s.p[:, 2]).mean())
    shares = label - (s.p[:, 0] - s.p[:, 2])
    assert found.stderr == pytest.approx(shares.std(ddof=1) / np.sqrt(s.n), rel=0.05)
    apart = np.sqrt(sum((((s.codes == c) - s.p[:, c]).var() / s.n) for c in (0, 2)))
    assert found.stderr > 1.1 * apart  # labels of one row exclude each other


@pytest.mark.parametrize("with_rest", [True, False])
def test_the_variance_of_the_law_is_that_of_all_outcomes_of_every_row(with_rest):
    rng = np.random.default_rng(0)
    n, names = 4, 3
    q = rng.dirichlet(np.ones(names + with_rest), n)[:, :names]
    lean = rng.normal(size=(n, names))
    law = LabelLaw(q, it.Sample([0, 1, 0, 1], np.full(n, 0.5)).design, classes=NAMES)
    chances = np.column_stack([q, 1 - q.sum(axis=1)])
    mean = square = 0.0
    for outcome in itertools.product(range(names + 1), repeat=n):
        chance = np.prod([chances[i, c] for i, c in enumerate(outcome)])
        moved = sum(
            (lean[i] * ((np.arange(names) == c) - q[i])).sum() for i, c in enumerate(outcome)
        )
        mean, square = mean + chance * moved, square + chance * moved**2
    assert mean == pytest.approx(0.0, abs=1e-12)
    assert law.label_variance(lean) == pytest.approx(square)
    _, _, variance, _, second, _ = law_sums(np.zeros(n), np.zeros(n), lean, q)
    assert variance == pytest.approx(square)
    assert second == pytest.approx(square)


def test_one_class_in_the_joint_law_is_the_binary_law():
    rng = np.random.default_rng(0)
    q, lean, shares = rng.uniform(0, 1, 200), rng.normal(size=200), rng.normal(size=200)
    own, _, law, _, second, fourth = law_sums(shares, 0.1 * shares, lean[:, None], q[:, None])
    high, low = 0.1 * shares + lean * (1 - q), 0.1 * shares - lean * q
    assert own == np.square(shares).sum()
    assert law == (np.square(0.1 * shares) + np.square(lean) * q * (1 - q)).sum()
    for power, sum_ in ((2, second), (4, fourth)):
        assert sum_ == pytest.approx((q * high**power + (1 - q) * low**power).sum())


def test_sums_over_draws_are_those_of_a_double_loop():
    s, seed, draws = drawn(60), 3, 4
    wanted = parsed((*MIXED[:3], 'coef("tie" ~ age ; age)'), s)
    part = task_part(Redraws(s, Bernoulli(), draws, seed, 0.05), wanted)
    redraws = part.redraws
    (((found, expected, cubes),),) = run_together(
        redraws.engine, redraws.survey, [part], redraws.null, draws, seed
    )
    leaves, fits = part.constants.leaves, part.constants.fits
    codes = redrawn_classes(s.p, range(60), range(draws), seed)
    everyone = [s.codes, *codes.T.astype(int)]
    points, ones = s.points, np.ones(60)
    lean = [fit.lean(points, ones) for fit in fits]
    below = [leaf.terms_of(points, ones)[1] * leaf.among_positives for leaf in leaves]
    at = [s.classes.index(leaf.label) for leaf in leaves]
    pairs = list(zip(*np.triu_indices(len(leaves)), strict=True))
    for b, codes in enumerate(everyone):
        e = np.eye(3)[codes] - s.p
        for j, c in enumerate(at):
            assert found[j, b] == pytest.approx(lean[j] @ e[:, c])
            assert found[j - len(leaves), b] == pytest.approx(below[j] @ (codes == c), abs=1e-12)
        for pair, (j, k) in enumerate(pairs):
            square = (lean[j] * e[:, at[j]] * lean[k] * e[:, at[k]]).sum()
            assert found[len(leaves) + pair, b] == pytest.approx(square, abs=1e-10)
    for j, k in pairs:
        p, q = s.p[:, at[j]], s.p[:, at[k]]
        covariance = (p if at[j] == at[k] else 0) - p * q
        assert expected[j, k] == pytest.approx((lean[j] * lean[k] * covariance).sum())
        assert expected[k, j] == pytest.approx(expected[j, k])
    for t in range(len(wanted)):
        third = 0.0
        for i in range(60):
            moved = np.zeros(3)
            for j, c in enumerate(at):
                moved[c] += part.constants.at_null[t, j] * lean[j][i]
            third += s.p[i] @ (moved - s.p[i] @ moved) ** 3
        assert cubes[t] == pytest.approx(third, rel=1e-6)


def test_a_number_of_one_class_is_that_of_the_class_against_the_rest():
    s = drawn(error=0.5)
    texts = ('prevalence("tie")', 'mean(age | y == "tie")', 'coef("tie" ~ age ; age + region)')
    plain = ("prevalence()", "mean(age)", "coef(age ; age + region)")
    joint = evaluate_tasks(s, [tasks.parse(text) for text in texts], rng=0, draws=499)
    binary = evaluate_tasks(
        s.one_class("tie"), [tasks.parse(text) for text in plain], rng=0, draws=499
    )
    for one, other in zip(joint, binary, strict=True):
        for name in ("plugin", "from_labels", "stderr", "few_labels", "covariates"):
            assert getattr(one, name) == getattr(other, name)
        assert one.unadjusted_pvalue == pytest.approx(other.unadjusted_pvalue, abs=0.08)


def test_two_classes_give_the_bits_of_the_binary_path():
    rng = np.random.default_rng(0)
    p, age = rng.uniform(0.1, 0.9, 300), rng.normal(40, 9, 300)
    y = rng.random(300) < p
    two = it.MulticlassSample(
        np.where(y, "yes", "no"), np.column_stack([1 - p, p]), {"age": age}, classes=["no", "yes"]
    )
    one = it.Sample(y, p, {"age": age})
    texts = ('prevalence("yes")', 'mean(age | y == "yes")', 'coef("yes" ~ age ; age)')
    plain = ("prevalence()", "mean(age)", "coef(age ; age)")
    found = evaluate_tasks(two, [tasks.parse(text) for text in texts], rng=0)
    wanted = evaluate_tasks(one, [tasks.parse(text) for text in plain], rng=0)
    skipped = ("task", "positives")
    for a, b in zip(found, wanted, strict=True):
        assert {k: v for k, v in vars(a).items() if k not in skipped} == {
            k: v for k, v in vars(b).items() if k not in skipped
        }
    # The other class is the mirror image, and both together are one.
    gap = evaluate_tasks(two, [tasks.parse('prevalence("yes") - prevalence("no")')], rng=0)[0]
    assert gap.bias == pytest.approx(2 * found[0].bias)
    assert gap.stderr == pytest.approx(2 * found[0].stderr, rel=1e-6)


def test_prevalences_of_all_classes_sum_to_one_and_their_biases_to_nothing():
    s = drawn(error=1.0)
    texts = [f'prevalence("{name}")' for name in NAMES]
    whole = tasks.parse(" + ".join(texts))
    *each, total = evaluate_tasks(s, [*map(tasks.parse, texts), whole], rng=0)
    assert sum(one.plugin for one in each) == pytest.approx(1.0)
    assert sum(one.bias for one in each) == pytest.approx(0.0, abs=1e-12)
    assert (total.bias, total.stderr, total.pvalue) == (0.0, 0.0, 1.0)
    assert each[0].unadjusted_pvalue < 0.01


def test_names_of_classes_do_not_matter():
    s, renamed = drawn(error=0.5), drawn(error=0.5, names=("3", "1", "2"))
    new = dict(zip(NAMES, renamed.classes, strict=True))
    one = evaluate_tasks(s, [tasks.parse(text) for text in MIXED], rng=5)
    texts = list(MIXED)
    for old, name in new.items():
        texts = [text.replace(f'"{old}"', f'"{name}"') for text in texts]
    two = evaluate_tasks(renamed, [tasks.parse(text) for text in texts], rng=5)
    for a, b in zip(one, two, strict=True):
        for name in ("plugin", "from_labels", "lower", "upper", "stderr", "pvalue"):
            assert getattr(a, name) == getattr(b, name)


@pytest.mark.parametrize("text", MIXED)
def test_clusters_and_strata_give_the_variance_of_the_shares_of_rows(text):
    plain = drawn(900, error=0.4)
    rng = np.random.default_rng(0)
    settings = {
        "cluster": np.arange(900) // 5,
        "strata": np.arange(900) // 300,
        "weights": rng.uniform(1, 3, 900),
    }
    sample = designed(plain, settings)
    (task,) = parsed([text], plain)
    found = LabelledTask.of(task, sample)
    shares = found.labels.slope - found.predicted.slope
    design = sample.design
    assert found.less(1.0).stderr == pytest.approx(np.sqrt(design_variance(design, shares)))
    by_hand = 0.0
    for stratum in range(3):
        totals = shares[settings["strata"] == stratum].reshape(-1, 5).sum(axis=1)
        by_hand += totals.size * totals.var(ddof=1)
    assert found.less(1.0).stderr == pytest.approx(np.sqrt(by_hand))


def test_a_sample_of_several_classes_brings_its_design_along():
    plain = drawn(600, error=0.4)
    x = {column.name: _told(column) for column in plain.columns}
    s = it.Sample(
        np.array(NAMES)[plain.codes], plain.p, x, classes=list(NAMES), cluster=np.arange(600) // 4
    )
    (found,) = evaluate_tasks(s, [tasks.parse(MIXED[0])], rng=0)
    e = np.eye(3)[plain.codes] - plain.p
    shares = (e[:, 0] - e[:, 2] - (e[:, 0] - e[:, 2]).mean()) / 600
    totals = shares.reshape(-1, 4).sum(axis=1)
    assert found.draws == 0
    assert found.stderr == pytest.approx(np.sqrt(totals.size * totals.var(ddof=1)))


def test_replicate_weights_reestimate_a_number_of_several_classes():
    plain = drawn(200, error=0.4)
    sets = np.ones((200, 20)) * 20 / 19
    sets[np.arange(200), np.arange(200) // 10] = 0.0
    settings = {"weights": np.ones(200), "replicate_weights": sets, "replicate_method": "jk1"}
    sample = designed(plain, settings)
    (task,) = parsed([MIXED[1]], plain)
    found = LabelledTask.of(task, sample)
    age = np.asarray(sample.column("age").values)

    def gap(w, stands):
        means = [np.average(age, weights=w * stands[:, c]) for c in (0, 1)]
        return means[0] - means[1]

    onehot = np.eye(3)[plain.codes]
    whole = gap(np.ones(200), onehot) - gap(np.ones(200), plain.p)
    moves = [gap(w, onehot) - gap(w, plain.p) - whole for w in sets.T]
    assert found.less(1.0).stderr == pytest.approx(np.sqrt(19 / 20 * np.sum(np.square(moves))))


def test_intervals_of_gaps_with_a_rare_class_cover_the_truth():
    """p is wrong in the south: what labels of many rows say less p is covered in 95 % of runs."""
    wanted = parsed(
        (
            'prevalence("win") - prevalence("loss")',
            'prevalence("loss" | region == "south") - prevalence("loss" | region == "north")',
            'mean(age | y == "win") - mean(age | y == "loss")',
        ),
        drawn(),
    )
    rare = (0.0, 0.3, -2.6)  # one row in thirty is a loss
    settings = {"shift": rare, "error": 0.7}
    many = drawn(100_000, seed=99, **settings)
    found = [LabelledTask.of(task, many) for task in wanted]
    truth = [one.labels.value - one.predicted.value for one in found]
    runs, held = 60, np.zeros(3)
    for seed in range(runs):
        sample = drawn(250, seed=seed, **settings)
        for k, task in enumerate(wanted):
            one = LabelledTask.of(task, sample)
            if np.isnan(one.labels.value):
                held[k] += 1
                continue
            lower, upper = one.less(1.0).interval(one.labels.value - one.predicted.value, 0.05)
            held[k] += lower <= truth[k] <= upper
    assert (held / runs >= 0.9).all(), held / runs


def test_redraws_reject_as_often_as_they_may_where_the_model_is_right():
    rare = (0.0, 0.3, -2.6)
    wanted = [tasks.parse('prevalence("win") - prevalence("loss")'), tasks.parse(MIXED[1])]
    found = np.array(
        [
            [one.pvalue for one in evaluate_tasks(s, wanted, draws=59, rng=seed)]
            for seed, s in ((seed, drawn(150, seed=seed, shift=rare)) for seed in range(40))
        ]
    )
    share = (found.min(axis=1) <= 0.1).mean()
    assert share <= 0.1 + 2.5 * np.sqrt(0.09 / 40)
    s = drawn(600, seed=1, error=1.5)
    assert evaluate_tasks(s, wanted, rng=0)[0].pvalue < 0.01
