"""Data sets: two embedded ones, arrays, and LIBSVM files whose faults are named by line number."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError, nearest

DENSE_ABOVE = 0.4  # share of nonzeros above which rows are stored dense
LARGEST = 1e100  # squares and sums of squares stay finite
EMBEDDED = ("breast_cancer", "digits", "digits10")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and targets.

    Attributes
    ----------
    name : of the set, or the path of its file.
    A : (N, d) samples: a dense array, or a SciPy CSR array with int32 columns where at most 40 % of the entries are nonzero.
    y : (N,) targets as given.
    binary : is every stored entry 1 (and A sparse)?
    how : one sentence on how features and labels were made.
    sha256 : checksum of the file's bytes, "" where there is no file.
    """

    name: str
    A: Any
    y: np.ndarray
    binary: bool
    how: str
    sha256: str = ""

    def signs(self) -> np.ndarray:
        """Labels as +-1: the smaller of the two values becomes -1; UsageError unless there are two."""
        values = np.unique(self.y)
        if len(values) != 2:
            shown = ", ".join(f"{v:g}" for v in values[:6]) + (", ..." if len(values) > 6 else "")
            raise UsageError(f"{self.name} must have two labels, but it has {len(values)}: {shown}.")
        return np.where(self.y == values[1], 1.0, -1.0)


def dataset(name: str, A: Any, y: Any, how: str = "as given", sha256: str = "") -> Dataset:
    """A :class:`Dataset` in the layout that suits its density; UsageError on shapes that do not fit, NaN or inf."""
    from scipy import sparse

    A = sparse.csr_array(A, dtype=np.float64) if sparse.issparse(A) else _matrix(name, A)
    y = np.asarray(y, dtype=np.float64).ravel()
    if A.ndim != 2 or A.shape[0] != len(y):
        raise UsageError(f"{name} must have one target a row, but has shape {A.shape} and {len(y)} targets.")
    if A.shape[0] == 0 or A.shape[1] == 0:
        raise UsageError(f"{name} has no samples." if A.shape[0] == 0 else f"{name} has no features.")
    entries = A if isinstance(A, np.ndarray) else A.data
    if not (np.all(np.isfinite(entries)) and np.all(np.isfinite(y))):
        raise UsageError(f"{name} contains NaN or inf; every entry and target must be finite.")
    if max(np.abs(entries).max(initial=0.0), np.abs(y).max()) > LARGEST:
        raise UsageError(f"{name} contains a number beyond {LARGEST:g}, whose square is not safe to compute with; rescale it.")
    if np.count_nonzero(entries) > DENSE_ABOVE * A.shape[0] * A.shape[1]:
        dense = A if isinstance(A, np.ndarray) else A.toarray()
        return Dataset(name, np.ascontiguousarray(dense), y, False, how, sha256)
    csr = sparse.csr_array(A)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr = sparse.csr_array((csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int32)), shape=csr.shape)
    return Dataset(name, csr, y, bool(np.all(csr.data == 1.0)), how, sha256)


def _matrix(name: str, A: Any) -> np.ndarray:
    try:
        return np.atleast_2d(np.asarray(A, dtype=np.float64))
    except (TypeError, ValueError):
        raise UsageError(f"the samples of {name} must be a table of numbers with rows of one length.") from None


def get_data(data: Any, features: int | None = None, zero_based: bool | None = None) -> Dataset:
    """The data set of that name, of that path, or of arrays.

    Parameters
    ----------
    data : "breast_cancer" (569 x 30, features standardised to mean 0 and variance 1 each, then every row divided by sqrt(30); label:
        benign or not), "digits" (1797 x 64, pixels divided by 16; label: the digit is odd or not),
        "digits10" (the same; label: the digit), a path to a LIBSVM file (plain or gzip), a :class:`Dataset`, a pair ``(A, y)``, or a
        dict with ``rows`` and ``y``.
    features, zero_based : of a LIBSVM file; see :func:`read_libsvm`.

    >>> get_data("digits").A.shape
    (1797, 64)
    """
    named = isinstance(data, (str, os.PathLike))
    if (features is not None or zero_based is not None) and not (named and os.fspath(data) not in EMBEDDED):
        raise UsageError("features and zero_based describe a LIBSVM file; leave them out for other data.")
    if isinstance(data, Dataset):
        return data
    if named:
        path = os.fspath(data)
        if path in EMBEDDED:
            return _embedded(path)
        if not os.path.exists(path):
            if os.sep in path or "." in path:
                raise UsageError(f"there is no file {path!r}.")
            raise nearest(path, EMBEDDED, "data set (and there is no such file)")
        return read_libsvm(path, features, zero_based)
    if isinstance(data, dict) and set(data) == {"rows", "y"}:
        return dataset("the given data", data["rows"], data["y"])
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return dataset("the given data", data[0], data[1])
    raise UsageError(f"data must be one of {', '.join(EMBEDDED)}, a path, or a pair (samples, targets), not {type(data).__name__}.")


@lru_cache(maxsize=4)
def _embedded(name: str) -> Dataset:
    from sklearn import datasets

    if name == "digits10":
        A, y = datasets.load_digits(return_X_y=True)
        return dataset(name, A / 16.0, y, "pixels divided by 16; label: the digit")
    if name == "digits":
        return dataset(name, _embedded("digits10").A, _embedded("digits10").y % 2, "pixels divided by 16; label: the digit is odd or not")
    A, y = datasets.load_breast_cancer(return_X_y=True)
    A = (A - A.mean(axis=0)) / A.std(axis=0) / math.sqrt(A.shape[1])
    return dataset(name, A, y, "features standardised, rows divided by sqrt(30); label: benign or not")


# --- LIBSVM files ----------------------------------------------------------------------------------------------------


def read_libsvm(path: str, features: int | None = None, zero_based: bool | None = None) -> Dataset:
    """A file of lines ``label index:value index:value ...``, plain or gzip (recognised by its bytes, not its name).

    A row may be empty (a label alone), blank lines and ``#`` comments are skipped, and indices may come in any order.

    Parameters
    ----------
    features : the number of columns; None: the largest index in the file.
    zero_based : do column numbers start at 0?  None: they do if the file contains a 0, else they start at 1 (LIBSVM's convention).

    Errors: UsageError that names the line of a malformed entry, a repeated or negative index, an index beyond ``features``, NaN or
    inf; or says that the file is missing, empty or not readable.
    """
    if features is not None and (isinstance(features, bool) or not isinstance(features, (int, np.integer)) or features < 1):
        raise UsageError(f"features must be a whole number of at least 1, not {features!r}.")
    if zero_based not in (None, True, False):
        raise UsageError(f"zero_based must be true, false or none, not {zero_based!r}.")
    content, checksum = _content(path)
    loaded = _quick(content, zero_based) or _careful(path, content, zero_based)
    A, y, lowest = loaded
    shift = 0 if (zero_based if zero_based is not None else lowest == 0) else 1
    width = A.shape[1] - shift
    if features is not None and width > features:
        _careful(path, content, zero_based, features)  # names the line
    width = features or width
    if width < 1:
        raise UsageError(f"{path} has no features: every row is empty; say how many columns there are with features=.")
    from scipy import sparse

    A = sparse.csr_array((A.data, A.indices - shift, A.indptr), shape=(A.shape[0], width))
    return dataset(str(path), A, y, "LIBSVM file, features as they are", checksum)


def _content(path: str) -> tuple[bytes, str]:
    try:
        with open(path, "rb") as file:
            raw = file.read()
        content = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a LIBSVM file.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    if not content.strip():
        raise UsageError(f"{path} is empty.")
    return content, hashlib.sha256(raw).hexdigest()


def _quick(content: bytes, zero_based: bool | None) -> tuple[Any, np.ndarray, int] | None:
    """scikit-learn's reader, ``(A, y, smallest index)``; None where it objects or read a number that is not finite."""
    from sklearn.datasets import load_svmlight_file

    if b"_" in content:  # Python's float() takes 1_0 for 10
        return None
    try:
        A, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except (ValueError, OverflowError, IndexError):
        return None
    lowest = int(A.indices.min()) if A.nnz else 1
    fine = np.all(np.isfinite(A.data)) and np.all(np.isfinite(y)) and not (zero_based is False and lowest == 0) and len(y)
    return (A, y, lowest) if fine else None


def _careful(path: str, content: bytes, zero_based: bool | None, features: int | None = None) -> tuple[Any, np.ndarray, int]:
    """A slow reader that names the line of the first fault."""
    from scipy import sparse

    least = 1 if zero_based is False else 0
    y, indptr, indices, values = [], [0], [], []
    lines = []
    for count, raw in enumerate(content.split(b"\n"), start=1):
        words = raw.decode("utf-8", "replace").split("#")[0].split()
        if not words:
            continue
        where = f"{path}, line {count}"
        y.append(_finite(where, "label", words[0]))
        row = dict(_pairs(where, [w for w in words[1:] if not w.startswith("qid:")], least))
        indices += sorted(row)
        values += [row[j] for j in sorted(row)]
        indptr.append(len(indices))
        lines.append((count, max(row, default=0)))
    if not y:
        raise UsageError(f"{path} is empty.")
    lowest = min(indices, default=1)
    first = 0 if (zero_based if zero_based is not None else lowest == 0) else 1
    for count, top in lines:
        if features is not None and top - first >= features:
            raise UsageError(f"{path}, line {count}: index {top} is beyond the {features} features asked for.")
    width = max(indices, default=0) + 1
    A = sparse.csr_array((np.array(values), np.array(indices, np.int64), np.array(indptr, np.int64)), shape=(len(y), width))
    return A, np.array(y), lowest


def _pairs(where: str, words: list[str], least: int) -> Any:
    seen = set()
    for word in words:
        index, colon, value = word.partition(":")
        if not colon or not index.lstrip("-").isdigit() or not index.isascii():
            raise UsageError(f"{where}: {word!r} is not of the form index:value.")
        j = int(index)
        if j < least:
            raise UsageError(f"{where}: index {j} is not allowed; indices start at {least}.")
        if j >= 2**31 - 1:
            raise UsageError(f"{where}: index {j} is too large; the largest allowed is {2**31 - 2}.")
        if j in seen:
            raise UsageError(f"{where}: index {j} appears twice.")
        seen.add(j)
        yield j, _finite(where, f"value of index {j}", value)


def _finite(where: str, what: str, text: str) -> float:
    try:
        x = float(text.replace("_", "?"))
    except ValueError:
        raise UsageError(f"{where}: the {what} is {text!r}, which is not a number.") from None
    if not math.isfinite(x):
        raise UsageError(f"{where}: the {what} is {text!r}; it must be finite.")
    return x
