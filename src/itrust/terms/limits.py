"""How many levels of a category, or values of a number, count: one limit for each purpose."""

# `data` settles COUNTED_LEVELS that a first pass counts (a category of more names rows, no groups),
# CUT_LEVELS that a cut of a column shows, and MAX_VALUES of a number that may be codes.

# A check of a level costs a row of the bank and a share of its family's weight. What lies beyond
# is checked together by a kernel, so nothing is lost but the name of the level.
CHECKED_LEVELS = 100
# Directions of interval nulls and contrasts of classes are made for every level and law.
DIRECTION_LEVELS = 20
# Every check of a watch keeps sums for all stakes and onsets in a file for years.
WATCHED_LEVELS = 30
WATCHED_CROSSED = 8  # of either column, where two are crossed: cells grow with the square
# Columns of a matrix that is solved or learned from, in O(columns^2): balancing weights,
# recalibration, patches and regressors. Rarer levels count by their other covariates.
COLUMN_LEVELS = 40
# A search for slices looks at all rectangles of two columns: the square of the levels.
SEARCHED_LEVELS = 30
# What people read in one picture or one table.
SHOWN_LEVELS = 40
# Groups of an audit share one family of redraws; of several classes each has its own.
GROUP_LEVELS = 500
CLASS_GROUP_LEVELS = 100
