"""The four public data sets of the paper, as Arrow tables (`.to_pandas()` if you like).

Each is downloaded once into the user's cache and checked against its SHA-256, or read from a
folder: the argument `data_home`, else the environment variable `ITRUST_DATA`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.csv
import requests

from itrust._core import DatasetError, InputError, cache_folder, write_whole

__all__ = [
    "ADULT",
    "AHS2019",
    "COMPAS",
    "HEART",
    "Dataset",
    "adult",
    "ahs2019",
    "compas",
    "heart",
    "load",
]
__dir__ = __all__.copy  # what tab completion offers


FOLDER_VARIABLE = "ITRUST_DATA"
AUTHORS = (
    "https://raw.githubusercontent.com/ritwikvashistha/I-trustworthy/"
    "c432c0478c0ff5fc1115c7d6c1f6af42596f110a/Data"
)


@dataclass(frozen=True)
class Dataset:
    """Where a data set comes from and what its columns mean.

    Attributes
    ----------
    file : str
        Name of the file in the cache, or in a folder of one's own.
    url, sha256 : str
        Where the file comes from, and the checksum of the bytes there: a file with other bytes is
        refused.
    licence : str
        What is known about the terms of use.
    columns : mapping of str to str
        The columns that are kept, each with its meaning; others are dropped before anything is
        written.
    personal : bool
        Whether the source holds personal columns, so that it is never written to disk whole; by
        default it does not.
    kept_sha256 : str
        Checksum of the file as it is kept, where personal columns are dropped; by default `sha256`.
    """

    file: str
    url: str
    sha256: str
    licence: str
    columns: Mapping[str, str]
    personal: bool = False
    kept_sha256: str = field(default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "kept_sha256", self.kept_sha256 or self.sha256)


def _meanings(text: str) -> dict[str, str]:
    """Columns and their meanings, one `name: meaning` a line."""
    parts = (line.strip().partition(": ") for line in text.strip().splitlines())
    return {name: meaning for name, _, meaning in parts}


def _from_the_authors(
    file: str, sha256: str, columns: str, licence: str, source: str | None = None
) -> Dataset:
    """A data set that the paper's authors have published, there called `source`."""
    url = f"{AUTHORS}/{source or file}"
    return Dataset(file, url, sha256, licence, _meanings(columns))


COMPAS = Dataset(
    file="compas-two-years.csv",
    url="https://raw.githubusercontent.com/propublica/compas-analysis/"
    "bafff5da3f2e45eca6c2d5055faad269defd135a/compas-scores-two-years.csv",
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    kept_sha256="ff24ce7ce105ca1d1f7cc0aaf4b4b4e34bbb36ad3ba13e09f1cd44841c2ba86c",
    licence="none stated by the source; the paper says CC BY 4.0",
    personal=True,
    columns=_meanings("""
        sex: Male or Female
        age: years
        age_cat: age in three classes
        race: as recorded by the county
        juv_fel_count: juvenile felonies
        juv_misd_count: juvenile misdemeanours
        juv_other_count: other juvenile offences
        priors_count: prior convictions
        days_b_screening_arrest: days between screening and arrest (missing in 307 rows)
        c_charge_degree: F felony, M misdemeanour
        decile_score: COMPAS risk of recidivism, 1 to 10
        score_text: the same in words
        v_decile_score: COMPAS risk of violent recidivism, 1 to 10
        is_recid: label of the paper: 1 if charged again
        is_violent_recid: 1 if charged again with a violent offence
        two_year_recid: label of other studies: 1 if charged again within two years
    """),
)

AHS2019 = _from_the_authors(
    file="ahs2019.csv",
    source="AHS_2019_Cleaned.csv",
    sha256="97145c7fe05ab720fbaeb73996c8fff83ef7dd6745f5ae6fcb9c777fc338a0b9",
    licence="none stated by the source; the survey is a publication of the US government",
    columns="""
        BLACK: 1 if a member of the household is African-American
        HHSEX: sex of the householder: 1 male, 2 female
        METRO: 1 in a metropolitan area
        HHGRAD: education of the householder, coded
        HHMAR: marital status, coded
        HHCITSHP: citizenship, coded
        HHAGE: age of the householder
        NUMPEOPLE: persons in the household
        HINCP: log10 of the household's income
        DIVISION: census division, 1 to 9
        OWNER: label: 1 if the home is owned
    """,
)

ADULT = _from_the_authors(
    file="adult.csv",
    sha256="1f13ee2bf9d7c66098429281ab91fa1b51cbabd3b805cc365b3c6b44491ea2c0",
    columns="""
        age: years
        workclass: kind of employer (may be missing)
        fnlwgt: census weight
        education: highest level
        educational-num: the same as a number
        marital-status: seven classes
        occupation: fourteen classes (may be missing)
        relationship: to the householder
        race: five classes
        gender: Male or Female
        capital-gain: dollars
        capital-loss: dollars
        hours-per-week: hours worked
        native-country: of birth (may be missing)
        income: label: <=50K (the paper's positive class) or >50K
    """,
    licence="none stated by the source; UCI gives CC BY 4.0",
)

HEART = _from_the_authors(
    file="heart.csv",
    sha256="948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
    columns="""
        Age: years
        Sex: M or F
        ChestPainType: four classes
        RestingBP: mm Hg; 0 stands for unknown (1 row)
        Cholesterol: mg/dl; 0 stands for unknown (172 rows)
        FastingBS: 1 if fasting blood sugar exceeds 120 mg/dl
        RestingECG: three classes
        MaxHR: highest heart rate reached
        ExerciseAngina: Y or N
        Oldpeak: ST depression
        ST_Slope: three classes
        HeartDisease: label: 1 if diseased
    """,
    licence="none stated by the source; quoted elsewhere as ODbL 1.0",
)


def compas(data_home: str | Path | None = None) -> pa.Table:
    """COMPAS scores and recidivism in Broward County (ProPublica 2016), 7,214 rows.

    Names, dates of birth, case numbers and dates of the source are dropped before anything is
    written.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder with the file; default: the one that ITRUST_DATA names, else the user's cache, into
        which the file is downloaded once.

    Returns
    -------
    pyarrow.Table
        The columns of `COMPAS.columns`; `.to_pandas()` gives a data frame.
    """
    return load(COMPAS, data_home)


def ahs2019(data_home: str | Path | None = None) -> pa.Table:
    """Home ownership in the American Housing Survey 2019, 48,660 rows.

    Parameters
    ----------
    data_home : str or Path, optional
        Where the file is; default: as for `compas`.

    Returns
    -------
    pyarrow.Table
        With the columns of `AHS2019.columns`.
    """
    return load(AHS2019, data_home)


def adult(data_home: str | Path | None = None) -> pa.Table:
    """Census income (UCI Adult), 48,842 rows; `?` is read as missing.

    Parameters
    ----------
    data_home : str or Path, optional
        Folder in place of the default of `compas`.

    Returns
    -------
    pyarrow.Table
        `ADULT.columns` says what its columns mean.
    """
    return load(ADULT, data_home)


def heart(data_home: str | Path | None = None) -> pa.Table:
    """Heart disease, five cardiology sets merged, 918 rows.

    Parameters
    ----------
    data_home : str or Path, optional
        Another folder than the default, which is that of `compas`.

    Returns
    -------
    pyarrow.Table
        One row for each patient; the columns are those of `HEART.columns`.
    """
    return load(HEART, data_home)


def load(dataset: Dataset, data_home: str | Path | None = None) -> pa.Table:
    """Read a data set from a folder, from the cache, or from its source.

    Parameters
    ----------
    dataset : Dataset
        Which one, such as `COMPAS`.
    data_home : str or Path, optional
        Folder that holds the file; default: the one that ITRUST_DATA names, else the user's cache.

    Returns
    -------
    pyarrow.Table
        The columns that `dataset.columns` names.
    """
    folder = data_home or os.environ.get(FOLDER_VARIABLE)
    path = _in_folder(dataset, Path(folder)) if folder else _in_cache(dataset)
    options = pyarrow.csv.ConvertOptions(
        include_columns=list(dataset.columns), null_values=["", "?"], strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(path, convert_options=options)


def _in_folder(dataset: Dataset, folder: Path) -> Path:
    path = folder / dataset.file
    if not path.is_file():
        raise DatasetError(
            f"there is no file {dataset.file} in the folder {folder} (from data_home= or "
            f"{FOLDER_VARIABLE}); put it there, or unset the folder to download it"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != dataset.kept_sha256:
        raise DatasetError(
            f"{path} is not the published file: its SHA-256 is {found[:12]}..., expected "
            f"{dataset.kept_sha256[:12]}...; get it again"
        )
    return path


def _in_cache(dataset: Dataset) -> Path:
    """The cached file; one that is absent or damaged is downloaded, whole or not at all."""
    cache = cache_folder()
    path = cache / dataset.file
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == dataset.kept_sha256:
        return path
    try:
        found = _in_memory(dataset)
        kept = keep_columns(found, list(dataset.columns)) if dataset.personal else found
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, kept)
    except InputError as error:  # the disk is full
        raise DatasetError(str(error)) from None
    except (requests.RequestException, OSError) as error:
        raise DatasetError(
            f"could not download {dataset.file} from {dataset.url} ({type(error).__name__}); "
            f"connect to the network, or set {FOLDER_VARIABLE} to a folder that holds the file"
        ) from None
    return path


def _in_memory(dataset: Dataset) -> bytes:
    """The bytes of the source, checked before anything is on disk."""
    answer = requests.get(dataset.url, timeout=60)
    answer.raise_for_status()
    if hashlib.sha256(answer.content).hexdigest() != dataset.sha256:
        raise DatasetError(
            f"{dataset.url} no longer has the published bytes (another SHA-256); nothing was kept"
        )
    return answer.content


def keep_columns(content: bytes, names: list[str]) -> bytes:
    r"""Cut a CSV file down to some columns, in memory.

    >>> keep_columns(b"name,age\r\nAnn,3\r\n", ["age"])
    b'age\n3\n'
    """
    rows = csv.DictReader(io.StringIO(content.decode("utf-8")))
    kept = io.StringIO()
    writer = csv.DictWriter(kept, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return kept.getvalue().encode("utf-8")
