// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/pod_event_watch.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/kube/report_limits.h"
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

int64_t SeenAt(std::chrono::system_clock::time_point when) {
  return std::chrono::floor<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

PodEvent NodeEvent(bool warning, std::string_view reason, std::string message,
                   std::chrono::system_clock::time_point when) {
  PodEvent event;
  event.set_warning(warning);
  event.set_reason(std::string(reason));
  event.set_message(std::move(message));
  event.set_count(1);
  event.set_last_seen(SeenAt(when));
  return event;
}

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
  PodEvent event =
      NodeEvent(warning, reason,
                Utf8Cut(Printable(message, kLongestEventMessage), kLongestEventMessage), now_());
  event.set_pod_namespace(pod.namespace_name);
  event.set_pod(pod.name);
  event.set_uid(std::string(pod.uid.value()));
  tell_(std::move(event));
}

}  // namespace resmgr
