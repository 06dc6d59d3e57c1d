"""Writing to what is no regular file: a pipe, a link, a device or a socket keeps being what it is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evaluatorq.errors import StoreError
from evaluatorq.store.atomic import replace_file, try_to_write

PARTS = (b"<one>", b"<two>")


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    try_to_write(pipe)
    replace_file(pipe, PARTS)
    reader.join(30)
    assert (read, pipe.is_fifo()) == ([b"<one><two>"], True)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    there, link, further = tmp_path / "there" / "file", tmp_path / "link", tmp_path / "further"
    there.parent.mkdir()
    there.write_text("old")
    link.symlink_to(Path("there") / "file")
    further.symlink_to(link)
    for name in (link, further):
        try_to_write(name)
        replace_file(name, PARTS)
        assert (name.is_symlink(), there.is_symlink(), there.read_bytes()) == (True, False, b"<one><two>")


def test_a_link_to_nothing_yet_makes_the_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "new" / "file")
    replace_file(link, PARTS)
    assert link.is_symlink()
    assert (tmp_path / "new" / "file").read_bytes() == b"<one><two>"


def test_what_cannot_be_written_is_one_sentence_and_stays(tmp_path: Path) -> None:
    loop, served, folder = tmp_path / "loop", tmp_path / "served", tmp_path / "folder"
    loop.symlink_to(loop)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(served))
        for target, why in ((loop, "symbolic links"), (served, "a socket or a disk"), (folder, "folder|directory")):
            for write in (try_to_write, lambda path: replace_file(path, PARTS)):
                with pytest.raises(StoreError, match=why) as refused:
                    write(target)
                assert str(refused.value).startswith(f"cannot write {target}: ")
        assert served.is_socket()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "{file}"])
def test_our_own_output_gets_it_in_its_place_among_the_rest(tmp_path: Path, name: str) -> None:
    code = (
        "import sys; from pathlib import Path; from evaluatorq.store.atomic import replace_file\n"
        "print('before'); replace_file(Path(sys.argv[1]), (b'report\\n',)); print('after')"
    )
    file = tmp_path / "out"
    with file.open("wb") as out:
        subprocess.run([sys.executable, "-c", code, name.format(file=file)], stdout=out, check=True, timeout=60)
    assert file.read_text() == "before\nreport\nafter\n"
