# SPDX-License-Identifier: Apache-2.0
"""The examples of the README, of the tutorial and of the docstrings, one after the other."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import tconv_cl


def test_readme():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    exec("\n".join(blocks), {})


def test_questions():
    text = (Path(__file__).parents[2] / "docs" / "faq.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(block, {})


def tutorial(name):
    """The program that a page of docs/tutorials is, and what the page says that it prints."""
    text = (Path(__file__).parents[2] / "docs" / "tutorials" / name).read_text()
    blocks = {
        language: "".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        for language in ("python", "text")
    }
    assert all(blocks.values())
    return blocks["python"], blocks["text"]


def test_tutorial():
    program, wanted = tutorial("python.md")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {})
    assert printed.getvalue() == wanted


def test_docstrings():
    import numpy

    names = {"np": numpy, **{name: getattr(tconv_cl, name) for name in tconv_cl.__all__}}
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for name in tconv_cl.__all__:
        for test in finder.find(getattr(tconv_cl, name), name, module=False, globs=names):
            runner.run(test)
    assert runner.tries == 34 and runner.failures == 0
