# SPDX-License-Identifier: Apache-2.0
# Hardening of all targets of this folder and of those below it, on systems with ELF: overwritten
# stacks and overflowing calls of the C library end the process, and the tables of functions cannot
# be written to. macOS's compiler does this by itself; MinGW's code would need one more DLL.
if(NOT TCONV_HARDEN OR TCONV_SANITIZE OR WIN32 OR APPLE) # sanitizers watch the same functions
    return()
endif()
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

check_c_compiler_flag(-fstack-protector-strong TCONV_HAS_STACK_PROTECTOR)
if(TCONV_HAS_STACK_PROTECTOR)
    add_compile_options(-fstack-protector-strong)
endif()

# It works in optimised code only. Some compilers, and those who build packages, set it themselves.
set(CMAKE_REQUIRED_FLAGS -O2)
check_c_source_compiles("
#ifndef _FORTIFY_SOURCE
#error
#endif
int main(void) { return 0; }" TCONV_IS_FORTIFIED)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT TCONV_IS_FORTIFIED)
    add_compile_definitions($<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:_FORTIFY_SOURCE=2>)
endif()

check_linker_flag(C "LINKER:-z,relro,-z,now" TCONV_HAS_FULL_RELRO)
if(TCONV_HAS_FULL_RELRO)
    add_link_options("LINKER:-z,relro,-z,now")
endif()
