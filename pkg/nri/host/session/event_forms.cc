// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/event_forms.h"

#include <array>
#include <cstddef>

namespace resmgr::nri {
namespace {

constexpr const char* kStateChange = "StateChange";

constexpr std::array<const char*, 14> kMethods{
    "RunPodSandbox",        "StopPodSandbox",
    "RemovePodSandbox",     "CreateContainer",
    "PostCreateContainer",  "StartContainer",
    "PostStartContainer",   "UpdateContainer",
    "PostUpdateContainer",  "StopContainer",
    "RemoveContainer",      "UpdatePodSandbox",
    "PostUpdatePodSandbox", "ValidateContainerAdjustment"};

// All methods of events have the pod as field 1, and those of containers the container as field 2.
std::string OwnRequest(const api::StateChangeEvent& event) {
  api::PostCreateContainerRequest request;
  *request.mutable_pod() = event.pod();
  if (event.has_container()) *request.mutable_container() = event.container();
  return request.SerializeAsString();
}

std::string EventOfOwnRequest(const std::string& payload, api::Event kind) {
  api::PostCreateContainerRequest request;
  api::StateChangeEvent event;
  request.ParseFromString(payload);
  event.set_event(kind);
  event.mutable_pod()->Swap(request.mutable_pod());
  if (request.has_container()) event.mutable_container()->Swap(request.mutable_container());
  return event.SerializeAsString();
}

}  // namespace

uint32_t SubscribedTo(int32_t events) {
  if (events == 0) return kAllEvents & ~BitOf(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT);
  return static_cast<uint32_t>(events) & kAllEvents;
}

const char* MethodOf(api::Event event) {
  if (event <= 0 || static_cast<size_t>(event) > kMethods.size()) return "";
  return kMethods.at(static_cast<size_t>(event) - 1);
}

std::vector<std::string> EventNames(uint32_t bits) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if ((bits >> i & 1) != 0) names.emplace_back(kMethods.at(i));
  }
  return names;
}

Question EventForms::Make(const api::StateChangeEvent& event) {
  const api::Event kind = event.event();
  const bool own = (own_method_ & BitOf(kind)) != 0;
  return {.method = own ? MethodOf(kind) : kStateChange,
          .payload = ttrpc::Share(own ? OwnRequest(event) : event.SerializeAsString()),
          .tells = true,
          .otherwise = [this, kind](Question& question) { return Change(question, kind); }};
}

// The plugin does not have the method by which it was asked. A question that was built before the
// other form was found is changed, too; a question that has tried both forms is given up.
bool EventForms::Change(Question& question, api::Event event) {
  const uint32_t bit = BitOf(event);
  const bool was_own = question.method != kStateChange;
  const bool is_own = (own_method_ & bit) != 0;
  if (was_own == is_own) {
    if ((settled_ & bit) != 0) return false;
    settled_ |= bit;
    own_method_ ^= bit;
  }
  question.method = was_own ? kStateChange : MethodOf(event);
  if (was_own) {
    question.payload = ttrpc::Share(EventOfOwnRequest(*question.payload, event));
  } else {
    api::StateChangeEvent told;
    told.ParseFromString(*question.payload);
    question.payload = ttrpc::Share(OwnRequest(told));
  }
  return true;
}

}  // namespace resmgr::nri
