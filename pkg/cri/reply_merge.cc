// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/reply_merge.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/wire.h"
#include "pkg/cri/backends.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/handler_aliases.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;

const std::string& NameOf(const Backends& backends, size_t backend) {
  return backends.all().at(backend).name;
}

Status FailureOf(const Backends& backends, size_t backend, const Status& status) {
  return Annotate(status, fmt::format("runtime {}", NameOf(backends, backend)));
}

Status NoProtobuf(const Backends& backends, size_t backend) {
  return FailureOf(backends, backend, Internal("its reply is malformed protobuf"));
}

bool LacksMethod(const RuntimeReply& reply) {
  return reply.status.code() == StatusCode::kUnimplemented;
}

bool IsAway(const RuntimeReply& reply) {
  return reply.status.code() == StatusCode::kUnavailable ||
         reply.status.code() == StatusCode::kDeadlineExceeded;
}

// The first failure other than an unknown method; if the method is unknown to all runtimes, the
// client gets that error.
Status FailureOfThoseThatServe(const Backends& backends, const std::vector<RuntimeReply>& replies) {
  size_t lacking = 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (LacksMethod(replies[i])) {
      ++lacking;
    } else if (!replies[i].status.ok()) {
      return FailureOf(backends, i, replies[i].status);
    }
  }
  return lacking < replies.size() ? OkStatus() : FailureOf(backends, 0, replies[0].status);
}

// Reads RuntimeConfigResponse.linux.cgroup_driver. Several occurrences of a message merge.
StatusOr<uint64_t> CgroupDriverIn(std::string_view message) {
  constexpr uint32_t kLinux = 1;
  constexpr uint32_t kCgroupDriver = 1;
  uint64_t driver = 0;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.field() != kLinux || !reader.is_bytes()) continue;
    WireReader config(reader.bytes());
    while (config.Next()) {
      if (config.field() == kCgroupDriver) driver = config.number();
    }
    if (config.failed()) return Internal("malformed protobuf");
  }
  if (reader.failed()) return Internal("malformed protobuf");
  return driver;
}

std::string DriverName(uint64_t driver) {
  if (driver == 0) return "systemd";
  return driver == 1 ? "cgroupfs" : fmt::format("driver {}", driver);
}

// Merges replies that are lists in field 1, whose entries have a string in their field 1: keeps the
// first entry with each string.
StatusOr<std::string> UnionByText(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies) {
  constexpr uint32_t kEntry = 1;
  constexpr uint32_t kText = 1;
  std::set<std::string_view> texts;
  std::string merged;
  {
    FieldWriter writer(merged);
    for (size_t i = 0; i < replies.size(); ++i) {
      WireReader reader(replies[i].message);
      while (reader.Next()) {
        if (reader.field() != kEntry || !reader.is_bytes()) continue;
        std::string_view text;
        if (!ReadTextField(reader.bytes(), kText, text)) return NoProtobuf(backends, i);
        if (texts.insert(text).second) writer.Bytes(kEntry, reader.bytes());
      }
      if (reader.failed()) return NoProtobuf(backends, i);
    }
  }
  return merged;
}

bool IsPinned(std::string_view image) {
  bool pinned = false;
  WireReader reader(image);
  while (reader.Next())
    if (reader.field() == kPinnedOfImage) pinned = reader.number() != 0;
  return pinned;
}

// Condition types, for MergeStatus.
constexpr std::string_view kRuntimeReady = "RuntimeReady";
// Conditions that the kubelet requires: a runtime that does not report them is not ready.
constexpr std::array<std::string_view, 2> kRequired = {kRuntimeReady, "NetworkReady"};

// Merges the conditions of all runtimes.
class Conditions {
 public:
  explicit Conditions(v1::RuntimeStatus& merged) : merged_(merged) {}

  void Add(const std::string& runtime, const v1::RuntimeStatus& status) {
    for (const v1::RuntimeCondition& condition : status.conditions())
      Add(runtime, condition);
    for (const std::string_view type : kRequired) {
      if (!Find(status, type)) {
        AddFalse(runtime, type, "ConditionMissing", "the runtime does not tell this condition");
      }
    }
  }
  void AddFalse(const std::string& runtime, std::string_view type, std::string_view reason,
                std::string_view message) {
    v1::RuntimeCondition condition;
    condition.set_type(std::string(type));
    condition.set_reason(std::string(reason));
    condition.set_message(std::string(message));
    Add(runtime, condition);
  }

 private:
  static bool Find(const v1::RuntimeStatus& status, std::string_view type) {
    return std::ranges::any_of(status.conditions(), [type](const v1::RuntimeCondition& condition) {
      return condition.type() == type;
    });
  }
  v1::RuntimeCondition& OfType(const std::string& type) {
    for (v1::RuntimeCondition& condition : *merged_.mutable_conditions()) {
      if (condition.type() == type) return condition;
    }
    v1::RuntimeCondition& added = *merged_.add_conditions();
    added.set_type(type);
    added.set_status(true);
    return added;
  }
  // If the condition does not hold, the merged message names all runtimes for which it does not;
  // the reason, which must be one word, is that of the first.
  void Add(const std::string& runtime, const v1::RuntimeCondition& condition) {
    v1::RuntimeCondition& merged = OfType(condition.type());
    if (condition.status()) {
      if (merged.status() && merged.message().empty()) merged.set_message(condition.message());
      return;
    }
    const std::string message =
        fmt::format("runtime {}: {}", runtime,
                    condition.message().empty() ? condition.reason() : condition.message());
    if (merged.status()) {
      merged.set_status(false);
      merged.set_reason(condition.reason());
      merged.set_message(message);
    } else {
      merged.set_message(fmt::format("{}; {}", merged.message(), message));
    }
  }

  v1::RuntimeStatus& merged_;
};

// The true fields of RuntimeFeatures, including those that are newer than our messages.
std::set<uint32_t> TrueFields(const v1::RuntimeFeatures& features) {
  std::set<uint32_t> fields;
  const std::string bytes = features.SerializeAsString();
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.number() != 0) fields.insert(reader.field());
  }
  return fields;
}

v1::RuntimeFeatures FeaturesOfAll(const std::vector<v1::StatusResponse>& statuses) {
  std::set<uint32_t> common = TrueFields(statuses.front().features());
  for (const v1::StatusResponse& status : statuses) {
    const std::set<uint32_t> fields = TrueFields(status.features());
    std::erase_if(common, [&fields](uint32_t field) { return !fields.contains(field); });
  }
  std::string bytes;
  {
    FieldWriter writer(bytes);
    for (const uint32_t field : common)
      writer.Number(field, 1);
  }
  v1::RuntimeFeatures features;
  features.ParseFromString(bytes);
  return features;
}

// Adds aliases to a runtime's reply, with the features of their handlers.
std::string WithAliasHandlers(const Backends& backends, const std::string& reply) {
  if (backends.aliases() == nullptr) return reply;
  return WithAliases(HandlerUse::kHandlers, reply, *backends.aliases()).value_or(reply);
}

void AddHandlers(const Backends& backends, size_t backend, const v1::StatusResponse& status,
                 std::set<std::string>& names, v1::StatusResponse& merged) {
  for (const v1::RuntimeHandler& handler : status.runtime_handlers()) {
    if (backends.OfHandler(handler.name()) != backend) continue;
    if (names.insert(handler.name()).second) *merged.add_runtime_handlers() = handler;
  }
}

void AddInfo(const Backends& backends, size_t backend, const v1::StatusResponse& status,
             v1::StatusResponse& merged) {
  for (const auto& [key, value] : status.info()) {
    const std::string name =
        backend == 0 ? key : fmt::format("{}.{}", backends.all()[backend].name, key);
    merged.mutable_info()->insert({name, value});
  }
}

}  // namespace

StatusOr<std::string> MergeRuntimeConfig(const Backends& backends,
                                         const std::vector<RuntimeReply>& replies) {
  std::optional<size_t> first;
  uint64_t driver = 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (LacksMethod(replies[i]) || IsAway(replies[i])) continue;
    if (!replies[i].status.ok()) return FailureOf(backends, i, replies[i].status);
    const StatusOr<uint64_t> its_driver = CgroupDriverIn(replies[i].message);
    if (!its_driver.ok()) return NoProtobuf(backends, i);
    if (!first) {
      first = i;
      driver = *its_driver;
    } else if (driver != *its_driver) {
      return FailedPrecondition("runtimes have different cgroup drivers: {} has {}, {} has {}",
                                NameOf(backends, *first), DriverName(driver), NameOf(backends, i),
                                DriverName(*its_driver));
    }
  }
  if (first) return replies[*first].message;
  // An unknown method is the preferred error: a kubelet then uses its own configuration.
  const auto lacking = std::ranges::find_if(replies, LacksMethod);
  const size_t failed =
      lacking == replies.end() ? 0 : static_cast<size_t>(lacking - replies.begin());
  return FailureOf(backends, failed, replies[failed].status);
}

StatusOr<std::string> MergeEmpty(const Backends& backends,
                                 const std::vector<RuntimeReply>& replies) {
  RESMGR_RETURN_IF_ERROR(FailureOfThoseThatServe(backends, replies));
  return std::string();
}

StatusOr<std::string> MergeMetrics(const Backends& backends,
                                   const std::vector<RuntimeReply>& replies) {
  RESMGR_RETURN_IF_ERROR(FailureOfThoseThatServe(backends, replies));
  return UnionByText(backends, replies);
}

StatusOr<std::string> MergeImages(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies) {
  RESMGR_RETURN_IF_ERROR(FailureOfThoseThatServe(backends, replies));
  constexpr uint32_t kImages = 1;
  std::vector<std::string> images;
  std::map<std::string_view, size_t> by_id;  // positions in `images`
  for (size_t i = 0; i < replies.size(); ++i) {
    backends.image_ids().Note(ImageIds::In::kImages, replies[i].message);
    WireReader reader(replies[i].message);
    while (reader.Next()) {
      if (reader.field() != kImages || !reader.is_bytes()) continue;
      std::string_view id;
      if (!ReadTextField(reader.bytes(), kIdOfImage, id)) return NoProtobuf(backends, i);
      const std::string_view digits = ImageIds::DigitsOf(id);
      const auto [found, is_new] = by_id.emplace(digits.empty() ? id : digits, images.size());
      if (is_new) {
        images.emplace_back(reader.bytes());
      } else if (IsPinned(reader.bytes()) && !IsPinned(images[found->second])) {
        FieldWriter(images[found->second]).Number(kPinnedOfImage, 1);
      }
    }
    if (reader.failed()) return NoProtobuf(backends, i);
  }
  std::string merged;
  for (const std::string& image : images)
    FieldWriter(merged).Bytes(kImages, image);
  std::optional<std::string> shown = backends.image_ids().AsShown(ImageIds::In::kImages, merged);
  return shown ? *std::move(shown) : std::move(merged);
}

StatusOr<std::string> MergeImageStatus(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies) {
  constexpr uint32_t kImage = 1;
  const RuntimeReply* lacking = nullptr;  // lacks the image but may need it
  const RuntimeReply* having = nullptr;
  const RuntimeReply* first = nullptr;
  for (size_t i = 0; i < replies.size(); ++i) {
    const RuntimeReply& reply = replies[i];
    if (IsAway(reply) || LacksMethod(reply)) continue;
    if (!reply.status.ok()) return FailureOf(backends, i, reply.status);
    backends.image_ids().Note(ImageIds::In::kImages, reply.message);
    bool has_image = false;
    WireReader reader(reply.message);
    while (reader.Next())
      has_image = has_image || reader.field() == kImage;
    if (reader.failed()) return NoProtobuf(backends, i);
    if (first == nullptr) first = &reply;
    if (having == nullptr && has_image) having = &reply;
    if (lacking == nullptr && !has_image && backends.MayHavePods(i)) lacking = &reply;
  }
  if (first == nullptr) return FailureOf(backends, 0, replies[0].status);
  if (lacking != nullptr) return lacking->message;
  if (having == nullptr) return first->message;
  std::optional<std::string> shown =
      backends.image_ids().AsShown(ImageIds::In::kImages, having->message);
  return shown ? *std::move(shown) : having->message;
}

StatusOr<std::string> MergeImageFsInfo(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies) {
  if (!replies[0].status.ok()) return FailureOf(backends, 0, replies[0].status);
  std::string merged;
  for (const RuntimeReply& reply : replies) {
    if (reply.status.ok()) merged += reply.message;
  }
  return merged;
}

StatusOr<std::string> MergeStatus(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies) {
  std::vector<v1::StatusResponse> statuses;
  std::set<std::string> handlers;
  v1::StatusResponse merged;
  Conditions conditions(*merged.mutable_status());
  for (size_t i = 0; i < replies.size(); ++i) {
    const std::string& runtime = backends.all()[i].name;
    if (!replies[i].status.ok()) {
      conditions.AddFalse(runtime, kRuntimeReady, "RuntimeUnavailable", Message(replies[i].status));
      continue;
    }
    v1::StatusResponse status;
    if (!status.ParseFromString(WithAliasHandlers(backends, replies[i].message))) {
      conditions.AddFalse(runtime, kRuntimeReady, "RuntimeUnavailable",
                          "its reply is a malformed StatusResponse");
      continue;
    }
    conditions.Add(runtime, status.status());
    AddHandlers(backends, i, status, handlers, merged);
    AddInfo(backends, i, status, merged);
    statuses.push_back(std::move(status));
  }
  if (statuses.empty()) {
    const Status& first = replies.front().status;
    return Annotate(first.ok() ? Internal("its reply is a malformed StatusResponse") : first,
                    fmt::format("runtime {}", backends.all().front().name));
  }
  const bool tell_features = std::ranges::any_of(
      statuses, [](const v1::StatusResponse& status) { return status.has_features(); });
  if (tell_features) *merged.mutable_features() = FeaturesOfAll(statuses);
  return merged.SerializeAsString();
}

}  // namespace resmgr
