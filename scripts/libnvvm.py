# SPDX-License-Identifier: Apache-2.0
"""Compiles LLVM IR to PTX with libNVVM, which is the optimiser in NVIDIA's drivers too.

For cards before sm_100 libNVVM reads the IR of LLVM 7. clang 14 is the last clang whose pointers have types, as they
had then; what else came later is taken out of its IR here. Nothing of that changes what a kernel computes.
"""

import ctypes
import re

DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
LATER_ATTRIBUTES = "noundef|immarg|mustprogress|nofree|nosync|willreturn|dso_local"
REPLACEMENTS = [
    (re.compile(pattern, re.M), new)
    for pattern, new in (
        (r"^target datalayout = .*$", 'target datalayout = "%s"' % DATA_LAYOUT),
        (r"^!(llvm\.ident|opencl\.\w+(\.\w+)*) = .*$", ""),
        (r'"[\w-]+"="[^"]*" ?', ""),  # attributes of clang's own back end
        (r"\b(%s)\b ?" % LATER_ATTRIBUTES, ""),
        (r"\b(sret|byval)\([^)]*\)", r"\1"),
        (r"\bpoison\b", "undef"),
        (r"((?:atomicrmw|cmpxchg) .*), align \d+", r"\1"),
    )
]
TYPE = r"(<\d+ x \w+>|\S+)( addrspace\(\d+\)\*+)?"  # of a parameter of a kernel
NEGATION = re.compile(r"\bfneg ((?:\w+ )*)(float|double|half|<(\d+) x (\w+)>) ")


def subtraction(match):
    """LLVM 7 negates by a subtraction from -0.0."""
    flags, kind, count, element = match.groups()
    zero = "-0.0" if count is None else "<%s>" % ", ".join(["%s -0.0" % element] * int(count))
    return "fsub %s%s %s, " % (flags, kind, zero)


def sizes_of_groups(text):
    """Annotations for reqd_work_group_size, which clang leaves as metadata of a kernel and libNVVM would not see."""
    numbers = dict(re.findall(r"^!(\d+) = !\{(i32 \d+, i32 \d+, i32 \d+)\}$", text, re.M))
    for name, parameters, group in re.findall(r"^define .*?@(\w+)\((.*)\) .*!reqd_work_group_size !(\d+)", text, re.M):
        types = [re.match(TYPE, parameter).group() for parameter in parameters.split(", ")]
        sizes = zip("xyz", numbers[group].split(", "))
        yield "!{void (%s)* @%s, %s}" % (", ".join(types), name, ", ".join('!"reqntid%s", %s' % size for size in sizes))


def llvm_7(text):
    """The IR of clang 14 as LLVM 7 reads it. All values must have names."""
    for pattern, new in REPLACEMENTS:
        text = pattern.sub(new, text)
    text = NEGATION.sub(subtraction, text)
    free = 1 + max(int(number) for number in re.findall(r"^!(\d+) = ", text, re.M))
    sizes = list(sizes_of_groups(text))
    lines = ["!%d = %s" % (free + i, size) for i, size in enumerate([*sizes, "!{i32 2, i32 0}"])]
    text = re.sub(
        r"^!nvvm\.annotations = !\{",
        lambda found: found.group() + "".join("!%d, " % (free + i) for i in range(len(sizes))),
        text,
        flags=re.M,
    )
    return text + "\n".join(["", "!nvvmir.version = !{!%d}" % (free + len(sizes)), *lines, ""])


class Library:
    """libNVVM. Threads may compile at the same time."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, "nvvmGet%sSize" % what)(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, "nvvmGet%s" % what)(program, text)
        return text.value.decode(errors="replace")

    def ptx(self, ir, target):
        """Of IR for LLVM 7; ValueError with libNVVM's log if it does not compile."""
        program, ir = ctypes.c_void_p(), ir.encode()
        option = (ctypes.c_char_p * 1)(b"-arch=" + target.replace("sm_", "compute_").encode())
        if self.library.nvvmCreateProgram(ctypes.byref(program)) != 0:
            raise ValueError("libNVVM makes no program")
        try:
            failed = self.library.nvvmAddModuleToProgram(program, ir, ctypes.c_size_t(len(ir)), None)
            if failed or self.library.nvvmCompileProgram(program, 1, option):
                raise ValueError(self.text(program, "ProgramLog"))
            return self.text(program, "CompiledResult")
        finally:
            self.library.nvvmDestroyProgram(ctypes.byref(program))
