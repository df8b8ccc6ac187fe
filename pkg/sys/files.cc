// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

constexpr size_t kChunk = size_t{64} * 1024;

Status WriteDurably(const std::string& path, std::string_view data, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "open");
  if (WriteFully(fd.get(), data) < data.size()) return ErrnoStatus(errno, "write");
  // Sets the mode exactly: open applies the umask to it.
  if (::fchmod(fd.get(), mode) != 0) return ErrnoStatus(errno, "fchmod");
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, "fsync");
  // Some file systems report a failed write only here.
  if (::close(fd.Release()) != 0) return ErrnoStatus(errno, "close");
  return OkStatus();
}

Status SyncDirectoryOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string name = parent.empty() ? "." : parent.string();
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot sync directory {}", name));
  }
  return OkStatus();
}

Status CannotOpen(const std::string& path) {
  return ErrnoStatus(errno, fmt::format("cannot open {}", path));
}

Status TooLong(const std::string& path, size_t limit) {
  return InvalidArgument("{} has more than {} bytes", path, limit);
}

struct RegularFile {
  UniqueFd fd;
  size_t size = 0;  // the kernel's own files report 0, or one page
};

StatusOr<RegularFile> OpenRegularFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return CannotOpen(path);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot look at {}", path));
  }
  if (!S_ISREG(found.st_mode)) return InvalidArgument("{} is not a regular file", path);
  return RegularFile{std::move(fd), static_cast<size_t>(std::max<off_t>(found.st_size, 0))};
}

// At most the first `most` bytes. `size` is the expected size, which may be wrong; 0: unknown.
StatusOr<std::string> ReadUpTo(int fd, const std::string& path, size_t size, size_t most) {
  std::string data;
  for (size_t next = size > 0 ? size + 1 : kChunk;; next = kChunk) {
    const size_t had = data.size();
    data.resize(std::min(had + next, most));
    const ssize_t got = ::read(fd, data.data() + had, data.size() - had);
    if (got < 0 && errno != EINTR) {
      return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    }
    data.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || data.size() == most) return data;
  }
}

StatusOr<std::string> ReadAll(int fd, const std::string& path, size_t size, size_t limit) {
  // Reads one byte more than allowed, to find out whether there is more.
  RESMGR_ASSIGN_OR_RETURN(std::string data, ReadUpTo(fd, path, size, limit + 1));
  if (data.size() > limit) return TooLong(path, limit);
  return data;
}

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return StatusCode::kInvalidArgument;
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
      return StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return StatusCode::kFailedPrecondition;
    default:
      return StatusCode::kUnavailable;
  }
}

// Used if the hard limit is higher: far more than a node's daemon needs, and few enough for
// libraries that loop over all possible descriptors.
constexpr rlim_t kEnough = 65536;
constexpr size_t kUsual = 1024;

}  // namespace

StatusOr<std::string> ReadFile(const std::string& path, size_t limit) {
  RESMGR_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  if (file.size > limit) return TooLong(path, limit);
  return ReadAll(file.fd.get(), path, file.size, limit);
}

StatusOr<std::string> ReadBeginning(const std::string& path, size_t size) {
  RESMGR_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  return ReadUpTo(file.fd.get(), path, 0, size);
}

StatusOr<std::string> ReadInput(const std::string& path, size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return CannotOpen(path);
  return ReadInput(fd.get(), path, limit);
}

StatusOr<std::string> ReadInput(int fd, const std::string& name, size_t limit) {
  return ReadAll(fd, name, 0, limit);
}

std::vector<std::string> NamesIn(const std::string& directory) {
  constexpr size_t kMostNames = 65'536;
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(directory.c_str()), &::closedir);
  if (opened == nullptr) return names;
  while (names.size() < kMostNames) {
    const dirent* const entry = ::readdir(opened.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

Status AtomicWriteFile(const std::string& path, std::string_view data, mode_t mode) {
  const std::string temporary = path + ".tmp";
  // A file from a crash, or a link that another user put there, must not be written through.
  ::unlink(temporary.c_str());
  const auto fail = [&](const Status& cause) {
    ::unlink(temporary.c_str());
    return Annotate(cause, fmt::format("cannot write {}", path));
  };
  const Status written = WriteDurably(temporary, data, mode);
  if (!written.ok()) return fail(written);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail(ErrnoStatus(errno, "rename"));
  return SyncDirectoryOf(path);
}

size_t WriteFully(int fd, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

StatusOr<UniqueFd> ClaimDirectory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return AlreadyExists("another process uses {}", path);
  return ErrnoStatus(errno, fmt::format("cannot claim {}", path));
}

Status ErrnoStatus(int error, std::string_view what) {
  return MakeStatus(CodeOf(error),
                    fmt::format("{}: {}", what, std::generic_category().message(error)));
}

size_t RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsual;
  const rlim_t wanted = std::min(limit.rlim_max, std::max(limit.rlim_cur, kEnough));
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = wanted;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? wanted : before;
}

}  // namespace resmgr
