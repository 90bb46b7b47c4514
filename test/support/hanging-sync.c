/* Preloaded: while the file HANG_WHILE exists, every sync hangs, as on a failing disk. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sync_with(long call, int descriptor) {
  const char *path = getenv("HANG_WHILE");
  while (path && access(path, F_OK) == 0) usleep(10000);
  return syscall(call, descriptor);
}

int fsync(int descriptor) { return sync_with(SYS_fsync, descriptor); }

int fdatasync(int descriptor) { return sync_with(SYS_fdatasync, descriptor); }
