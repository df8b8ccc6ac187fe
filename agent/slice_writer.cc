// SPDX-License-Identifier: Apache-2.0
#include "agent/slice_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

constexpr std::string_view kSliceManager = "cri-resmgr-agent";
// As long as the server does not answer; what is missing or in conflict ends the tries.
constexpr int kAllSliceTries = std::numeric_limits<int>::max();

int64_t GenerationOf(const Json& object) {
  const Json* const generation = Find(object, {"spec", "pool", "generation"});
  return generation != nullptr && generation->is_number_integer() ? generation->get<int64_t>() : 0;
}

// The content, which is the same in every generation.
Json WithoutGeneration(const Json& object) {
  const Json* const spec = Find(object, {"spec"});
  Json rest = spec == nullptr ? Json() : *spec;
  if (Find(rest, {"pool"}) != nullptr && rest["pool"].is_object()) rest["pool"].erase("generation");
  return rest;
}

std::string OwnerOf(const Json& object) {
  const Json* const owners = Find(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->empty()) return "";
  return TextAt(owners->front(), {"uid"});
}

}  // namespace

SliceWriter::SliceWriter(HttpTransport& transport, Clock& timers, std::string node,
                         const Options& options, uint64_t seed)
    : node_(std::move(node)),
      options_(options),
      transport_(transport),
      timers_(timers),
      seed_(seed),
      jitter_(seed),
      delivery_(transport, timers, "writing the ResourceSlice", options.backoff, seed + 1,
                kAllSliceTries) {}

std::string SliceWriter::Path() const {
  return fmt::format("{}/{}", kSliceCollection, PercentEncoded(SliceName(node_, driver_)));
}

Status SliceWriter::Show(std::optional<DeviceReport> report) {
  if (report) RESMGR_RETURN_IF_ERROR(CheckDevices(node_, *report));
  fresh_until_ = timers_.Steady() + options_.fresh;
  wanted_ = std::move(report);
  // The kubelet removes the object of a former driver.
  if (wanted_ && wanted_->driver != driver_) Follow();
  Plan();
  return OkStatus();
}

void SliceWriter::Follow() {
  driver_ = wanted_->driver;
  known_ = false;
  object_.reset();
  accepted_.reset();
  generation_ = 0;
  watch_.reset();
  gate_.emplace(options_.watch.outage, seed_ + 2);
  RetryOptions retry = options_.watch;
  retry.seed = seed_ + 3;
  watch_.emplace(transport_, timers_, *gate_,
                 ObjectWatch::Target{.collection = std::string(kSliceCollection),
                                     .name = SliceName(node_, driver_)},
                 retry, [this](const Json* object) { Seen(object); });
  watch_->Start();
}

void SliceWriter::NodeSeen(const Json& node) {
  const std::string uid = TextAt(node, {"metadata", "uid"});
  if (uid.empty() || uid == uid_) return;
  uid_ = uid;
  Plan();
}

void SliceWriter::Seen(const Json* object) {
  known_ = true;
  seen_ = true;
  object_ = object == nullptr ? std::nullopt : std::optional(*object);
  if (object_) generation_ = std::max(generation_, GenerationOf(*object_));
  Plan();
}

bool SliceWriter::UpToDate() const {
  if (delivery_.under_way()) return sent_ == wanted_;
  if (!wanted_) return !object_;
  if (!object_ || OwnerOf(*object_) != uid_) return false;
  const Json shown = WithoutGeneration(*object_);
  if (accepted_ && accepted_->report == *wanted_ && accepted_->uid == uid_)
    return shown == accepted_->spec;
  return shown == WithoutGeneration({{"spec", SliceSpec(node_, *wanted_, 0)}});
}

void SliceWriter::Plan() {
  if (!known_ || uid_.empty() || paused_) return;
  const auto now = timers_.Steady();
  const bool right = UpToDate();
  // An earlier agent wrote it: changes of this one are as quick.
  if (right && wanted_ && !accepted_ && !delivery_.under_way())
    accepted_ = Accepted{.report = *wanted_, .uid = uid_, .spec = WithoutGeneration(*object_)};
  if (right || (wanted_ && now >= fresh_until_)) {
    timer_.reset();
    return;
  }
  auto due = now + jitter_.UpTo(accepted_ ? options_.soon : options_.spread);
  if (last_write_) due = std::max(due, *last_write_ + options_.gap);
  // The write has the report of its own time, so a later one does not delay it.
  if (timer_ && due_ <= due) return;
  due_ = due;
  timer_ =
      timers_.After(std::chrono::ceil<std::chrono::milliseconds>(due - now), [this] { Write(); });
}

void SliceWriter::Write() {
  timer_.reset();
  if (wanted_ && timers_.Steady() >= fresh_until_) return;
  last_write_ = timers_.Steady();
  sent_ = wanted_;
  seen_ = false;
  wanted_ ? Put() : Remove();
}

void SliceWriter::Send(HttpRequest request, void (SliceWriter::*done)(const StatusOr<HttpReply>&)) {
  delivery_.Replace(
      std::move(request), [this, done](const StatusOr<HttpReply>& reply) { (this->*done)(reply); },
      Delivery::Refusal::kEnd);
}

void SliceWriter::Put() {
  Json object = SliceObject(node_, uid_, *wanted_, ++generation_);
  HttpRequest request;
  request.method = object_ ? "PUT" : "POST";
  request.target = fmt::format("{}?fieldManager={}",
                               object_ ? Path() : std::string(kSliceCollection), kSliceManager);
  if (object_) {
    object["metadata"]["resourceVersion"] = TextAt(*object_, {"metadata", "resourceVersion"});
    object["metadata"]["uid"] = TextAt(*object_, {"metadata", "uid"});
  }
  request.content_type = kJsonType;
  request.body = JsonText(object);
  Send(std::move(request), &SliceWriter::Written);
}

void SliceWriter::Written(const StatusOr<HttpReply>& reply) {
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (status.ok()) {
    const Json object = ParseJson(reply->body).value_or(Json());
    accepted_ = Accepted{.report = *sent_, .uid = uid_, .spec = WithoutGeneration(object)};
    // Something else was seen meanwhile, which may be newer.
    const bool look = seen_ && object_ != object;
    object_ = object;
    if (std::exchange(told_, std::nullopt))
      GetLogger("status").Info("the ResourceSlice of this node is written again");
    if (look) return Look();
    return Plan();
  }
  const bool is_there = object_.has_value();
  // Another agent of this node, or a view that lags behind.
  if (status.code() == StatusCode::kAborted) return Look();
  if (status.code() == StatusCode::kNotFound && is_there) {
    object_.reset();
    return Plan();
  }
  Pause(status);
}

void SliceWriter::Remove() {
  HttpRequest request;
  request.method = "DELETE";
  request.target = Path();
  request.content_type = kJsonType;
  request.body = JsonText({{"apiVersion", "v1"},
                           {"kind", "DeleteOptions"},
                           {"preconditions", {{"uid", TextAt(*object_, {"metadata", "uid"})}}}});
  Send(std::move(request), &SliceWriter::Removed);
}

void SliceWriter::Removed(const StatusOr<HttpReply>& reply) {
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (status.code() == StatusCode::kAborted) return Look();
  if (!status.ok() && status.code() != StatusCode::kNotFound) return Pause(status);
  object_.reset();
  Plan();
}

void SliceWriter::Look() {
  HttpRequest request;
  request.target = Path();
  Send(std::move(request), &SliceWriter::Found);
}

void SliceWriter::Found(const StatusOr<HttpReply>& reply) {
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (status.code() == StatusCode::kNotFound) return Seen(nullptr);
  if (!status.ok()) return Pause(status);
  const Json object = ParseJson(reply->body).value_or(Json());
  Seen(&object);
}

void SliceWriter::Pause(const Status& why) {
  if (std::exchange(told_, why.code()) != why.code()) {
    GetLogger("status").Warn("the ResourceSlice of this node is not written: {}",
                             Printable(Message(why), 512));
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
