# SPDX-License-Identifier: Apache-2.0
"""Tests and times the library on one device, beside PyTorch (cuDNN, MIOpen, oneDNN), and writes report.md.

What tells most comes first: a short check of every algorithm, a few decisive layers of each kind (element type and data
format), the other layers, device tests, bytes. A slice is five layers of one kind, by tconv-cl bench and then by
PyTorch. Each layer of ours is verified in the run that times it. Each slice has a file, so an interruption loses one
slice at most, and --resume goes on.
"""

import argparse
import glob
import os
import signal
import sys

from files import save, take_folder
from layers import KINDS, ROOT
from measure import Run, make_plan
from programs import unpack_programs
from report import write_report
from torch_process import Torch


def parse():
    parser = argparse.ArgumentParser(
        prog="gpu_report.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=0,
        help="end after so many, the build and the report included; default: when all is done",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the report in the folder: measure what is missing, with the layers, kinds, tests and device "
        "of the first call",
    )
    parser.add_argument("--ids", default="", metavar="B01,B07", help="only these layers of the suite")
    parser.add_argument("--kinds", default="", metavar="f16-NXC,...", help="only these of %s" % " ".join(KINDS))
    parser.add_argument("--tests", metavar="NAME,...", help="only these device tests; '' for none")
    parser.add_argument(
        "--percent",
        type=int,
        help="share of their problems that device tests sample, 0: the least; default 10, with --minutes 1",
    )
    parser.add_argument(
        "--device",
        type=int,
        metavar="N",
        help="its number, as tconv-cl devices lists it; default: the one with *, which must be a GPU",
    )
    parser.add_argument(
        "--output",
        default=os.path.join(ROOT, "build/gpu_report"),
        metavar="FOLDER",
        help="for report.md and all else; default: build/gpu_report of the sources",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="PROGRAM",
        help="the Python that has PyTorch; default: the one that runs this",
    )
    parser.add_argument(
        "--build",
        default=os.path.join(ROOT, "build"),
        metavar="FOLDER",
        help="was built before: build nothing; default: build into build/ of the sources",
    )
    parser.add_argument(
        "--report", action="store_true", help="measure nothing: write the report of what is in the folder"
    )
    parser.add_argument(
        "--programs",
        action="store_true",
        help="measure nothing: unpack the folder's programs, with registers and spills of PTX by ptxas, if it is there",
    )
    # When the script began, in seconds since 1970.
    parser.add_argument("--begin", type=float, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def outcome(failed, missing):
    """The exit code of a report."""
    return 1 if failed else 3 if missing else 0


def main():
    arguments = parse()
    if (arguments.programs or arguments.report) and not os.path.exists(os.path.join(arguments.output, "plan.json")):
        return "%s has no report" % arguments.output
    if arguments.programs:
        return unpack_programs(arguments.output)
    if arguments.report:
        return outcome(*write_report(arguments.output))
    run = Run(arguments)
    plan = make_plan(run, arguments)  # before an earlier report is deleted
    if isinstance(plan, str):
        return plan
    lock = take_folder(run.folder, arguments.resume)
    if isinstance(lock, str):
        return lock
    save(run.path("plan.json"), plan)

    def stop(number, _):
        run.signal = number

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    run.say("%s; %s" % (plan["device"]["name"], run.folder))
    run.torch = Torch(arguments.python, plan["device"]["kind"], plan["device"]["name"], run.path("torch.log"))
    try:
        run.all(plan)
    finally:
        run.torch.end()
        for path in glob.glob(run.path("bench-*.json")):
            os.remove(path)
        failed, missing = write_report(run.folder)
    lock.close()
    ended, failures = "interrupted: " if run.signal else "", "".join(" " + text for text in failed[:10])
    told = (ended, len(missing), len(failed), failures, run.path("report.md"))
    run.say("%s%d parts are missing, %d failed%s; the report: %s" % told)
    return 128 + run.signal if run.signal else outcome(failed, missing)


if __name__ == "__main__":
    sys.exit(main())
