"""Calibration errors as penalties for training with torch.

A penalty is a small value that is called with the probability of the positive class, the labels
and, where it compares rows, their covariates. It gives a scalar tensor to be added to the loss of
any torch model, on all rows or on mini-batches. Residuals are e = y - p, as everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import InputError, checked_positive, counted

try:
    import torch
except ImportError:
    raise ImportError("itrust.losses needs torch: pip install itrust[torch]") from None

__all__ = ["KLCE", "MMCE", "MMD", "Penalty"]
__dir__ = __all__.copy  # what tab completion offers


# Squared errors below this are rounding; the root is replaced by a line there, for its slope at 0
# is infinite.
ROUNDING = 1e-12


class Penalty(ABC):
    """What a model pays for being miscalibrated: a scalar, differentiable in `prob`."""

    def __call__(self, prob: torch.Tensor, y: Any, x: Any = None) -> torch.Tensor:
        """Compute the penalty of some rows.

        Parameters
        ----------
        prob : (n,) tensor of a floating type
            Probability of the positive class.
        y : (n,) tensor or array
            Labels, 0 and 1.
        x : (n, d) tensor or array, optional
            What rows are compared by; only a penalty that compares rows needs it.

        Returns
        -------
        scalar tensor
            Of the type of `prob`; `.backward()` gives its slopes.
        """
        checked = _checked_prob(prob)
        return self._value(checked, _checked_labels(y, checked), _checked_rows(x, checked))

    @abstractmethod
    def _value(
        self, prob: torch.Tensor, y: torch.Tensor, x: torch.Tensor | None
    ) -> torch.Tensor: ...


@dataclass(frozen=True)
class MMCE(Penalty):
    """Maximum mean calibration error of the more probable label.

    With confidence r = max(p, 1 - p), c = 1 where that label is right, and the kernel
    k = exp(-|r - r'| / width): the root of the mean of (c_i - r_i) k_ij (c_j - r_j) over all pairs,
    i = j among them, so it is never negative. Cost O(n^2) time and memory.

    The published code, which Table 2 of Vashistha and Farahi used, is another form. Rows whose
    label is right and rows whose label is wrong are taken apart, and each sum is divided by the
    square of the number of its pairs: u_i = (c_i - r_i) / m_i^2 in place of (c_i - r_i) / n, where
    m_i counts the rows that are right or wrong as i is. It fades as 1/n with the batch, is 0 where
    all are right or all wrong, and is not 0 for a calibrated model.

    Parameters
    ----------
    width : float
        Of the kernel on the confidence; 0.4 by default.
    published : bool
        Whether to use the form of the published code, to compare with it; by default not.

    References
    ----------
    Kumar, Sarawagi and Jain (ICML 2018), Trainable calibration measures for neural networks from
    kernel mean embeddings.

    Examples
    --------
    Two rows by hand: r = (0.9, 0.8), the second is wrong, k_12 = exp(-0.25), so that the square is
    (0.01 + 0.64 - 2 * 0.1 * 0.8 * exp(-0.25)) / 4.

    >>> import torch
    >>> p = torch.tensor([0.9, 0.8], dtype=torch.float64)
    >>> print(f"{MMCE()(p, [1, 0]):.6f}")
    0.362420
    """

    width: float = 0.4
    published: bool = False

    def __post_init__(self) -> None:
        checked_positive(self.width, "width")

    def _value(
        self,
        prob: torch.Tensor,
        y: torch.Tensor,
        x: torch.Tensor | None,  # noqa: ARG002
    ) -> torch.Tensor:
        sure = prob > 0.5
        confidence = torch.where(sure, prob, 1 - prob)
        right = (y > 0.5) == sure
        excess = right.to(prob.dtype) - confidence
        gram = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / self.width)
        share = self._shares(excess, right)
        return _root(share @ gram @ share)

    def _shares(self, excess: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """What each row brings to the sum over pairs, (n,), (n,) -> (n,)."""
        n = excess.numel()
        if not self.published:
            return excess / n
        number_right = int(right.sum())
        if number_right in (0, n):
            return 0 * excess  # one kind alone has nothing to be compared with
        alike = torch.where(right, number_right, n - number_right)
        return excess / alike.square()


@dataclass(frozen=True)
class MMD(Penalty):
    """Squared distance between the joint laws of (x, label) and (x, prediction).

    The kernel is exp(-|x - x'|^2 / bandwidth) exp(-|o - o'|^2 / label_bandwidth), o being one-hot
    labels, and predictions enter as expectations over both labels. For two labels that is
    2 (1 - exp(-2 / label_bandwidth)) times the mean of e_i exp(-|x_i - x_j|^2 / bandwidth) e_j over
    i != j: KLCE^2 without its kernel on predictions. Unbiased, so it may be negative. Cost
    O(n^2 d) time, O(n^2) memory.

    Parameters
    ----------
    bandwidth : float
        Of the inputs. It is not a width: RBF(width) has the bandwidth 2 width^2.
    label_bandwidth : float
        Of the labels, on the same scale; for two labels it only multiplies the penalty.
    biased : bool
        Whether to include i = j, which makes the penalty never negative (see `KLCE`).

    References
    ----------
    Marx, Zalouk and Ermon (NeurIPS 2023), Calibration by distribution matching: trainable kernel
    calibration metrics, section 4.1; bandwidths as in Table 2 of Vashistha and Farahi.

    Examples
    --------
    Two rows by hand: e = (-0.5, 0.5), |x - x'|^2 = 25, so 2 (1 - exp(-2)) (-0.25) exp(-1).

    >>> import torch
    >>> p = torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> print(f"{MMD()(p, [0, 1], [[0.0, 0.0], [3.0, 4.0]]):.6f}")
    -0.159046
    """

    bandwidth: float = 25.0
    label_bandwidth: float = 1.0
    biased: bool = False

    def __post_init__(self) -> None:
        checked_positive(self.bandwidth, "bandwidth")
        checked_positive(self.label_bandwidth, "label_bandwidth")

    def _value(self, prob: torch.Tensor, y: torch.Tensor, x: torch.Tensor | None) -> torch.Tensor:
        if x is None:
            raise InputError(
                "MMD compares rows by their inputs; pass them as x, shape (n, d)", argument="x"
            )
        gram = torch.exp(-_squared_distances(x) / self.bandwidth)
        labels_apart = -2 * np.expm1(-2 / self.label_bandwidth)
        return float(labels_apart) * _pair_mean(y - prob, gram, self.biased)


@dataclass(frozen=True)
class KLCE(Penalty):
    """Squared kernel local calibration error, as `itrust.klce2` has it with Gaussian kernels.

    sum over i != j of e_i exp(-(p_i - p_j)^2 / (2 prob_width^2)) l(x_i, x_j) e_j / (n (n - 1)) with
    l = exp(-sum_k (x_ik - x_jk)^2 / (2 x_width_k^2)); the gradient runs through the kernel on
    predictions, too. Cost O(n^2 d) time, O(n^2) memory.

    Unbiased by default: the mean over mini-batches then aims at the same number whatever their
    size, but it may be negative, and a model with room to overfit can push it far below 0 by making
    residuals of neighbours alternate. The biased form takes in i = j and cannot be negative; what
    it adds is about the Brier score divided by n, so it weighs more in small batches.

    Parameters
    ----------
    prob_width : float
        Width of the kernel on predictions; 0.1 by default.
    x_width : float, sequence of float or None
        Widths in the units of the covariates: one for all, or one for each. A width far below 1
        asks 0/1 columns to match; None leaves covariates out (KCE).
    biased : bool
        Whether to include i = j; by default not.

    References
    ----------
    Vashistha and Farahi (AISTATS 2025); Muandet et al. (UAI 2020).

    Examples
    --------
    >>> import torch
    >>> import itrust as it
    >>> from itrust.kernels import RBF, LocalKernel
    >>> y, p, x = [0, 1, 1], [0.2, 0.5, 0.9], [[30.0], [40.0], [60.0]]
    >>> penalty = KLCE(prob_width=0.5, x_width=20.0)
    >>> print(f"{penalty(torch.tensor(p, dtype=torch.float64), y, x):.6f}")
    -0.018043
    >>> round(it.klce2(it.Sample(y, p, x), LocalKernel(RBF(0.5), RBF(20.0))), 6)
    -0.018043
    """

    prob_width: float = 0.1
    x_width: float | Sequence[float] | None = 1.0
    biased: bool = False

    def __post_init__(self) -> None:
        checked_positive(self.prob_width, "prob_width")
        if isinstance(self.x_width, Sequence | np.ndarray):
            object.__setattr__(self, "x_width", tuple(self.x_width))  # may be a list: freeze it
        for width in self.x_width if isinstance(self.x_width, tuple) else (self.x_width,):
            if width is not None:
                checked_positive(width, "x_width")

    def _value(self, prob: torch.Tensor, y: torch.Tensor, x: torch.Tensor | None) -> torch.Tensor:
        squares = ((prob[:, None] - prob[None, :]) / self.prob_width).square()
        if self.x_width is not None:
            squares = squares + self._covariate_squares(x)
        return _pair_mean(y - prob, torch.exp(-squares / 2), self.biased)

    def _covariate_squares(self, x: torch.Tensor | None) -> torch.Tensor:
        if x is None:
            raise InputError(
                "KLCE compares rows by covariates; pass them as x, or leave them out with "
                "x_width=None",
                argument="x",
            )
        widths = self.x_width if isinstance(self.x_width, tuple) else (self.x_width,) * x.shape[1]
        if len(widths) != x.shape[1]:
            told = counted(len(widths), "width"), counted(x.shape[1], "column")
            raise InputError(f"x_width has {told[0]} for {told[1]} of x")
        return _squared_distances(x / torch.tensor(widths, dtype=x.dtype, device=x.device))


def _pair_mean(residuals: torch.Tensor, gram: torch.Tensor, biased: bool) -> torch.Tensor:
    """Mean of e_i P_ij e_j over pairs; (n,), (n, n) with ones on the diagonal -> scalar."""
    n = residuals.numel()
    total = residuals @ gram @ residuals
    if biased:
        return total / n**2
    return (total - residuals.square().sum()) / (n * (n - 1))


def _squared_distances(x: torch.Tensor) -> torch.Tensor:
    """(n, d) -> (n, n), without the expanded square, which loses digits far from 0."""
    return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square()


def _root(square: torch.Tensor) -> torch.Tensor:
    line = square.clamp(min=0) / ROUNDING**0.5
    return torch.where(square > ROUNDING, square.clamp(min=ROUNDING).sqrt(), line)


def _checked_prob(prob: object) -> torch.Tensor:
    if not isinstance(prob, torch.Tensor) or not prob.is_floating_point():
        raise InputError("prob must be a floating torch tensor; numbers go through torch.tensor")
    if prob.ndim != 1:
        raise InputError(
            "prob must be the probability of the positive class, shape (n,), not "
            f"{tuple(prob.shape)}; of two columns take prob[:, 1]"
        )
    if prob.numel() < 2:
        raise InputError(f"a penalty needs at least 2 rows to compare; this batch has {len(prob)}")
    outside = ~((prob >= 0) & (prob <= 1))
    _refuse_rows("prob", "must lie in [0, 1]", outside, prob, "through torch.sigmoid first?")
    return prob


def _checked_labels(y: Any, prob: torch.Tensor) -> torch.Tensor:
    labels = torch.as_tensor(y, device=prob.device).to(prob.dtype)
    if labels.shape != prob.shape:
        raise InputError(f"y has shape {tuple(labels.shape)}, prob has {tuple(prob.shape)}")
    _refuse_rows("y", "must be 0 or 1", (labels != 0) & (labels != 1), labels)
    return labels


def _checked_rows(x: Any, prob: torch.Tensor) -> torch.Tensor | None:
    if x is None:
        return None
    rows = torch.as_tensor(x, device=prob.device).to(prob.dtype)
    if rows.ndim != 2 or len(rows) != len(prob):
        wanted = f"shape ({len(prob)}, d), one row for each of prob"
        raise InputError(f"x must have {wanted}, not {tuple(rows.shape)}", argument="x")
    _refuse_rows("x", "must be finite", ~rows.isfinite().all(dim=1), rows.sum(dim=1))
    return rows


def _refuse_rows(
    argument: str, must: str, wrong: torch.Tensor, values: torch.Tensor, hint: str | None = None
) -> None:
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise InputError(
            f"{{argument}} {must}; {{row}} has {values[row]:g}",
            argument=argument,
            row=row,
            value=float(values[row]),
            hint=None if hint is None else f"pass logits {hint}",
        )
