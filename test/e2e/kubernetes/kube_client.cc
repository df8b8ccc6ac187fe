// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/kubernetes/kube_client.h"

#include <optional>

#include "agent/curl_transport.h"
#include "agent/http.h"
#include "pkg/base/json.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::test {

StatusOr<Json> KubeClient::Call(std::string_view method, std::string_view path,
                                std::string_view type, std::string_view body) const {
  EventLoop loop;
  RESMGR_ASSIGN_OR_RETURN(const auto transport, agent::CurlTransport::Create(loop, access_));
  agent::HttpRequest request;
  request.method = method;
  request.target = path;
  request.content_type = type;
  request.body = body;
  StatusOr<agent::HttpReply> reply = Internal("no answer");
  const auto call =
      transport->Send(std::move(request), nullptr, [&](StatusOr<agent::HttpReply> answer) {
        reply = std::move(answer);
        loop.Stop();
      });
  loop.Run();
  RESMGR_RETURN_IF_ERROR(reply.status());
  RESMGR_RETURN_IF_ERROR(agent::StatusOfReply(*reply));
  std::optional<Json> json = ParseJson(reply->body);
  if (!json) return Internal("{} {}: the answer is not JSON", method, path);
  return *std::move(json);
}

}  // namespace resmgr::test
