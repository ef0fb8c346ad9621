"""Which rows: one family of predicates on covariates, for groups, slices, checks and tasks."""
