"""Errors of a disk in our words, whoever met them: Python, Arrow or Delta's Rust."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from headrace.base.errors import DiskFull, HeadraceError, StoreRefused, StoreUnreachable
from headrace.stores.disk import told


@pytest.mark.parametrize(
    ("failed", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DiskFull),
        (DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)"), DiskFull),
        (PermissionError(errno.EACCES, "Permission denied"), StoreRefused),
        (OSError("LocalFileSystem error: Read-only file system (os error 30)"), StoreRefused),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory"), StoreRefused),
        (OSError(errno.EIO, "Input/output error"), StoreUnreachable),
        (DeltaError("something\n else"), StoreUnreachable),
    ],
)
def test_each_is_told_with_its_own_words(failed: Exception, kind: type[HeadraceError]) -> None:
    error = told(failed, "lake:payments", Path("/srv/lake/payments"), "lake.path")
    assert type(error) is kind
    assert error.what.startswith("lake:payments ")
    assert error.why == f"/srv/lake/payments: {' '.join(str(failed).split())}"
    assert error.fix
