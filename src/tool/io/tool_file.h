/* SPDX-License-Identifier: Apache-2.0 */
/* Text files inside the tool: its suites, its kernels, and the program that draws. */
#ifndef TCONV_TOOL_TOOL_FILE_H
#define TCONV_TOOL_TOOL_FILE_H

/* The text of a file that src/tool/CMakeLists.txt embeds, by its name without a folder. */
const char *tool_file(const char *name);

#endif
