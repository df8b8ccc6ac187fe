// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/host/session/question_queue.h"

namespace resmgr::nri {

// The bits of the events that plugins may subscribe to (NRI 0.10: bit `event - 1`).
inline constexpr uint32_t kAllEvents = 0x3fff;
constexpr uint32_t BitOf(api::Event event) {
  return event <= 0 || event > 31 ? 0 : uint32_t{1} << (event - 1);
}
// The events of a plugin by its ConfigureResponse. 0 stands for all but validation: such a plugin
// has not asked to be one whose absence blocks creations.
uint32_t SubscribedTo(int32_t events);
// Names like methods', "RunPodSandbox", in the order of the bits.
std::vector<std::string> EventNames(uint32_t bits);
// The method's name, "CreateContainer"; "" for an event without one.
const char* MethodOf(api::Event event);

// The form in which one plugin hears of events that were sent by StateChange before NRI 0.12 and
// have methods of their own since. The form of its version is tried first, then the other one if
// the method is missing, and the working form is remembered for each event.
class EventForms {
 public:
  // NRI 0.12: a plugin that sends its version at registration has the methods.
  explicit EventForms(bool has_version) : own_method_(has_version ? kAllEvents : 0) {}

  // This object outlives the question.
  Question Make(const api::StateChangeEvent& event);

 private:
  bool Change(Question& question, api::Event event);

  uint32_t own_method_;   // bits of events with a method of their own
  uint32_t settled_ = 0;  // bits of events whose form is known
};

}  // namespace resmgr::nri
