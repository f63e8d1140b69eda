/* SPDX-License-Identifier: Apache-2.0 */
/* Implements system.h on Linux, macOS and other systems with POSIX. */
#include "tool/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include <unistd.h>

extern char **environ; /* POSIX has it in no header */

char **system_begin(int *argc, char **argv)
{
    (void)argc;
    return argv;
}

bool system_is_terminal(FILE *stream)
{
    return isatty(fileno(stream)) == 1;
}

int system_columns(FILE *stream)
{
    struct winsize size;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool system_names_terminal(const char *path)
{
    struct stat status;
    /* Opening a pipe would wait for its reader; a terminal is a character device. */
    if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode)) return false;
    const int file = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
    const bool terminal = file >= 0 && isatty(file) == 1;
    if (file >= 0) close(file);
    return terminal;
}

int system_processors(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Finds the first line of a file that begins with a name and one of the characters `between`, and
 * copies what follows them. The value is empty if there is none. */
static void find_line(const char *path, const char *name, const char *between, char *value,
                      size_t size)
{
    char line[300];
    FILE *file = fopen(path, "r");
    value[0] = '\0';
    while (file != NULL && value[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const size_t length = strlen(name);
        const size_t gap = strncmp(line, name, length) == 0 ? strspn(line + length, between) : 0;
        const char *text = line + length + gap;
        if (gap > 0) snprintf(value, size, "%.*s", (int)strcspn(text, "\"\n"), text);
    }
    if (file != NULL) fclose(file);
}

void system_names(char *system, size_t system_size, char *processor, size_t processor_size)
{
    struct utsname own;
    char release[200];
    const bool known = uname(&own) == 0;
    find_line("/etc/os-release", "PRETTY_NAME", "=\"", release, sizeof release);
    snprintf(system, system_size, "%s %s %s%s%s", known ? own.sysname : "POSIX",
             known ? own.release : "", known ? own.machine : "", release[0] == '\0' ? "" : ", ",
             release);
    find_line("/proc/cpuinfo", "model name", "\t: ", processor, processor_size);
#if defined(__APPLE__)
    if (sysctlbyname("machdep.cpu.brand_string", processor, &processor_size, NULL, 0) != 0)
        processor[0] = '\0';
#endif
}

char **system_environment(void)
{
    return environ;
}

/* ---- files ---- */

enum system_kind system_kind(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return lstat(path, &status) == 0 ? SYSTEM_BROKEN_LINK : SYSTEM_ABSENT;
    return S_ISREG(status.st_mode)   ? SYSTEM_REGULAR
           : S_ISDIR(status.st_mode) ? SYSTEM_FOLDER
                                     : SYSTEM_OTHER;
}

bool system_file_size(FILE *file, uint64_t *size)
{
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    *size = (uint64_t)status.st_size;
    return true;
}

static int64_t changed(const struct stat *status)
{
#if defined(__APPLE__)
    const struct timespec *t = &status->st_mtimespec;
#else
    const struct timespec *t = &status->st_mtim;
#endif
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

struct system_stamp system_stamp(FILE *file)
{
    struct stat status;
    if (fstat(fileno(file), &status) != 0) return (struct system_stamp){0, 0};
    return (struct system_stamp){(uint64_t)status.st_size, changed(&status)};
}

/* A path that is no link stays as it is: its absolute path may be longer than the system takes. */
char *system_target(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0) return NULL;
    return S_ISLNK(status.st_mode) ? realpath(path, NULL) : strdup(path);
}

bool system_may_write(const char *path)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0) close(file);
    return file >= 0;
}

/* The folder of a path, without links and dots. NULL if it does not exist. */
static char *folder_of(const char *path)
{
    char *folder = strdup(path);
    if (folder == NULL) return NULL;
    char *slash = strrchr(folder, '/');
    if (slash != NULL) slash[slash == folder] = '\0';
    char *real = realpath(slash == NULL ? "." : folder, NULL);
    free(folder);
    return real;
}

size_t system_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash + 1 - path);
}

static const char *name_of(const char *path)
{
    return path + system_folder_length(path);
}

/* True if two states are of one file, pipe or socket: what one writer takes from another. */
static bool same_state(const struct stat *a, const struct stat *b)
{
    return (S_ISREG(a->st_mode) || S_ISFIFO(a->st_mode) || S_ISSOCK(a->st_mode)) &&
           a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool system_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    const bool a_there = stat(a, &of_a) == 0, b_there = stat(b, &of_b) == 0;
    if (a_there && b_there) return same_state(&of_a, &of_b);
    if (a_there || b_there || strcmp(name_of(a), name_of(b)) != 0) return false;
    char *folder_a = folder_of(a), *folder_b = folder_of(b);
    const bool same = folder_a != NULL && folder_b != NULL && strcmp(folder_a, folder_b) == 0;
    free(folder_a);
    free(folder_b);
    return same;
}

bool system_leads_to(const char *path, FILE *stream)
{
    struct stat of_path, of_stream;
    if (stat(path, &of_path) != 0 || fstat(fileno(stream), &of_stream) != 0) return false;
    return same_state(&of_path, &of_stream) ||
           (S_ISCHR(of_path.st_mode) && S_ISCHR(of_stream.st_mode) &&
            of_path.st_rdev == of_stream.st_rdev && system_is_terminal(stream));
}

int system_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    long number = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0) number = i;
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0) continue;
        const char *digits = path + length;
        const size_t count = strspn(digits, "0123456789");
        if (count > 0 && count < 10 && digits[count] == '\0') number = strtol(digits, NULL, 10);
    }
    return number >= 0 && fcntl((int)number, F_GETFD) != -1 ? (int)number : -1;
}

FILE *system_open_descriptor(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);
    if (flags != -1 && (flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF; /* as a write would say */
        return NULL;
    }
    const int copy = flags == -1 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "wb");
    if (file == NULL && copy >= 0) close(copy);
    return file;
}

FILE *system_create(const char *path, const char *like)
{
    struct stat status;
    const bool replaces = stat(like, &status) == 0;
    /* Until it has the permissions of the file that it replaces, it is for its owner alone. */
    const int descriptor =
        open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
    if (descriptor < 0) return NULL;
    if (replaces) fchmod(descriptor, status.st_mode & 07777);
    FILE *file = fdopen(descriptor, "wb");
    if (file != NULL) return file;
    const int reason = errno;
    close(descriptor);
    unlink(path);
    errno = reason;
    return NULL;
}

bool system_replace(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

void system_remove(const char *path)
{
    unlink(path);
}

/* The mappings, for the handler of SIGBUS. A free place has no begin. */
enum { MOST_MAPPINGS = 16 }; /* more than a command has files */
static struct mapping {
    _Atomic(const char *) begin; /* set last: then the other members are */
    size_t size;
    const char *lost;
} mappings[MOST_MAPPINGS];

static struct sigaction before_loss;

/* Ends the program if a page of a mapping is gone: its file was cut off, or its disk failed. May
 * run in any thread, such as one of the OpenCL runtime, so nothing could be returned to. */
static void on_loss(int number, siginfo_t *info, void *context)
{
    (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr;
    for (int i = 0; i < MOST_MAPPINGS; i++) {
        const uintptr_t begin = (uintptr_t)mappings[i].begin;
        if (begin == 0 || at < begin || at - begin >= mappings[i].size) continue;
        system_remove_unfinished();
        if (write(STDERR_FILENO, mappings[i].lost, strlen(mappings[i].lost)) < 0) _exit(1);
        _exit(1);
    }
    sigaction(number, &before_loss, NULL); /* not ours: the instruction fails again, as before */
}

static void watch_loss(void)
{
    static bool watched;
    if (watched) return;
    watched = true;
    struct sigaction action = {.sa_sigaction = on_loss, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before_loss);
}

static void *map(FILE *file, size_t size, int protection, int kind, const char *lost)
{
    int place = 0;
    while (place < MOST_MAPPINGS && mappings[place].begin != NULL) place++;
    if (place == MOST_MAPPINGS) {
        errno = ENOMEM;
        return NULL;
    }
    void *begin = mmap(NULL, size, protection, kind, fileno(file), 0);
    if (begin == MAP_FAILED) return NULL;
    watch_loss();
    mappings[place].size = size;
    mappings[place].lost = lost;
    mappings[place].begin = begin;
    return begin;
}

void *system_map(FILE *file, size_t size, const char *lost)
{
    return map(file, size, PROT_READ, MAP_PRIVATE, lost);
}

/* Reserves space on the disk: a full disk must not cause a signal while the mapping is written. */
static int allocate(int descriptor, off_t size)
{
#if defined(__APPLE__)
    fstore_t space = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, size, 0};
    if (fcntl(descriptor, F_PREALLOCATE, &space) != 0 || ftruncate(descriptor, size) != 0)
        return errno;
    return 0;
#else
    return posix_fallocate(descriptor, 0, size);
#endif
}

void *system_map_output(FILE *file, size_t size, const char *lost)
{
    const int reason = allocate(fileno(file), (off_t)size);
    if (reason != 0) {
        errno = reason;
        return NULL;
    }
    return map(file, size, PROT_READ | PROT_WRITE, MAP_SHARED, lost);
}

void system_unmap(void *mapping, size_t size)
{
    for (int i = 0; i < MOST_MAPPINGS; i++)
        if (mappings[i].begin == mapping) mappings[i].begin = NULL;
    munmap(mapping, size);
}

void system_drop(void *mapping, size_t size)
{
    madvise(mapping, size, MADV_DONTNEED);
}

/* ---- programs ---- */

/* Writes text as far as the other end of the pipe reads it. */
static void write_text(int descriptor, const char *text)
{
    void (*old)(int) = signal(SIGPIPE, SIG_IGN); /* where the program ends early */
    for (size_t left = strlen(text); left > 0;) {
        const ssize_t n = write(descriptor, text, left);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) {
            text += n;
            left -= (size_t)n;
        }
    }
    signal(SIGPIPE, old);
}

/* Copies what a program writes, to its end even if `output` takes no more: the program then ends as
 * it should. Returns why `output` took no more, or 0. */
static int copy_results(int from, FILE *output)
{
    char bytes[4096];
    int reason = 0;
    for (;;) {
        const ssize_t n = read(from, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        if (n > 0 && reason == 0 && fwrite(bytes, 1, (size_t)n, output) != (size_t)n)
            reason = errno;
    }
    return reason;
}

int system_run(char *const *arguments, const char *input, FILE *output)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ends[2], results[2], status;
    if (pipe(ends) != 0) return -1;
    if (pipe(results) != 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, results[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    posix_spawn_file_actions_addclose(&actions, results[0]);
    if (input == NULL)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int reason = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    close(results[1]);
    if (reason == 0 && input != NULL) write_text(ends[1], input);
    close(ends[1]);
    const int lost = reason == 0 ? copy_results(results[0], output) : reason;
    close(results[0]);
    errno = reason;
    if (reason != 0) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    errno = lost;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
