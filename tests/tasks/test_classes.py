"""Which class a task is about: texts, conditions, samples of two classes and of several."""

import numpy as np
import pytest

import itrust as it
from itrust import InputError, tasks
from itrust.tasks import check_tasks, checked_tasks, class_tasks, evaluate_tasks

NAMES = ("win", "tie", "loss")


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(0)
    p = rng.dirichlet((2, 2, 2), 120)
    codes = (rng.random(120)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    x = {"age": rng.normal(40, 9, 120), "region": rng.choice(["south", "west"], 120)}
    return it.MulticlassSample(np.array(NAMES)[codes], p, x, classes=list(NAMES))


def binary(**settings):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 120)
    return it.Sample(rng.random(120) < p, p, {"age": rng.normal(40, 9, 120)}, **settings)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('prevalence("tie")', tasks.prevalence(label="tie")),
        (
            'prevalence("tie" | region == "south")',
            tasks.prevalence({"region": "south"}, label="tie"),
        ),
        ('mean(age | y == "tie")', tasks.mean("age", label="tie")),
        ('mean(age | y == "tie")', tasks.mean("age", where={"y": "tie"})),
        (
            'mean(age | region == "south" and y == "tie")',
            tasks.mean("age", label="tie", region="south"),
        ),
        (
            'share(age >= 65 | y == "tie" and (region == "south" or age < 70))',
            tasks.share("age >= 65", where='region == "south" or age < 70', label="tie"),
        ),
        (
            'coef("tie" ~ age ; age + region)',
            tasks.coefficient("age", on=["age", "region"], label="tie"),
        ),
        ("coef(2 ~ 1 ; age)", tasks.coefficient(1, on=["age"], label=2)),
        ("prevalence(2 | age > 3)", tasks.prevalence("age > 3", label=2)),
        ("prevalence(-1)", tasks.prevalence(label=-1)),
        ("prevalence(true)", tasks.prevalence(label=True)),
    ],
)
def test_texts_and_python_say_the_same_and_texts_are_read_back(text, made):
    assert tasks.parse(text) == made
    assert tasks.parse(made.formula) == made


def test_tolerances_and_titles_stay_with_tasks_of_a_class():
    task = tasks.parse('Gap: prevalence("win") - prevalence("loss") ~ 0.02')
    assert (str(task), task.tolerance) == ("Gap", 0.02)
    assert tasks.parse(task.formula) == task
    assert tasks.parse('coef("tie" ~ age ; age) ~ 0.1').tolerance == 0.1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prevalence()", "the classes are 'win', 'tie', 'loss': write prevalence"),
        ('mean(age | region == "south")', "does not say which class it is about"),
        ('prevalence("tei")', "no class 'tei' .* the classes are 'win', 'tie', 'loss'"),
        ('prevalence(y == "tie")', r'write prevalence\("tie" | ...\)'),
        ('coef(age ; age | y == "tie")', r'write coef\("tie" ~ age ; ...\)'),
        ('mean(age | y != "tie")', r"mean\(age | y == .* and ...\)"),
        ('mean(age | y == "tie" and y == "win")', "chooses rows by their label 'y'"),
        ('mean(agee | y == "tie")', "agee"),
    ],
)
def test_what_names_no_class_is_refused_in_a_sentence(several, text, said):
    for judge in (
        lambda: evaluate_tasks(several, [tasks.parse(text)]),
        lambda: check_tasks(several, [tasks.parse(text)], is_all=True),
    ):
        with pytest.raises(InputError, match=said):
            judge()


def test_classes_that_are_numbers_are_found_by_value_and_by_text():
    rng = np.random.default_rng(0)
    s = it.MulticlassSample(rng.integers(0, 3, 60), rng.dirichlet((2, 2, 2), 60), classes=[0, 1, 2])
    found = evaluate_tasks(
        s, [tasks.parse("prevalence(2)"), tasks.parse('prevalence("2")')], draws=19, rng=0
    )
    assert found[0].from_labels == found[1].from_labels == pytest.approx((s.codes == 2).mean())


def test_results_keep_the_task_that_was_asked_for_and_say_what_the_label_is_called(several):
    task = tasks.parse('mean(age | region == "south" and y == "tie")').named("Age", 0.5)
    (found,) = evaluate_tasks(several, [task], draws=19, rng=0)
    assert found.task is task
    assert (found.tolerance, found.positives, found.n) == (0.5, "y", 120)
    assert set(found.covariates) == {"age", "region"}


def test_estimates_with_probabilities_and_labels_come_with_their_shares(several):
    task = tasks.parse('prevalence("win") - prevalence("loss")')
    (plug_in,), (labels,) = checked_tasks(several, [task])
    assert plug_in.value == pytest.approx((several.p[:, 0] - several.p[:, 2]).mean())
    gap = (several.codes == 0).astype(float) - (several.codes == 2)
    assert labels.value == pytest.approx(gap.mean())
    assert labels.slope == pytest.approx((gap - gap.mean()) / 120)


def test_a_class_of_two_is_its_positives_or_the_others():
    s = binary()
    plain, named = (
        evaluate_tasks(s, [tasks.parse(text)], rng=0)[0]
        for text in ("mean(age)", "mean(age | y == true)")
    )
    assert {k: v for k, v in vars(plain).items() if k != "task"} == {
        k: v for k, v in vars(named).items() if k != "task"
    }
    one, two = evaluate_tasks(
        s, [tasks.parse("prevalence(false)"), tasks.parse("mean(age | y == 0)")], rng=0
    )
    (rate,) = evaluate_tasks(s, [tasks.prevalence()], rng=0)
    assert one.from_labels == pytest.approx(1 - rate.from_labels)
    assert one.stderr == pytest.approx(rate.stderr)
    age = s.column("age").values
    assert two.from_labels == pytest.approx(age[s.y == 0].mean())
    assert two.plugin == pytest.approx(np.average(age, weights=1 - s.p))
    with pytest.raises(InputError, match="the label does not have; it has"):
        evaluate_tasks(s, [tasks.parse('prevalence("maybe")')])
    with pytest.raises(InputError, match=r"make the sample with .* as positive"):
        check_tasks(s, [tasks.parse("prevalence(0)")], is_all=True)


def test_the_label_has_the_name_of_its_column_too():
    frame = {"owner": [0, 1, 1, 0] * 9, "p": [0.3, 0.6, 0.7, 0.4] * 9, "age": list(range(36))}
    s = it.Sample.from_frame(frame, label="owner", prob="p", on="age")
    task = class_tasks([tasks.parse("mean(age | owner == 1 and age > 3)")], s)[0]
    assert str(task) == "mean(age | age > 3)"


def test_a_covariate_called_y_stays_one():
    rng = np.random.default_rng(0)
    x = {"y": rng.integers(0, 40, 50), "age": rng.normal(size=50)}
    s = it.Sample(rng.random(50) < 0.5, rng.uniform(0.2, 0.8, 50), x)
    task = class_tasks([tasks.parse("mean(age | y == 3)")], s)[0]
    assert task.where.formula == "y == 3"
    assert class_tasks([tasks.parse("mean(y | age > 0)")], s)[0] == tasks.parse("mean(y | age > 0)")


def test_rows_alone_do_not_say_which_class_a_number_is_about():
    s = binary()
    with pytest.raises(InputError, match="evaluate it on a sample"):
        tasks.mean("age", label=0).linear(tasks.TaskRows.predicted(s))
    with pytest.raises(InputError, match="evaluate it on a sample"):
        tasks.coefficient("age", on=["age"], label=0).fit(tasks.TaskRows.predicted(s))
