// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/replace_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

constexpr mode_t kModeBits = 07777;

int WriteNew(const std::string& path, std::string_view data, const struct stat& like) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) return errno;
  if (WriteFully(fd.get(), data) < data.size()) return errno;
  // A change of the owner clears bits of the mode.
  if (::fchown(fd.get(), like.st_uid, like.st_gid) != 0) return errno;
  if (::fchmod(fd.get(), like.st_mode & kModeBits) != 0) return errno;
  if (::fsync(fd.get()) != 0) return errno;
  // Some file systems report a failed write only here.
  return ::close(fd.Release()) == 0 ? 0 : errno;
}

int Swap(const std::string& path, std::string_view data, const struct stat& like) {
  const std::string temporary = path + ".cri-resmgr";
  // It may be left over from a kill.
  ::unlink(temporary.c_str());
  int error = WriteNew(temporary, data, like);
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

bool CannotSwap(int error) {
  return error == EBUSY || error == EROFS || error == EACCES || error == EPERM ||
         error == ENAMETOOLONG;
}

// Keeps what it overwrites until the whole text is written, so that an error can be undone.
int WriteInPlace(const std::string& path, std::string_view data, size_t size) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return errno;
  std::string before(std::min(size, data.size()), '\0');
  const ssize_t got = ::pread(fd.get(), before.data(), before.size(), 0);
  if (got < 0) return errno;
  before.resize(static_cast<size_t>(got));
  const size_t written = WriteFully(fd.get(), data);
  if (written == data.size())
    return ::ftruncate(fd.get(), static_cast<off_t>(written)) == 0 ? 0 : errno;
  const int error = errno;
  ::lseek(fd.get(), 0, SEEK_SET);
  WriteFully(fd.get(), std::string_view(before).substr(0, written));
  return ::ftruncate(fd.get(), static_cast<off_t>(size)) == 0 ? error : errno;
}

}  // namespace

int ReplaceFile(const std::string& path, std::string_view data) {
  std::error_code missing;
  const std::string target = std::filesystem::canonical(path, missing).string();
  if (missing) return missing.value();
  struct stat found {};
  if (::stat(target.c_str(), &found) != 0) return errno;
  if (!S_ISREG(found.st_mode)) return EINVAL;
  const int error = Swap(target, data, found);
  if (!CannotSwap(error)) return error;
  return WriteInPlace(target, data, static_cast<size_t>(found.st_size));
}

}  // namespace resmgr
