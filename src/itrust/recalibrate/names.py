"""Names of the methods, for messages that come before any of them is loaded."""

# Whether each of `METHODS` reads covariates: `Recalibrator.reads_covariates`.
READS_COVARIATES = {
    "local": True,
    "platt": False,
    "temperature": False,
    "isotonic": False,
    "histogram": False,
    "bbq": False,
    "beta": False,
    "multicalibration": True,
    "proportional": True,
    "mcgrad": True,
}
FOR_CLASSES = ("vector", "matrix", "dirichlet")  # of `CLASS_METHODS`, those for them alone
