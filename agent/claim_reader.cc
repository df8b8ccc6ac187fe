// SPDX-License-Identifier: Apache-2.0
#include "agent/claim_reader.h"

#include <utility>

#include <fmt/format.h>

#include "agent/json_path.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/kube/names.h"

namespace resmgr::agent {
namespace {

// Less than the daemon's own time limit.
constexpr std::chrono::seconds kClaimTimeout{8};

// A server without the API answers 404, too, and tells nothing about the claim by it.
Status StatusOfClaim(const HttpReply& reply, const std::string& name) {
  Status status = StatusOfReply(reply);
  if (status.code() != StatusCode::kNotFound) return status;
  const auto json = ParseJson(reply.body);
  if (json && TextAt(*json, {"details", "name"}) == name) return status;
  return FailedPrecondition("the API server does not serve ResourceClaims (resource.k8s.io/v1): {}",
                            Message(status));
}

}  // namespace

void ClaimReader::Get(const std::string& namespace_name, const std::string& name, Done done) {
  if (!IsSubdomain(namespace_name) || !IsSubdomain(name)) {
    return done(InvalidArgument("\"{}/{}\" is not the name of a claim",
                                Printable(namespace_name, 64), Printable(name, 64)));
  }
  if (calls_.size() >= kMostAtOnce)
    return done(ResourceExhausted("{} claims are being read already", calls_.size()));
  HttpRequest request;
  request.target = fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                               PercentEncoded(namespace_name), PercentEncoded(name));
  request.first_byte_timeout = kClaimTimeout;
  request.timeout = kClaimTimeout;
  const uint64_t id = ++last_id_;
  calls_[id] =
      transport_.Send(std::move(request), nullptr,
                      [this, id, name, done = std::move(done)](const StatusOr<HttpReply>& reply) {
                        const Done receiver = done;  // outlives the call
                        calls_.erase(id);
                        if (!reply.ok()) return receiver(reply.status());
                        const Status status = StatusOfClaim(*reply, name);
                        receiver(status.ok() ? StatusOr<std::string>(reply->body) : status);
                      });
}

}  // namespace resmgr::agent
