/* SPDX-License-Identifier: Apache-2.0 */
/* Implements system.h on Windows 10 and later. Paths are UTF-8 for callers and UTF-16 for the
 * system. */
#include "base/os.h"
#include "base/os_windows.h"
#include "tool/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdlib.h>
#include <string.h>

/* Sets errno from the system's last error. */
static void set_reason(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_INVALID_NAME: errno = ENOENT; break;
    case ERROR_FILENAME_EXCED_RANGE: errno = ENAMETOOLONG; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_LOCK_VIOLATION:
    case ERROR_SHARING_VIOLATION:
    case ERROR_USER_MAPPED_FILE: errno = EACCES; break;
    case ERROR_WRITE_PROTECT: errno = EROFS; break;
    case ERROR_HANDLE_DISK_FULL:
    case ERROR_DISK_FULL: errno = ENOSPC; break;
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_OUTOFMEMORY:
    case ERROR_NOT_ENOUGH_MEMORY: errno = ENOMEM; break;
    case ERROR_TOO_MANY_OPEN_FILES: errno = EMFILE; break;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS: errno = EEXIST; break;
    default: errno = EIO;
    }
}

/* ---- the program and its terminal ---- */

static UINT input_page, output_page; /* the console's own */

static void give_console_back(void)
{
    SetConsoleCP(input_page);
    SetConsoleOutputCP(output_page);
}

/* Sets the console to UTF-8 and colours. A console that does not know them, or a stream that is not
 * a console, stays as it is. */
static void set_console(void)
{
    static const DWORD streams[] = {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    input_page = GetConsoleCP();
    output_page = GetConsoleOutputCP();
    if (input_page != 0 && output_page != 0 && atexit(give_console_back) == 0) {
        SetConsoleCP(CP_UTF8);
        SetConsoleOutputCP(CP_UTF8);
    }
    for (int i = 0; i < 2; i++) {
        DWORD mode;
        HANDLE console = GetStdHandle(streams[i]);
        if (GetConsoleMode(console, &mode))
            SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
}

char **system_begin(int *argc, char **argv)
{
    (void)argv; /* in the code page of the user, who may name files that it does not have */
    set_console();
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
    _setmode(_fileno(stderr), _O_BINARY);
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **arguments = wide == NULL ? NULL : calloc((size_t)count + 1, sizeof *arguments);
    for (int i = 0; arguments != NULL && i < count; i++)
        if ((arguments[i] = tconv_os_narrow(wide[i])) == NULL) return NULL;
    LocalFree(wide);
    *argc = count;
    return arguments; /* they live as long as the program */
}

bool system_is_terminal(FILE *stream)
{
    return _isatty(_fileno(stream)) != 0;
}

int system_columns(FILE *stream)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    HANDLE console = (HANDLE)_get_osfhandle(_fileno(stream));
    return GetConsoleScreenBufferInfo(console, &info) ? info.srWindow.Right - info.srWindow.Left + 1
                                                      : 0;
}

bool system_names_terminal(const char *path)
{
    FILE *file = system_kind(path) == SYSTEM_OTHER ? tconv_os_fopen(path, "r+b") : NULL;
    DWORD mode; /* NUL is a character device, too, but has none */
    const bool terminal = file != NULL &&
                          GetConsoleMode((HANDLE)_get_osfhandle(_fileno(file)), &mode);
    if (file != NULL) fclose(file);
    return terminal;
}

int system_processors(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
}

/* Reads a text of the registry. Empty if it is not there. */
static void read_registry(const char *key, const char *name, char *value, size_t size)
{
    DWORD bytes = (DWORD)size;
    if (RegGetValueA(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, NULL, value, &bytes) !=
        ERROR_SUCCESS)
        value[0] = '\0';
}

void system_names(char *system, size_t system_size, char *processor, size_t processor_size)
{
    static const char windows[] = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";
    char product[100], build[40];
    read_registry(windows, "ProductName", product, sizeof product);
    read_registry(windows, "CurrentBuild", build, sizeof build);
    snprintf(system, system_size, "%s%s%s", product[0] == '\0' ? "Windows" : product,
             build[0] == '\0' ? "" : ", build ", build);
    read_registry("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "ProcessorNameString",
                  processor, processor_size);
}

char **system_environment(void)
{
    static char *none[1], **variables; /* _environ is in the user's code page */
    if (variables != NULL) return variables;
    wchar_t *block = GetEnvironmentStringsW();
    size_t count = 0;
    for (wchar_t *at = block; at != NULL && *at != L'\0'; at += wcslen(at) + 1) count++;
    char **list = calloc(count + 1, sizeof *list);
    size_t n = 0;
    for (wchar_t *at = block; list != NULL && n < count; at += wcslen(at) + 1)
        if ((list[n++] = tconv_os_narrow(at)) == NULL) break; /* the list ends without memory */
    if (block != NULL) FreeEnvironmentStringsW(block);
    variables = list;
    return list == NULL ? none : list; /* lives as long as the program */
}

/* ---- files ---- */

/* Opens a file, or a folder, only to ask about it. */
static HANDLE open_path(const char *path)
{
    wchar_t *wide = tconv_os_wide(path);
    if (wide == NULL) return INVALID_HANDLE_VALUE;
    HANDLE handle = CreateFileW(wide, FILE_READ_ATTRIBUTES,
                                FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    set_reason();
    free(wide);
    return handle;
}

enum system_kind system_kind(const char *path)
{
    HANDLE handle = open_path(path);
    if (handle == INVALID_HANDLE_VALUE) return SYSTEM_ABSENT;
    BY_HANDLE_FILE_INFORMATION about;
    enum system_kind kind = SYSTEM_OTHER;
    if (GetFileType(handle) == FILE_TYPE_DISK && GetFileInformationByHandle(handle, &about))
        kind = (about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? SYSTEM_FOLDER
                                                                        : SYSTEM_REGULAR;
    CloseHandle(handle);
    return kind;
}

static HANDLE handle_of(FILE *file)
{
    return (HANDLE)_get_osfhandle(_fileno(file));
}

bool system_file_size(FILE *file, uint64_t *size)
{
    LARGE_INTEGER bytes;
    HANDLE handle = handle_of(file);
    if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileSizeEx(handle, &bytes)) return false;
    *size = (uint64_t)bytes.QuadPart;
    return true;
}

struct system_stamp system_stamp(FILE *file)
{
    BY_HANDLE_FILE_INFORMATION about;
    if (!GetFileInformationByHandle(handle_of(file), &about)) return (struct system_stamp){0, 0};
    const FILETIME *t = &about.ftLastWriteTime; /* in units of 100 nanoseconds */
    return (struct system_stamp){(uint64_t)about.nFileSizeHigh << 32 | about.nFileSizeLow,
                                 ((int64_t)t->dwHighDateTime << 32 | (int64_t)t->dwLowDateTime) *
                                     100};
}

char *system_target(const char *path)
{
    HANDLE handle = open_path(path);
    if (handle == INVALID_HANDLE_VALUE) return NULL;
    const DWORD room = GetFinalPathNameByHandleW(handle, NULL, 0, FILE_NAME_NORMALIZED);
    wchar_t *wide = room == 0 ? NULL : malloc((room + 1) * sizeof *wide);
    char *real = NULL;
    if (wide != NULL && GetFinalPathNameByHandleW(handle, wide, room + 1, FILE_NAME_NORMALIZED) > 0)
        real = tconv_os_narrow(wide);
    free(wide);
    CloseHandle(handle);
    return real != NULL ? real : _strdup(path); /* some file systems give no names back */
}

size_t system_folder_length(const char *path)
{
    size_t length = strlen(path);
    while (length > 0 && strchr("/\\:", path[length - 1]) == NULL) length--;
    return length;
}

/* True if two paths are equal in any letter case. Links are not followed. */
static bool same_path(const char *a, const char *b)
{
    wchar_t *wide_a = tconv_os_wide(a), *wide_b = tconv_os_wide(b), full[2][1024];
    const bool known = wide_a != NULL && wide_b != NULL &&
                       GetFullPathNameW(wide_a, 1024, full[0], NULL) - 1 < 1023 &&
                       GetFullPathNameW(wide_b, 1024, full[1], NULL) - 1 < 1023;
    free(wide_a);
    free(wide_b);
    /* As file systems compare; _wcsicmp knows the cases of ASCII alone. */
    return known && CompareStringOrdinal(full[0], -1, full[1], -1, TRUE) == CSTR_EQUAL;
}

/* True if two handles are of one file, which is no folder. */
static bool same_handle(HANDLE a, HANDLE b)
{
    BY_HANDLE_FILE_INFORMATION i, j;
    return GetFileInformationByHandle(a, &i) && GetFileInformationByHandle(b, &j) &&
           (i.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0 &&
           i.dwVolumeSerialNumber == j.dwVolumeSerialNumber &&
           i.nFileIndexHigh == j.nFileIndexHigh && i.nFileIndexLow == j.nFileIndexLow;
}

bool system_same_file(const char *a, const char *b)
{
    HANDLE of_a = open_path(a), of_b = open_path(b);
    bool same = false;
    if (of_a != INVALID_HANDLE_VALUE && of_b != INVALID_HANDLE_VALUE)
        same = same_handle(of_a, of_b);
    else if (of_a == INVALID_HANDLE_VALUE && of_b == INVALID_HANDLE_VALUE)
        same = same_path(a, b);
    if (of_a != INVALID_HANDLE_VALUE) CloseHandle(of_a);
    if (of_b != INVALID_HANDLE_VALUE) CloseHandle(of_b);
    return same;
}

/* Pipes and consoles have no paths that lead to them. */
bool system_leads_to(const char *path, FILE *stream)
{
    HANDLE of_stream = handle_of(stream);
    if (GetFileType(of_stream) != FILE_TYPE_DISK) return false;
    HANDLE of_path = open_path(path);
    const bool same = of_path != INVALID_HANDLE_VALUE && same_handle(of_path, of_stream);
    if (of_path != INVALID_HANDLE_VALUE) CloseHandle(of_path);
    return same;
}

int system_descriptor(const char *path)
{
    (void)path;
    return -1;
}

FILE *system_open_descriptor(int descriptor)
{
    (void)descriptor;
    errno = EBADF;
    return NULL;
}

bool system_may_write(const char *path)
{
    wchar_t *wide = tconv_os_wide(path);
    HANDLE handle = INVALID_HANDLE_VALUE;
    if (wide != NULL) {
        handle = CreateFileW(wide, GENERIC_WRITE,
                             FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                             OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
        set_reason();
        free(wide);
    }
    if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
    return handle != INVALID_HANDLE_VALUE;
}

/* The file may be removed while it is open. It has the permissions of its folder. */
FILE *system_create(const char *path, const char *like)
{
    (void)like;
    wchar_t *wide = tconv_os_wide(path);
    HANDLE handle = INVALID_HANDLE_VALUE;
    if (wide != NULL) {
        handle = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE,
                             FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, CREATE_NEW,
                             FILE_ATTRIBUTE_NORMAL, NULL);
        set_reason();
        free(wide);
    }
    const int descriptor =
        handle == INVALID_HANDLE_VALUE ? -1 : _open_osfhandle((intptr_t)handle, _O_BINARY);
    FILE *file = descriptor < 0 ? NULL : _fdopen(descriptor, "w+b");
    if (file == NULL && descriptor >= 0)
        _close(descriptor);
    else if (file == NULL && handle != INVALID_HANDLE_VALUE)
        CloseHandle(handle);
    return file;
}

bool system_replace(const char *from, const char *to)
{
    wchar_t *wide_from = tconv_os_wide(from), *wide_to = tconv_os_wide(to);
    const bool done = wide_from != NULL && wide_to != NULL &&
                      MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING);
    if (!done) set_reason();
    free(wide_from);
    free(wide_to);
    return done;
}

void system_remove(const char *path)
{
    wchar_t *wide = tconv_os_wide(path);
    if (wide != NULL) DeleteFileW(wide);
    free(wide);
}

static void *map(FILE *file, size_t size, DWORD protection, DWORD access)
{
    HANDLE mapping = CreateFileMappingW(handle_of(file), NULL, protection,
                                        (DWORD)((uint64_t)size >> 32), (DWORD)size, NULL);
    void *view = mapping == NULL ? NULL : MapViewOfFile(mapping, access, 0, 0, size);
    if (view == NULL) set_reason();
    if (mapping != NULL) CloseHandle(mapping); /* the view keeps it */
    return view;
}

void *system_map(FILE *file, size_t size, const char *lost)
{
    (void)lost;
    return map(file, size, PAGE_READONLY, FILE_MAP_READ);
}

void *system_map_output(FILE *file, size_t size, const char *lost)
{
    (void)lost;
    return map(file, size, PAGE_READWRITE, FILE_MAP_READ | FILE_MAP_WRITE);
}

void system_unmap(void *mapping, size_t size)
{
    (void)size;
    UnmapViewOfFile(mapping);
}

void system_drop(void *mapping, size_t size)
{
    VirtualUnlock(mapping,
                  size); /* VirtualUnlock of pages that are not locked releases their memory */
}

/* ---- programs ---- */

int system_run(char *const *arguments, const char *input, FILE *output)
{
    (void)arguments;
    (void)input;
    (void)output;
    errno = ENOSYS;
    return -1;
}
