// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/http_server.h"

#include <cerrno>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "pkg/sys/unique_fd.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

// Binds as a program does that takes any free port; 0 if it succeeds.
int ErrorOfBinding(int port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(fd.get(), plain, sizeof(address)) == 0 ? 0 : errno;
}

// Tests stop it and expect it back where it was, while other tests take ports.
TEST(HttpServerTest, ItsPortIsNoOtherProgramsWhileItIsStopped) {
  HttpServer server([](const HttpServerRequest&, HttpServerReply& reply) { reply.Send(200, ""); });
  ASSERT_THAT(server.Start(server.port()), IsOk());
  const int port = server.port();
  for (int i = 0; i < 3; ++i) {
    server.Stop();
    EXPECT_EQ(ErrorOfBinding(port), EADDRINUSE);
    ASSERT_THAT(server.Start(port), IsOk());
    EXPECT_EQ(server.port(), port);
  }
}

}  // namespace
}  // namespace resmgr::test
