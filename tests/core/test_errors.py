"""Errors carry values; one function makes the sentence, in the words of the door."""

import ast
import copy
import copyreg
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust._core import Code, InputError, Row, Setting, checked_choice, checked_count, sentence
from itrust.cli.console import SHELL

WRONG = InputError(
    "{argument} must lie in [0, 1]; {row} has {value}", argument="prob", row=16, value=1.2
)


def refusal(call):
    with pytest.raises(InputError) as caught:
        call()
    return caught.value


BOTH = [
    (
        lambda: WRONG,
        "prob must lie in [0, 1]; row 16 has 1.2",
        "--prob must lie in [0, 1]; the 17th row has 1.2",
    ),
    (
        lambda: refusal(lambda: it.Sample(["no", "yes"], [0.1, 0.2])),
        (
            "label has the values 'no', 'yes'; say which value counts as 1 with positive='no' or "
            "positive='yes'"
        ),
        (
            "--label has the values 'no', 'yes'; say which value counts as 1 with --positive no or "
            "--positive yes"
        ),
    ),
    (
        lambda: refusal(lambda: it.Sample([0, 1], [0.1, 0.2], {"age": [None, 3]})),
        (
            "covariates have missing values: 'age' in 1 row (first: row 0); pass "
            "missing='level' or missing='drop'"
        ),
        (
            "covariates have missing values: 'age' in 1 row (first: the 1st row); pass "
            "--missing level or --missing drop"
        ),
    ),
    (
        lambda: refusal(lambda: it.Sample([0, 1], [-2.0, 3.0])),
        (
            "prob must lie in [0, 1]; row 0 has -2.0, and 1 other row is outside, too (pass logits "
            "through scipy.special.expit first?)"
        ),
        (
            "--prob must lie in [0, 1]; the 1st row has -2.0, and 1 other row is outside, too "
            "(turn logits z into 1 / (1 + exp(-z)) first?)"
        ),
    ),
    (
        lambda: refusal(lambda: checked_count(0, "min_cell")),
        "min_cell must be a whole number of at least 1, not 0",
        "--min-cell must be a whole number of at least 1, not 0",
    ),
    (
        lambda: refusal(lambda: it.klce_test(it.Sample([0, 1], [0.1, 0.2]), rng=-1)),
        "rng must be a non-negative int, a NumPy Generator or None, not -1",
        "--seed must be a non-negative whole number, not -1",
    ),
    (
        lambda: refusal(lambda: it.Sample([0, 1], [0.1, 0.2], {"age": [1, float("inf")]})),
        "covariate 'age' must be finite; row 1 has inf (remove or cap it)",
        "covariate 'age' must be finite; the 2nd row has inf (remove or cap it)",
    ),
]


@pytest.mark.parametrize(("make", "python", "shell"), BOTH)
def test_the_same_error_in_both_doors(make, python, shell):
    error = make()
    assert str(error) == python
    assert sentence(error, SHELL) == shell


def test_the_fields_say_what_where_and_how_many():
    error = refusal(lambda: it.Sample([0, 1, 1], [0.2, 1.5, 1.5]))
    assert (error.argument, error.row, error.value, error.count) == ("prob", 1, 1.5, 2)
    frame = {"y": [0, 1], "q": [0.2, 1.5]}
    error = refusal(lambda: it.Sample.from_frame(frame, label="y", prob="q"))
    assert (error.argument, error.column, error.row) == ("prob", "q", 1)
    assert sentence(error, SHELL).startswith("--prob q must lie in")


@pytest.fixture
def copies_that_share_fields(monkeypatch):
    """As tblib registers them, which distributed installs: the copy keeps the first one's dict."""

    def shared(error):
        return _same_dict, (type(error), error.args, vars(error))

    monkeypatch.setitem(copyreg.dispatch_table, InputError, shared)


def _same_dict(cls, args, fields):
    error = cls.__new__(cls, *args)
    error.__dict__ = fields
    return error


@pytest.mark.usefixtures("copies_that_share_fields")
def test_a_file_moves_the_rows_of_an_error_and_leaves_the_error_alone():
    first = InputError("{row} has 1, {other} has 'row 3'", row=2, details={"other": Row(3)})
    moved = first.renumbered(lambda row: row + 100, lambda row: row + 2, "a.csv")
    assert str(moved) == "a.csv: row 102 has 1, row 103 has 'row 3'"
    assert sentence(moved, SHELL) == "a.csv: line 104 has 1, line 105 has 'row 3'"
    assert str(first) == "row 2 has 1, row 3 has 'row 3'"


def test_rows_of_a_scan_are_rows_of_their_file(tmp_path):
    lines = [f"{k % 2},0.5,{k}" for k in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["y,p,age", *lines]))
    (tmp_path / "b.csv").write_text("\n".join(["y,p,age", *lines[:50], "1,1.5,3"]))
    scan = it.scan(tmp_path / "*.csv", label="y", prob="p", on="age")
    error = refusal(lambda: it.klce_test(scan, draws=9))
    assert (error.file, error.row, error.value) == ("b.csv", 50, 1.5)


def test_errors_survive_pickle_and_copy_with_their_fields():
    error = WRONG.at(file="a.csv", details={"k": Setting("missing", "drop")})
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_a_hint_names_its_settings_in_order_or_together():
    drop, level = Setting("missing", "drop"), Setting("missing", "level")
    error = InputError("gaps", hint="{} is better than {}", settings=[level, drop])
    assert str(error) == "gaps; missing='level' is better than missing='drop'"
    error = InputError("gaps", hint="(use {settings}?)", settings=[level, Code("f(x)", "words")])
    assert sentence(error, SHELL) == "gaps (use --missing level or words?)"
    assert sentence(InputError("gaps", hint="why?")) == "gaps (why?)"
    assert SHELL.setting(Setting("positive", ...)) == "--positive VALUE"


def test_a_choice_comes_with_a_guess():
    assert str(refusal(lambda: checked_choice("dropp", "missing", ["drop", "level"]))) == (
        "missing must be one of 'drop', 'level', not 'dropp' (did you mean 'drop'?)"
    )


def test_finished_sentences_stay_as_they_are():
    assert str(InputError("name them in a mapping, such as {'age': ages}, {row} {}")) == (
        "name them in a mapping, such as {'age': ages}, {row} {}"
    )


BRACES = st.text(alphabet="{}rowvaluecount01 ", max_size=12)


@given(value=BRACES, column=BRACES, file=BRACES)
def test_braces_in_values_are_left_alone(value, column, file):
    error = InputError("{column} of {file} has {value}; {more}", value=value, column=column,
                       file=file, details={"more": value})  # fmt: skip
    for door in (None, SHELL):
        told = str(error) if door is None else sentence(error, door)
        assert told == f"{column!r} of {file} has {value!r}; {value}"


def templates():
    """Every `InputError(...)` of the package that is made from a template in place."""
    for path in sorted(Path(it.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InputError":
                known = {word.arg for word in node.keywords}
                parts = [p for p in ast.walk(node.args[0]) if isinstance(p, ast.Constant)]
                text = "".join(str(part.value) for part in parts)
                yield f"{path.name}:{node.lineno}", text, known, node


def test_no_sentence_has_a_place_that_nothing_fills():
    wrong = []
    for where, text, known, node in templates():
        details = next((word.value for word in node.keywords if word.arg == "details"), None)
        filled = known | {"subject", "title"}
        if isinstance(details, ast.Dict):
            filled |= {key.value for key in details.keys if key is not None}
            if None in details.keys:  # others that are passed on
                continue
        if None in known:
            passed = [word.value for word in node.keywords if word.arg is None]
            if any(getattr(value, "attr", "") != "fields" for value in passed):
                continue
            filled |= {"argument", "column"}  # **what.fields
        names = set(re.findall(r"\{(\w+)\}", text))
        if "details" in known and not isinstance(details, ast.Dict):
            continue
        wrong += [f"{where}: {name}" for name in names - filled]
    assert wrong == []
