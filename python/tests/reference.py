# SPDX-License-Identifier: Apache-2.0
"""The operation straight from its definition, for NCX and a filter [CI, CO, K...]; in f64, or exact for integers."""

from __future__ import annotations

import itertools

import numpy as np


def conv_transpose(data: np.ndarray, filter: np.ndarray, stride: int = 1, pad: int = 0) -> np.ndarray:
    number = object if np.issubdtype(data.dtype, np.integer) else np.float64
    data, filter = data.astype(number), filter.astype(number)
    spatial = [stride * (x - 1) + k for x, k in zip(data.shape[2:], filter.shape[2:])]
    output = np.zeros((data.shape[0], filter.shape[1], *spatial), number)
    for tap in itertools.product(*map(range, filter.shape[2:])):
        places = tuple(slice(k, k + stride * (x - 1) + 1, stride) for k, x in zip(tap, data.shape[2:]))
        products = np.tensordot(data, filter[(slice(None), slice(None), *tap)], axes=(1, 0))
        output[(slice(None), slice(None), *places)] += np.moveaxis(products, -1, 1)
    return output[(slice(None), slice(None), *(slice(pad, y - pad) for y in spatial))]
