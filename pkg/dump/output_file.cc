// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/output_file.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr::dump {

namespace {

constexpr size_t kBufferSize = size_t{64} * 1024;
constexpr mode_t kMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
// The file is opened without following a link, without waiting for a pipe's reader, and without
// making a terminal the daemon's.
constexpr int kOpenFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;

// Takes back the beginning of a line at the end of what was written. Returns the size of the whole
// lines.
size_t TakeBackPartOfLine(int fd, std::string_view written) {
  const size_t whole = written.rfind('\n') + 1;
  const auto part = static_cast<off_t>(written.size() - whole);
  struct stat info = {};
  if (part > 0 && ::fstat(fd, &info) == 0 && info.st_size >= part) {
    [[maybe_unused]] const int cut = ::ftruncate(fd, info.st_size - part);
  }
  return whole;
}

// After an error the file ends with a whole line. `written`: the bytes of the lines in it.
Status WriteLines(int fd, std::string_view text, size_t& written) {
  written = WriteFully(fd, text);
  if (written == text.size()) return OkStatus();
  const Status failed = Unavailable("{}", std::strerror(errno));
  written = TakeBackPartOfLine(fd, text.substr(0, written));
  return failed;
}

Status CannotOpen(const std::string& path, std::string_view why) {
  return InvalidArgument("cannot open '{}': {}", Printable(path, 256), why);
}

Status CannotOpen(const std::string& path, int error) {
  return CannotOpen(path, std::strerror(error));
}

// Checks that the existing file may be emptied: a regular file of this user without another name.
Status CheckOwn(const std::string& path, const struct stat& info) {
  if (S_ISLNK(info.st_mode)) return CannotOpen(path, "it is a symbolic link");
  if (S_ISDIR(info.st_mode)) return CannotOpen(path, "it is a directory");
  if (!S_ISREG(info.st_mode)) return CannotOpen(path, "it is not a regular file");
  if (info.st_uid != ::geteuid()) return CannotOpen(path, "it belongs to another user");
  if (info.st_nlink != 1) return CannotOpen(path, "the file has another name, too (a hard link)");
  return OkStatus();
}

// OK also if there is no file. Called before the file is opened, since opening a device can have
// effects.
Status CheckExisting(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) == 0) return CheckOwn(path, info);
  return errno == ENOENT ? OkStatus() : CannotOpen(path, errno);
}

std::string ParentOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

bool MayAddTo(const std::string& directory) {
  return ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

}  // namespace

Status CheckPlace(const OutputPlace& place) {
  if (place.path.size() >= PATH_MAX) {
    return InvalidArgument("the path '{}' is too long", Printable(place.path, 64));
  }
  if (place.path.empty() || place.directory.empty()) return OkStatus();
  // The directory with a slash at its end, whether or not it is written with one.
  const std::filesystem::path directory =
      std::filesystem::path(place.directory + "/").lexically_normal();
  const std::filesystem::path path = std::filesystem::path(place.path).lexically_normal();
  if (path.has_filename() && path.parent_path() / "" == directory) return OkStatus();
  return InvalidArgument(
      "'{}' is not in {}: a configuration that is delivered may name files there only (-dump-dir)",
      Printable(place.path, 256), place.directory);
}

Status ProbePlace(const OutputPlace& place) {
  if (place.path.empty()) return OkStatus();
  RESMGR_RETURN_IF_ERROR(CheckPlace(place));
  RESMGR_RETURN_IF_ERROR(CheckExisting(place.path));
  const UniqueFd fd(::open(place.path.c_str(), kOpenFlags));
  if (fd.valid()) return OkStatus();
  if (errno != ENOENT) return CannotOpen(place.path, errno);
  const std::string parent = ParentOf(place.path);
  if (MayAddTo(parent)) return OkStatus();
  // A missing directory is created when the file is, so it must be possible to create it.
  const bool makes = errno == ENOENT && !place.directory.empty();
  if (makes && MayAddTo(ParentOf(parent))) return OkStatus();
  return CannotOpen(place.path, errno);
}

OutputFile::OutputFile(std::string path, UniqueFd fd, const struct stat& info,
                       std::chrono::milliseconds pause)
    : path_(std::move(path)),
      fd_(std::move(fd)),
      device_(info.st_dev),
      inode_(info.st_ino),
      pause_(pause) {}

StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const OutputPlace& place,
                                                         std::chrono::milliseconds pause) {
  const std::string& path = place.path;
  RESMGR_RETURN_IF_ERROR(CheckPlace(place));
  RESMGR_RETURN_IF_ERROR(CheckExisting(path));
  if (!place.directory.empty()) ::mkdir(ParentOf(path).c_str(), kDirectoryMode);
  UniqueFd fd(::open(path.c_str(), kOpenFlags | O_CREAT, kMode));
  if (!fd.valid()) return CannotOpen(path, errno);
  // The file may have been replaced since the first check, so it is checked again before it is
  // emptied.
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return CannotOpen(path, errno);
  RESMGR_RETURN_IF_ERROR(CheckOwn(path, info));
  // O_APPEND: a program that rotates logs may empty the file meanwhile.
  if (::fcntl(fd.get(), F_SETFL, O_APPEND) != 0 || ::fchmod(fd.get(), kMode) != 0 ||
      ::ftruncate(fd.get(), 0) != 0) {
    return InvalidArgument("cannot prepare '{}': {}", path, std::strerror(errno));
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, std::move(fd), info, pause));
}

bool OutputFile::IsMoved() const {
  struct stat info = {};
  if (::lstat(path_.c_str(), &info) != 0) return errno == ENOENT;
  return info.st_dev != device_ || info.st_ino != inode_;
}

void OutputFile::Append(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferSize) WriteBuffer();
}

Status OutputFile::Flush() {
  WriteBuffer();
  return std::exchange(failure_, OkStatus());
}

void OutputFile::WriteBuffer() {
  if (buffer_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  size_t written = 0;
  if (!failing_ || now >= retry_at_) {
    const Status done = WriteLines(fd_.get(), buffer_, written);
    if (!done.ok() && !failing_) failure_ = done;
    failing_ = !done.ok();
    retry_at_ = now + pause_;
  }
  buffer_.clear();
  told_(written);
}

}  // namespace resmgr::dump
