// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/inherited_sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

// SD_LISTEN_FDS_START.
constexpr int kFirstFd = 3;
constexpr int64_t kMostFds = 64;

std::optional<int64_t> Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : ParseInt(text);
}

// The path of a listening unix socket in the file system; "" for any other descriptor.
std::string PathOf(int fd) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return "";
  sockaddr_un address{};
  socklen_t length = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  if (address.sun_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path)) return "";
  const size_t most = length - offsetof(sockaddr_un, sun_path);
  return {address.sun_path, ::strnlen(address.sun_path, most)};
}

bool IsSameFile(const std::string& a, const std::string& b) {
  if (a == b) return true;
  struct stat of_a {};
  struct stat of_b {};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

UniqueFd CopyOf(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

InheritedSockets& InheritedSockets::Instance() {
  static auto& instance = *new InheritedSockets;
  return instance;
}

size_t InheritedSockets::AddFromEnvironment() {
  const auto pid = Variable("LISTEN_PID");
  const auto count = Variable("LISTEN_FDS");
  for (const char* const name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
    ::unsetenv(name);
  if (!pid || *pid != ::getpid() || !count || *count <= 0 || *count > kMostFds) return 0;
  size_t taken = 0;
  for (int fd = kFirstFd; fd < kFirstFd + static_cast<int>(*count); ++fd) {
    // Children must not inherit the descriptor, whatever it is.
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    std::string path = PathOf(fd);
    if (path.empty()) continue;
    Add(std::move(path), {.fd = UniqueFd(fd), .lock = UniqueFd(), .kept_by_other = true});
    ++taken;
  }
  return taken;
}

void InheritedSockets::Add(std::string path, Socket socket) {
  const std::lock_guard lock(mutex_);
  sockets_.insert_or_assign(std::move(path), std::move(socket));
}

std::optional<InheritedSockets::Socket> InheritedSockets::Take(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(sockets_.begin(), sockets_.end(), [path](const auto& socket) {
    return IsSameFile(socket.first, std::string(path));
  });
  if (found == sockets_.end()) return std::nullopt;
  Socket socket = std::move(found->second);
  sockets_.erase(found);
  return socket;
}

std::vector<std::string> InheritedSockets::Paths() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const auto& [path, socket] : sockets_)
    paths.push_back(path);
  return paths;
}

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
