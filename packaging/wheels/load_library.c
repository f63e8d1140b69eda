/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a library as Python does, and prints its version and how many devices it finds.
 *
 *   usage: load_library FILE */
#include <stdio.h>

#ifdef _WIN32
#include <windows.h>
#define OPEN(file) LoadLibraryA(file)
#define FIND(library, name) GetProcAddress(library, name)
typedef HMODULE library_t;
#else
#include <dlfcn.h>
#define OPEN(file) dlopen(file, RTLD_NOW)
#define FIND(library, name) dlsym(library, name)
typedef void *library_t;
#endif

typedef const char *version_function(void);
typedef int count_function(int *count, void *error);

int main(int argc, char **argv)
{
    const library_t library = argc == 2 ? OPEN(argv[1]) : NULL;
    if (library == NULL) {
        fprintf(stderr, "load_library: %s cannot be loaded\n", argc == 2 ? argv[1] : "no file");
        return 1;
    }
    version_function *version = (version_function *)FIND(library, "tconv_version");
    count_function *count_devices = (count_function *)FIND(library, "tconv_device_count");
    if (version == NULL || count_devices == NULL) {
        fprintf(stderr, "load_library: %s lacks a function\n", argv[1]);
        return 1;
    }
    int count = 0;
    const int status = count_devices(&count, NULL);
    printf("tconv-cl %s, %d devices, status %d\n", version(), count, status);
    return 0;
}
