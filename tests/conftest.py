"""For all tests: one thread for the linear algebra, which is set before the libraries are loaded."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

pytest_plugins = ["pytester"]
