/* SPDX-License-Identifier: Apache-2.0 */
/* Implements os.h on Windows 10 and later. Paths are UTF-8 for callers and UTF-16 for the
 * system. */
#include "base/os.h"

#include "base/os_windows.h"

#include <stdlib.h>
#include <string.h>

#include <aclapi.h>
#include <sddl.h>

wchar_t *tconv_os_wide(const char *text)
{
    const int size = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *copy = size <= 0 ? NULL : malloc((size_t)size * sizeof *copy);
    if (copy != NULL) MultiByteToWideChar(CP_UTF8, 0, text, -1, copy, size);
    return copy;
}

char *tconv_os_narrow(const wchar_t *text)
{
    const int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *copy = size <= 0 ? NULL : malloc((size_t)size);
    if (copy != NULL) WideCharToMultiByte(CP_UTF8, 0, text, -1, copy, size, NULL, NULL);
    return copy;
}

/* Converts UTF-16 to UTF-8. False if it does not fit. */
static bool narrow(const wchar_t *text, char *to, size_t size)
{
    return WideCharToMultiByte(CP_UTF8, 0, text, -1, to, (int)size, NULL, NULL) > 0;
}

/* ---- processes: Windows has no fork ---- */

long tconv_os_process(void)
{
    return 0;
}

void tconv_os_leave_mark(long own)
{
    (void)own;
}

long tconv_os_find_mark(long own)
{
    (void)own;
    return 0;
}

/* ---- libraries ---- */

void *tconv_os_open_library(const char *name)
{
    wchar_t *wide = tconv_os_wide(name);
    HMODULE library = wide == NULL ? NULL
                                   : LoadLibraryExW(wide, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    free(wide);
    return (void *)library;
}

bool tconv_os_find_function(void *library, const char *name, void *function)
{
    const FARPROC address = library == NULL ? NULL : GetProcAddress((HMODULE)library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* ---- time ---- */

double tconv_os_seconds(void)
{
    LARGE_INTEGER count, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    return (double)count.QuadPart / (double)frequency.QuadPart;
}

void tconv_os_yield(void)
{
    SwitchToThread();
}

/* ---- threads ---- */

bool tconv_os_start_thread(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    return pthread_create(thread, NULL, run, argument) == 0;
}

int tconv_os_processors(void)
{
    DWORD_PTR own = 0, all = 0;
    int count = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        for (; own != 0; own &= own - 1) count++;
    return count < 1 ? 1 : count;
}

/* ---- environment ---- */

size_t tconv_os_environment(const char *name, char *value, size_t size)
{
    wchar_t *wide_name = tconv_os_wide(name);
    const DWORD room = wide_name == NULL ? 0 : GetEnvironmentVariableW(wide_name, NULL, 0);
    wchar_t *wide = room <= 1 ? NULL : malloc(room * sizeof *wide);
    char *own = wide == NULL ? NULL : malloc(3 * (size_t)room);
    size_t length = 0;
    if (own != NULL) {
        const DWORD found = GetEnvironmentVariableW(wide_name, wide, room);
        if (found > 0 && found < room && narrow(wide, own, 3 * (size_t)room))
            length = (size_t)snprintf(value, size, "%s", own);
    }
    free(wide_name);
    free(wide);
    free(own);
    return length;
}

bool tconv_os_add_environment(const char *name, const char *value)
{
    return getenv(name) == NULL && _putenv_s(name, value) == 0;
}

bool tconv_os_cache_home(char *path, size_t size)
{
    /* Of a drive or of a server; a path that is not absolute is ignored, as on other systems. */
    const size_t length = tconv_os_environment("LOCALAPPDATA", path, size);
    if (length <= 2 || length >= size) return false;
    return path[1] == ':' ? path[2] == '\\' || path[2] == '/' : path[0] == '\\' && path[1] == '\\';
}

/* ---- text ---- */

char *tconv_os_strndup(const char *text, size_t size)
{
    size_t length = 0;
    while (length < size && text[length] != '\0') length++;
    char *copy = malloc(length + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* ---- files ---- */

FILE *tconv_os_fopen(const char *path, const char *mode)
{
    wchar_t *wide_path = tconv_os_wide(path), *wide_mode = tconv_os_wide(mode);
    FILE *file = wide_path == NULL || wide_mode == NULL ? NULL : _wfopen(wide_path, wide_mode);
    free(wide_path);
    free(wide_mode);
    return file;
}

/* The system's last error in its words, without the full stop and line break at their end. */
static void tell(struct tconv_os_reason *reason)
{
    const DWORD error = GetLastError();
    wchar_t text[200];
    if (reason == NULL) return;
    DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                                  error, 0, text, sizeof text / sizeof *text, NULL);
    while (length > 0 && wcschr(L". \r\n", text[length - 1]) != NULL) text[--length] = L'\0';
    if (length == 0 || !narrow(text, reason->text, sizeof reason->text))
        snprintf(reason->text, sizeof reason->text, "error %lu of the system", error);
}

static const char no_memory[] = "no memory";

static void say(struct tconv_os_reason *reason, const char *text)
{
    if (reason != NULL) snprintf(reason->text, sizeof reason->text, "%s", text);
}

struct tconv_os_folder {
    size_t length;
    wchar_t path[]; /* with a backslash at its end */
};

enum { MOST_NAME = 300 }; /* of a file in a folder */

/* True if this user owns it, or the administrators, if the user made it as one of them. Access
 * lists are not checked: folders in %LOCALAPPDATA%, and those of tconv_os_make_folders, permit
 * nothing to others. */
static bool own(HANDLE file)
{
    PSID owner = NULL;
    PSECURITY_DESCRIPTOR descriptor = NULL;
    HANDLE token = NULL;
    _Alignas(max_align_t) char user[256], maker[256];
    DWORD size;
    bool same = false;
    if (GetSecurityInfo(file, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION, &owner, NULL, NULL, NULL,
                        &descriptor) != ERROR_SUCCESS)
        return false;
    /* Some file systems know no owners. */
    if (owner != NULL && OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) {
        same = GetTokenInformation(token, TokenUser, user, sizeof user, &size) &&
               EqualSid(owner, ((TOKEN_USER *)(void *)user)->User.Sid);
        same = same || (GetTokenInformation(token, TokenOwner, maker, sizeof maker, &size) &&
                        EqualSid(owner, ((TOKEN_OWNER *)(void *)maker)->Owner));
        CloseHandle(token);
    }
    LocalFree(descriptor);
    return same;
}

/* Opens a file or folder itself, not what a link leads to. */
static HANDLE open_itself(const wchar_t *path, DWORD access)
{
    return CreateFileW(path, access | READ_CONTROL,
                       FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                       FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
}

static bool is_absent(void)
{
    const DWORD error = GetLastError();
    return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
}

struct tconv_os_folder *tconv_os_folder_open(const char *path, bool *absent,
                                             struct tconv_os_reason *reason)
{
    if (absent != NULL) *absent = false;
    wchar_t *wide_path = tconv_os_wide(path);
    if (wide_path == NULL) {
        say(reason, no_memory);
        return NULL;
    }
    const size_t length = wcslen(wide_path);
    HANDLE handle = open_itself(wide_path, FILE_READ_ATTRIBUTES);
    if (absent != NULL) *absent = handle == INVALID_HANDLE_VALUE && is_absent() && length > 0;
    if (handle == INVALID_HANDLE_VALUE) tell(reason);
    BY_HANDLE_FILE_INFORMATION about;
    struct tconv_os_folder *folder = NULL;
    if (handle != INVALID_HANDLE_VALUE) {
        if (!GetFileInformationByHandle(handle, &about))
            tell(reason);
        else if ((about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0)
            say(reason, "this is not a folder");
        else if (!own(handle))
            say(reason, "this folder belongs to another user");
        else if ((folder = malloc(sizeof *folder + (length + 2) * sizeof *folder->path)) == NULL)
            say(reason, no_memory);
        CloseHandle(handle);
    }
    if (folder != NULL) {
        memcpy(folder->path, wide_path, length * sizeof *wide_path);
        folder->path[length] = L'\\';
        folder->path[length + 1] = L'\0';
        folder->length = length + 1;
    }
    free(wide_path);
    return folder;
}

void tconv_os_folder_close(struct tconv_os_folder *folder)
{
    free(folder);
}

bool tconv_os_make_folders(const char *path, struct tconv_os_reason *reason)
{
    wchar_t *part = tconv_os_wide(path);
    bool made = false;
    say(reason, no_memory);
    /* The system, the administrators and the owner, and nothing from the folder around it: folders
     * at the root of a drive let every user change what is in them. */
    SECURITY_ATTRIBUTES own_alone = {sizeof own_alone, NULL, FALSE};
    if (part != NULL && ConvertStringSecurityDescriptorToSecurityDescriptorW(
                            L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;OW)", SDDL_REVISION_1,
                            &own_alone.lpSecurityDescriptor, NULL)) {
        for (wchar_t *at = part; *at != L'\0'; at++)
            if (at > part && (*at == L'/' || *at == L'\\')) {
                const wchar_t slash = *at;
                *at = L'\0';
                CreateDirectoryW(part, &own_alone);
                *at = slash;
            }
        made = CreateDirectoryW(part, &own_alone) || GetLastError() == ERROR_ALREADY_EXISTS;
        if (!made) tell(reason);
        LocalFree(own_alone.lpSecurityDescriptor);
    }
    free(part);
    return made;
}

/* The path of a file in a folder, from malloc; NULL without memory. */
static wchar_t *path_in(const struct tconv_os_folder *folder, const char *name)
{
    wchar_t *path = malloc((folder->length + MOST_NAME) * sizeof *path);
    if (path == NULL) return NULL;
    memcpy(path, folder->path, folder->length * sizeof *path);
    if (MultiByteToWideChar(CP_UTF8, 0, name, -1, path + folder->length, MOST_NAME) > 0)
        return path;
    free(path);
    return NULL;
}

/* The most bytes for one ReadFile or WriteFile. */
enum { MOST_AT_ONCE = 1 << 30 };

static bool read_all(HANDLE file, char *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        DWORD n = 0;
        const size_t left = size - done;
        if (!ReadFile(file, to + done, (DWORD)(left < MOST_AT_ONCE ? left : MOST_AT_ONCE), &n,
                      NULL) ||
            n == 0)
            return false;
        done += n;
    }
    return true;
}

static bool write_all(HANDLE file, const char *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        DWORD n = 0;
        const size_t left = size - done;
        if (!WriteFile(file, from + done, (DWORD)(left < MOST_AT_ONCE ? left : MOST_AT_ONCE), &n,
                       NULL))
            return false;
        done += n;
    }
    return true;
}

/* Opens an ordinary file of the user's own. */
static enum tconv_os_read open_own(struct tconv_os_folder *folder, const char *name, HANDLE *file,
                                   uint64_t *size)
{
    wchar_t *path = path_in(folder, name);
    if (path == NULL) return TCONV_OS_REFUSED;
    *file = open_itself(path, GENERIC_READ);
    const bool absent = *file == INVALID_HANDLE_VALUE && is_absent(); /* before another call */
    free(path);
    if (*file == INVALID_HANDLE_VALUE) return absent ? TCONV_OS_ABSENT : TCONV_OS_REFUSED;
    BY_HANDLE_FILE_INFORMATION about;
    const bool good =
        GetFileInformationByHandle(*file, &about) &&
        (about.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) == 0 &&
        own(*file);
    if (good)
        *size = (uint64_t)about.nFileSizeHigh << 32 | about.nFileSizeLow;
    else
        CloseHandle(*file);
    return good ? TCONV_OS_READ : TCONV_OS_REFUSED;
}

enum tconv_os_read tconv_os_file_head(struct tconv_os_folder *folder, const char *name, void *head,
                                      size_t head_size, uint64_t *size)
{
    HANDLE file;
    const enum tconv_os_read opened = open_own(folder, name, &file, size);
    if (opened != TCONV_OS_READ) return opened;
    memset(head, 0, head_size);
    const bool good = read_all(file, head, *size < head_size ? (size_t)*size : head_size);
    CloseHandle(file);
    return good ? TCONV_OS_READ : TCONV_OS_REFUSED;
}

enum tconv_os_read tconv_os_file_read(struct tconv_os_folder *folder, const char *name, size_t size,
                                      void **bytes)
{
    HANDLE file;
    uint64_t found;
    *bytes = NULL;
    const enum tconv_os_read opened = open_own(folder, name, &file, &found);
    if (opened != TCONV_OS_READ) return opened;
    const bool good = found == size && size > 0 && (*bytes = malloc(size)) != NULL &&
                      read_all(file, *bytes, size);
    CloseHandle(file);
    if (good) return TCONV_OS_READ;
    free(*bytes);
    *bytes = NULL;
    return TCONV_OS_REFUSED;
}

void tconv_os_file_touch(struct tconv_os_folder *folder, const char *name)
{
    wchar_t *path = path_in(folder, name);
    if (path == NULL) return;
    HANDLE file = open_itself(path, FILE_WRITE_ATTRIBUTES);
    free(path);
    if (file == INVALID_HANDLE_VALUE) return;
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    SetFileTime(file, NULL, NULL, &now);
    CloseHandle(file);
}

bool tconv_os_file_write(struct tconv_os_folder *folder, const char *unfinished, const char *name,
                         const void *bytes, size_t size, struct tconv_os_reason *reason)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    wchar_t *path = path_in(folder, name), *own_path = NULL;
    for (unsigned i = 0; i < 100 && path != NULL && file == INVALID_HANDLE_VALUE; i++) {
        if (i > 0 && GetLastError() != ERROR_FILE_EXISTS) break;
        char own_name[64];
        LARGE_INTEGER count;
        QueryPerformanceCounter(&count);
        snprintf(own_name, sizeof own_name, "%s%lu-%lld-%u", unfinished, GetCurrentProcessId(),
                 (long long)count.QuadPart, i);
        free(own_path);
        own_path = path_in(folder, own_name);
        if (own_path == NULL) break;
        file =
            CreateFileW(own_path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    }
    bool done = file != INVALID_HANDLE_VALUE;
    if (!done) tell(reason);
    if (done) {
        done = write_all(file, bytes, size);
        if (!done) tell(reason);
        const bool closed = CloseHandle(file);
        if (done && (!closed || !MoveFileExW(own_path, path, MOVEFILE_REPLACE_EXISTING))) {
            tell(reason);
            done = false;
        }
        if (!done) DeleteFileW(own_path);
    }
    free(path);
    free(own_path);
    return done;
}

bool tconv_os_file_remove(struct tconv_os_folder *folder, const char *name,
                          struct tconv_os_reason *reason)
{
    wchar_t *path = path_in(folder, name);
    const bool done = path != NULL && DeleteFileW(path);
    if (!done) tell(reason);
    free(path);
    return done;
}

/* Nanoseconds since 1970; the system counts 100 of them since 1601. */
static int64_t nanoseconds(const FILETIME *time)
{
    const int64_t count = (int64_t)time->dwHighDateTime << 32 | time->dwLowDateTime;
    return (count - INT64_C(116444736000000000)) * 100;
}

void tconv_os_folder_visit(struct tconv_os_folder *folder, tconv_os_visit *visit, void *context)
{
    WIN32_FIND_DATAW found;
    wchar_t *path = path_in(folder, "*");
    HANDLE search = path == NULL ? INVALID_HANDLE_VALUE : FindFirstFileW(path, &found);
    free(path);
    if (search == INVALID_HANDLE_VALUE) return;
    do {
        char name[3 * MAX_PATH + 1];
        if (found.cFileName[0] == L'.' || !narrow(found.cFileName, name, sizeof name)) continue;
        const struct tconv_os_file file = {
            name,
            (found.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) ==
                0,
            (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow,
            nanoseconds(&found.ftLastWriteTime)};
        visit(context, &file);
    } while (FindNextFileW(search, &found));
    FindClose(search);
}
