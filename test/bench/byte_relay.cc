// SPDX-License-Identifier: Apache-2.0
// resmgr-byte-relay -listen PATH -backend PATH: copies bytes between each client and a connection
// of its own to the backend, without reading them. No proxy can cost less, so the measurements of
// cri-resmgr are compared with it. One thread, no configuration.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/sys/unique_fd.h"

namespace resmgr::bench {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr int kBacklog = 128;
constexpr int kMaxEvents = 64;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  return address;
}

// Bytes read from one side and not yet written to the other.
struct Pipe {
  std::vector<char> buffer = std::vector<char>(kBufferBytes);
  size_t begin = 0;
  size_t end = 0;
  bool closed = false;  // the reading side is at its end

  bool empty() const { return begin == end; }
};

struct Connection;

// One socket: `in` is filled from it and written to the other end.
struct Side {
  Connection* connection = nullptr;
  UniqueFd fd;
  Pipe in;
  uint32_t events = 0;
};

struct Connection {
  Side client;
  Side backend;
};

class ByteRelay {
 public:
  ByteRelay(UniqueFd listener, std::string backend)
      : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        listener_(std::move(listener)),
        backend_(std::move(backend)) {
    epoll_event event{EPOLLIN, {nullptr}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
  }

  void Run() {
    std::array<epoll_event, kMaxEvents> events{};
    while (true) {
      const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEvents, -1);
      for (int i = 0; i < count; ++i)
        Handle(events[static_cast<size_t>(i)]);
      closed_.clear();
    }
  }

 private:
  void Handle(const epoll_event& event) {
    if (event.data.ptr == nullptr) return Accept();
    Side& side = *static_cast<Side*>(event.data.ptr);
    Connection* connection = side.connection;
    // An earlier event of the same batch may have ended the connection.
    if (!connections_.contains(connection)) return;
    Side& other = &side == &connection->client ? connection->backend : connection->client;
    bool alive = true;
    if ((event.events & ~uint32_t{EPOLLOUT}) != 0) alive = Move(side, other);
    if (alive && (event.events & EPOLLOUT) != 0) alive = Move(other, side);
    if (!alive || (side.in.closed && other.in.closed)) return Close(connection);
    Watch(side, other);
    Watch(other, side);
  }

  void Accept() {
    auto connection = std::make_unique<Connection>();
    connection->client.fd.Reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
    connection->backend.fd.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const sockaddr_un address = AddressOf(backend_);
    if (!connection->client.fd.valid() ||
        ::connect(connection->backend.fd.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) != 0) {
      return;
    }
    for (Side* side : {&connection->client, &connection->backend}) {
      side->connection = connection.get();
      side->events = EPOLLIN;
      epoll_event event{EPOLLIN, {side}};
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, side->fd.get(), &event);
    }
    Connection* key = connection.get();
    connections_.emplace(key, std::move(connection));
  }

  // Reads once from one side and writes to the other; false when the connection is broken.
  static bool Move(Side& from, Side& to) {
    Pipe& pipe = from.in;
    if (pipe.empty() && !pipe.closed) {
      const ssize_t count = ::read(from.fd.get(), pipe.buffer.data(), pipe.buffer.size());
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      pipe.begin = 0;
      pipe.end = static_cast<size_t>(count);
      if (count == 0) {
        pipe.closed = true;
        ::shutdown(to.fd.get(), SHUT_WR);
      }
    }
    while (!pipe.empty()) {
      const ssize_t count =
          ::send(to.fd.get(), &pipe.buffer[pipe.begin], pipe.end - pipe.begin, MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      pipe.begin += static_cast<size_t>(count);
    }
    return true;
  }

  // Reads only where the last bytes have left: that is the back-pressure.
  void Watch(Side& side, const Side& other) {
    const uint32_t events = (side.in.empty() && !side.in.closed ? uint32_t{EPOLLIN} : 0) |
                            (other.in.empty() ? 0 : uint32_t{EPOLLOUT});
    if (events == side.events) return;
    side.events = events;
    epoll_event event{events, {&side}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, side.fd.get(), &event);
  }

  void Close(Connection* connection) {
    const auto found = connections_.find(connection);
    found->second->client.fd.Reset();
    found->second->backend.fd.Reset();
    closed_.push_back(std::move(found->second));
    connections_.erase(found);
  }

  UniqueFd epoll_;
  UniqueFd listener_;
  const std::string backend_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> closed_;  // until the batch of events is over
};

int Main(int argc, char** argv) {
  std::string listen;
  std::string backend;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "-listen") listen = argv[i + 1];
    if (std::string_view(argv[i]) == "-backend") backend = argv[i + 1];
  }
  if (listen.empty() || backend.empty()) {
    std::fprintf(stderr, "usage: %s -listen PATH -backend PATH\n", argv[0]);
    return 1;
  }
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(listen);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    std::fprintf(stderr, "cannot listen on %s: %s\n", listen.c_str(), std::strerror(errno));
    return 2;
  }
  ByteRelay(std::move(listener), backend).Run();
  return 0;
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Main(argc, argv);
}
