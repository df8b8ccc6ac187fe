// SPDX-License-Identifier: Apache-2.0
// usage: keep-sealed PROGRAM
// Copies the program into memory that nothing can change, prints a path of this copy, and holds the
// copy as long as the machine runs. Before runc enters a container it copies itself into such
// memory, so that the container cannot write into its program (CVE-2019-5736), unless it runs from
// there already.
#include <cstdio>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

// Those that runc's is_self_cloned() asks for.
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr mode_t kExecutable = 0755;

// -1: `errno` tells why.
int CopyToSealedMemory(const char* program) {
  const int source = ::open(program, O_RDONLY | O_CLOEXEC);
  struct stat found = {};
  if (source < 0 || ::fstat(source, &found) != 0) return -1;
  const int copy = ::memfd_create("program", MFD_ALLOW_SEALING);
  if (copy < 0) return -1;
  for (off_t at = 0; at < found.st_size;) {
    const ssize_t written = ::sendfile(copy, source, &at, static_cast<size_t>(found.st_size - at));
    if (written <= 0) return -1;
  }
  ::close(source);
  const bool sealed = ::fchmod(copy, kExecutable) == 0 && ::fcntl(copy, F_ADD_SEALS, kSeals) == 0;
  return sealed ? copy : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: keep-sealed PROGRAM\n", stderr);
    return 1;
  }
  const int copy = CopyToSealedMemory(argv[1]);
  const pid_t holder = copy < 0 ? -1 : ::fork();
  if (holder < 0) {
    std::perror(argv[1]);
    return 1;
  }
  if (holder > 0) {
    std::printf("/proc/%d/fd/%d\n", holder, copy);
    return 0;
  }
  // A reader of the path waits until nothing has its pipe.
  ::close(STDIN_FILENO);
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
  while (true)
    ::pause();
}
