// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_files.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

constexpr size_t kMostErrors = 8;

// Whether the error shows that the container has ended, or that the kernel or this cgroup lacks the
// file.
bool IsAbsent(int error) {
  return error == ENOENT || error == ENODEV || error == ENOTDIR || error == EOPNOTSUPP;
}

}  // namespace

UsageFiles::UsageFiles(std::shared_ptr<FileInHand> in_hand)
    : in_hand_(std::move(in_hand)),
      buffer_(std::make_unique_for_overwrite<char[]>(kMostBytes + 1)) {}

std::optional<std::string_view> UsageFiles::Read(const std::string& path, TooLong too_long) {
  in_hand_->Set(path);
  const auto fail = [&](int error) {
    if (!IsAbsent(error)) Fail(path, std::strerror(error));
    return std::nullopt;
  };
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
  const UniqueFd fd(::open(path.c_str(), kFlags));
  if (!fd.valid()) return fail(errno);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return fail(errno);
  if (!S_ISREG(found.st_mode)) {
    Fail(path, "not a regular file");
    return std::nullopt;
  }
  ++files_;
  size_t size = 0;
  while (size <= kMostBytes) {
    const ssize_t got = ::read(fd.get(), buffer_.get() + size, kMostBytes + 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno);
    if (got == 0) return std::string_view(buffer_.get(), size);
    size += static_cast<size_t>(got);
  }
  if (too_long == TooLong::kCutOff) return std::string_view(buffer_.get(), kMostBytes);
  Fail(path, fmt::format("longer than {} bytes", kMostBytes));
  return std::nullopt;
}

std::optional<std::string> UsageFiles::ReadLong(const std::string& path) {
  in_hand_->Set(path);
  StatusOr<std::string> text = ReadFile(path, kMostLongBytes);
  if (text.ok()) {
    ++files_;
    return *std::move(text);
  }
  if (text.status().code() != StatusCode::kNotFound) Fail(path, Message(text.status()));
  return std::nullopt;
}

void UsageFiles::Fail(const std::string& path, std::string_view why) {
  if (errors_.size() < kMostErrors)
    errors_.push_back(fmt::format("{} is not read: {}", Printable(path), why));
}

std::vector<std::string> UsageFiles::TakeErrors() {
  return std::exchange(errors_, {});
}

}  // namespace resmgr
