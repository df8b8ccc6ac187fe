// SPDX-License-Identifier: Apache-2.0
#include "agent/curl_transport.h"

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/api_server/certificates.h"
#include "test/support/api_server/http_server.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

// Runs the loop until the request has its result.
StatusOr<HttpReply> ResultOf(EventLoop& loop, HttpTransport& transport, HttpRequest request) {
  StatusOr<HttpReply> result = Unavailable("no result");
  const auto call =
      transport.Send(std::move(request), nullptr, [&](const StatusOr<HttpReply>& reply) {
        result = reply;
        loop.Stop();
      });
  const auto limit = loop.After(seconds(30), [&loop] { loop.Stop(); });
  loop.Run();
  return result;
}

// The kubelet's certificate, for example, is replaced in time, but the API server refuses each
// request on a connection whose certificate has expired since the connection began.
TEST(CurlTransportTest, AReplacedClientCertificateIsUsedAtOnce) {
  const test::TestAuthority authority;
  std::vector<std::string> clients;
  test::HttpServer server(
      [&](const test::HttpServerRequest& request, test::HttpServerReply& reply) {
        clients.push_back(request.client);
        reply.Send(200, "{}");
      });
  const test::KeyPair own = authority.Issue("server");
  const test::HttpServer::Tls tls{
      .certificate = own.certificate, .key = own.key, .ca = authority.certificate()};
  ASSERT_THAT(server.Start(0, &tls), test::IsOk());

  TempDir directory;
  const auto show = [&](const std::string& name) {
    const test::KeyPair client = authority.Issue(name);
    std::ofstream(directory.File("c.crt")) << client.certificate;
    std::ofstream(directory.File("c.key")) << client.key;
  };
  EventLoop loop;
  auto transport =
      CurlTransport::Create(loop, {.server = fmt::format("https://127.0.0.1:{}", server.port()),
                                   .ca = {.data = authority.certificate()},
                                   .user = {.certificate = {.file = directory.File("c.crt")},
                                            .key = {.file = directory.File("c.key")}}});
  ASSERT_THAT(transport, test::IsOk());
  for (const char* name : {"first", "second"}) {
    show(name);
    ASSERT_THAT(ResultOf(loop, **transport, {.target = "/"}), test::IsOk());
  }
  server.Stop();
  EXPECT_THAT(clients, ElementsAre("first", "second"));
}

}  // namespace
}  // namespace resmgr::agent
