/*
 * A preloaded library (LD_PRELOAD) that logs all operations of a process on the files of one folder, in order.
 * From the log, disk.ts creates the files that a power cut could leave.
 *
 *   POWER_CUT_FOLDER  the real path of the folder; subfolders are not logged
 *   POWER_CUT_LOG     the log file; several processes can share one
 *   POWER_CUT_FAIL    SUFFIX:NTH[:EVENTS] fails the NTH sync of files with this suffix with EIO, and kills the
 *                     process with SIGKILL after EVENTS more log entries
 *   POWER_CUT_LIMIT   the maximum size of a file in bytes, as with a quota
 *
 * A sync is only logged and does not reach the disk. As on Linux, each descriptor that was open when a sync
 * failed gets the error once, in this process. SQLite's -shm files are not logged, because they are not used
 * after a power cut.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX 65536

/* Little-endian, for disk.ts. The name and the bytes follow. */
struct record {
  uint64_t at_ns;
  uint64_t ino;
  uint64_t offset;
  uint32_t length;
  uint16_t name_length;
  uint8_t kind;
  uint8_t unused;
};

struct tracked {
  enum { ELSEWHERE, A_FILE, THE_FOLDER } what;
  int counts;
  int owes_error;
  dev_t dev;
  ino_t ino;
};

static struct tracked fds[FDS_MAX];
static const char *folder;
static size_t folder_length;
static int log_fd = -1;
static char fail_suffix[64];
static off_t limit;
static long fail_nth, kill_after = -1, syncs_seen;
static int has_failed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
  const char *log = getenv("POWER_CUT_LOG"), *fail = getenv("POWER_CUT_FAIL");
  folder = getenv("POWER_CUT_FOLDER");
  if (folder == NULL || log == NULL) return;
  folder_length = strlen(folder);
  if (getenv("POWER_CUT_LIMIT") != NULL) limit = atol(getenv("POWER_CUT_LIMIT"));
  if (fail != NULL) sscanf(fail, "%63[^:]:%ld:%ld", fail_suffix, &fail_nth, &kill_after);
  log_fd = REAL(open)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log_fd < 0) abort();
}

/* All processes take the lock for each operation, so the order of the log is exact. */
static uint64_t lock(void) {
  struct timespec now;
  pthread_mutex_lock(&mutex);
  while (flock(log_fd, LOCK_EX) != 0) {}
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void unlock(void) {
  int error = errno;
  flock(log_fd, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = error;
}

static void note(uint64_t at_ns, char kind, ino_t ino, off_t offset, const char *name,
                 size_t name_length, const void *bytes, size_t length) {
  int error = errno;
  struct record head = {at_ns,           ino, (uint64_t)offset, (uint32_t)length,
                        (uint16_t)name_length, (uint8_t)kind, 0};
  struct iovec parts[] = {
      {&head, sizeof head}, {(void *)name, name_length}, {(void *)bytes, kind == 'W' ? length : 0}};
  ssize_t all = (ssize_t)(sizeof head + name_length + parts[2].iov_len);
  if (writev(log_fd, parts, 3) != all) abort();
  if (has_failed && kill_after >= 0 && kill_after-- == 0) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  errno = error;
}

/* The name within the folder, or NULL if the file is not logged. */
static const char *name_of(const char *path) {
  if (log_fd < 0 || path == NULL || strncmp(path, folder, folder_length) != 0) return NULL;
  if (path[folder_length] != '/') return NULL;
  const char *name = path + folder_length + 1;
  size_t length = strlen(name);
  if (length == 0 || strchr(name, '/') != NULL) return NULL;
  return length > 4 && strcmp(name + length - 4, "-shm") == 0 ? NULL : name;
}

static int ends_with_suffix(const char *name) {
  size_t length = strlen(name), suffix = strlen(fail_suffix);
  return suffix > 0 && length >= suffix && strcmp(name + length - suffix, fail_suffix) == 0;
}

static struct tracked *tracked(int fd) {
  struct stat now;
  if (log_fd < 0 || fd < 0 || fd >= FDS_MAX || fds[fd].what == ELSEWHERE) return NULL;
  /* The descriptor can have been reused, for example for a socket. */
  if (fstat(fd, &now) != 0 || now.st_ino != fds[fd].ino || now.st_dev != fds[fd].dev) return NULL;
  return &fds[fd];
}

static int open_logged(__typeof__(&open) real_open, const char *path, int flags, mode_t mode) {
  const char *name = name_of(path);
  int is_folder = log_fd >= 0 && path != NULL && strcmp(path, folder) == 0;
  if (name == NULL && !is_folder) {
    int fd = real_open(path, flags, mode);
    if (fd >= 0 && fd < FDS_MAX) fds[fd].what = ELSEWHERE;
    return fd;
  }
  uint64_t at_ns = lock();
  int is_new = access(path, F_OK) != 0;
  int fd = real_open(path, flags, mode);
  struct stat now;
  if (fd >= 0) {
    if (fd >= FDS_MAX || fstat(fd, &now) != 0) abort();
    fds[fd] = (struct tracked){is_folder ? THE_FOLDER : A_FILE,
                               !is_folder && ends_with_suffix(name), 0, now.st_dev, now.st_ino};
    if (is_new) note(at_ns, 'C', now.st_ino, 0, name, strlen(name), NULL, 0);
    else if (flags & O_TRUNC) note(at_ns, 'T', now.st_ino, 0, NULL, 0, NULL, 0);
  }
  unlock();
  return fd;
}

#define OPEN(function)                                                     \
  int function(const char *path, int flags, ...) {                         \
    va_list rest;                                                          \
    va_start(rest, flags);                                                 \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                          \
    return open_logged(REAL(function), path, flags, mode);                 \
  }
OPEN(open)
OPEN(open64)

static ssize_t write_logged(struct tracked *file, int fd, const void *bytes, size_t length,
                            off_t offset, int is_at) {
  uint64_t at_ns = lock();
  if (!is_at) {
    int flags = fcntl(fd, F_GETFL);
    offset = lseek(fd, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
  }
  ssize_t done = -1;
  if (limit > 0 && offset >= limit) {
    errno = EFBIG;
  } else {
    if (limit > 0 && (off_t)length > limit - offset) length = (size_t)(limit - offset);
    done = is_at ? REAL(pwrite)(fd, bytes, length, offset) : REAL(write)(fd, bytes, length);
  }
  if (done > 0) note(at_ns, 'W', file->ino, offset, NULL, 0, bytes, (size_t)done);
  unlock();
  return done;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  struct tracked *file = tracked(fd);
  if (file == NULL) return REAL(write)(fd, bytes, length);
  return write_logged(file, fd, bytes, length, 0, 0);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  struct tracked *file = tracked(fd);
  if (file == NULL) return REAL(pwrite)(fd, bytes, length, offset);
  return write_logged(file, fd, bytes, length, offset, 1);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
  return pwrite(fd, bytes, length, offset);
}

int ftruncate(int fd, off_t length) {
  struct tracked *file = tracked(fd);
  if (file == NULL) return REAL(ftruncate)(fd, length);
  uint64_t at_ns = lock();
  int result = REAL(ftruncate)(fd, length);
  if (result == 0) note(at_ns, 'T', file->ino, length, NULL, 0, NULL, 0);
  unlock();
  return result;
}

int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

static int sync_logged(struct tracked *file) {
  uint64_t at_ns = lock();
  int fails = file->owes_error;
  file->owes_error = 0;
  if (!fails && file->counts && ++syncs_seen == fail_nth) {
    fails = has_failed = 1;
    for (int fd = 0; fd < FDS_MAX; fd++) {
      if (&fds[fd] != file && fds[fd].ino == file->ino) fds[fd].owes_error = 1;
    }
  }
  note(at_ns, fails ? 'F' : file->what == THE_FOLDER ? 'D' : 'S', file->ino, 0, NULL, 0, NULL, 0);
  unlock();
  if (fails) errno = EIO;
  return fails ? -1 : 0;
}

int fsync(int fd) {
  struct tracked *file = tracked(fd);
  return file == NULL ? REAL(fsync)(fd) : sync_logged(file);
}

int fdatasync(int fd) {
  struct tracked *file = tracked(fd);
  return file == NULL ? REAL(fdatasync)(fd) : sync_logged(file);
}

int unlink(const char *path) {
  const char *name = name_of(path);
  if (name == NULL) return REAL(unlink)(path);
  uint64_t at_ns = lock();
  int result = REAL(unlink)(path);
  if (result == 0) note(at_ns, 'U', 0, 0, name, strlen(name), NULL, 0);
  unlock();
  return result;
}

/* Logs both names, separated by a zero byte. */
static int move_logged(int (*move)(const char *, const char *), char kind, const char *from,
                       const char *to) {
  const char *old_name = name_of(from), *new_name = name_of(to);
  if (old_name == NULL || new_name == NULL) return move(from, to);
  char names[1024];
  int length = snprintf(names, sizeof names, "%s%c%s", old_name, 0, new_name);
  if (length >= (int)sizeof names) abort();
  uint64_t at_ns = lock();
  int result = move(from, to);
  if (result == 0) note(at_ns, kind, 0, 0, names, (size_t)length, NULL, 0);
  unlock();
  return result;
}

int rename(const char *from, const char *to) { return move_logged(REAL(rename), 'R', from, to); }

int link(const char *from, const char *to) { return move_logged(REAL(link), 'L', from, to); }
