// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/unix_socket.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/sys/inherited_sockets.h"

namespace resmgr {
namespace {

constexpr mode_t kLockMode = 0600;
constexpr std::string_view kUnixPrefix = "unix://";

StatusOr<sockaddr_un> AddressOf(std::string_view path) {
  sockaddr_un address{};
  // One byte is for the zero at the end.
  constexpr size_t kLongest = sizeof(address.sun_path) - 1;
  if (path.empty()) return InvalidArgument("socket path is empty");
  if (path.size() > kLongest) {
    return InvalidArgument("socket path {} is {} bytes long, {} are possible", Printable(path),
                           path.size(), kLongest);
  }
  if (path.find("://") != std::string_view::npos) {
    return InvalidArgument("{} is not the path of a unix socket", Printable(path));
  }
  if (path.find('\0') != std::string_view::npos) {
    return InvalidArgument("socket path {} has a zero byte in it", Printable(path));
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* Generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

UniqueFd StreamSocket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

Status MakeParent(const std::string& path, mode_t mode) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (parent.empty() || std::filesystem::exists(parent, error)) return OkStatus();
  if (!std::filesystem::create_directories(parent, error) && error) {
    return ErrnoStatus(error.value(), fmt::format("cannot make directory {}", parent.string()));
  }
  if (::chmod(parent.c_str(), mode) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot set the mode of {}", parent.string()));
  }
  return OkStatus();
}

// Removes a socket file that no process serves. The lock keeps out other instances of the daemon; a
// test connection detects any other server.
Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return OkStatus();
    return ErrnoStatus(errno, fmt::format("cannot look at {}", path));
  }
  if (!S_ISSOCK(found.st_mode)) {
    return FailedPrecondition("{} is not a socket, and nothing else is removed from there", path);
  }
  const UniqueFd probe = StreamSocket();
  if (!probe.valid()) return ErrnoStatus(errno, "cannot create a socket");
  if (::connect(probe.get(), Generic(address), sizeof(address)) == 0 || errno == EAGAIN ||
      errno == EPROTOTYPE) {
    return AlreadyExists("socket {} is in use: another process serves it", path);
  }
  if (errno != ECONNREFUSED) {
    return ErrnoStatus(errno, fmt::format("cannot find out which process serves {}", path));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, fmt::format("cannot remove the stale socket {}", path));
  }
  return OkStatus();
}

// bind gives the file the socket's own mode less the umask, so no other user can connect for a
// moment. The umask, which belongs to all threads, is not changed.
Status Bind(int socket, const std::string& path, const sockaddr_un& address, mode_t mode) {
  if (::fchmod(socket, mode) != 0) return ErrnoStatus(errno, "cannot set the mode of a socket");
  if (::bind(socket, Generic(address), sizeof(address)) != 0)
    return ErrnoStatus(errno, fmt::format("cannot bind to {}", path));
  struct stat made {};
  if (::lstat(path.c_str(), &made) != 0)
    return ErrnoStatus(errno, fmt::format("cannot look at {}", path));
  if ((made.st_mode & mode) == mode) return OkStatus();
  // The umask has taken some bits.
  if (::fchmodat(AT_FDCWD, path.c_str(), mode, AT_SYMLINK_NOFOLLOW) == 0) return OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot set the mode of {}", path));
}

}  // namespace

StatusOr<UniqueFd> ClaimPath(const std::string& path) {
  const std::string name = path + ".lock";
  UniqueFd lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode));
  if (!lock.valid()) return ErrnoStatus(errno, fmt::format("cannot open {}", name));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) {
    return AlreadyExists("socket {} is in use: another process holds {}", path, name);
  }
  return ErrnoStatus(errno, fmt::format("cannot lock {}", name));
}

void DropInherited(const std::vector<std::string>& but) {
  InheritedSockets& inherited = InheritedSockets::Instance();
  std::vector<std::pair<std::string, InheritedSockets::Socket>> kept;
  for (const std::string& path : but) {
    if (auto socket = inherited.Take(path)) kept.emplace_back(path, *std::move(socket));
  }
  // Takes each remaining socket over and closes it at once, which removes its file unless that
  // belongs to another process.
  for (const std::string& path : inherited.Paths())
    (void)ListeningSocket::Create(path);
  for (auto& [path, socket] : kept)
    inherited.Add(std::move(path), std::move(socket));
}

std::string_view StripUnixPrefix(std::string_view address) {
  if (address.substr(0, kUnixPrefix.size()) == kUnixPrefix) {
    address.remove_prefix(kUnixPrefix.size());
  }
  return address;
}

Status CheckUnixPath(std::string_view path) {
  return AddressOf(path).status();
}

StatusOr<UniqueFd> ConnectUnix(std::string_view path) {
  RESMGR_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  UniqueFd fd = StreamSocket();
  if (!fd.valid()) return ErrnoStatus(errno, "cannot create a socket");
  int result = 0;
  do {
    result = ::connect(fd.get(), Generic(address), sizeof(address));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return fd;
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
      return Unavailable("cannot connect to {}: there is no such socket", path);
    case ECONNREFUSED:
      return Unavailable("cannot connect to {}: no listener", path);
    case EAGAIN:
      return Unavailable("cannot connect to {}: its queue of connections is full", path);
    default:
      return Unavailable("cannot connect to {}: {}", path, std::generic_category().message(errno));
  }
}

StatusOr<ListeningSocket> ListeningSocket::Create(std::string_view path, mode_t mode,
                                                  mode_t directory_mode) {
  RESMGR_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const std::string name(path);
  if (auto inherited = InheritedSockets::Instance().Take(name))
    return Adopt(name, *std::move(inherited));
  RESMGR_RETURN_IF_ERROR(MakeParent(name, directory_mode));
  RESMGR_ASSIGN_OR_RETURN(UniqueFd lock, ClaimPath(name));
  RESMGR_RETURN_IF_ERROR(RemoveStale(name, address));

  UniqueFd fd = StreamSocket();
  if (!fd.valid()) return ErrnoStatus(errno, "cannot create a socket");
  RESMGR_RETURN_IF_ERROR(Bind(fd.get(), name, address, mode & kMaxMode));
  ListeningSocket socket(name, std::move(lock), std::move(fd), false);
  RESMGR_RETURN_IF_ERROR(socket.Listen());
  return socket;
}

StatusOr<ListeningSocket> ListeningSocket::Adopt(const std::string& path,
                                                 InheritedSockets::Socket inherited) {
  if (!inherited.lock.valid()) {
    StatusOr<UniqueFd> lock = ClaimPath(path);
    if (!lock.ok()) {
      // Put back for the next attempt.
      InheritedSockets::Instance().Add(path, std::move(inherited));
      return lock.status();
    }
    inherited.lock = *std::move(lock);
  }
  const int flags = ::fcntl(inherited.fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(inherited.fd.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return ErrnoStatus(errno, fmt::format("cannot set up the socket that was given for {}", path));
  // SO_PEERCRED shows clients the process that called listen last: from now on this one, and not
  // the former owner of the socket. The queue of a service manager's socket stays as the manager
  // set it.
  if (!inherited.kept_by_other && ::listen(inherited.fd.get(), SOMAXCONN) != 0)
    return ErrnoStatus(errno, fmt::format("cannot listen on the socket given for {}", path));
  ListeningSocket socket(path, std::move(inherited.lock), std::move(inherited.fd),
                         inherited.kept_by_other);
  // If the check fails, there is no file that this process may remove.
  if (!inherited.kept_by_other) RESMGR_RETURN_IF_ERROR(socket.FindFile());
  return socket;
}

ListeningSocket::ListeningSocket(std::string path, UniqueFd lock, UniqueFd fd, bool kept_by_other)
    : path_(std::move(path)), lock_(std::move(lock)), fd_(std::move(fd)) {
  OpenSockets::Instance().Add(path_, fd_.get(), lock_.get(), kept_by_other);
}

ListeningSocket& ListeningSocket::operator=(ListeningSocket&& other) noexcept {
  if (this == &other) return *this;
  Remove();
  path_ = std::move(other.path_);
  fd_ = std::move(other.fd_);
  lock_ = std::move(other.lock_);
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

ListeningSocket::~ListeningSocket() {
  Remove();
}

Status ListeningSocket::FindFile() {
  struct stat made {};
  if (::lstat(path_.c_str(), &made) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot look at {}", path_));
  }
  device_ = made.st_dev;
  inode_ = made.st_ino;
  return OkStatus();
}

Status ListeningSocket::Listen() {
  RESMGR_RETURN_IF_ERROR(FindFile());
  if (::listen(fd_.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot listen on {}", path_));
  }
  return OkStatus();
}

Status ListeningSocket::Rename(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0)
    return ErrnoStatus(errno, fmt::format("cannot rename {} to {}", path_, path));
  path_ = path;
  return OkStatus();
}

void ListeningSocket::Remove() {
  if (!fd_.valid() || !OpenSockets::Instance().Close(fd_.get())) return;
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

namespace {

StatusOr<std::optional<UniqueFd>> AcceptOn(int listening, std::string_view name) {
  for (;;) {
    UniqueFd fd(::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) return std::optional<UniqueFd>(std::move(fd));
    if (errno == EAGAIN) return std::optional<UniqueFd>();
    // The waiting peer may have gone.
    if (errno == EINTR || errno == ECONNABORTED) continue;
    const int error = errno;
    // Without a free fd, accept fails even if no connection waits, so poll decides.
    pollfd waiting{.fd = listening, .events = POLLIN, .revents = 0};
    const bool no_fd = error == EMFILE || error == ENFILE;
    if (no_fd && ::poll(&waiting, 1, 0) == 0) return std::optional<UniqueFd>();
    return ErrnoStatus(error, fmt::format("cannot accept on {}", name));
  }
}

}  // namespace

StatusOr<std::optional<UniqueFd>> AcceptOn(int fd) {
  return AcceptOn(fd, "a socket");
}

StatusOr<std::optional<UniqueFd>> ListeningSocket::Accept() {
  return AcceptOn(fd_.get(), path_);
}

}  // namespace resmgr
