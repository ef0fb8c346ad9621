"""Boosted trees in the text form of LightGBM, checked and written anew.

LightGBM reads such a text without checking it: a number of a damaged one ends the process, or makes
it read memory that is not its own. So nothing of a file reaches it but numbers that were checked
here, in a text that is written here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from itrust._core import LARGEST_FLOAT, FloatArray, IntArray, shown, unfit

MAX_LEAVES = 10_000
MAX_STEP = 1e6  # of a leaf, on the scale of logits
MAX_WORD = 2**32 - 1
CATEGORICAL, MISSING_TYPES = 1, (0, 1, 2)
LINE = re.compile(r"([a-z_]+)=(.*)", re.ASCII)
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
NO_NEED = (
    *("split_gain", "leaf_weight", "leaf_count", "shrinkage"),
    *("internal_value", "internal_weight", "internal_count"),
)
HEADER = (
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"),
    *("objective", "feature_names", "feature_infos", "tree_sizes"),
)
FIXED = {"num_class": "1", "num_tree_per_iteration": "1", "objective": "binary sigmoid:1"}


def checked_trees(text: str, features: int, place: str) -> str:
    """The same trees in a text that LightGBM can read safely."""
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    opening, _, lines = head.partition("\n")
    if opening != "tree":
        unfit(place, "must be trees of LightGBM")
    header = _entries(lines, HEADER, place)
    wanted = {**FIXED, "max_feature_idx": str(features - 1)}
    for name, value in wanted.items():
        if header.get(name) != value:
            unfit(place, f"must have {name}={value}, not {shown(header.get(name, ''))}")
    trees = []
    for number, block in enumerate(blocks):
        own, _, lines = block.partition("\n")
        if own != str(number):
            unfit(place, f"must have tree {number} where it has {shown(own)}")
        trees.append(_Tree.read(lines, features, f"tree {number} of {place}").text(number))
    return "\n".join([_header(features), *trees, "end of trees\n"])


def _header(features: int) -> str:
    names = " ".join(f"Column_{k}" for k in range(features))
    infos = " ".join(["none"] * features)
    return (
        f"tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
        f"max_feature_idx={features - 1}\nobjective=binary sigmoid:1\n"
        f"feature_names={names}\nfeature_infos={infos}\n"
    )


def _entries(lines: str, known: tuple[str, ...], place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines.split("\n"):
        if not line:
            continue
        entry = LINE.fullmatch(line)
        if entry is None or entry[1] not in known or entry[1] in found:
            unfit(place, f"has a line that trees of LightGBM do not have there: {shown(line)}")
        found[entry[1]] = entry[2]
    return found


@dataclass(frozen=True, eq=False)
class _Tree:
    """One tree: k - 1 splits and k leaves; a child below 0 is a leaf, -1 the first one."""

    split_feature: IntArray
    threshold: FloatArray
    decision_type: IntArray
    left_child: IntArray
    right_child: IntArray
    leaf_value: FloatArray
    cat_boundaries: IntArray
    cat_threshold: IntArray

    @classmethod
    def read(cls, lines: str, features: int, place: str) -> _Tree:
        """Of the lines of a text; refuses what could lead out of the tree."""
        own = tuple(cls.__dataclass_fields__)
        told = _entries(lines, (*own, *NO_NEED, "num_leaves", "num_cat", "is_linear"), place)
        if told.get("is_linear", "0") != "0":
            unfit(place, "must have leaves of one value each")
        leaves = int(_numbers(told, "num_leaves", place, 1, 1, MAX_LEAVES)[0])
        categories = int(_numbers(told, "num_cat", place, 1, 0, leaves - 1)[0])
        splits = leaves - 1
        made = cls(
            _whole(told, "split_feature", place, splits, 0, features - 1),
            _numbers(told, "threshold", place, splits, -LARGEST_FLOAT, LARGEST_FLOAT),
            _whole(told, "decision_type", place, splits, 0, 15),
            _whole(told, "left_child", place, splits, -leaves, splits - 1),
            _whole(told, "right_child", place, splits, -leaves, splits - 1),
            _numbers(told, "leaf_value", place, leaves, -MAX_STEP, MAX_STEP),
            *_categories(told, place, categories),
        )
        made._refuse_loops(place)
        made._refuse_odd_splits(place, categories)
        return made

    def _refuse_loops(self, place: str) -> None:
        """Every split but the first, and every leaf, is the child of one earlier split."""
        splits = self.split_feature.size
        children = np.concatenate([self.left_child, self.right_child])
        parents = np.tile(np.arange(splits), 2)
        wanted = np.arange(-splits - 1 if splits else 0, splits)
        if not np.array_equal(np.sort(children), wanted[wanted != 0]):
            unfit(place, "must have every split and every leaf once among its children")
        if np.any((children >= 0) & (children <= parents)):
            unfit(place, "must have splits whose children come after them")

    def _refuse_odd_splits(self, place: str, categories: int) -> None:
        if not np.isin(self.decision_type >> 2, MISSING_TYPES).all():
            unfit(place, "has a decision_type that there is not")
        chosen = self.threshold[(self.decision_type & CATEGORICAL) == 1]
        if np.any((chosen != np.floor(chosen)) | (chosen < 0) | (chosen >= categories)):
            unfit(place, "has a split by categories that it does not list")

    def text(self, number: int) -> str:
        """As LightGBM reads it."""
        categories = self.cat_boundaries.size - 1
        lines = [f"Tree={number}", f"num_leaves={self.leaf_value.size}", f"num_cat={categories}"]
        for name, own in vars(self).items():
            if categories or not name.startswith("cat_"):
                lines.append(f"{name}={' '.join(map(repr, own.tolist()))}")
        return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", ""])


def _categories(told: Mapping[str, str], place: str, number: int) -> tuple[IntArray, IntArray]:
    """Where the sets of categories begin, and their bits, 32 to a word."""
    if not number:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    words = len(told.get("cat_threshold", "").split())
    bounds = _whole(told, "cat_boundaries", place, number + 1, 0, words)
    if bounds[0] != 0 or bounds[-1] != words or np.any(np.diff(bounds) < 1):
        unfit(place, "must have cat_boundaries that rise from 0 to the length of cat_threshold")
    return bounds, _whole(told, "cat_threshold", place, words, 0, MAX_WORD)


def _whole(
    told: Mapping[str, str], name: str, place: str, size: int, low: int, high: int
) -> IntArray:
    found = _numbers(told, name, place, size, low, high)
    if np.any(found != np.floor(found)):
        unfit(place, f"must have whole numbers as {name}")
    return found.astype(np.int64)


def _numbers(
    told: Mapping[str, str], name: str, place: str, size: int, low: float, high: float
) -> FloatArray:
    """The numbers of a line: so many, within these bounds."""
    words = told.get(name, "").split(" ") if told.get(name) else []
    if len(words) != size:
        unfit(place, f"must have {size:,} numbers as {name}, not {len(words):,}")
    odd = next((word for word in words if not NUMBER.fullmatch(word)), None)
    if odd is not None:
        unfit(place, f"must have numbers as {name}, not {shown(odd)}")
    found = np.array([float(word) for word in words])
    wrong = ~((found >= low) & (found <= high))
    if wrong.any():
        unfit(
            place,
            f"must have numbers from {low:g} to {high:g} as {name}, not "
            f"{words[int(np.argmax(wrong))]}",
        )
    return found
