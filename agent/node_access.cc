// SPDX-License-Identifier: Apache-2.0
#include "agent/node_access.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "agent/http.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/kube/names.h"

namespace resmgr::agent {
namespace {

// Nodes change often (their heartbeat is in their status), but hardly this many times in a row
// between a read and the write that follows.
constexpr int kPatchTries = 5;
// Limits of the queue of patches; the daemon itself waits for one at a time.
constexpr size_t kMostPatches = 512;
constexpr size_t kMostPatchBytes = size_t{16} << 20;

// Less than the time limits of the callers.
constexpr std::chrono::seconds kTimeout{10};

// The body, or the reason why it is missing.
StatusOr<std::string> BodyOf(const StatusOr<HttpReply>& reply) {
  RESMGR_RETURN_IF_ERROR(StatusOfReply(reply));
  return reply->body;
}

// Less than the daemon's own time limit.
constexpr std::chrono::seconds kClaimTimeout{8};

// A server without this API also answers 404, which must not be reported as a missing claim.
Status StatusOfClaim(const HttpReply& reply, const std::string& name) {
  Status status = StatusOfReply(reply);
  if (status.code() != StatusCode::kNotFound) return status;
  const auto json = ParseJson(reply.body);
  if (json && TextAt(*json, {"details", "name"}) == name) return status;
  return FailedPrecondition("the API server does not serve ResourceClaims (resource.k8s.io/v1): {}",
                            Message(status));
}

}  // namespace

NodeAccess::NodeAccess(HttpTransport& transport, std::string_view node, KeyRules rules,
                       Written written)
    : calls_(transport),
      target_("/api/v1/nodes/" + PercentEncoded(node)),
      rules_(std::move(rules)),
      written_(std::move(written)) {}

void NodeAccess::Send(HttpRequest request, OpenCalls::Done done) {
  request.timeout = kTimeout;
  calls_.Send(std::move(request), std::move(done));
}

void NodeAccess::Get(GetDone done) {
  Send({.target = target_},
       [done = std::move(done)](const StatusOr<HttpReply>& reply) { done(BodyOf(reply)); });
}

void NodeAccess::Patch(std::vector<PatchOperation> operations, Done done) {
  const size_t bytes = SizeOf(operations);
  if (patches_.size() >= kMostPatches || patches_bytes_ + bytes > kMostPatchBytes) {
    return done(ResourceExhausted("{} patches of the node wait already", patches_.size()));
  }
  patches_bytes_ += bytes;
  patches_.push_back({std::move(operations), std::move(done), bytes});
  if (patches_.size() == 1) PatchOnce(kPatchTries);
}

void NodeAccess::PatchOnce(int tries_left) {
  Get([this, tries_left](const StatusOr<std::string>& text) { WritePatch(text, tries_left); });
}

void NodeAccess::WritePatch(const StatusOr<std::string>& text, int tries_left) {
  if (!text.ok()) return EndPatch(text.status());
  const std::optional<Json> node = ParseJson(*text);
  if (!node) return EndPatch(Unavailable("the API server's node is not JSON"));
  const auto merge = PlanNodePatch(*node, patches_.front().operations, rules_);
  if (!merge.ok()) return EndPatch(merge.status());
  if (!*merge) return EndPatch(OkStatus());
  if (const Json* annotations = Find(**merge, {"metadata", "annotations"})) written_(*annotations);
  Send(RequestWith("PATCH", target_, **merge, kMergePatch),
       [this, tries_left](const StatusOr<HttpReply>& reply) {
         const Status status = StatusOfReply(reply);
         const bool again = status.code() == StatusCode::kAborted && tries_left > 1;
         return again ? PatchOnce(tries_left - 1) : EndPatch(status);
       });
}

void NodeAccess::EndPatch(const Status& status) {
  const Done done = std::move(patches_.front().done);
  patches_bytes_ -= patches_.front().bytes;
  patches_.pop_front();
  if (!patches_.empty()) PatchOnce(kPatchTries);
  done(status);
}

void NodeAccess::SetCapacity(const std::map<std::string, std::string>& capacities,
                             const Done& done) {
  const auto merge = PlanCapacityPatch(capacities, rules_);
  if (!merge.ok()) return done(merge.status());
  if (capacities.empty()) return done(OkStatus());
  Send(RequestWith("PATCH", target_ + "/status", *merge, kMergePatch),
       [done](const StatusOr<HttpReply>& reply) { done(StatusOfReply(reply)); });
}

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
  calls_.Send(std::move(request), [name, done = std::move(done)](const StatusOr<HttpReply>& reply) {
    if (!reply.ok()) return done(reply.status());
    const Status status = StatusOfClaim(*reply, name);
    done(status.ok() ? StatusOr<std::string>(reply->body) : status);
  });
}

}  // namespace resmgr::agent
