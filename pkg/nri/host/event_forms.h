// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/nri/host/plugin_port.h"
#include "pkg/nri/host/question_queue.h"

namespace resmgr::nri {

// The bits of the events that plugins may subscribe to (NRI 0.10: bit `event - 1`).
inline constexpr uint32_t kAllEvents = 0x3fff;
constexpr uint32_t BitOf(api::Event event) {
  return event <= 0 || event > 31 ? 0 : uint32_t{1} << (event - 1);
}
// What a plugin gets by the events of its ConfigureResponse. 0 stands for all but validation: such
// a plugin has not asked to be one without which no container is created.
uint32_t SubscribedTo(int32_t events);
// "RunPodSandbox", as methods are called, in the order of the bits.
std::vector<std::string> EventNames(uint32_t bits);
// "CreateContainer"; "" for none.
const char* MethodOf(api::Event event);

// How one plugin hears of the events that were told by StateChange before NRI 0.12 and have methods
// of their own since. It is asked in the way that its version has; where it has no such method the
// other way is tried, and what works is remembered for each event.
class EventForms {
 public:
  // NRI 0.12: a plugin that says its version at registration has the methods.
  explicit EventForms(bool has_version) : own_method_(has_version ? kAllEvents : 0) {}

  // These forms outlive the question.
  Question Make(const api::StateChangeEvent& event);

 private:
  bool Change(Question& question, api::Event event);

  uint32_t own_method_;   // bits of those that are told by a method of their own
  uint32_t settled_ = 0;  // bits of those of which the way is known
};

}  // namespace resmgr::nri
