# SPDX-License-Identifier: Apache-2.0
"""What the driver compiled: the programs of the folder's cache as files."""

import glob
import os
import shutil
import struct
import subprocess


def unpack_programs(folder):
    """Writes each program of the cache (its format: src/store/record.h) and its key as files; asks ptxas about PTX.
    Returns an error's text, or None."""
    target = os.path.join(folder, "programs")
    os.makedirs(target, exist_ok=True)
    count = 0
    for path in sorted(glob.glob(os.path.join(folder, "cache/**/*"), recursive=True)):
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            record = file.read()
        if record[:7] != b"tconvcl":
            continue
        key_size, size = struct.unpack_from("<QQ", record, 8)
        key, binary = record[24 : 24 + key_size], record[24 + key_size : 24 + key_size + size]
        base = os.path.join(target, os.path.splitext(os.path.basename(path))[0])
        ptx = b".version" in binary[:4096]
        program = base + (".ptx" if ptx else ".bin")
        with open(program, "wb") as out:
            out.write(binary.rstrip(b"\0") if ptx else binary)
        with open(base + ".key", "wb") as out:
            out.write(key)
        count += 1
        if ptx and shutil.which("ptxas"):
            targets = [line.split()[1] for line in binary.splitlines() if line.startswith(b".target")]
            arch = targets[0].split(b",")[0].decode() if targets else "sm_90"
            done = subprocess.run(
                ["ptxas", "-v", "-arch", arch, "-o", os.devnull, program], capture_output=True, text=True, check=False
            )
            with open(base + ".ptxas", "w", encoding="utf-8") as out:
                out.write(done.stdout + done.stderr)
            lines = [
                line.split(":")[-1].strip()
                for line in done.stderr.splitlines()
                if "registers" in line or "spill" in line
            ]
            print("%s: %s" % (os.path.basename(base), "; ".join(lines) if not done.returncode else "ptxas failed"))
    print("%d programs: %s" % (count, target))
    return None if count else "%s has no programs" % os.path.join(folder, "cache")
