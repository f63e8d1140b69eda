# SPDX-License-Identifier: Apache-2.0
# The public headers as Doxygen reads them, with the same lines. Their plain comments become documentation: the first one is the file's;
# one on lines of its own belongs to the declarations up to the next empty line, one behind a declaration to that one; indented lines
# are code. What struct_size and TCONV_..._INIT are is the same in every structure.
BEGIN { RS = ""; ORS = "\n\n" }
{
    count = split($0, line, "\n")
    functions = list = 0
    for (i = 1; i <= count; i++) {
        if (line[i] ~ /^ *(\/\*|\*)/) gsub(/[\\%@]/, "\\\\&", line[i]) # a comment has no commands
        if (line[i] ~ /SPDX-License-Identifier/) {
            line[i] = "/* \\file"
            sub(/^\/\*/, " *", line[i + 1])
        }
        sub(/^ *\/\*/, "&*", line[i])
        sub(/[^ *\/] +\/\*/, "&*<", line[i])
        if (line[i] ~ /^ \* +- /) list = 1
        if (line[i] ~ /^ \*$/) list = 0
        if (!list && line[i] ~ /^ \*   /) line[i] = " *    " substr(line[i], 3)
        if (line[i] ~ /^    size_t struct_size;$/) line[i] = line[i] " /**< The structure's size; TCONV_..._INIT sets it: tconv_cl.h. */"
        if (line[i] ~ /^#define TCONV_[A-Z_]*_INIT /) line[i] = "/** The structure with its size, and every other member at its default. */ " line[i]
        if (line[i] ~ /^TCONV_API/) functions++
    }
    text = functions > 1 ? "/**@{*/ " line[1] : line[1]
    for (i = 2; i <= count; i++) text = text "\n" line[i]
    if (functions > 1) text = text " /**@}*/"
    print text
}
