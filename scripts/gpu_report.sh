#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# For a machine with a GPU: builds, then tests and times the library beside PyTorch, and writes one report. --help explains the
# options and exit codes. With --build FOLDER nothing is built or installed; else what is needed besides drivers and PyTorch is installed.
# Without a GPU it ends at once, unless --device names another device.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
begin=$(date +%s)
case " $* " in
*" --device"* | *" --resume "* | *" --help "* | *" -h "* | *" --report "* | *" --programs "*) ;;
*) python3 "$root/scripts/gpu_report/gpus.py" || exit 1 ;;
esac
case " $* " in
*" --build"* | *" --help "* | *" -h "* | *" --report "* | *" --programs "*) ;;
*) sh "$root/scripts/build.sh" >&2 ;;
esac
exec python3 "$root/scripts/gpu_report" --begin "$begin" "$@"
