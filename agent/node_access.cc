// SPDX-License-Identifier: Apache-2.0
#include "agent/node_access.h"

#include <optional>
#include <utility>

#include "pkg/base/json.h"

namespace resmgr::agent {
namespace {

// Nodes change often (their heartbeat is in their status), but not several times in a row just
// between our reading and writing.
constexpr int kPatchTries = 5;

// Below the time that callers are given.
constexpr std::chrono::seconds kTimeout{10};

// The body, or why there is none.
StatusOr<std::string> BodyOf(const StatusOr<HttpReply>& reply) {
  if (!reply.ok()) return reply.status();
  RESMGR_RETURN_IF_ERROR(StatusOfReply(*reply));
  return reply->body;
}

}  // namespace

NodeAccess::NodeAccess(HttpTransport& transport, std::string_view node, KeyRules rules)
    : transport_(transport),
      target_("/api/v1/nodes/" + UrlEncode(node)),
      rules_(std::move(rules)) {}

NodeAccess::~NodeAccess() = default;

void NodeAccess::Send(HttpRequest request, Reply reply) {
  const uint64_t id = ++last_id_;
  request.timeout = kTimeout;
  calls_[id] =
      transport_.Send(std::move(request), nullptr,
                      [this, id, reply = std::move(reply)](const StatusOr<HttpReply>& answer) {
                        const Reply receiver = reply;  // outlives the call
                        calls_.erase(id);
                        receiver(answer);
                      });
}

HttpRequest NodeAccess::MergePatch(std::string_view subresource, const Json& body) const {
  HttpRequest request;
  request.method = "PATCH";
  request.target = target_ + std::string(subresource);
  request.content_type = "application/merge-patch+json";
  request.body = JsonText(body);
  return request;
}

void NodeAccess::Get(GetDone done) {
  HttpRequest request;
  request.target = target_;
  Send(std::move(request),
       [done = std::move(done)](const StatusOr<HttpReply>& reply) { done(BodyOf(reply)); });
}

void NodeAccess::Patch(std::vector<PatchOperation> operations, const Done& done) {
  PatchOnce(std::move(operations), kPatchTries, done);
}

void NodeAccess::PatchOnce(std::vector<PatchOperation> operations, int tries_left,
                           const Done& done) {
  Get([this, operations = std::move(operations), tries_left,
       done](const StatusOr<std::string>& text) {
    if (!text.ok()) return done(text.status());
    const std::optional<Json> node = ParseJson(*text);
    if (!node) return done(Unavailable("the API server's node is not JSON"));
    const auto merge = PlanNodePatch(*node, operations, rules_);
    if (!merge.ok()) return done(merge.status());
    if (!*merge) return done(OkStatus());
    Send(MergePatch("", **merge),
         [this, operations, tries_left, done](const StatusOr<HttpReply>& reply) {
           const Status status = BodyOf(reply).status();
           if (status.code() == StatusCode::kAborted && tries_left > 1) {
             return PatchOnce(operations, tries_left - 1, done);
           }
           done(status);
         });
  });
}

void NodeAccess::SetCapacity(const std::map<std::string, std::string>& capacities,
                             const Done& done) {
  const auto merge = PlanCapacityPatch(capacities, rules_);
  if (!merge.ok()) return done(merge.status());
  if (capacities.empty()) return done(OkStatus());
  Send(MergePatch("/status", *merge),
       [done](const StatusOr<HttpReply>& reply) { done(BodyOf(reply).status()); });
}

}  // namespace resmgr::agent
