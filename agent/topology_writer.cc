// SPDX-License-Identifier: Apache-2.0
#include "agent/topology_writer.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent/topology_object.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

// Tries go on while the server does not answer; a missing or conflicting object ends them.
constexpr int kAllTries = std::numeric_limits<int>::max();

std::vector<int64_t> AvailableCpus(const SchedulerView& view) {
  std::vector<int64_t> available;
  for (const ViewZone& zone : view.zones)
    for (const ViewAmount& amount : zone.amounts)
      if (amount.name == "cpu") available.push_back(amount.available);
  return available;
}

// Whether the agent has applied the object itself.
bool IsOwn(const Json& object) {
  const Json* const managers = Find(object, {"metadata", "managedFields"});
  if (managers == nullptr || !managers->is_array()) return false;
  return std::ranges::any_of(*managers, [](const Json& manager) {
    return TextAt(manager, {"manager"}) == kTopologyManager &&
           TextAt(manager, {"operation"}) == "Apply";
  });
}

// The API server's words for a conflict of apply, in one field or in several; they differ from
// those for a write that only came in between.
constexpr std::string_view kApplyConflict = "Apply failed with ";

bool IsOfAnotherWriter(const Status& status) {
  return status.code() == StatusCode::kAborted &&
         Message(status).find(kApplyConflict) != std::string_view::npos;
}

}  // namespace

TopologyWriter::TopologyWriter(HttpTransport& transport, Clock& timers, std::string node,
                               const Options& options, uint64_t seed, EventSeries::WallClock now)
    : node_(std::move(node)),
      options_(options),
      timers_(timers),
      jitter_(seed),
      delivery_(transport, timers, "writing the NodeResourceTopology", options.backoff, seed + 1,
                kAllTries),
      conflicts_(transport, timers, node_, "TopologyConflict", options.backoff, seed + 2,
                 std::move(now)) {}

Status TopologyWriter::Show(std::optional<SchedulerView> view) {
  if (view) RESMGR_RETURN_IF_ERROR(CheckTopology(*view));
  shown_ = true;
  view_ = std::move(view);
  Plan();
  return OkStatus();
}

void TopologyWriter::NodeSeen(const Json& node) {
  const std::string uid = TextAt(node, {"metadata", "uid"});
  if (uid.empty() || uid == uid_) return;
  // The object of a node that was made anew is gone with the former one.
  uid_ = uid;
  known_ = Known::kNothing;
  Plan();
}

std::string TopologyWriter::Body() const {
  return JsonText(TopologyObject(node_, uid_, *view_));
}

HttpRequest TopologyWriter::Request(std::string method) const {
  HttpRequest request;
  request.method = std::move(method);
  request.target = TopologyPath(node_);
  return request;
}

bool TopologyWriter::UpToDate() const {
  if (delivery_.under_way())
    return sent_.has_value() == view_.has_value() && (!view_ || sent_->SameContent(*view_));
  if (!view_) return known_ == Known::kAbsent;
  return known_ == Known::kWritten && body_ == Body();
}

bool TopologyWriter::IsUrgent() const {
  return view_ && sent_ &&
         (sent_->pods != view_->pods || AvailableCpus(*sent_) != AvailableCpus(*view_));
}

void TopologyWriter::Plan() {
  if (!shown_ || uid_.empty() || paused_) return;
  if (UpToDate()) {
    timer_.reset();
    return;
  }
  const auto now = timers_.Steady();
  auto due = now + jitter_.UpTo(IsUrgent() ? options_.soon : options_.spread);
  if (last_write_) due = std::max(due, *last_write_ + options_.gap);
  // The write has the view of its own time, so a later change does not delay it.
  if (timer_ && due_ <= due) return;
  due_ = due;
  timer_ =
      timers_.After(std::chrono::ceil<std::chrono::milliseconds>(due - now), [this] { Write(); });
}

void TopologyWriter::Write() {
  timer_.reset();
  last_write_ = timers_.Steady();
  sent_ = view_;
  if (!view_) return LookForOwn();
  std::string body = Body();
  HttpRequest request = Request("PATCH");
  request.target += fmt::format("?fieldManager={}", kTopologyManager);
  request.content_type = "application/apply-patch+yaml";
  request.accept = MetadataOnly("PartialObjectMetadata");
  request.body = body;
  delivery_.Replace(
      std::move(request),
      [this, body = std::move(body)](const StatusOr<HttpReply>& reply) { Written(body, reply); },
      Delivery::Refusal::kEnd);
}

void TopologyWriter::Written(const std::string& body, const StatusOr<HttpReply>& reply) {
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (status.ok()) {
    known_ = Known::kWritten;
    body_ = body;
    if (std::exchange(told_, std::nullopt))
      GetLogger("status").Info("the NodeResourceTopology is written again");
    return Plan();
  }
  known_ = Known::kNothing;
  if (status.code() == StatusCode::kAborted && !IsOfAnotherWriter(status)) return Plan();
  Pause(status);
}

void TopologyWriter::LookForOwn() {
  delivery_.Replace(
      Request("GET"), [this](const StatusOr<HttpReply>& reply) { Found(reply); },
      Delivery::Refusal::kEnd);
}

// Removes the object that was seen and no later object of that name.
void TopologyWriter::Found(const StatusOr<HttpReply>& reply) {
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (status.code() == StatusCode::kNotFound) return Removed(reply);
  if (!status.ok()) return Pause(status);
  const Json object = ParseJson(reply->body).value_or(Json());
  if (!IsOwn(object)) {
    known_ = Known::kAbsent;
    return Plan();
  }
  HttpRequest request = Request("DELETE");
  request.content_type = kJsonType;
  request.body =
      JsonText({{"apiVersion", "v1"},
                {"kind", "DeleteOptions"},
                {"preconditions",
                 {{"uid", TextAt(object, {"metadata", "uid"})},
                  {"resourceVersion", TextAt(object, {"metadata", "resourceVersion"})}}}});
  delivery_.Send(
      std::move(request), [this](const StatusOr<HttpReply>& gone) { Removed(gone); },
      Delivery::Refusal::kEnd);
}

void TopologyWriter::Removed(const StatusOr<HttpReply>& reply) {
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (status.ok() || status.code() == StatusCode::kNotFound) {
    known_ = Known::kAbsent;
    return Plan();
  }
  known_ = Known::kNothing;
  // The object changed meanwhile: it is looked at again.
  if (status.code() == StatusCode::kAborted) return Plan();
  Pause(status);
}

void TopologyWriter::Pause(const Status& why) {
  if (std::exchange(told_, why.code()) != why.code()) {
    const bool missing = why.code() == StatusCode::kNotFound;
    GetLogger("status").Warn(
        "the NodeResourceTopology of this node is not written: {}{}", Printable(Message(why), 512),
        missing ? "; the cluster has no CustomResourceDefinition for it: install it, or set "
                  "nrt.Publish to false"
                : "");
    if (IsOfAnotherWriter(why)) {
      conflicts_.Add(fmt::format("another program writes the NodeResourceTopology of this node: "
                                 "switch one of them off, and delete the object: {}",
                                 Printable(Message(why), 512)),
                     1);
    }
  }
  paused_ = true;
  timer_ =
      timers_.After(jitter_.Between(options_.pause, options_.pause + options_.pause / 5), [this] {
        paused_ = false;
        timer_.reset();
        Plan();
      });
}

}  // namespace resmgr::agent
