// SPDX-License-Identifier: Apache-2.0
// Implements MergeStatus of reply_merge.h.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/field_writer.h"
#include "pkg/base/wire.h"
#include "pkg/cri/backends.h"
#include "pkg/cri/handler_edits.h"
#include "pkg/cri/reply_merge.h"

namespace resmgr {

namespace {

namespace v1 = ::runtime::v1;

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
  // The message names all runtimes for which the condition does not hold; the reason, which is one
  // word, is the first one's.
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
