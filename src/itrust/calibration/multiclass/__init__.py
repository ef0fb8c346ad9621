"""More than two classes: probabilities (n, K), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
Two classes are one question, which the binary test answers.
"""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
