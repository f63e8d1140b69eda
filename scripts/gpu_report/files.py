# SPDX-License-Identifier: Apache-2.0
"""The files of a report's folder."""

import contextlib
import fcntl
import json
import os
import shutil


def load(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@contextlib.contextmanager
def whole(path):
    """A text file to write: whatever ends the program, the file is the old or the new one. One that is write-protected
    is refused, as open(path, "w") would."""
    if os.path.exists(path):
        open(path, "r+b").close()
    part = os.path.join(os.path.dirname(path), "new.%d" % os.getpid())
    with open(part, "w", encoding="utf-8") as out:
        yield out
    os.replace(part, path)


def save(path, value):
    with whole(path) as out:
        json.dump(value, out, indent=1)


def torch_said(folder):
    """What PyTorch said of itself, in order: --resume may have gone on with another one."""
    said = load(os.path.join(folder, "torch.json")) or []
    return [said] if isinstance(said, dict) else said  # earlier versions kept one


def take_folder(folder, resume):
    """Makes or empties the folder. Returns a file that keeps other runs out until it is closed, or an error's text."""
    os.makedirs(folder, exist_ok=True)
    if set(os.listdir(folder)) - {"lock"} and not os.path.exists(os.path.join(folder, "plan.json")):
        return "%s has files but no report; nothing was changed: choose another folder" % folder
    lock = open(os.path.join(folder, "lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return "another run measures in %s" % folder
    except OSError as error:  # some file systems of clusters have no locks
        print("%s cannot be locked (%s): let no other run measure there" % (folder, error))
    # The plan goes last: whatever ends this, the folder can be emptied the next time.
    for entry in [] if resume else sorted(os.scandir(folder), key=lambda entry: entry.name == "plan.json"):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.name != "lock":
            os.remove(entry.path)
    return lock
