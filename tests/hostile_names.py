"""Names that have done harm elsewhere, and an audit whose names can be exchanged for them.

An audit takes seconds and a rendering takes a moment, so one audit is made with names that stand
for others, and every name in it, wherever it is, is exchanged.
"""

import io
import pickle
import random
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

import itrust as it
from itrust.auditing import Audit, Provenance

NUMBERS, DATES, CATEGORIES, LEVELS = 2, 1, 3, 10
STAND_IN = re.compile(r"zz[a-z]+\d+zz")
KNOWN = (
    *("inc\\", "\\", "a\\\\", '\\"', "\\'", "\\u0041", "\\n", '"', "'", "`", "'\"`", "a b", "a.b"),
    *("a[0]", "a['b']", "[", "]", "{a}", "${x}", "{{7*7}}", "%s", "$x^2$", "$", "_hidden", "__"),
    *("</script>", "<!--", "-->", "<img src=x onerror=window.pwned=1>", "<b>b</b>", "&amp;", "&"),
    *("]]>", "<![CDATA[", "a|b", "*a*", "# a", "- a", "> a", "[a](http://b)", "@a", "=1+1", "+1"),
    *("a\u2028b", "a\u2029b", "\u202eabc", "\u2066a", "a\u200bb", "\u200b", "\ufeff", "\u00ad"),
    *(
        "e\u0301",
        "\u00e9",
        "e" + "\u0301" * 30,
        "\u05d0\u05d1\u05d2 abc",
        "\U0001f469\u200d\U0001f467",
    ),
    *(
        "\ud800",
        "a\udc00b",
        "\ufffe",
        "\x00",
        "a\x00b",
        "a\nb",
        "a\tb",
        "a\rb",
        "\x1b[31mred",
        "\x9b",
    ),
    *(
        " ",
        "   ",
        "\u3000",
        "\u2800",
        "\u3164",
        "age",
        "Age",
        "age ",
        " age",
        "a" * 5_000,
        "a b " * 1_200,
    ),
    *("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "prototype", "length"),
    *("datum", "null", "undefined", "NaN", "Infinity", "true", "false", "None", "0", "-1", "1e5"),
    *(
        "2024-01-01",
        "width",
        "names",
        "xTitle",
        "tip",
        "k",
        "bias",
        "interval",
        "judged on",
        "group",
    ),
    *("url(#a)", "var(--ink)", "javascript:alert(1)", "function(){}", "//", "/*", "*/", ";", ","),
    *(
        "prediction",
        "all rows",
        "missing",
        "everywhere",
        "label",
        "calc(1px)",
        "1;alert(1)",
        "\x85",
    ),
)
PARTS = (
    *(
        "\\",
        '"',
        "'",
        "`",
        "$",
        "{",
        "}",
        "[",
        "]",
        ".",
        "<",
        ">",
        "</",
        "&",
        "#",
        "%",
        "|",
        "*",
        "_",
    ),
    *(
        "\n",
        "\t",
        "\x00",
        "\x1b",
        "\u2028",
        "\u202e",
        "\u200d",
        "\u0301",
        "\ufeff",
        "\ud83d",
        "\udc00",
    ),
    *(
        "\U0001f642",
        "\u05d0",
        "\u4e2d\u6587",
        "a",
        "B",
        " ",
        "0",
        "datum",
        "constructor",
        "-",
        "=",
        ",",
    ),
)


def made_up(rng: random.Random) -> str:
    """A name of a few parts, each of which is special somewhere; now and then a long one."""
    name = "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 8)))
    return name * (300 if rng.random() < 0.03 else 1)


def hostile_names(count: int, seed: int = 0) -> list[str]:
    """As many names, all different: those that are known, then ones that are made up."""
    rng, names = random.Random(seed), dict.fromkeys(KNOWN)
    while len(names) < count:
        names[made_up(rng)] = None
    return list(names)[:count]


@lru_cache(maxsize=2)
def stand_in_audit(charts: bool = True) -> Audit:
    """An audit of few rows whose names all stand for others, with everything that a page shows."""
    rng, n = np.random.default_rng(0), 260
    x: dict[str, Any] = {f"zznumber{k}zz": rng.normal(size=n) for k in range(NUMBERS)}
    days = rng.integers(0, 300, n).astype("timedelta64[D]")
    x |= {f"zzdate{k}zz": np.datetime64("2024-01-01") + days for k in range(DATES)}
    for k in range(CATEGORIES):
        levels = np.array(
            [f"zzlevel{k}{j}zz" for j in range(LEVELS if k == 0 else 3)], dtype=object
        )
        x[f"zzcategory{k}zz"] = rng.choice(levels, n)
    p = rng.uniform(0.1, 0.9, n)
    shift = 0.4 * (x["zznumber0zz"] > 0) - 0.4 * (x["zzcategory1zz"] == "zzlevel11zz")
    sample = it.Sample(rng.random(n) < np.clip(p + shift, 0, 1), p, x)
    share = it.tasks.share(zzcategory1zz="zzlevel11zz")
    tasks = [it.tasks.mean("zznumber0zz").named("zztask0zz"), share]
    learn, judge = sample.split([0.5, 0.5], rng=0)
    methods = {f"zzmethod{k}zz": it.recalibrate.Platt() for k in range(2)}
    settings: dict[str, Any] = {"draws": 39, "rng": 0}
    return it.audit(sample, tasks, charts=charts, **settings).extended(
        recalibration=it.recalibrate.compare(methods, learn, judge, slices=False, **settings),
        comparison=it.compare({f"zzmodel{k}zz": sample for k in (1, 2)}, on=[], **settings),
        provenance=Provenance(
            "itrust audit zzfile0zz", "zzfile0zz", "0" * 64, title="zztitle0zz", model="zzmodel0zz"
        ),
    )


def stand_ins(value: Any) -> list[str]:
    """The names that stand for others in the dict of an audit."""
    return sorted({name for text in texts_of(value) for name in STAND_IN.findall(text)})


def texts_of(value: Any) -> Iterator[str]:
    """Every text in plain values, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from (*texts_of(key), *texts_of(part))
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: object) -> str | None:
        return obj if type(obj) is str and STAND_IN.search(obj) else None


class _Renamer(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, name_of: Callable[[str], str]) -> None:
        super().__init__(file)
        self.name_of = name_of

    def persistent_load(self, text: str) -> str:
        return STAND_IN.sub(lambda found: self.name_of(found[0]), text)


def renamed(audit: Audit, name_of: Callable[[str], str]) -> Audit:
    """The same audit with every name exchanged, wherever in it the name is."""
    return _Renamer(io.BytesIO(_pickled(audit)), name_of).load()


@lru_cache(maxsize=2)
def _pickled(audit: Audit) -> bytes:
    written = io.BytesIO()
    _Pickler(written).dump(audit)
    return written.getvalue()
