// SPDX-License-Identifier: Apache-2.0
#include "agent/slice_writer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/kube/names.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

using cri_resmgr::v1::SliceAttribute;
using cri_resmgr::v1::SliceDevice;
using google::protobuf::util::MessageDifferencer;

constexpr std::string_view kSliceCollection = "/apis/resource.k8s.io/v1/resourceslices";
// As long as the server does not answer, the request is tried again; a missing or conflicting
// object ends the tries.
constexpr int kAllSliceTries = std::numeric_limits<int>::max();
// The number of slices of former drivers that are deleted.
constexpr size_t kMostOthers = 64;
// Leaves room for later ones.
constexpr int64_t kMostGeneration = std::numeric_limits<int64_t>::max() / 2;

// The name of the object, the same at each start of an agent: "NODE-DRIVER".
std::string SliceName(std::string_view node, std::string_view driver) {
  return fmt::format("{}-{}", node, driver);
}

std::string SlicePath(std::string_view name) {
  return fmt::format("{}/{}", kSliceCollection, PercentEncoded(name));
}

int64_t GenerationOf(const Json& object) {
  const Json* const generation = Find(object, {"spec", "pool", "generation"});
  if (generation == nullptr || !generation->is_number_integer()) return 0;
  return std::min(generation->get<int64_t>(), kMostGeneration);
}

// Returns the content without the generation, so that contents can be compared.
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

// Limits of the API, except for the number of devices: the API takes 128.
constexpr int kMostSliceDevices = 64;
constexpr int kMostSliceAttributes = 31;  // with the capacity 32
constexpr size_t kLongestSliceName = 253;
constexpr size_t kLongestDriverName = 63;
constexpr size_t kLongestSliceText = 64;
constexpr int64_t kMostSliceCpus = 1 << 20;

bool IsDeviceName(std::string_view name) {
  return name.size() <= kLongestDriverName && IsSubdomain(name) &&
         name.find('.') == std::string_view::npos;
}

Status CheckDevice(const SliceDevice& device) {
  const std::string shown = Printable(device.name(), 64);
  if (!IsDeviceName(device.name())) return InvalidArgument("\"{}\" is no name of a device", shown);
  if (device.attributes_size() > kMostSliceAttributes)
    return InvalidArgument("device {} has {} attributes", shown, device.attributes_size());
  std::set<std::string_view> names;
  for (const SliceAttribute& attribute : device.attributes()) {
    if (!IsLabelKey(attribute.name()) || !names.insert(attribute.name()).second ||
        attribute.text().size() > kLongestSliceText)
      return InvalidArgument("device {}: the attribute \"{}\" is not valid", shown,
                             Printable(attribute.name(), 64));
  }
  const bool whole = device.step() > 0 && device.cpus() > 0 && device.cpus() % device.step() == 0;
  if (!IsLabelKey(device.capacity()) || !whole || device.cpus() > kMostSliceCpus)
    return InvalidArgument("device {}: {} CPUs in steps of {} are no capacity", shown,
                           device.cpus(), device.step());
  return OkStatus();
}

Json AttributeValue(const SliceAttribute& attribute) {
  if (attribute.has_truth()) return {{"bool", attribute.truth()}};
  if (attribute.has_text()) return {{"string", attribute.text()}};
  return {{"int", attribute.number()}};
}

// The API takes a range only where it has more than one step.
Json RequestPolicy(const SliceDevice& device) {
  const std::string step = fmt::format("{}", device.step());
  Json policy = {{"default", step}};
  if (device.cpus() < 2 * device.step()) {
    policy["validValues"] = Json::array({step});
  } else {
    policy["validRange"] = {{"min", step}, {"step", step}};
  }
  return policy;
}

Json DeviceObject(const SliceDevice& device) {
  Json attributes = Json::object();
  for (const SliceAttribute& attribute : device.attributes())
    attributes[attribute.name()] = AttributeValue(attribute);
  Json capacity = Json::object();
  capacity[device.capacity()] = {{"value", fmt::format("{}", device.cpus())},
                                 {"requestPolicy", RequestPolicy(device)}};
  return {{"name", device.name()},
          {"allowMultipleAllocations", true},
          {"attributes", std::move(attributes)},
          {"capacity", std::move(capacity)}};
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
      pauses_(options.first_pause, options.pause),
      delivery_(transport, timers, "writing the ResourceSlice", options.backoff, seed + 1,
                kAllSliceTries) {}

Status SliceWriter::Show(std::optional<ShowDevicesRequest> report) {
  if (report) {
    RESMGR_RETURN_IF_ERROR(CheckDevices(node_, *report));
    // The rest says the same as long as the object is to be the same.
    report->clear_beat();
    report->DiscardUnknownFields();
  }
  fresh_until_ = timers_.Steady() + options_.fresh;
  wanted_ = std::move(report);
  // The object of the former driver is not followed any more: the kubelet removes it.
  if (wanted_ && wanted_->driver() != driver_) Follow();
  Plan();
  return Refused();
}

Status SliceWriter::Refused() const {
  const Status why = refusal_.ok() && watch_ && !known_ ? watch_->trouble() : refusal_;
  const bool away =
      why.code() == StatusCode::kUnavailable || why.code() == StatusCode::kDeadlineExceeded;
  if (why.ok() || away || !wanted_) return OkStatus();
  return MakeStatus(
      StatusCode::kPermissionDenied,
      fmt::format("the API server refuses the ResourceSlice: {}", Printable(Message(why), 512)));
}

void SliceWriter::Follow() {
  driver_ = wanted_->driver();
  known_ = false;
  object_.reset();
  accepted_.reset();
  generation_ = 0;
  unconfirmed_.reset();
  surveyed_ = false;
  others_.clear();
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
  if (delivery_.under_way()) {
    return wanted_ && sent_ ? MessageDifferencer::Equals(*sent_, *wanted_) : !wanted_ && !sent_;
  }
  if (!wanted_) return !object_;
  if (!object_ || OwnerOf(*object_) != uid_) return false;
  const Json shown = WithoutGeneration(*object_);
  if (accepted_ && accepted_->uid == uid_ &&
      MessageDifferencer::Equals(accepted_->report, *wanted_))
    return shown == accepted_->spec;
  return shown == WithoutGeneration({{"spec", SliceSpec(node_, *wanted_, 0)}});
}

// Whether the object is from a write that took effect, as far as known, after the reports had
// ended: the kubelet may have deleted the driver's slices before.
bool SliceWriter::IsLate() const {
  if (!wanted_ || Fresh() || !object_ || !unconfirmed_) return false;
  const int64_t generation = GenerationOf(*object_);
  return unconfirmed_->first <= generation && generation <= unconfirmed_->last;
}

void SliceWriter::Plan() {
  if (!known_ || uid_.empty() || paused_) return;
  const auto now = timers_.Steady();
  const bool right = UpToDate();
  // An earlier agent wrote the right object, so later changes are sent within `soon`, as after a
  // write of this agent.
  if (right && wanted_ && !accepted_ && !delivery_.under_way())
    accepted_ = Accepted{.report = *wanted_, .uid = uid_, .spec = WithoutGeneration(*object_)};
  if (right || (wanted_ && !Fresh())) {
    timer_.reset();
    if (!wanted_ || delivery_.under_way()) return;
    if (IsLate()) return Remove();
    if (Fresh()) unconfirmed_.reset();
    if (right && !others_.empty() && now >= others_due_) DeleteOther();
    return;
  }
  auto due = now + jitter_.UpTo(accepted_ ? options_.soon : options_.spread);
  if (last_write_) due = std::max(due, *last_write_ + options_.gap);
  // A planned write sends the report that is current by then, so a later report does not delay the
  // write.
  if (timer_ && due_ <= due) return;
  due_ = due;
  timer_ =
      timers_.After(std::chrono::ceil<std::chrono::milliseconds>(due - now), [this] { Write(); });
}

// Writes without another random time.
void SliceWriter::WriteDue() {
  known_ && !UpToDate() ? Write() : Plan();
}

void SliceWriter::Write() {
  timer_.reset();
  if (wanted_ && !Fresh()) return Plan();
  last_write_ = timers_.Steady();
  sent_ = wanted_;
  seen_ = false;
  if (!wanted_) return Remove();
  surveyed_ ? Put() : Survey();
}

// A request that is not wanted any more ends without a reply.
void SliceWriter::Send(HttpRequest request, Handler done, Delivery::Wanted wanted) {
  delivery_.Replace(
      std::move(request),
      [this, done](const StatusOr<HttpReply>& reply) {
        reply.ok() ? (this->*done)(*reply) : Plan();
      },
      Delivery::Refusal::kEnd, std::move(wanted));
}

void SliceWriter::Survey() {
  const std::string selector = fmt::format("spec.driver={},spec.nodeName={}", driver_, node_);
  Send({.target = fmt::format("{}?fieldSelector={}", kSliceCollection, PercentEncoded(selector))},
       &SliceWriter::Surveyed, [this] { return Fresh(); });
}

void SliceWriter::Surveyed(const HttpReply& reply) {
  const Status status = StatusOfReply(reply);
  if (!status.ok()) return Pause(status);
  if (sent_->driver() != driver_) return Plan();
  const Json list = ParseJson(reply.body).value_or(Json());
  const Json* const items = Find(list, {"items"});
  if (items == nullptr || !items->is_array())
    return Pause(Unavailable("the API server's list of ResourceSlices has no items"));
  surveyed_ = true;
  for (const Json& item : *items) {
    // In case the server does not know the selector.
    if (TextAt(item, {"spec", "driver"}) != driver_ || TextAt(item, {"spec", "nodeName"}) != node_)
      continue;
    generation_ = std::max(generation_, GenerationOf(item));
    Other other{.name = TextAt(item, {"metadata", "name"}),
                .uid = TextAt(item, {"metadata", "uid"})};
    const bool known = !other.name.empty() && other.name != SliceName(node_, driver_);
    if (known && others_.size() < kMostOthers) others_.push_back(std::move(other));
  }
  WriteDue();
}

void SliceWriter::DeleteOther() {
  sent_ = wanted_;
  Delete(others_.back().name, others_.back().uid, &SliceWriter::OtherDeleted);
}

void SliceWriter::OtherDeleted(const HttpReply& reply) {
  const Status status = StatusOfReply(reply);
  // kAborted: another object has the name now.
  const bool gone = status.ok() || status.code() == StatusCode::kNotFound ||
                    status.code() == StatusCode::kAborted;
  const auto pause =
      status.code() == StatusCode::kPermissionDenied ? others_pauses_.Next() : std::nullopt;
  if (gone) {
    others_pauses_.Reset();
    if (!others_.empty()) others_.pop_back();
  } else if (pause) {
    others_due_ = timers_.Steady() + *pause;
  } else {
    GetLogger("status").Warn("{} ResourceSlices of a former driver {} stay: {}", others_.size(),
                             driver_, Printable(Message(status), 512));
    others_.clear();
  }
  Plan();
}

void SliceWriter::Put() {
  Json object = SliceObject(node_, uid_, *wanted_, ++generation_);
  if (!unconfirmed_) unconfirmed_ = Generations{.first = generation_};
  unconfirmed_->last = generation_;
  replaces_ = object_.has_value();
  std::string path(kSliceCollection);
  if (replaces_) {
    path = SlicePath(SliceName(node_, driver_));
    object["metadata"]["resourceVersion"] = TextAt(*object_, {"metadata", "resourceVersion"});
    object["metadata"]["uid"] = TextAt(*object_, {"metadata", "uid"});
  }
  Send(RequestWith(replaces_ ? "PUT" : "POST", fmt::format("{}?fieldManager={}", path, kAgentName),
                   object),
       &SliceWriter::Written, [this] { return Fresh(); });
}

void SliceWriter::Written(const HttpReply& reply) {
  const Status status = StatusOfReply(reply);
  if (status.ok()) {
    const Json object = ParseJson(reply.body).value_or(Json());
    accepted_ = Accepted{.report = *sent_, .uid = uid_, .spec = WithoutGeneration(object)};
    // If the watch has shown another object meanwhile, that may be newer than the reply.
    const bool look = seen_ && object_ != object;
    object_ = object;
    pauses_.Reset();
    if (!std::exchange(refusal_, OkStatus()).ok())
      GetLogger("status").Info("ResourceSlice writes of this node succeed again");
    return look ? Look() : Plan();
  }
  // Another agent of this node has written, or the watch lags behind.
  if (status.code() == StatusCode::kAborted) return Look();
  if (status.code() == StatusCode::kNotFound && replaces_) {
    object_.reset();
    return Plan();
  }
  Pause(status);
}

void SliceWriter::Delete(const std::string& name, const std::string& uid, Handler done) {
  Send(Deletion(SlicePath(name), {{"uid", uid}}), done);
}

void SliceWriter::Remove() {
  sent_.reset();
  Delete(SliceName(node_, driver_), TextAt(*object_, {"metadata", "uid"}), &SliceWriter::Removed);
}

void SliceWriter::Removed(const HttpReply& reply) {
  const Status status = StatusOfReply(reply);
  if (status.code() == StatusCode::kAborted) return Look();
  if (!status.ok() && status.code() != StatusCode::kNotFound) return Pause(status);
  object_.reset();
  unconfirmed_.reset();
  pauses_.Reset();
  Plan();
}

void SliceWriter::Look() {
  Send({.target = SlicePath(SliceName(node_, driver_))}, &SliceWriter::Found);
}

void SliceWriter::Found(const HttpReply& reply) {
  const Status status = StatusOfReply(reply);
  if (status.code() == StatusCode::kNotFound) return Seen(nullptr);
  if (!status.ok()) return Pause(status);
  const Json object = ParseJson(reply.body).value_or(Json());
  Seen(&object);
}

void SliceWriter::Pause(const Status& why) {
  if (std::exchange(refusal_, why).code() != why.code()) {
    GetLogger("status").Warn("the ResourceSlice of this node is not written: {}",
                             Printable(Message(why), 512));
  }
  paused_ = true;
  timer_ = timers_.After(jitter_.AtLeast(pauses_.Next()), [this] {
    paused_ = false;
    timer_.reset();
    WriteDue();
  });
}

Status CheckDevices(std::string_view node, const ShowDevicesRequest& report) {
  if (report.driver().size() > kLongestDriverName || !IsSubdomain(report.driver()))
    return InvalidArgument("\"{}\" is no name of a driver", Printable(report.driver(), 64));
  if (SliceName(node, report.driver()).size() > kLongestSliceName)
    return InvalidArgument("the names of the node and of driver {} are too long for an object",
                           report.driver());
  if (report.devices_size() > kMostSliceDevices)
    return InvalidArgument("{} devices: {} are the limit", report.devices_size(),
                           kMostSliceDevices);
  std::set<std::string_view> names;
  for (const SliceDevice& device : report.devices()) {
    RESMGR_RETURN_IF_ERROR(CheckDevice(device));
    if (!names.insert(device.name()).second)
      return InvalidArgument("there are two devices {}", device.name());
  }
  return OkStatus();
}

Json SliceSpec(std::string_view node, const ShowDevicesRequest& report, int64_t generation) {
  Json spec = {{"driver", report.driver()},
               {"nodeName", node},
               {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", 1}}}};
  Json devices = Json::array();
  for (const SliceDevice& device : report.devices())
    devices.push_back(DeviceObject(device));
  spec["devices"] = std::move(devices);
  return spec;
}

Json SliceObject(std::string_view node, std::string_view uid, const ShowDevicesRequest& report,
                 int64_t generation) {
  Json owners = Json::array();
  owners.push_back(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}, {"controller", true}});
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata",
           {{"name", SliceName(node, report.driver())}, {"ownerReferences", std::move(owners)}}},
          {"spec", SliceSpec(node, report, generation)}};
}

}  // namespace resmgr::agent
