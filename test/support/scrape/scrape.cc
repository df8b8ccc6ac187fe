// SPDX-License-Identifier: Apache-2.0
#include "test/support/scrape/scrape.h"

#include <array>
#include <cstdint>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace resmgr::test {

std::string Exchange(int port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while ((got = ::read(fd, buffer.data(), buffer.size())) > 0) {
      answer.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  ::close(fd);
  return answer;
}

std::string Scrape(int port, const std::string& path) {
  return Exchange(port, "GET " + path + " HTTP/1.0\r\n\r\n");
}

}  // namespace resmgr::test
