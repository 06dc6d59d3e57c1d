"""Files that are either whole or not there: a temporary file in the same folder, flushed, then put in place.

Only files are replaced. A link stays, and what it points to is written; a pipe or a terminal is written into.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluatorq.errors import StoreError

PRIVATE_FILE = 0o600
PRIVATE_DIR = 0o700
_LOOK_AGAIN_S = 0.05
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def make_private_dir(folder: Path) -> None:
    """Creates a folder that only its owner can read, and those above it; one sentence when that fails."""
    try:
        for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            missing.mkdir(mode=PRIVATE_DIR, exist_ok=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot create {folder}: {error.strerror}") from error


@contextlib.contextmanager
def _temporary(target: Path, parts: Iterable[bytes], *, durable: bool = True) -> Iterator[Path]:
    make_private_dir(target.parent)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "wb") as file:  # noqa: PTH123
            file.writelines(parts)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        yield temporary
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):  # what went wrong before is what there is to say
            temporary.unlink(missing_ok=True)


def replace_file(
    target: Path,
    parts: Iterable[bytes],
    *,
    mode: int | None = None,
    mtime_ns: int | None = None,
    durable: bool = True,
) -> None:
    """Writes ``target``, replacing what was there only when all of it is on disk.

    The file is its owner's alone and of now, unless ``mode`` and ``mtime_ns`` say otherwise. What is not ``durable`` is
    whole for everybody who reads it, but may be lost when the power is.
    """
    stream = _stream_at(target)
    if stream is not None:
        _write_into(stream, target, parts)
        return
    target = _behind_links(target)
    with _temporary(target, parts, durable=durable) as temporary:
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        if mtime_ns is not None:
            os.utime(temporary, ns=(mtime_ns, mtime_ns))
        temporary.replace(target)


def try_to_write(target: Path) -> None:
    """``StoreError`` where a file could not be put at ``target``. Leaves nothing but the folder that it needs."""
    if target.is_dir():
        raise StoreError(f"cannot write {target}: it is a folder")
    stream = _stream_at(target)
    if stream is None:
        with _temporary(_behind_links(target), ()):
            pass
    elif isinstance(stream, Path) and not os.access(stream, os.W_OK):
        raise StoreError(f"cannot write {target}: {os.strerror(errno.EACCES)}")


def is_replaced(target: Path) -> bool:
    """What is written to ``target`` is a file of its own, and not part of a stream."""
    return _stream_at(target) is None


def _stream_at(target: Path) -> Path | int | None:
    """What is written into rather than replaced: a pipe, a device of characters, or our own output, by its number."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from error
    for number in (1, 2):
        with contextlib.suppress(OSError):  # closed
            if os.path.samestat(found, os.fstat(number)):
                return number
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return None
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
        return target
    raise StoreError(f"cannot write {target}: it is a socket or a disk, not a file")


def _behind_links(target: Path) -> Path:
    return target.resolve() if target.is_symlink() else target


def _write_into(stream: Path | int, target: Path, parts: Iterable[bytes]) -> None:
    try:
        sys.stdout.flush()
        where = os.dup(stream) if isinstance(stream, int) else _opened(stream)
        with open(where, "wb") as file:  # noqa: PTH123
            file.writelines(parts)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from error


def _opened(stream: Path) -> int:
    """The reader of a pipe is waited for, but not by a process that ends: this may be a thread that it would join."""
    while True:
        try:
            where = os.open(stream, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or not threading.main_thread().is_alive():
                raise
            time.sleep(_LOOK_AGAIN_S)
        else:
            os.set_blocking(where, True)
            return where


def create_file(target: Path, parts: Iterable[bytes]) -> Path:
    """Writes a new file and never replaces one: on a collision ``name_001.ext`` and so on. Returns the path used."""
    with _temporary(target, parts) as temporary:
        for number in range(1000):
            path = target if number == 0 else target.with_stem(f"{target.stem}_{number:03d}")
            try:
                _put_new(temporary, path)
            except FileExistsError:
                continue
            return path
    raise StoreError(f"a thousand files named like {target} exist already")


def _put_new(temporary: Path, path: Path) -> None:
    """Gives a file its name; ``FileExistsError`` where that is taken. Some file systems know no second names."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        temporary.replace(path)
