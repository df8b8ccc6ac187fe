// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/output_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace resmgr::dump {

namespace {

constexpr size_t kBufferSize = size_t{64} * 1024;
constexpr mode_t kMode = 0600;

Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return Unavailable("{}", std::strerror(errno));
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace

OutputFile::OutputFile(std::string path, UniqueFd fd)
    : path_(std::move(path)), fd_(std::move(fd)) {}

StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  // O_NONBLOCK is for the opening alone, which on a pipe would wait for a reader.
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                     kMode));
  if (!fd.valid()) return InvalidArgument("cannot open '{}': {}", path, std::strerror(errno));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0 || ::fcntl(fd.get(), F_SETFL, 0) != 0 ||
      (S_ISREG(info.st_mode) && ::fchmod(fd.get(), kMode) != 0)) {
    return InvalidArgument("cannot prepare '{}': {}", path, std::strerror(errno));
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, std::move(fd)));
}

void OutputFile::Append(std::string_view text) {
  if (!fd_.valid()) return;
  buffer_ += text;
  if (buffer_.size() < kBufferSize) return;
  failure_ = WriteAll(fd_.get(), buffer_);
  buffer_.clear();
  if (!failure_.ok()) fd_.Reset();
}

Status OutputFile::Flush() {
  if (fd_.valid() && !buffer_.empty()) {
    failure_ = WriteAll(fd_.get(), buffer_);
    buffer_.clear();
    if (!failure_.ok()) fd_.Reset();
  }
  return std::exchange(failure_, OkStatus());
}

}  // namespace resmgr::dump
