#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads recipes for conda as rattler-build does, and compares their version. Nothing is installed or built.

usage: check.py VERSION RECIPE.yaml..."""

import sys

import rattler_build


def main() -> None:
    version, *files = sys.argv[1:]
    for file in files:
        rendered = [variant.recipe for variant in rattler_build.Stage0Recipe.from_file(file).render()]
        if [str(recipe.package.version) for recipe in rendered] != [version]:
            sys.exit(f"{file}: the version is not {version}")
        print(f"conda: {file} is a recipe of {version}")


if __name__ == "__main__":
    main()
