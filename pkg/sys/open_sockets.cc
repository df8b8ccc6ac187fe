// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/open_sockets.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "pkg/sys/errno_status.h"

namespace resmgr {
namespace {

UniqueFd CopyOf(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

OpenSockets& OpenSockets::Instance() {
  static auto& instance = *new OpenSockets;
  return instance;
}

void OpenSockets::Add(std::string path, int fd, int lock, bool kept_by_other) {
  const std::lock_guard guard(mutex_);
  entries_.push_back({.path = std::move(path),
                      .fd = fd,
                      .lock = lock,
                      .kept_by_other = kept_by_other,
                      .shared = false});
}

bool OpenSockets::Close(int fd) {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find(entries_, fd, &Entry::fd);
  if (found == entries_.end()) return true;
  const bool shared = found->shared;
  entries_.erase(found);
  return !shared;
}

bool OpenSockets::Has(std::string_view path) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::find(entries_, path, &Entry::path) != entries_.end();
}

StatusOr<std::vector<OpenSockets::Copy>> OpenSockets::Share() {
  const std::lock_guard guard(mutex_);
  std::vector<Copy> copies;
  for (const Entry& entry : entries_) {
    Copy& copy = copies.emplace_back(Copy{.path = entry.path,
                                          .socket = {.fd = CopyOf(entry.fd),
                                                     .lock = CopyOf(entry.lock),
                                                     .kept_by_other = entry.kept_by_other}});
    if (!copy.socket.fd.valid() || !copy.socket.lock.valid())
      return ErrnoStatus(errno, fmt::format("cannot copy the socket of {}", entry.path));
  }
  for (Entry& entry : entries_)
    entry.shared = true;
  return copies;
}

void OpenSockets::TakeBack() {
  const std::lock_guard guard(mutex_);
  for (Entry& entry : entries_)
    entry.shared = false;
}

}  // namespace resmgr
