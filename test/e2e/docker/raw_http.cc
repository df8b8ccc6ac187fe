// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/docker/raw_http.h"

#include <algorithm>
#include <array>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

#include "pkg/sys/unix_socket.h"

namespace resmgr::test {

StatusOr<RawHttp> RawHttp::Connect(const std::filesystem::path& socket) {
  RESMGR_ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(socket.string()));
  return RawHttp(std::move(fd));
}

void RawHttp::Send(std::string_view bytes, size_t piece, std::chrono::milliseconds pause) {
  constexpr int kPatience = 10'000;  // milliseconds
  while (!bytes.empty()) {
    pollfd room{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&room, 1, kPatience);
    const size_t most = piece == 0 ? bytes.size() : std::min(piece, bytes.size());
    const ssize_t size = ::send(fd_.get(), bytes.data(), most, MSG_NOSIGNAL);
    if (size <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(size));
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
}

void RawHttp::EndSending() {
  ::shutdown(fd_.get(), SHUT_WR);
}

std::string RawHttp::ReadAll(std::chrono::milliseconds silence) {
  std::string result;
  std::array<char, 65536> buffer{};
  while (true) {
    pollfd there{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&there, 1, static_cast<int>(silence.count())) <= 0) return result;
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    closed_ = size <= 0;
    if (closed_) return result;
    result.append(buffer.data(), static_cast<size_t>(size));
  }
}

}  // namespace resmgr::test
