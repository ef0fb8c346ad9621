"""`make data`: fetch the public data sets with the package's own loader; print their folder."""

import os
import sys
from collections.abc import Iterable

from itrust import DatasetError, datasets
from itrust.datasets import ADULT, AHS2019, COMPAS, FOLDER_VARIABLE, HEART, Dataset, cache_folder


def main(wanted: Iterable[Dataset] = (ADULT, AHS2019, COMPAS, HEART)) -> int:
    """Print the folder to set ITRUST_DATA to; 2 and a sentence where a data set is out of reach."""
    os.environ.pop(FOLDER_VARIABLE, None)
    try:
        for dataset in wanted:
            datasets.load(dataset)
    except DatasetError as error:
        print(error, file=sys.stderr)
        return 2
    print(cache_folder())
    return 0


if __name__ == "__main__":
    sys.exit(main())
