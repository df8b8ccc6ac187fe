// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/pod_event_watch.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/resmgr/observers.h"

namespace resmgr {
namespace {

// Reasons of Events.
constexpr std::string_view kRefusedReason = "CPURefused";
constexpr std::string_view kMovedReason = "CPUsMoved";
constexpr std::string_view kLostReason = "ExclusiveCpusLost";

// A container's name has at most 63 bytes.
constexpr size_t kLongestName = 64;

bool IsTold(const Shift& shift) {
  return shift.from.exclusive != shift.to.exclusive;
}

}  // namespace

void PodEventWatch::OnRefused(const Act& act, const Status& why) {
  TellPod(act.pod, true, kRefusedReason,
          fmt::format("container {}: {} is refused by policy {}: {}",
                      Printable(act.container.name, kLongestName),
                      act.why.empty() ? "its creation" : act.why, act.policy.name(), Message(why)));
}

void PodEventWatch::OnStartRefused(const Act& act, const Status& why) {
  TellPod(act.pod, true, kRefusedReason,
          fmt::format("container {}: its start is refused: {}",
                      Printable(act.container.name, kLongestName), Message(why)));
}

void PodEventWatch::OnMoved(const Act& act, const Shift& shift) {
  if (IsTold(shift)) TellMove(act.pod, act.container, shift, act.why);
}

void PodEventWatch::TellOthers(const Act& act) {
  for (const Shift& shift : act.others) {
    if (shift.first == act.container.key || !IsTold(shift)) continue;
    const Container* const container = act.snapshot.FindContainer(shift.first);
    const Pod* const pod = container == nullptr ? nullptr : act.snapshot.FindPod(container->pod_id);
    if (pod != nullptr)
      TellMove(*pod, *container, shift, "another container came, changed or ended");
  }
}

void PodEventWatch::TellMove(const Pod& pod, const Container& container, const Shift& shift,
                             std::string_view why) {
  const bool loss = shift.to.exclusive.size() < shift.from.exclusive.size();
  TellPod(pod, loss, loss ? kLostReason : kMovedReason,
          fmt::format("container {}: {} -> {} ({})", Printable(container.name, kLongestName),
                      Describe(shift.from), Describe(shift.to), why));
}

void PodEventWatch::TellPod(const Pod& pod, bool warning, std::string_view reason,
                            std::string_view message) {
  if (pod.namespace_name.empty() || pod.name.empty() || pod.uid.value().empty()) return;
  tell_({.pod_namespace = pod.namespace_name,
         .pod = pod.name,
         .uid = std::string(pod.uid.value()),
         .warning = warning,
         .reason = std::string(reason),
         .message = Utf8Cut(Printable(message, kLongestEventMessage), kLongestEventMessage),
         .last = now_()});
}

}  // namespace resmgr
