# SPDX-License-Identifier: Apache-2.0
"""The files of a report's folder."""

import fcntl
import json
import os
import shutil


def load(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, value):
    """Whole or not at all: whatever ends the program, the file is the old or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
    os.replace(path + ".new", path)


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
