// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/call_counts.h"

#include <string>
#include <string_view>
#include <utility>

#include "pkg/api/dra.pb.h"

namespace resmgr::dra {
namespace {

namespace api = k8s::io::kubelet::pkg::apis::dra::v1;

constexpr std::string_view kPrepareMethod = "/NodePrepareResources";
constexpr std::string_view kUnprepareMethod = "/NodeUnprepareResources";

template <typename Response>
void CountClaims(const StatusOr<std::string>& reply, AnsweredCall& call) {
  Response response;
  if (!reply.ok() || !response.ParseFromString(*reply)) {
    call.failed = 1;
    return;
  }
  for (const auto& [uid, entry] : response.claims())
    ++(entry.error().empty() ? call.ok : call.failed);
}

}  // namespace

UnaryServer::Methods WithCounts(UnaryServer::Methods methods, const EventLoop& loop,
                                std::function<void(const AnsweredCall&)> tell) {
  if (!tell) return methods;
  for (auto& [path, method] : methods) {
    const bool prepare = path.ends_with(kPrepareMethod);
    if (!prepare && !path.ends_with(kUnprepareMethod)) continue;
    method = [&loop, tell, prepare, inner = std::move(method)](std::string message,
                                                               const UnaryServer::Reply& reply) {
      const auto counted = [&loop, tell, prepare, reply,
                            since = loop.Now()](StatusOr<std::string> answer) {
        AnsweredCall call{.prepare = prepare, .took = loop.Now() - since};
        if (prepare) {
          CountClaims<api::NodePrepareResourcesResponse>(answer, call);
        } else {
          CountClaims<api::NodeUnprepareResourcesResponse>(answer, call);
        }
        tell(call);
        reply(std::move(answer));
      };
      inner(std::move(message), counted);
    };
  }
  return methods;
}

}  // namespace resmgr::dra
